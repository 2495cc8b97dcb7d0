"""The command line."""

from __future__ import annotations

from typing import Annotated

import typer

from subswarm._version import __version__
from subswarm.cli.algorithms import algorithms
from subswarm.cli.bench import app as bench
from subswarm.cli.datasets import datasets
from subswarm.cli.select import select

__all__ = ["app"]

app = typer.Typer(
    help="Find the few features a model needs, with swarms that learn which features and how many.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(select)
app.command()(algorithms)
app.add_typer(bench, name="bench")
app.command()(datasets)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"subswarm {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Find the few features a model needs, with swarms that learn which features and how many."""
