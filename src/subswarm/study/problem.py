"""A group's data, folds and engine: built once in each worker, used by all its runs there."""

from __future__ import annotations

import hashlib
import threading
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from subswarm.core.errors import SettingError
from subswarm.core.types import FloatArray, IntArray, Mask
from subswarm.datasets import impute_nearest, load_dataset, open_table, published_folds, sound_folds
from subswarm.evaluation import Objective, make_objective
from subswarm.models import make_model
from subswarm.study.plan import Source
from subswarm.study.records import ProblemFacts

__all__ = ["Problem", "ProblemSpec", "build_problem", "problem_for"]


@dataclass(frozen=True)
class ProblemSpec:
    """All that a worker needs to build a problem; ``outer`` is (fold held out, number of outer folds).

    Folds are counted through where the outer cross-validation is repeated: the first of the second time follows the
    last of the first.

    ``device`` says what scores the subsets; the losses do not depend on it.
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
    """An objective, what is known of it beforehand, and the rows it never sees."""

    objective: Objective
    facts: ProblemFacts
    model: Any
    train: tuple[FloatArray, NDArray[Any]]
    test: tuple[FloatArray, NDArray[Any]] | None

    def held_out(self, mask: Mask) -> float | None:
        """Error, on the rows held out, of the model fitted on these columns of all the other rows."""
        return None if self.test is None else _held_out(self.model, self.train, self.test, mask)


class _Kept(threading.local):
    """The last problem of this thread; a Dask worker may have several, and an engine serves one at a time."""

    spec: ProblemSpec | None = None
    problem: Problem | None = None


_kept = _Kept()


def problem_for(spec: ProblemSpec) -> Problem:
    """The problem, kept until another one is asked for: runs of one group follow one another in a worker."""
    if _kept.problem is None or _kept.spec != spec:
        _kept.problem = None  # the memory of the last one is free before the next one is built
        _kept.problem, _kept.spec = build_problem(spec), spec
    return _kept.problem


def build_problem(spec: ProblemSpec) -> Problem:
    """Load the rows, draw the folds, and score all features and the first one."""
    X, y = _load(spec)
    model = seeded(make_model(spec.model), spec.seed)
    draw = published_folds if spec.protocol == "published" else sound_folds
    test: tuple[FloatArray, NDArray[Any]] | None = None
    if spec.outer is None:
        train = impute_nearest(X), y
    else:
        fold, count = spec.outer
        rows, held_out = draw(y, count, seed=_seed(spec.seed + 1, fold // count))[fold % count]
        train = impute_nearest(X[rows]), y[rows]
        test = impute_nearest(X[held_out], donors=X[rows]), y[held_out]
    count = _inner_folds(train[1], spec.folds)
    folds = [fold for number in range(spec.repeats) for fold in draw(train[1], count, seed=_seed(spec.seed, number))]
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
        held_out_all=None if test is None else _held_out(model, train, test, every),
    )
    return Problem(objective, facts, model, train, test)


def seeded(model: Any, seed: int) -> Any:
    """The model with every ``random_state`` set, so that a forest scores a subset the same way each time."""
    states = {name: seed for name in model.get_params() if name.split("__")[-1] == "random_state"}
    return model.set_params(**states)


def _load(spec: ProblemSpec) -> tuple[FloatArray, NDArray[Any]]:
    """The rows, missing cells still missing where they are to be imputed inside an outer fold."""
    source = spec.source
    if source.in_catalogue:
        data = load_dataset(source.name, protocol=spec.protocol, data_dir=spec.data_dir, impute=False)
        return data.X, data.y
    table = open_table(source.table or source.name, target=source.target, drop=source.drop, impute=source.impute)
    if table.task != "classification":
        raise SettingError(f"the target of {source.name!r} is a number; a study compares errors of classification.")
    return table.X, np.unique(table.y, return_inverse=True)[1].reshape(-1)


def _seed(seed: int, partition: int) -> int:
    """The seed of a partition; the first one has the study's own."""
    return int(np.random.SeedSequence([seed, partition]).generate_state(1)[0]) if partition else seed


def _inner_folds(y: IntArray, wanted: int) -> int:
    """The number of folds, or the size of the largest class where that is smaller (27 rows less an outer fold)."""
    return min(wanted, int(np.bincount(y).max()))


def _held_out(
    model: Any, train: tuple[FloatArray, NDArray[Any]], test: tuple[FloatArray, NDArray[Any]], mask: Mask
) -> float:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a constant column makes scikit-learn say much, run by run
        fitted = clone(model).fit(train[0][:, mask], train[1])
        return float(1.0 - fitted.score(test[0][:, mask], test[1]))


def _digest(X: FloatArray, y: NDArray[Any], folds: list[tuple[IntArray, IntArray]]) -> str:
    """Equal on every machine for the same rows, labels and folds."""
    digest = hashlib.sha256(f"{X.shape}".encode())
    for array in (X.astype("<f8"), y.astype("<i8"), *(test.astype("<i8") for _, test in folds)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
