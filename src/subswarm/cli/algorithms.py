"""``subswarm algorithms``: what there is, with each one's settings."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from subswarm.algorithms import REGISTRY, settings
from subswarm.algorithms.plain import settings_of
from subswarm.algorithms.subset_settings import SubsetSettings

__all__ = ["algorithms"]


def algorithms(
    name: Annotated[str | None, typer.Argument(help="Show only this algorithm.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the search algorithms, with their sources and settings."""
    from subswarm.algorithms import get_algorithm

    chosen = [name] if name else list(REGISTRY)
    if as_json:
        described = {each: _described(each, settings_of(get_algorithm(each))) for each in chosen}
        typer.echo(json.dumps(described, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    common = settings_of(SubsetSettings())
    table = Table(show_lines=True, title=None)
    for heading in ("name", "what it does", "settings"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "name")
    for each in chosen:
        own = {key: value for key, value in settings(each).items() if key not in common}
        described = _described(each, own)
        text = f"{described['summary']}\n[dim]{described['source']}[/dim]"
        table.add_row(each, text, "\n".join(f"{key} = {value!r}" for key, value in own.items()))
    console = Console()
    console.print(table)
    console.print("All of them also take " + ", ".join(f"{key} = {value!r}" for key, value in common.items()) + ".")


def _described(name: str, shown: dict[str, Any]) -> dict[str, Any]:
    kind = REGISTRY[name]
    return {
        "summary": (inspect.getdoc(kind) or "").splitlines()[0],
        "source": getattr(kind, "source", ""),
        "settings": shown,
    }
