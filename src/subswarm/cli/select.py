"""``subswarm select``: a table in, the few columns a model needs out."""

from __future__ import annotations

import difflib
import json
import math
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from subswarm.core.errors import SettingError
from subswarm.core.files import write_whole

__all__ = ["select"]


def select(
    table: Annotated[str, typer.Argument(help="A CSV or Parquet file, or a demo table: wine, breast-cancer, digits.")],
    target: Annotated[str | None, typer.Option(help="The column to predict (demo tables know theirs).")] = None,
    model: Annotated[str, typer.Option(help="knn, nb, linear, svm, tree or forest.")] = "knn",
    task: Annotated[str, typer.Option(help="classification, regression, or auto to go by the target.")] = "auto",
    algorithm: Annotated[str, typer.Option(help="A search from 'subswarm algorithms'.")] = "2d-upso",
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the algorithm, as NAME=VALUE; may be repeated.")
    ] = None,
    evaluations: Annotated[int, typer.Option(min=1, help="Subsets to score.")] = 6000,
    seconds: Annotated[float | None, typer.Option(help="Stop after this time.")] = None,
    patience: Annotated[int | None, typer.Option(help="Stop after this many evaluations without a better one.")] = None,
    scoring: Annotated[str | None, typer.Option(help="A scikit-learn scorer, such as balanced_accuracy.")] = None,
    cv: Annotated[int, typer.Option(help="Cross-validation folds.")] = 10,
    min_features: Annotated[int, typer.Option(help="Fewest features to select.")] = 1,
    max_features: Annotated[int | None, typer.Option(help="Most features to select.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column that is always selected; may be repeated.")] = None,
    choose: Annotated[
        str, typer.Option(help="best, or one-se: the fewest features within one standard error.")
    ] = "best",
    preselect: Annotated[
        str | None, typer.Option(help="Search only among the features a filter ranks highest, such as mrmr:50.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")] = None,
    impute: Annotated[bool, typer.Option("--impute", help="Fill missing values from the nearest row.")] = False,
    one_hot: Annotated[
        bool, typer.Option("--one-hot", help="Encode text columns, one category's columns kept together.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Fixes folds and search.")] = 0,
    jobs: Annotated[int, typer.Option(help="Workers; -1 is all cores. The answer is the same.")] = -1,
    engine: Annotated[str, typer.Option(help="auto, estimator (scikit-learn itself) or fast.")] = "auto",
    checkpoint: Annotated[Path | None, typer.Option(help="File to save to and to go on from.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the whole result as JSON to this file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No live progress line.")] = False,
) -> None:
    """Select the columns of TABLE that a model needs to predict the target."""
    from subswarm.algorithms import get_algorithm
    from subswarm.datasets import open_table
    from subswarm.models import make_model
    from subswarm.selector import SwarmSelector

    if out is not None and not out.resolve().parent.is_dir():
        raise SettingError(f"--out names {out}, but the folder {out.parent} does not exist; make it first.")
    data = open_table(table, target=target, drop=drop or [], impute=impute, one_hot=one_hot)
    kind = data.task if task == "auto" else task
    selector = SwarmSelector(
        make_model(model, kind),
        get_algorithm(algorithm, **_settings(setting or [])),
        cv=cv,
        scoring=scoring,
        max_evaluations=evaluations,
        max_seconds=seconds,
        patience=patience,
        min_features=min_features,
        max_features=max_features,
        fixed_features=_columns(keep or [], list(data.feature_names)),
        feature_groups=data.feature_groups or None,
        preselect=None if preselect is None else _ranking(preselect),
        choose=choose,
        engine=engine,
        n_jobs=jobs,
        random_state=seed,
        verbose=0 if quiet else 1,
        checkpoint=checkpoint,
    )
    selector.fit(data.X, data.y)
    report = _Report(table, data, model, kind, selector, seed)
    report.show()
    if out is not None:
        _write(out, json.dumps(report.as_json(), indent=2) + "\n")
        typer.echo(f"written to {out}")


@dataclass(frozen=True, eq=False)
class _Report:
    """What was found, for a person and for a program."""

    table: str
    data: Any
    model: str
    task: str
    selector: Any
    seed: int

    def show(self) -> None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        selector, result = self.selector, self.selector.result_
        scorer = selector.scoring or ("accuracy" if self.task == "classification" else "r2")
        console = Console(highlight=False)
        summary = Table(show_header=True, header_style="bold", box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for heading, side in (("", "left"), ("features", "right"), (scorer, "right")):
            summary.add_column(heading, justify=side)  # type: ignore[arg-type]
        summary.add_row("all features", str(selector.n_features_in_), f"{selector.baseline_score_:.4f}")
        summary.add_row("selected", str(selector.n_features_), f"{selector.best_score_:.4f}", style="bold")
        console.print()
        console.print(summary)
        console.print()
        console.print(Text("features  ", style="bold") + Text(", ".join(self.selected)))
        seconds = result.algorithm_seconds + result.evaluation_seconds
        console.print(
            Text("search    ", style="bold")
            + Text(
                f"{result.algorithm}, {result.evaluations} evaluations, {result.computed} distinct, {seconds:.1f} s, "
                f"engine {result.engine}, stopped by {result.stop_reason}"
            )
        )
        console.print(
            Text(
                f"The scores are means over {len(selector.fold_scores_)} folds that the search itself has seen, so the "
                "selected one is optimistic for new data.",
                style="dim",
            )
        )

    @property
    def selected(self) -> list[str]:
        return self._names(self.selector.support_)

    def as_json(self) -> dict[str, Any]:
        import numpy
        import sklearn

        from subswarm._version import __version__

        selector, result = self.selector, self.selector.result_
        return {
            "table": self.table,
            "target": self.data.target_name,
            "task": self.task,
            "model": self.model,
            "scoring": selector.scoring or ("accuracy" if self.task == "classification" else "r2"),
            "selected": self.selected,
            "support": selector.support_.tolist(),
            "n_features": selector.n_features_,
            "n_features_in": selector.n_features_in_,
            "best_score": selector.best_score_,
            "fold_scores": selector.fold_scores_.tolist(),
            "baseline_score": None if math.isnan(selector.baseline_score_) else selector.baseline_score_,
            "optimistic": True,
            "front": [
                {"n_features": int(size), "loss": float(loss), "features": self._names(mask)}
                for size, loss, mask in zip(
                    result.front.cardinality, result.front.fitness, result.front.masks, strict=True
                )
            ],
            "algorithm": result.algorithm,
            "settings": result.settings,
            "seed": self.seed,
            "evaluations": result.evaluations,
            "computed": result.computed,
            "stop_reason": result.stop_reason,
            "engine": result.engine,
            "algorithm_seconds": result.algorithm_seconds,
            "evaluation_seconds": result.evaluation_seconds,
            "versions": {
                "subswarm": __version__,
                "scikit-learn": sklearn.__version__,
                "numpy": numpy.__version__,
                "python": platform.python_version(),
            },
        }

    def _names(self, mask: Any) -> list[str]:
        return [name for name, chosen in zip(self.data.feature_names, mask, strict=True) if chosen]


def _ranking(text: str) -> tuple[str, int]:
    """RANKING:NUMBER as a pair."""
    name, _, number = text.partition(":")
    if not number.isdigit():
        raise SettingError(f"--preselect wants RANKING:NUMBER, such as mrmr:50; got {text!r}.")
    return name, int(number)


def _settings(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs as settings; a value is read as JSON where it is JSON, else as text."""
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise SettingError(f"--set wants NAME=VALUE; got {pair!r}.")
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = text
        found[name.replace("-", "_")] = tuple(value) if isinstance(value, list) else value
    return found


def _columns(names: list[str], known: list[str]) -> list[int]:
    unknown = [name for name in names if name not in known]
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, n=3)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise SettingError(f"--keep names column {unknown[0]!r}, which the table does not have.{hint}")
    return [known.index(name) for name in names]


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise SettingError(f"cannot write {path}: {error.strerror}.") from error
