"""``subswarm algorithms``: list the search algorithms with their settings."""

from __future__ import annotations

import dataclasses
import inspect
import json
from typing import Annotated, TypedDict

import typer

from subswarm.algorithms import REGISTRY, settings
from subswarm.algorithms.base import Algorithm
from subswarm.algorithms.state import settings_of

__all__ = ["algorithms"]


class Description(TypedDict):
    """What is shown of an algorithm."""

    summary: str
    source: str
    settings: dict[str, object]


def algorithms(
    name: Annotated[str | None, typer.Argument(help="Show only this algorithm.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the search algorithms, with their sources and settings."""
    from subswarm.algorithms import get_algorithm

    chosen = [name] if name else list(REGISTRY)
    if as_json:
        listed = {each: _describe(each, settings_of(get_algorithm(each))) for each in chosen}
        typer.echo(json.dumps(listed, indent=2))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    common = {field.name: field.default for field in dataclasses.fields(Algorithm)}
    table = Table(show_lines=True, title=None)
    for heading in ("name", "what it does", "settings"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "name")
    for each in chosen:
        own = {key: value for key, value in settings(each).items() if key not in common}
        described = _describe(each, own)
        text = Text.assemble(described["summary"].replace("`", ""), "\n", (described["source"], "dim"))
        table.add_row(each, text, "\n".join(f"{key} = {value!r}" for key, value in own.items()))
    console = Console()
    console.print(table)
    console.print(
        "All algorithms also accept " + ", ".join(f"{key} = {value!r}" for key, value in common.items()) + "."
    )


def _describe(name: str, shown: dict[str, object]) -> Description:
    kind = REGISTRY[name]
    return {
        "summary": (inspect.getdoc(kind) or "").splitlines()[0],
        "source": kind.source,
        "settings": shown,
    }
