"""``subswarm study report`` and ``subswarm study watch``: a study as a page, written once or served as it grows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subswarm.cli.beside import check_report

__all__ = ["report", "watch"]

StoreFile = Annotated[Path, typer.Argument(help="The result file that `study run` wrote.")]


def report(
    store: StoreFile,
    out: Annotated[Path | None, typer.Option(help="The HTML file to write; else the store's name with .html.")] = None,
) -> None:
    """Write a page about a study: one file with everything inside."""
    from subswarm.core.errors import SettingError
    from subswarm.core.files import write_whole
    from subswarm.report import study_page

    target = out or store.with_suffix(".html")
    check_report(target, option="--out")
    try:
        write_whole(target, study_page(store).encode())
    except OSError as error:
        raise SettingError(f"cannot write {target}: {error.strerror}.") from error
    typer.echo(f"the report is {target.resolve().as_uri()}")


def watch(
    store: StoreFile,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on this machine; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Serve the page of a study to this machine alone, renewed as runs land; Ctrl-C ends it."""
    import webbrowser

    from subswarm.core.errors import SettingError
    from subswarm.report import LiveServer, study_page
    from subswarm.study import Store

    def version() -> str:
        with Store.reading(store) as reading:
            return f"{len(reading.planned())} {len(reading.done())} {len(reading.failures())}"

    check_report(store.with_suffix(".html"), option="STORE")
    version()  # a store that cannot be read is refused here
    try:
        server = LiveServer(lambda: study_page(store, live=True), version, port=port)
    except OSError as error:
        raise SettingError(
            f"cannot listen on port {port}: {error.strerror}; take another, or 0 for a free one."
        ) from error
    typer.echo(f"watch {server.url} (Ctrl-C ends it)")
    if browser:
        webbrowser.open(server.url)
    try:
        server.serve()
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
    finally:
        server.close()
