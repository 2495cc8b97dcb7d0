"""``subswarm bench``: the measurements that the documentation shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subswarm.core.files import write_whole

__all__ = ["app"]

app = typer.Typer(help="Repeat the measurements of the documentation.", no_args_is_help=True)


@app.callback()
def _bench() -> None:
    """Repeat the measurements of the documentation."""


@app.command()
def algorithms(
    only: Annotated[list[str] | None, typer.Option(help="An algorithm; may be repeated. All by default.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="A data set; may be repeated. Wine, WDBC, Sonar, Ionosphere by default.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 10,
    evaluations: Annotated[int, typer.Option(min=1, help="Subsets each run may score.")] = 6000,
    out: Annotated[
        Path | None, typer.Option(help="A Markdown page whose tables are replaced; without it they are printed.")
    ] = None,
) -> None:
    """Every algorithm with naive Bayes and 5-NN: error, features and seconds."""
    from subswarm.bench.algorithms import DATASETS, Row, contestants, measure, replaced, tables

    def tell(row: Row) -> None:
        result = row.failure or f"error {row.error:.4f}, {row.cardinality:.1f} features"
        typer.echo(f"{row.dataset}, {row.model}, {row.algorithm}: {result}", err=True)

    rows = measure(
        contestants(only or ()), datasets=dataset or DATASETS, seeds=seeds, evaluations=evaluations, tell=tell
    )
    content = tables(rows, seeds=seeds, evaluations=evaluations)
    if out is None:
        typer.echo(content)
        return
    page = out.read_text(encoding="utf-8") if out.exists() else ""
    write_whole(out, replaced(page, content).encode())
    typer.echo(f"written to {out}")
