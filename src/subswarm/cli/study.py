"""``subswarm study``: run the paper's experiment or your own study, and show its progress and results."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from subswarm.cli.common import check_report

if TYPE_CHECKING:
    from subswarm.study import Study
    from subswarm.study.watch import Watch

__all__ = ["study_app"]

study_app = typer.Typer(
    help="Run a grid of data sets, models and algorithms, show its progress and print its tables.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

DataDir = Annotated[
    Path | None, typer.Option(help="The folder with the UCI files; by default the one that SUBSWARM_DATA names.")
]
StoreFile = Annotated[Path, typer.Argument(help="The result file that `study run` wrote.")]
Format = Annotated[str, typer.Option("--format", help="text, markdown, latex or csv.")]


@study_app.command()
def run(
    study: Annotated[str, typer.Argument(help="paper, paper-as-published, or a study file (.toml).")],
    store: Annotated[
        Path | None, typer.Option(help="The result file; by default the name of the study with .db.")
    ] = None,
    data_dir: DataDir = None,
    jobs: Annotated[
        int, typer.Option(help="Worker processes; -1 means one for each core. The results are the same.")
    ] = -1,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs of each algorithm, instead of the number in the study.")
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option(min=1, help="Evaluations per run, instead of the number in the study.")
    ] = None,
    outer: Annotated[
        int | None, typer.Option(help="Outer folds: also run each search in nested cross-validation.")
    ] = None,
    outer_repeats: Annotated[
        int | None, typer.Option(min=1, help="Repeats of the outer cross-validation, each with other folds.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Run only this data set, model or algorithm; may be repeated.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed runs again.")] = False,
    backend: Annotated[str, typer.Option(help="local, or dask with --scheduler.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://10.0.0.1:8786.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for another process that writes to the store.")] = False,
    device: Annotated[
        str, typer.Option(help="cpu, or cuda to score batches of many runs on a GPU. The results are the same.")
    ] = "cpu",
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show progress.")] = False,
) -> None:
    """Run the missing runs of a study; it can be stopped at any time and resumed with the same command."""
    import os
    import warnings

    from subswarm.study import Only, run_study

    # joblib warns when it replaces a worker whose memory has grown, for example with a larger problem; nothing is lost
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given to the executor")

    changes = {"runs": runs, "evaluations": evaluations, "outer": outer, "outer_repeats": outer_repeats}
    chosen = Only(tuple(only or ())).of(_change(_open_study(study), changes))
    file = store or Path(f"{chosen.name}.db")
    workers = (os.cpu_count() or 1) if jobs == -1 else jobs
    with _terminate_like_ctrl_c(), _watcher(quiet) as watch:
        try:
            summary = run_study(
                chosen,
                file,
                jobs=workers,
                data_dir=data_dir,
                retry_failed=retry_failed,
                backend=backend,
                scheduler=scheduler,
                wait=wait,
                device=device,
                progress=watch,
            )
        except KeyboardInterrupt:
            typer.echo(f"stopped; every finished run is in {file}. The same command resumes the study.", err=True)
            raise typer.Exit(130) from None
    typer.echo(
        f"{summary.asked - summary.failed} of {summary.asked} runs are in {file} ({summary.ran} run now, "
        f"{summary.seconds:.0f} s)."
    )
    if summary.failed:
        typer.echo(
            f"{summary.failed} runs failed; `subswarm study status {file}` shows the errors, --retry-failed tries "
            "again.",
            err=True,
        )
        raise typer.Exit(1)


@study_app.command()
def status(
    store: StoreFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show the progress of a study, its failures and the estimated time left; works while it runs."""
    from subswarm.study.status import read_status

    found = read_status(store)
    if as_json:
        import json

        typer.echo(json.dumps(found.as_json(), indent=2))
    else:
        typer.echo(found.as_text())


@study_app.command()
def table(
    store: StoreFile,
    what: Annotated[
        str,
        typer.Option(
            help="error, cardinality, time, tests, ranks, claims, friedman, wilcoxon, heldout, stability or baseline."
        ),
    ] = "error",
    form: Format = "text",
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of printing.")] = None,
) -> None:
    """Print a table of a study, with the paper's values where it has any."""
    from subswarm.study.tables import study_tables

    content = study_tables(store, what, form)
    if out is None:
        typer.echo(content, nl=False)
    else:
        _write(out, content)


@study_app.command()
def versus(
    champion: Annotated[str, typer.Argument(help="The label to judge, such as 2d-elite, or '2d-elite (islands)'.")],
    stores: Annotated[
        list[Path],
        typer.Argument(
            metavar="STORE",
            help="Result files that `study run` wrote, read together. A label that an earlier file has too gets the "
            "name of its study in brackets.",
        ),
    ],
    against: Annotated[str, typer.Option(help="The label to compare it with, besides the best of all others.")] = (
        "2d-upso"
    ),
    what: Annotated[
        str,
        typer.Option(
            help="error (searches on all rows), inner (the error that the searches of nested cross-validation "
            "minimised) or held-out (the error in nested cross-validation)."
        ),
    ] = "error",
    form: Format = "text",
) -> None:
    """Compare a champion with other algorithms: on each data set, by mean rank, and by criteria."""
    from subswarm.study.analysis.compare_tables import study_versus

    typer.echo(study_versus(champion, stores, against=against, what=what, form=form), nl=False)


@study_app.command()
def report(
    store: StoreFile,
    out: Annotated[
        Path | None, typer.Option(help="The HTML file to write; by default the name of the store with .html.")
    ] = None,
) -> None:
    """Write a self-contained HTML page about a study."""
    from subswarm.report.study_page import study_page

    target = out or store.parent / f"{store.stem}.html"
    check_report(target, option="--out")
    _write(target, study_page(store))
    typer.echo(f"the report is {target.resolve().as_uri()}")


@study_app.command()
def watch(
    store: StoreFile,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on this machine; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Serve a page about a study on this machine, updated as runs finish; stop it with Ctrl-C."""
    import webbrowser

    from subswarm.errors import SettingError
    from subswarm.report.live_server import LiveServer
    from subswarm.report.study_page import study_page
    from subswarm.study import Store

    def version() -> str:
        with Store.reading(store) as reading:
            return " ".join(map(str, reading.counts()))

    check_report(store.with_suffix(".html"), option="STORE")
    version()  # raises if the store cannot be read
    try:
        server = LiveServer(lambda: study_page(store, live=True), version, port=port)
    except OSError as error:
        raise SettingError(
            f"cannot listen on port {port}: {error.strerror}; use another port, or 0 for a free one."
        ) from error
    typer.echo(f"watch {server.url} (stop with Ctrl-C)")
    if browser:
        webbrowser.open(server.url)
    try:
        server.serve()
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
    finally:
        server.close()


def _open_study(name: str) -> Study:
    from subswarm.study import BUILT_IN, built_in_study, read_study

    return built_in_study(name) if name in BUILT_IN else read_study(name)


def _change(study: Study, changes: dict[str, int | None]) -> Study:
    given = {name: value for name, value in changes.items() if value is not None}
    return replace(study, **given)  # type: ignore[arg-type]


def _write(file: Path, content: str) -> None:
    from subswarm._files import write_whole
    from subswarm.errors import SettingError

    try:
        write_whole(file, content.encode())
    except OSError as error:
        raise SettingError(f"cannot write {file}: {error.strerror}.") from error


@contextmanager
def _terminate_like_ctrl_c() -> Iterator[None]:
    """Treat SIGTERM, which batch systems send, like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _watcher(quiet: bool) -> Iterator[Watch | None]:
    from subswarm.study.watch import Watch

    if quiet:
        yield None
        return
    with Watch() as watch:
        yield watch
