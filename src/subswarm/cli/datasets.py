"""``subswarm datasets``: list the paper's data sets, and which of them are available."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from subswarm.datasets import PROTOCOLS, catalogue, describe, is_present

__all__ = ["datasets"]


class Counts(TypedDict):
    """The size of a data set in one protocol."""

    rows: int
    features: int
    classes: int
    note: str


class Description(TypedDict):
    """What is shown of a data set."""

    title: str
    present: bool
    files: list[str]
    page: str
    citation: str
    licence: str
    protocols: dict[str, Counts]


def datasets(
    name: Annotated[str | None, typer.Argument(help="Show only this data set, with its notes and citation.")] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the UCI files. Default: the environment variable SUBSWARM_DATA.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the paper's sixteen data sets: size, classes, source, and whether they are available."""
    chosen = [describe(name).name] if name else list(catalogue())
    described = {each: _describe(each, data_dir) for each in chosen}
    if as_json:
        typer.echo(json.dumps(described, indent=2))
    elif name:
        _show_one(name, described[name])
    else:
        _show_all(described)


def _describe(name: str, data_dir: Path | None) -> Description:
    entry = describe(name)
    return {
        "title": entry.title,
        "present": is_present(name, data_dir=data_dir),
        "files": [file.name for file in entry.files],
        "page": entry.page,
        "citation": f"{entry.citation} https://doi.org/{entry.doi}",
        "licence": entry.licence,
        "protocols": {
            protocol: {
                "rows": entry.reading(protocol).shape[0],
                "features": entry.reading(protocol).shape[1],
                "classes": entry.reading(protocol).n_classes,
                "note": entry.reading(protocol).note,
            }
            for protocol in PROTOCOLS
        },
    }


def _show_all(described: dict[str, Description]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("name", "title", "rows", "features", "classes", "present", "source"):
        table.add_column(
            heading,
            justify="right" if heading in ("rows", "features", "classes") else "left",
            overflow="fold",
            no_wrap=heading in ("name", "source"),
        )
    for name, data in described.items():
        sound = data["protocols"]["sound"]
        counts = [str(count) for count in (sound["rows"], sound["features"], sound["classes"])]
        source = data["page"].removeprefix("https://archive.ics.uci.edu/dataset/")
        table.add_row(name, data["title"], *counts, "yes" if data["present"] else "no", f"UCI {source}")
    console = Console(highlight=False)
    console.print(table)
    console.print(
        "\nThe counts are those of the 'sound' protocol; `subswarm datasets NAME` shows the 'published' one. Missing "
        "data sets are downloaded from UCI when needed, or read from the folder in SUBSWARM_DATA.",
        style="dim",
    )


def _show_one(name: str, data: Description) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.print(f"{name}: {data['title']}", style="bold")
    for protocol, counts in data["protocols"].items():
        shape = f"{counts['rows']} rows, {counts['features']} features, {counts['classes']} classes"
        console.print(f"{protocol}: {shape}. {counts['note']}".rstrip())
    console.print(f"present: {'yes' if data['present'] else 'no'} ({', '.join(data['files'])})")
    console.print(f"source: {data['page']}")
    console.print(f"cite: {data['citation']}")
    console.print(f"licence: {data['licence']}")
