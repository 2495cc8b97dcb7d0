"""``subswarm select``: a table in, the few columns a model needs out."""

from __future__ import annotations

import difflib
import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from subswarm.cli.answer import Answer
from subswarm.cli.beside import check_report, measure_held_out, with_other_algorithms, with_other_seeds
from subswarm.core.errors import SettingError
from subswarm.core.files import write_whole

__all__ = ["select"]


def select(
    table: Annotated[str, typer.Argument(help="A CSV or Parquet file, or a demo table: wine, breast-cancer, digits.")],
    target: Annotated[str | None, typer.Option(help="The column to predict (demo tables know theirs).")] = None,
    model: Annotated[str, typer.Option(help="knn, nb, linear, svm, tree or forest.")] = "knn",
    task: Annotated[str, typer.Option(help="classification, regression, or auto to go by the target.")] = "auto",
    algorithm: Annotated[str, typer.Option(help="A search from 'subswarm algorithms'.")] = "2d-elite",
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the algorithm, as NAME=VALUE; may be repeated.")
    ] = None,
    evaluations: Annotated[int, typer.Option(min=1, help="Subsets to score.")] = 6000,
    seconds: Annotated[float | None, typer.Option(help="Stop after this time.")] = None,
    patience: Annotated[int | None, typer.Option(help="Stop after this many evaluations without a better one.")] = None,
    scoring: Annotated[str | None, typer.Option(help="A scikit-learn scorer, such as balanced_accuracy.")] = None,
    cv: Annotated[int, typer.Option(help="Cross-validation folds.")] = 10,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Partitions into folds, each scored being one evaluation. By default one for each 1000 evaluations, "
            "at most 6, where the algorithm shares them out (2d-elite); else 1.",
        ),
    ] = None,
    race: Annotated[
        bool, typer.Option("--race", help="Score only the best subsets on all partitions, the others on one.")
    ] = False,
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
    held_out: Annotated[
        int | None,
        typer.Option(
            min=2, help="Repeat the search inside so many outer folds, for an honest score. Costs as many searches."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=0, help="Repeat the selection with so many other seeds.")] = 0,
    against: Annotated[
        list[str] | None, typer.Option(help="Another algorithm to run on the same folds; may be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the whole result as JSON to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about the result to this HTML file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No live progress line.")] = False,
) -> None:
    """Select the columns of TABLE that a model needs to predict the target."""
    from subswarm.algorithms import get_algorithm
    from subswarm.datasets import open_table
    from subswarm.models import make_model
    from subswarm.selector import SwarmSelector

    if out is not None and not out.resolve().parent.is_dir():
        raise SettingError(f"--out names {out}, but the folder {out.parent} does not exist; make it first.")
    if race and repeats in (None, 1):
        raise SettingError("--race scores the best subsets on several partitions; give --repeats 4, say, with it.")
    check_report(report)
    others = [get_algorithm(name) and name for name in against or []]  # unknown names are refused before the search
    data = open_table(table, target=target, drop=drop or [], impute=impute, one_hot=one_hot)
    kind = data.task if task == "auto" else task
    selector = SwarmSelector(
        make_model(model, kind),
        get_algorithm(algorithm, **_settings(setting or [])),
        cv=cv,
        repeats="auto" if repeats is None else repeats,
        race=race,
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
        record=report is not None,
    )
    selector.fit(data.X, data.y)
    X, y, took = data.X, data.y, selector.result_.algorithm_seconds + selector.result_.evaluation_seconds
    answer = Answer(
        table,
        data,
        model,
        kind,
        selector,
        seed,
        honest=None
        if held_out is None
        else measure_held_out(selector, X, y, held_out, jobs=jobs, seed=seed, seconds=took),
        others=with_other_seeds(selector, X, y, seeds, seed=seed, seconds=took),
        rivals=with_other_algorithms(selector, X, y, others, seconds=took),
    )
    answer.show()
    if out is not None:
        _write(out, json.dumps(answer.as_json(), indent=2) + "\n")
        typer.echo(f"written to {out}")
    if report is not None:
        _write(report, answer.as_page(shlex.join(["subswarm", *sys.argv[1:]])))
        typer.echo(f"the report is {report.resolve().as_uri()}")


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
