"""The command line."""

from __future__ import annotations

from typing import Annotated

import typer

from subswarm._version import __version__
from subswarm.cli import bench
from subswarm.cli.algorithms import algorithms
from subswarm.cli.datasets import datasets
from subswarm.cli.select import SelectCommand, select
from subswarm.cli.study import study_app

__all__ = ["app"]

app = typer.Typer(
    help="Select the features that a model needs, with swarms that learn which features and how many.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command(cls=SelectCommand)(select)
app.command()(algorithms)
app.command()(datasets)
app.add_typer(bench.app, name="bench")
app.add_typer(study_app, name="study")


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"subswarm {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Select the features that a model needs, with swarms that learn which features and how many."""
