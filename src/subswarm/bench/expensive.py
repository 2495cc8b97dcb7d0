"""Measures selectors for boosted trees and forests: score on new rows, columns, noise, fits and time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import RFECV
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from subswarm._checks import check_choice
from subswarm._seeding import seed_of_repeat
from subswarm._types import AnyArray, Estimator, FloatArray, Mask
from subswarm.bench.store import append_rows, read_rows
from subswarm.errors import DatasetError, SettingError
from subswarm.selector import SwarmSelector
from subswarm.study.analysis.text_table import Grid, render

if TYPE_CHECKING:
    import os

__all__ = ["MODELS", "SELECTORS", "TABLES", "Row", "format_tables", "measure"]

TABLES = ("breast-cancer", "ada", "communities", "madelon", "made-1500x100", "made-5000x200")
"""The tables; other sizes of ``made-ROWSxCOLUMNS`` work too."""
MODELS = ("lightgbm", "hist-gradient-boosting", "forest")
INFORMATIVE = 15
"""Informative columns of a made-up table."""
MADELON = (28, 48, 64, 105, 128, 153, 241, 281, 318, 336, 338, 378, 433, 442, 451, 453, 455, 472, 475, 493)
"""The useful columns of madelon, which are correlated with each other; the 480 others are probes."""
INNER_FOLDS = 5
SHORT_FITS = 200
"""Fits of a short search, which takes about the time of ShapRFECV with boosted trees."""
ABSENT = "–"


@dataclass(frozen=True, eq=False)
class Task:
    """Training rows to select columns on, test rows to score the selection, and the columns without information."""

    X: FloatArray
    y: AnyArray
    X_test: FloatArray
    y_test: AnyArray
    noise: Mask | None
    model: Estimator
    classes: bool
    seed: int

    @property
    def scoring(self) -> str:
        return "roc_auc" if self.classes else "r2"

    @property
    def folds(self) -> StratifiedKFold | KFold:
        kind = StratifiedKFold if self.classes else KFold
        return kind(INNER_FOLDS, shuffle=True, random_state=self.seed)


@dataclass(frozen=True)
class Row:
    """One selector on one outer fold; ``noise`` and ``fits`` are None if they are unknown.

    ``seconds`` is the processor time of the selection, which runs on one thread.
    """

    table: str
    model: str
    selector: str
    fold: int
    folds: int
    trees: int
    seed: int
    score: float
    columns: int
    noise: int | None
    fits: int | None
    seconds: float


def measure(
    tables: Sequence[str],
    *,
    models: Sequence[str],
    selectors: Sequence[str],
    folds: int = 3,
    seed: int = 0,
    trees: int = 40,
    more: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    store: Path | None = None,
    only_stored: bool = False,
    report: Callable[[Row], object] = lambda row: None,
) -> list[Row]:
    """Return a row for each table, model, selector and outer fold; those that are in the store are not made again.

    ``n_jobs`` selections run at a time, each on one thread. With ``only_stored`` none runs.
    """
    for model in models:
        check_choice("models", model, MODELS)
        _model(model, True, trees, seed)  # a missing package or table is an error before anything is measured
    for selector in selectors:
        check_choice("selectors", selector, tuple(SELECTORS))
    rows = [
        row
        for row in read_rows(store, Row, "subswarm bench expensive")
        if (row.folds, row.trees, row.seed) == (folds, trees, seed)
    ]
    known = {(row.table, row.model, row.selector, row.fold) for row in rows}
    jobs = []
    for table in tables:
        _load(table, seed, more)
        for selector in selectors:
            together = [tuple(models)] if selector in MODEL_FREE else [(model,) for model in models]
            for fold, group in product(range(folds), together):
                missing = [model for model in group if (table, model, selector, fold) not in known]
                setting = (selector, fold, folds, trees, seed)
                blanks = [Row(table, model, *setting, 0.0, 0, None, None, 0.0) for model in missing]
                if blanks:
                    jobs.append(delayed(_measured)(blanks, more))
    parallel = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
    for found in parallel([] if only_stored else jobs):
        for row in found:
            rows.append(row)
            report(row)
        append_rows(store, map(asdict, found))
    order = {name: place for place, name in enumerate((*tables, *models, *selectors))}
    wanted = [row for row in rows if row.table in tables and row.model in models and row.selector in selectors]
    return sorted(wanted, key=lambda row: (order[row.model], order[row.table], order[row.selector], row.fold))


def format_tables(rows: Sequence[Row]) -> str:
    """Return means over the outer folds as Markdown, one table for each model.

    With several data tables, the last rows are means over all of them (sums of fits and seconds), for the selectors
    that were measured on all.
    """
    headers = ("table", "selector", "score on new rows", "standard error", "columns", "noise", "fits", "seconds")
    grids = []
    for model in dict.fromkeys(row.model for row in rows):
        cells = []
        for table in dict.fromkeys(row.table for row in rows if row.model == model):
            of_table = [row for row in rows if (row.model, row.table) == (model, table)]
            for selector in dict.fromkeys(row.selector for row in of_table):
                found = [row for row in of_table if row.selector == selector]
                scores = np.array([row.score for row in found])
                error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else float("nan")
                cells.append(
                    (
                        table,
                        selector,
                        _shown(float(scores.mean()), 4),
                        _shown(float(error), 4),
                        _mean([row.columns for row in found], 1),
                        _mean([row.noise for row in found], 1),
                        _mean([row.fits for row in found], 0),
                        _mean([row.seconds for row in found], 1),
                    )
                )
        grids.append(Grid(model, headers, (*cells, *_summary([row for row in rows if row.model == model]))))
    return render(grids, "markdown")


def _summary(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the means of a model over all data tables, for the selectors that were measured on all of them."""
    tables = {row.table for row in rows}
    cells: list[tuple[str, ...]] = []
    for selector in dict.fromkeys(row.selector for row in rows) if len(tables) > 1 else ():
        found = [row for row in rows if row.selector == selector]
        if {row.table for row in found} != tables:
            continue
        groups = [[row for row in found if row.table == table] for table in sorted(tables)]
        scores = [float(np.mean([row.score for row in group])) for group in groups]
        columns = [float(np.mean([row.columns for row in group])) for group in groups]
        fits = [float(np.mean(np.array([row.fits for row in group], dtype=np.float64))) for group in groups]
        seconds = [float(np.mean([row.seconds for row in group])) for group in groups]
        cells.append(
            (
                "all tables",
                selector,
                _shown(float(np.mean(scores)), 4),
                ABSENT,
                _shown(float(np.mean(columns)), 1),
                ABSENT,
                _shown(float(np.sum(fits)), 0),
                _shown(float(np.sum(seconds)), 1),
            )
        )
    return cells


def _task(row: Row, more: str | os.PathLike[str] | None) -> Task:
    """Return the task of a row: its outer fold, and its model."""
    X, y, noise = _load(row.table, row.seed, more)
    classes = y.dtype.kind in "iu"
    splitter = (StratifiedKFold if classes else KFold)(row.folds, shuffle=True, random_state=row.seed)
    train, test = list(splitter.split(X, y))[row.fold]
    own = seed_of_repeat(row.seed, row.fold)
    model = _model(row.model, classes, row.trees, row.seed)
    return Task(X[train], y[train], X[test], y[test], noise, model, classes, own)


def _load(table: str, seed: int, more: str | os.PathLike[str] | None) -> tuple[FloatArray, AnyArray, Mask | None]:
    """Return the table, its target, and which columns have no information, if that is known."""
    if table == "breast-cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return X, y.astype(np.intp), None
    if table.startswith("made-"):
        try:
            rows, columns = (int(part) for part in table.removeprefix("made-").split("x"))
        except ValueError:
            raise SettingError(f"a made-up table is made-ROWSxCOLUMNS, such as made-1500x100; got {table!r}.") from None
        if rows < 50 or columns < INFORMATIVE:
            raise SettingError(f"{table!r} is too small; it needs 50 rows and {INFORMATIVE} columns.")
        X, y = make_classification(
            rows, columns, n_informative=INFORMATIVE, n_redundant=0, class_sep=0.6, flip_y=0.05, shuffle=False,
            random_state=seed,
        )  # fmt: skip
        order = np.random.default_rng(seed).permutation(columns)
        return X[:, order], y.astype(np.intp), order >= INFORMATIVE
    path = Path(more or ".") / f"{table}.npz"
    if not path.exists():
        raise DatasetError(f"there is no table {table!r}: {path} is missing; set --more to its folder.")
    with np.load(path) as content:
        X, y = content["X"].astype(np.float64), content["y"]
    noise = ~np.isin(np.arange(X.shape[1]), MADELON) if table == "madelon" else None
    return X, y.astype(np.intp) if y.dtype.kind in "iu" else y, noise


def _model(name: str, classes: bool, trees: int, seed: int) -> Estimator:
    made: Estimator
    if name == "forest":
        made = (RandomForestClassifier if classes else RandomForestRegressor)(trees, random_state=seed)
        return made
    if name == "hist-gradient-boosting":
        kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        made = kind(max_iter=trees, random_state=seed)
        return made
    if find_spec("lightgbm") is None:
        raise SettingError("the model lightgbm needs the package lightgbm; install it, or choose other --models.")
    import lightgbm

    kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    made = kind(n_estimators=trees, random_state=seed, n_jobs=1, verbose=-1)
    return made


def _measured(rows: Sequence[Row], more: str | os.PathLike[str] | None) -> list[Row]:
    """Select once, and return the rows with the score of each model; none if the selector does not apply."""
    task = _task(rows[0], more)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        started = time.process_time()
        found = SELECTORS[rows[0].selector](task)
        seconds = time.process_time() - started
        if found is None:
            return []
        mask, fits = found
        noise = None if task.noise is None else int((mask & task.noise).sum())
        return [
            replace(row, score=_scored(_task(row, more), mask), columns=int(mask.sum()), noise=noise,
                    fits=fits, seconds=seconds)
            for row in rows
        ]  # fmt: skip


def _scored(task: Task, mask: Mask) -> float:
    """Return the score on the test rows; without columns, that of a constant answer."""
    dummy = DummyClassifier(strategy="prior") if task.classes else DummyRegressor()
    columns = mask if mask.any() else np.arange(len(mask)) == 0
    model: Any = clone(task.model if mask.any() else dummy).fit(task.X[:, columns], task.y)
    return float(get_scorer(task.scoring)(model, task.X_test[:, columns], task.y_test))


Found = tuple[Mask, int | None] | None
"""The selected columns and the number of fits; None where the selector does not apply."""


def _ours(task: Task, most_fits: int | None = None, **settings: object) -> Found:
    """Return the selection of the default search at no more fits than RFECV makes in its folds, or this many."""
    n_columns = task.X.shape[1]
    fits = INNER_FOLDS * (n_columns - 2)  # 10 fits are left for the scores of the selected and of all columns
    selector = SwarmSelector(
        task.model,
        cv=INNER_FOLDS,
        scoring=task.scoring,
        max_fits=fits if most_fits is None else min(fits, most_fits),
        random_state=task.seed,
    )
    fitted = selector.set_params(**settings).fit(task.X, task.y)
    return fitted.support_, fitted.result_.computed + 2 * INNER_FOLDS + 1


def _rfecv(task: Task) -> Found:
    """Return the selection of RFECV in single steps; None for histogram gradient boosting: it has no importances."""
    n_columns = task.X.shape[1]
    if type(task.model).__name__.startswith("Hist"):
        return None
    search = RFECV(task.model, step=1, cv=task.folds, scoring=task.scoring).fit(task.X, task.y)
    return np.asarray(search.support_), INNER_FOLDS * n_columns + n_columns - int(search.n_features_) + 1


def _boruta(task: Task) -> Found:
    if find_spec("boruta") is None:
        return None
    from boruta import BorutaPy

    kind = RandomForestClassifier if task.classes else RandomForestRegressor
    forest = kind(max_depth=5, random_state=task.seed)
    search = BorutaPy(forest, n_estimators="auto", random_state=task.seed).fit(task.X, task.y)
    return np.asarray(search.support_), None


def _shap_rfecv(task: Task) -> Found:
    if find_spec("probatus") is None:
        return None
    import pandas as pd
    from probatus.feature_elimination import ShapRFECV

    table = pd.DataFrame(task.X, columns=[f"column {number}" for number in range(task.X.shape[1])])
    model: Any = task.model
    search = ShapRFECV(model, step=0.2, cv=task.folds, scoring=task.scoring, n_jobs=1, random_state=task.seed).fit(
        table, pd.Series(task.y), check_additivity=False
    )
    chosen = set(search.get_reduced_features_set("best"))
    return np.array([name in chosen for name in table.columns]), None


def _all(task: Task) -> Found:
    return np.ones(task.X.shape[1], dtype=bool), 0


SELECTORS: dict[str, Callable[[Task], Found]] = {
    "default": _ours,
    "short": partial(_ours, most_fits=SHORT_FITS),
    "best": partial(_ours, choose="best"),
    "rfecv": _rfecv,
    "boruta": _boruta,
    "shap-rfecv": _shap_rfecv,
    "all": _all,
}
"""The selectors by name."""
MODEL_FREE = ("boruta", "all")
"""Selectors that do not use the model, and so are run once for all models."""


def _mean(values: Sequence[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    return _shown(float(np.mean(known)), digits) if known and len(known) == len(values) else ABSENT


def _shown(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else ABSENT
