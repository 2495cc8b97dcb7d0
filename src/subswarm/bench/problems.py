"""The problems of the benchmarks of selectors: made-up tables whose useful columns are known, and data sets."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, StratifiedShuffleSplit
from sklearn.naive_bayes import GaussianNB

from subswarm._checks import suggest
from subswarm._seeding import seed_of_repeat
from subswarm._types import AnyArray, Estimator, FloatArray, IntArray, Mask
from subswarm.datasets import is_present, load_dataset, names
from subswarm.errors import DatasetError, SettingError

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "INFORMATIVE",
    "KINDS",
    "MADE",
    "Task",
    "draw_rows",
    "load_table",
    "made_size",
    "make_table",
    "problem_names",
    "table_files",
    "tasks_of",
]

KINDS = ("falling", "correlated", "xor", "noise", "rare", "amounts")
MADE = (
    "falling-200x50",
    "falling-1000x50",
    "falling-5000x50",
    "falling-200x500",
    "correlated-200x50",
    "xor-500x20",
    "noise-200x50",
    "rare-1000x50",
    "amounts-200x50",
)
"""The made-up tables of the group ``made``; other sizes work too: KIND-ROWSxCOLUMNS."""
INFORMATIVE, COPIES, PAIRS = 8, 2, 2
STRENGTHS = 1.6 * 0.8 ** np.arange(INFORMATIVE)
"""Difference between the class means of each informative column, whose noise has variance 1."""
RESIDUE = 2.0
"""Standard deviation of the part of an amount that no column explains; the other part has 2.6."""
TEST_ROWS = 10_000
SPLIT_ONCE = ("madelon",)
"""Tables that are split 70/30 with each seed, and not into outer folds."""
INNER_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Task:
    """Training rows to select columns on, test rows to score the selection, and the columns without information."""

    X: FloatArray
    y: AnyArray
    X_test: FloatArray
    y_test: AnyArray
    noise: Mask | None = None
    scoring: str = "accuracy"
    model: Estimator = field(default_factory=GaussianNB)
    seed: int = 0
    evaluations: int = 6000

    @property
    def folds(self) -> StratifiedKFold | KFold:
        return (StratifiedKFold if self.has_classes else KFold)(INNER_FOLDS, shuffle=True, random_state=self.seed)

    @property
    def has_classes(self) -> bool:
        return self.y.dtype.kind in "iu"


def problem_names(wanted: str, more: str | None = None) -> list[str]:
    """Return the problems for names and groups (``made``, ``uci``, ``more``) separated by commas."""
    groups: dict[str, Callable[[], Sequence[str]]] = {
        "made": lambda: MADE,
        "uci": lambda: [name for name in names() if is_present(name)],
        "more": lambda: [path.stem for path in table_files(more, required=True) if _has_classes(path)],
    }
    found: list[str] = []
    for name in wanted.split(","):
        known = [*groups, *MADE, *names(), *(path.stem for path in table_files(more))]
        if name not in known and not made_size(name):
            raise SettingError(
                f"there is no problem {name!r}.{suggest(name, known)} Give made, uci, more, a data set, the name of a "
                f"file in the folder --more, or KIND-ROWSxCOLUMNS with a kind of {', '.join(KINDS)}."
            )
        found += groups[name]() if name in groups else [name]
    return list(dict.fromkeys(found))


def tasks_of(problem: str, *, folds: int, seeds: int, seed: int, more: str | None = None) -> Iterator[Task]:
    """Draw the tasks of a problem: ``seeds`` made-up tables or 70/30 splits, or ``folds`` outer folds of a table."""
    if size := made_size(problem):
        for number in range(seeds):
            yield replace(make_table(*size, seed=seed, number=number), seed=seed_of_repeat(seed, number))
        return
    X, y = _load(problem, more)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    if problem in SPLIT_ONCE:
        splitter = StratifiedShuffleSplit(seeds, test_size=0.3, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds are part of the problem
        splits = list(splitter.split(X, y))
    for number, (train, test) in enumerate(splits):
        yield Task(X[train], y[train], X[test], y[test], seed=seed_of_repeat(seed, number))


def make_table(kind: str, rows: int, columns: int, *, seed: int, number: int = 0) -> Task:
    """Draw a table whose informative columns are known; their places depend on the seed and not on the number.

    - falling: two classes whose means differ by 1.6, 1.28, 1.02, ... (8 columns, each 0.8 times the one before).
    - correlated: the same, and two copies of each of these columns with a correlation of 0.9 within the classes.
    - xor: the class is whether the sum of the products of two pairs of columns is positive.
    - noise: no column is informative.
    - rare: falling, with one row in 21 of the rarer class; scored by the area under the ROC curve.
    - amounts: a regression. The target is the sum of 8 columns times 1.6, 1.28, ... and of noise; scored by R².
    """
    drawn = {"correlated": INFORMATIVE * (1 + COPIES), "xor": 2 * PAIRS, "noise": 0}.get(kind, INFORMATIVE)
    if columns < max(drawn, 1) or rows < 20:
        raise SettingError(f"a made-up table {kind!r} needs at least 20 rows and {max(drawn, 1)} columns.")
    places = np.random.default_rng(seed).permutation(columns)
    rng = np.random.default_rng([seed, number])
    X, y = draw_rows(kind, rows, columns, rng)
    X_test, y_test = draw_rows(kind, TEST_ROWS, columns, rng)
    noise = (np.arange(columns) >= drawn)[places]
    scoring = {"rare": "roc_auc", "amounts": "r2"}.get(kind, "accuracy")
    return Task(X[:, places], y, X_test[:, places], y_test, noise, scoring)


def draw_rows(kind: str, rows: int, columns: int, rng: Generator) -> tuple[FloatArray, AnyArray]:
    """Draw rows whose informative columns come first."""
    X = rng.standard_normal((rows, columns))
    if kind == "amounts":
        return X, X[:, :INFORMATIVE] @ STRENGTHS + rng.normal(scale=RESIDUE, size=rows)
    if kind == "xor":
        return X, (np.sum(X[:, : 2 * PAIRS : 2] * X[:, 1 : 2 * PAIRS : 2], axis=1) > 0).astype(np.intp)
    y = rng.permutation(np.arange(rows) % (21 if kind == "rare" else 2) == 0).astype(np.intp)
    if kind == "correlated":
        for first in range(INFORMATIVE, INFORMATIVE * (1 + COPIES), INFORMATIVE):
            X[:, first : first + INFORMATIVE] *= np.sqrt(1 - 0.9**2)
            X[:, first : first + INFORMATIVE] += 0.9 * X[:, :INFORMATIVE]
        X[:, : INFORMATIVE * (1 + COPIES)] += y[:, None] * np.tile(STRENGTHS, 1 + COPIES)
    elif kind != "noise":
        X[:, :INFORMATIVE] += y[:, None] * STRENGTHS
    return X, y


def made_size(problem: str) -> tuple[str, int, int] | None:
    """Return kind, rows and columns of a made-up table, or None for another name."""
    found = re.fullmatch(rf"({'|'.join(KINDS)})-(\d+)x(\d+)", problem)
    return (found[1], int(found[2]), int(found[3])) if found else None


def table_files(more: str | None, *, required: bool = False) -> list[Path]:
    """Return the .npz files in a folder, or in that of the variable SUBSWARM_MORE; DatasetError if none is required."""
    folder = more or os.environ.get("SUBSWARM_MORE", "")
    files = sorted(Path(folder).glob("*.npz")) if folder else []
    if required and not files:
        raise DatasetError(f"there are no .npz files in {folder!r}; set --more or SUBSWARM_MORE to their folder.")
    return files


def _has_classes(path: Path) -> bool:
    with np.load(path) as content:
        return content["y"].dtype.kind in "iu"


def _load(problem: str, more: str | None) -> tuple[FloatArray, IntArray]:
    X, y = load_table(problem, more)
    if y.dtype.kind == "f":
        raise SettingError(f"{problem} has a continuous target, and this benchmark needs classes.")
    return X, y.astype(np.intp)


def load_table(problem: str, more: str | None) -> tuple[FloatArray, AnyArray]:
    """Return the rows and the target of a data set, or of an .npz file in the folder ``more``."""
    if problem in names():
        dataset = load_dataset(problem)
        return dataset.X, dataset.y
    path = next(path for path in table_files(more, required=True) if path.stem == problem)
    with np.load(path) as content:
        return content["X"].astype(np.float64), content["y"]
