"""``subswarm study versus``: whether an algorithm wins, from one store or several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["versus"]


def versus(
    champion: Annotated[str, typer.Argument(help="The label to judge, such as 2d-elite, or '2d-elite (clans)'.")],
    stores: Annotated[
        list[Path],
        typer.Argument(
            metavar="STORE",
            help="Result files that `study run` wrote, read together; a label of a later one that is taken has its "
            "study's name in brackets.",
        ),
    ],
    against: Annotated[str, typer.Option(help="The label to compare it with, beside the best of all others.")] = (
        "2d-upso"
    ),
    what: Annotated[
        str,
        typer.Option(
            help="error (of searches that saw all rows), inner (of those that an outer fold was kept from: the same "
            "question on many divisions of the rows) or held-out (on rows never seen)."
        ),
    ] = "error",
    form: Annotated[str, typer.Option("--format", help="text, markdown, latex or csv.")] = "text",
) -> None:
    """Print whether a champion wins: on each data set, by mean rank, and as a list of answers."""
    from subswarm.analysis.versus import study_versus

    typer.echo(study_versus(champion, stores, against=against, what=what, form=form), nl=False)
