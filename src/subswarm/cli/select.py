"""``subswarm select``: select the columns of a table that a model needs."""

from __future__ import annotations

import csv
import io
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from subswarm._checks import check_choice, check_jobs, suggest
from subswarm.cli.common import check_output, check_report, print_status, warnings_as_notes, write_bytes, write_text
from subswarm.errors import DataError, SettingError, SubswarmError

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from subswarm._types import AnyArray, Estimator, Splits
    from subswarm.algorithms.base import AnyAlgorithm
    from subswarm.datasets import Table

__all__ = ["SelectCommand", "select"]

_PANELS = {
    "Table": "target drop id_columns impute one_hot max_categories dates missing skip_unlabelled positive groups time "
    "weights no_header encoding",
    "Model and score": "model task scoring cv repeats race fold_race",
    "Search": "algorithm setting evaluations max_fits max_rows seconds patience early_stopping seed preselect "
    "checkpoint jobs engine",
    "Which columns": "choose min_features max_features keep max_cost costs",
    "Checks": "held_out permutations seeds against",
    "Output": "report out write save quiet",
}


class SelectCommand(TyperCommand):
    """``subswarm select``: each option has a panel."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        panels = {name: panel for panel, names in _PANELS.items() for name in names.split()}
        order = list(panels)
        for param in self.params:
            if param.name in panels:
                setattr(param, "rich_help_panel", panels[param.name])  # noqa: B010  (typer's attribute)
        self.params.sort(key=lambda param: order.index(param.name) if param.name in panels else -1)


SettingValue = str | int | float | bool | None | dict[str, object] | tuple[object, ...]


def select(
    table: Annotated[
        str,
        typer.Argument(
            help="A CSV, Parquet or Excel file, a demo table (wine, breast-cancer, digits, diabetes), a data set from "
            "'subswarm datasets', or openml:NAME."
        ),
    ],
    target: Annotated[
        str | None, typer.Option(help="The column to predict. Required for files; the others have a default.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="knn, knn-raw, nb, linear, logistic, ridge, ridge-classifier, ols, lda, qda, nearest-centroid, svm, "
            "tree, forest, extra-trees, hist-gradient-boosting, lightgbm, xgboost or catboost."
        ),
    ] = "knn",
    task: Annotated[str, typer.Option(help="classification, regression, or auto to decide from the target.")] = "auto",
    algorithm: Annotated[
        str,
        typer.Option(
            help="A search algorithm from 'subswarm algorithms'; auto is 2d-elite, or 2d-guided for boosted trees, "
            "forests and other models with importances that have no fast engine."
        ),
    ] = "auto",
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the algorithm, as NAME=VALUE. Can be repeated.")
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of subsets to score. Default: 6000; for models without a fast engine at most what takes about "
            "three minutes, which is measured first.",
            show_default=False,
        ),
    ] = None,
    max_fits: Annotated[
        int | None, typer.Option(min=1, help="Number of times the model may be fitted: once for each fold of a subset.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after this time.")] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after this many evaluations without a better subset.")
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            help="A scikit-learn scorer, such as f1_macro; of several, separated by commas, the first is optimised."
        ),
    ] = None,
    cv: Annotated[
        int | None,
        typer.Option(
            help="Cross-validation folds. Default: 10, or fewer if there are fewer rows or no class has 10 rows.",
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Repeats of the cross-validation; each repeat scored counts as one evaluation. Default: for 2d-elite "
            "one for each 1000 evaluations, at most 6; otherwise 1.",
            show_default=False,
        ),
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option(
            min=100,
            help="Rows on which each island of a cross-fitted search compares subsets; those to select from are scored "
            "on all rows. Default: 5000.",
            show_default=False,
        ),
    ] = None,
    race: Annotated[
        bool, typer.Option("--race", help="Score only the best subsets on all repeats, the others on one.")
    ] = False,
    fold_race: Annotated[
        bool,
        typer.Option("--fold-race", help="Score fold by fold, and give up subsets that are behind; for slow models."),
    ] = False,
    min_features: Annotated[int, typer.Option(help="Fewest features to select.")] = 1,
    max_features: Annotated[int | None, typer.Option(help="Most features to select.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column that is always selected. Can be repeated.")] = None,
    choose: Annotated[
        str,
        typer.Option(
            help="Which subset to select. smallest: the smallest that is not clearly worse than the best. best: the "
            "best score. one-se: the fewest features within one standard error of the best. knee: the subset after "
            "which more features (or a higher cost) bring little. budget: the best within --max-cost."
        ),
    ] = "smallest",
    max_cost: Annotated[
        float | None, typer.Option(help="With --choose budget: most features, or with --costs the highest cost.")
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file with a column name and its price in each row. 2d-pareto and nsga2 minimise both."
        ),
    ] = None,
    preselect: Annotated[
        str | None, typer.Option(help="Search only among the features that a filter ranks highest, such as mrmr:50.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out. Can be repeated.")] = None,
    impute: Annotated[bool, typer.Option("--impute", help="Fill missing values from the nearest row.")] = False,
    one_hot: Annotated[
        bool,
        typer.Option("--one-hot", help="One-hot encode text columns; the columns of a category are selected together."),
    ] = False,
    max_categories: Annotated[
        int, typer.Option(min=1, help="Most different texts of a column that --one-hot encodes.")
    ] = 100,
    dates: Annotated[
        bool, typer.Option("--dates", help="Use year, month, day, weekday and age in days of columns of dates.")
    ] = False,
    missing: Annotated[
        list[str] | None, typer.Option(help="A text that means a missing value, such as n.a. Can be repeated.")
    ] = None,
    skip_unlabelled: Annotated[
        bool, typer.Option("--skip-unlabelled", help="Leave out the rows whose target is missing.")
    ] = False,
    positive: Annotated[
        str | None, typer.Option(help="The positive class of the target; all other classes become one.")
    ] = None,
    id_columns: Annotated[
        list[str] | None,
        typer.Option("--id", help="A column that identifies rows: not a feature, but written by --write. Repeatable."),
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="A column whose equal values mark rows that must stay in one fold.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="A column of dates or numbers: folds then train on earlier rows and test on later ones."),
    ] = None,
    weights: Annotated[str | None, typer.Option(help="A column with the weight of each row for the model.")] = None,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="The first line is a row; columns are 'column 1', 'column 2', ...")
    ] = False,
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Encoding of a CSV file, such as cp1252 or latin-1. Default: that of its byte order mark, or UTF-8.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds and search.")] = 0,
    jobs: Annotated[
        int, typer.Option(help="Number of workers; -1 means all cores. The result does not depend on it.")
    ] = -1,
    early_stopping: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="For the models of gradient boosting: stop after this many trees without a better score on a tenth of "
            "the training rows.",
        ),
    ] = None,
    engine: Annotated[str, typer.Option(help="auto, estimator (scikit-learn itself) or fast.")] = "auto",
    checkpoint: Annotated[Path | None, typer.Option(help="File to save the search to and to resume it from.")] = None,
    held_out: Annotated[
        int | None,
        typer.Option(
            min=2, help="Nested cross-validation: repeat the search in this many outer folds. Costs as many searches."
        ),
    ] = None,
    permutations: Annotated[
        int | None,
        typer.Option(
            min=1, help="Permutation test: repeat the search on so many shuffled targets. Costs as many searches."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=0, help="Repeat the selection with this many other seeds.")] = 0,
    against: Annotated[
        list[str] | None, typer.Option(help="Another algorithm to run on the same folds. Can be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the result as JSON to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report of the result to this HTML file.")] = None,
    write: Annotated[
        Path | None, typer.Option(help="Write the table with the selected columns only, as .csv or .parquet.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Save a fitted pipeline with joblib, such as model.joblib; it predicts from whole tables."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress bar.")] = False,
) -> None:
    """Select the columns of TABLE that a model needs to predict the target."""
    check_output(out, option="--out")
    check_output(save, option="--save")
    check_report(report)
    check_jobs("--jobs", jobs)
    check_choice("--task", task, ("auto", "classification", "regression"))
    if race and fold_race:
        raise SettingError("--race and --fold-race are two kinds of races; give one of them.")
    if race and repeats in (None, 1):
        raise SettingError("--race needs a repeated cross-validation; add --repeats 4, say.")
    from subswarm._display import format_duration
    from subswarm._models import TAKING_CATEGORIES, TAKING_MISSING_VALUES, make_model
    from subswarm.algorithms import get_algorithm
    from subswarm.datasets import open_table
    from subswarm.datasets._write import check_ending, selected_pipeline, write_table
    from subswarm.report.record import Selection, search_with_algorithms, search_with_seeds
    from subswarm.report.selection_page import write_page
    from subswarm.report.summary import print_summary
    from subswarm.selector import SwarmSelector

    if write is not None:
        check_output(write, option="--write")
        check_ending(write)
    others = against or []
    for name in others:  # unknown names are reported before the search
        get_algorithm(name)
    data = open_table(
        table,
        target=target,
        drop=drop or [],
        impute=impute,
        one_hot=one_hot,
        max_categories=max_categories,
        dates=dates,
        missing=missing or [],
        skip_unlabelled=skip_unlabelled,
        positive=positive,
        id=id_columns or [],
        groups=groups,
        time=time,
        weights=weights,
        categories=model in TAKING_CATEGORIES,
        keep_missing=model in TAKING_MISSING_VALUES,
        header=not no_header,
        encoding=encoding,
    )
    for note in data.notes:
        typer.echo(f"note: {note}", err=True)
    estimator = make_model(model, data.task if task == "auto" else task)
    features = data.features
    params = _metadata(data, estimator, model)
    selector = SwarmSelector(
        estimator,
        _parse_algorithm(algorithm, setting or []),
        cv=_splits(data, estimator, cv, seed),
        repeats="auto" if repeats is None else repeats,
        max_rows="auto" if max_rows is None else max_rows,
        race="folds" if fold_race else race,
        scoring=scoring.split(",") if scoring and "," in scoring else scoring,
        max_evaluations="auto" if evaluations is None else evaluations,
        max_fits=max_fits,
        max_seconds=seconds,
        patience=patience,
        min_features=min_features,
        max_features=max_features,
        fixed_features=_find_columns(keep or [], list(data.feature_names)),
        feature_groups=data.feature_groups or None,
        preselect=None if preselect is None else _parse_preselection(preselect),
        choose=choose,
        max_cost=max_cost,
        feature_costs=None if costs is None else _read_costs(costs, list(data.feature_names)),
        held_out=held_out,
        permutation_test=permutations,
        early_stopping=early_stopping,
        engine=engine,
        n_jobs=jobs,
        random_state=seed,
        verbose=0 if quiet else 1,
        checkpoint=checkpoint,
        record=report is not None,
    )
    with warnings_as_notes():
        try:
            selector.fit(features, data.y, **params)
        except (ValueError, TypeError, ArithmeticError) as error:
            if isinstance(error, SubswarmError):
                raise
            raise DataError(  # the model or the scorer refuses the data, such as text classes with scoring r2
                f"model {model!r} cannot be scored by {scoring or 'its default score'} on this table ({error}); "
                f"{_advice(error)}."
            ) from error
        cost = selector._facts.search_seconds
        other_seeds: dict[int, SwarmSelector] = {}
        other_algorithms: dict[str, SwarmSelector] = {}
        try:
            for count, what in ((seeds, "other seeds"), (len(others), "other algorithms")):
                if count:
                    searches = "1 more search" if count == 1 else f"{count} more searches"
                    print_status(f"{what}: {searches}, about {format_duration(count * cost)}")
            for other in range(seed + 1, seed + 1 + seeds):
                other_seeds |= search_with_seeds(selector, features, data.y, [other], params)
            for name in others:
                other_algorithms |= search_with_algorithms(selector, features, data.y, [name], params)
        except KeyboardInterrupt:
            print_status("interrupted: the other searches are left out")
        selection = Selection.of(
            selector,
            table=table,
            target=data.target_name,
            model=model,
            names=data.feature_names,
            command=shlex.join(["subswarm", *sys.argv[1:]]),
            other_seeds=other_seeds,
            other_algorithms=other_algorithms,
        )
    print_summary(selection)
    if out is not None:
        write_text(out, json.dumps(selection.as_json(), indent=2) + "\n")
        typer.echo(f"result written to {out}")
    if write is not None:
        write_table(data, write, selector.support_)
        typer.echo(f"table written to {write}")
    if save is not None:
        _save(selected_pipeline(data, selector.support_, selector.estimator_), save)
        typer.echo(f"pipeline saved to {save}")
    if report is not None:
        write_page(selection, report)
        typer.echo(f"report written to {report.resolve().as_uri()}")


def _parse_algorithm(name: str, settings: list[str]) -> AnyAlgorithm | str:
    """Return the algorithm with these settings, or "auto"; settings without an algorithm are those of 2d-elite."""
    from subswarm.algorithms import get_algorithm

    if name == "auto":
        return get_algorithm("2d-elite", **_parse_settings(settings)) if settings else name
    return get_algorithm(name, **_parse_settings(settings))


def _splits(data: Table, estimator: Estimator, cv: int | None, seed: int) -> Splits | None:
    """Return the splitter for tables with groups or in the order of time; otherwise the number of folds."""
    from sklearn.base import is_classifier
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, TimeSeriesSplit

    splits: Splits | None = cv
    if data.in_time_order:
        splits = TimeSeriesSplit(5 if cv is None else max(2, cv))
    elif data.groups is not None:
        n_groups = len(set(data.groups.tolist()))
        if n_groups < 2:
            raise DataError("--groups names a column with the same value in every row; at least 2 groups are needed.")
        folds = min(10, n_groups) if cv is None else cv
        if folds > n_groups:
            raise DataError(f"--cv {folds} needs at least {folds} groups, and the column of --groups has {n_groups}.")
        stratified = is_classifier(estimator)
        splits = StratifiedGroupKFold(folds, shuffle=True, random_state=seed) if stratified else GroupKFold(folds)
    return splits


def _metadata(data: Table, estimator: Estimator, model: str) -> dict[str, AnyArray]:
    """Return the groups and weights to pass to ``fit``, by the names that the estimator uses."""
    found: dict[str, AnyArray] = {} if data.groups is None else {"groups": data.groups}
    if data.weights is not None:
        from subswarm._models import MODELS, TAKING_CATEGORIES
        from subswarm.objective.validation import weights_argument

        name = weights_argument(estimator)
        if name is None:
            able = [
                other
                for other, (_, tasks) in MODELS.items()
                if data.task in tasks and other not in TAKING_CATEGORIES and weights_argument(tasks[data.task]())
            ]
            raise SettingError(f"--weights: the model {model!r} cannot use weights; choose {' or '.join(able)}.")
        found[name] = data.weights
    return found


def _advice(error: Exception) -> str:
    """Say what to do about an error of the model or the scorer."""
    if "pos_label" in str(error):
        return "name the positive class with --positive"
    return "choose another --model or --scoring"


def _save(pipeline: Pipeline, path: Path) -> None:
    import joblib

    content = io.BytesIO()
    joblib.dump(pipeline, content)
    write_bytes(path, content.getvalue())


def _parse_preselection(text: str) -> tuple[str, int]:
    """Parse RANKING:NUMBER."""
    name, _, number = text.partition(":")
    if not (number.isascii() and number.isdigit()):
        raise SettingError(f"--preselect must be RANKING:NUMBER, such as mrmr:50; got {text!r}.")
    return name, int(number)


def _parse_settings(pairs: list[str]) -> dict[str, SettingValue]:
    """Parse NAME=VALUE pairs. A value that is JSON is read as JSON, anything else as text."""
    found: dict[str, SettingValue] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise SettingError(f"--set must be NAME=VALUE; got {pair!r}.")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):  # ValueError: not JSON, or an integer of too many digits
            value = text
        found[name.replace("-", "_")] = tuple(value) if isinstance(value, list) else value
    return found


def _read_costs(path: Path, names: list[str]) -> list[float]:
    """Return the price of each column from a CSV file; an encoded column has the price of the column it is made of."""
    prices: dict[str, float] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeError, csv.Error) as error:
        raise DataError(f"--costs got {path}, which cannot be read: {error}.") from error
    for number, row in enumerate(rows, start=1):
        try:
            name, price = row
            prices[name] = float(price)
        except ValueError:
            if number > 1:  # the first row may be a heading
                raise DataError(
                    f"{path}, row {number}, must have a column name and a price; got {','.join(row)!r}."
                ) from None
    sources = {name: name if name in prices else name.split("=", 1)[0] for name in names}
    for name, source in sources.items():
        if source not in prices:
            raise SettingError(f"{path} has no price for column {name!r}; add a row, with 0 for a free column.")
    unknown = [name for name in prices if name not in sources.values()]
    if unknown:
        raise SettingError(
            f"{path} names column {unknown[0]!r}, which the table does not have.{suggest(unknown[0], names)}"
        )
    return [prices[source] for source in sources.values()]


def _find_columns(names: list[str], known: list[str]) -> list[int]:
    """Return the indices of columns by their names."""
    for name in names:
        if name not in known:
            raise SettingError(f"--keep names column {name!r}, which the table does not have.{suggest(name, known)}")
    return [known.index(name) for name in names]
