"""Builds the data, folds and objective of a group, once in each worker."""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from subswarm._models import make_model
from subswarm._seeding import seed_of_repeat, set_random_states
from subswarm._types import Estimator, FloatArray, IntArray, Mask
from subswarm.datasets import impute_nearest, load_dataset, open_table, published_folds, sound_folds
from subswarm.engines.data import Fold
from subswarm.errors import SettingError
from subswarm.nested import score_left_out
from subswarm.objective.folds import fixed_folds
from subswarm.objective.objective import Objective, make_objective
from subswarm.study.definition import Source
from subswarm.study.records import ProblemFacts

__all__ = ["Problem", "ProblemSpec", "build_problem", "problem_for"]

Data = tuple[FloatArray, IntArray]
"""Rows and class codes."""


@dataclass(frozen=True)
class ProblemSpec:
    """What a worker needs to build a problem.

    ``outer`` is (outer fold, number of outer folds). The folds of several outer repeats are numbered consecutively.
    ``device`` is what scores the subsets; the losses do not depend on it.
    """

    source: Source
    model: str
    protocol: str
    folds: int
    outer: tuple[int, int] | None
    seed: int
    data_dir: str | None
    device: str = "cpu"
    repeats: int = 1


@dataclass(frozen=True, eq=False)
class Problem:
    """An objective, and the rows that nested cross-validation leaves out.

    Attributes
    ----------
    objective : scores subsets on the training rows
    facts : what is known before any search
    model : the estimator
    train : the rows that the search sees
    data : all rows; missing cells are imputed from the training rows
    outer : training and test rows of the outer fold; None if the search sees all rows
    """

    objective: Objective
    facts: ProblemFacts
    model: Estimator
    train: Data
    data: Data
    outer: Fold | None

    @property
    def test(self) -> Data | None:
        """The rows of the outer fold, or None."""
        return None if self.outer is None else _take(self.data, self.outer.test)

    def held_out(self, mask: Mask) -> float | None:
        """Return the error on the outer fold of the model fitted on these columns of all other rows."""
        return None if self.outer is None else _error_left_out(self.model, self.data, self.outer, mask)


class _LastProblem(threading.local):
    """The last problem of this thread. A Dask worker may have several threads, and an engine serves one at a time."""

    spec: ProblemSpec | None = None
    problem: Problem | None = None


_last = _LastProblem()


def problem_for(spec: ProblemSpec) -> Problem:
    """Return the problem, kept until another one is asked for: a worker gets the runs of one group in sequence."""
    if _last.problem is None or _last.spec != spec:
        _last.problem = None  # free its memory before the next one is built
        _last.problem, _last.spec = build_problem(spec), spec
    return _last.problem


def build_problem(spec: ProblemSpec) -> Problem:
    """Load the rows, draw the folds, and score all features and the first feature."""
    X, y = _load(spec)
    model = set_random_states(make_model(spec.model), spec.seed)
    outer = _draw_outer_fold(spec, X, y, model)
    data = _impute(X, outer), y
    train = data if outer is None else _take(data, outer.train)
    folds = _draw_inner_folds(spec, train[1])
    objective = make_objective(model, *train, cv=folds, repeats=spec.repeats, n_jobs=1, device=spec.device)
    n_features = X.shape[1]
    every, first = np.ones(n_features, dtype=bool), np.arange(n_features) == 0
    facts = ProblemFacts(
        n_rows=len(train[1]),
        n_features=n_features,
        n_classes=len(np.unique(y)),
        data_digest=_digest(*train, folds),
        loss_all=float(objective.losses_of(every).mean()),
        loss_first=float(objective.losses_of(first).mean()),
        held_out_all=None if outer is None else _error_left_out(model, data, outer, every),
    )
    return Problem(objective, facts, model, train, data, outer)


def _load(spec: ProblemSpec) -> Data:
    """Return rows and class codes; cells that are imputed inside an outer fold are still missing."""
    source = spec.source
    if source.in_catalogue:
        data = load_dataset(source.name, protocol=spec.protocol, data_dir=spec.data_dir, impute=False)
        return data.X, data.y
    table = open_table(source.table or source.name, target=source.target, drop=source.drop, impute=source.impute)
    if table.task != "classification":
        raise SettingError(f"the target of {source.name!r} is a number; a study needs a classification target.")
    return table.X, np.unique(table.y, return_inverse=True)[1].reshape(-1)


def _draw_folds(spec: ProblemSpec, y: IntArray, count: int, seed: int) -> list[tuple[IntArray, IntArray]]:
    draw = published_folds if spec.protocol == "published" else sound_folds
    return draw(y, count, seed=seed)


def _draw_outer_fold(spec: ProblemSpec, X: FloatArray, y: IntArray, model: Estimator) -> Fold | None:
    """Return the outer fold. Its seed is the next one after the study's, so that it differs from the inner folds."""
    if spec.outer is None:
        return None
    number, count = spec.outer
    splits = _draw_folds(spec, y, count, seed_of_repeat(spec.seed + 1, number // count))
    return fixed_folds(splits, X, y, estimator=model, setting="outer")[number % count]


def _draw_inner_folds(spec: ProblemSpec, y: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Return the folds of all repeats; fewer folds than asked for if the largest class has fewer rows."""
    count = min(spec.folds, int(np.bincount(y).max()))
    return [
        fold
        for number in range(spec.repeats)
        for fold in _draw_folds(spec, y, count, seed_of_repeat(spec.seed, number))
    ]


def _impute(X: FloatArray, outer: Fold | None) -> FloatArray:
    """Fill missing cells; test rows of an outer fold are filled from training rows, and have no effect on these."""
    if outer is None:
        return impute_nearest(X)
    filled = np.array(X, order="C")
    filled[outer.train] = impute_nearest(X[outer.train])
    filled[outer.test] = impute_nearest(X[outer.test], donors=X[outer.train])
    return filled


def _take(data: Data, rows: IntArray) -> Data:
    return data[0][rows], data[1][rows]


def _error_left_out(model: Estimator, data: Data, outer: Fold, mask: Mask) -> float:
    """Return the error on the test rows of a model fitted on the selected columns of the training rows."""
    columns = FunctionTransformer(itemgetter((slice(None), mask)))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # scikit-learn warns about constant columns, for every run
        score, _ = score_left_out(make_pipeline(columns, model), *data, outer)
    return 1.0 - score


def _digest(X: FloatArray, y: IntArray, folds: Sequence[tuple[IntArray, IntArray]]) -> str:
    """Return a digest that is equal on every machine for the same rows, labels and folds."""
    digest = hashlib.sha256(f"{X.shape}".encode())
    for array in (X.astype("<f8"), y.astype("<i8"), *(test.astype("<i8") for _, test in folds)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
