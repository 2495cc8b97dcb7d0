"""``subswarm study``: the paper's experiment, or one of your own, as one command that can be broken off and resumed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["study_app"]

study_app = typer.Typer(
    help="Run a grid of data sets, models and algorithms; see how far it is; print its tables.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

DataDir = Annotated[Path | None, typer.Option(help="The folder with the UCI files; else the one SUBSWARM_DATA names.")]
StoreFile = Annotated[Path, typer.Argument(help="The result file that `study run` wrote.")]


@study_app.command()
def run(
    study: Annotated[str, typer.Argument(help="paper, paper-as-published, or a study file (.toml).")],
    store: Annotated[Path | None, typer.Option(help="The result file; by default the study's name with .db.")] = None,
    data_dir: DataDir = None,
    jobs: Annotated[
        int, typer.Option(help="Worker processes; -1 is one for each core. The results are the same.")
    ] = -1,
    runs: Annotated[int | None, typer.Option(min=1, help="Runs of each algorithm, instead of the study's own.")] = None,
    evaluations: Annotated[
        int | None, typer.Option(min=1, help="Evaluations of a run, instead of the study's.")
    ] = None,
    outer: Annotated[
        int | None, typer.Option(help="Also repeat each search inside an outer cross-validation of so many folds.")
    ] = None,
    outer_repeats: Annotated[
        int | None, typer.Option(min=1, help="Repeat the outer cross-validation so often, on other folds each time.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="A data set, model or algorithm to run alone; may be repeated.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed runs again.")] = False,
    backend: Annotated[str, typer.Option(help="local, or dask with --scheduler.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://10.0.0.1:8786.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for another process that writes to the store.")] = False,
    device: Annotated[
        str, typer.Option(help="cpu, or cuda: a GPU scores, in batches of many runs. The results are the same.")
    ] = "cpu",
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing while it runs.")] = False,
) -> None:
    """Run what is missing of a study; break it off whenever you like, the same command goes on."""
    import os
    import warnings

    from subswarm.study import Only, run_study

    # joblib replaces a worker that has grown, as one does whose next problem is larger, and warns; nothing is lost
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given to the executor")

    changes = {"runs": runs, "evaluations": evaluations, "outer": outer, "outer_repeats": outer_repeats}
    chosen = Only(tuple(only or ())).of(_changed(_study(study), **changes))
    file = store or Path(f"{chosen.name}.db")
    workers = (os.cpu_count() or 1) if jobs == -1 else jobs
    with _ended_like_ctrl_c(), _watcher(quiet) as watch:
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
            typer.echo(f"stopped; every finished run is in {file}, and the same command goes on from there.", err=True)
            raise typer.Exit(130) from None
    typer.echo(
        f"{summary.asked - summary.failed} of {summary.asked} runs are in {file} ({summary.ran} run now, "
        f"{summary.seconds:.0f} s)."
    )
    if summary.failed:
        typer.echo(
            f"{summary.failed} runs failed; `subswarm study status {file}` says why, --retry-failed tries again.",
            err=True,
        )
        raise typer.Exit(1)


@study_app.command()
def status(
    store: StoreFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show how far a study is, what failed, and how long the rest may take; also while it runs."""
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
    form: Annotated[str, typer.Option("--format", help="text, markdown, latex or csv.")] = "text",
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of printing.")] = None,
) -> None:
    """Print a table of a study, ours beside the paper's."""
    from subswarm.analysis.tables import study_tables
    from subswarm.core.errors import SettingError
    from subswarm.core.files import write_whole

    text = study_tables(store, what, form)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        write_whole(out, text.encode())
    except OSError as error:
        raise SettingError(f"cannot write {out}: {error.strerror}.") from error


def _study(name: str) -> Any:
    from subswarm.study import BUILT_IN, built_in_study, read_study

    return built_in_study(name) if name in BUILT_IN else read_study(name)


def _changed(study: Any, **changes: int | None) -> Any:
    return replace(study, **{name: value for name, value in changes.items() if value is not None})


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """A polite request to end (SIGTERM, as batch systems send it) is heard like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _watcher(quiet: bool) -> Iterator[Any]:
    from subswarm.study.watch import Watch

    if quiet:
        yield None
        return
    with Watch() as watch:
        yield watch
