"""A permutation test of a selection: how often the same search does as well on shuffled targets.

The searches run next to each other, ``n_jobs`` at a time, and not as one batch with common tables. Their folds are
drawn for the shuffled target, as for the given one, so the rows of a fold, the scalers fitted on them and the distances
between them differ. Checking the table and making engines takes 1 to 6 % of such a search, and no more could be shared.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import clone

from subswarm._display import format_duration
from subswarm._types import AnyArray, FloatArray, IntArray
from subswarm.errors import DataError
from subswarm.nested import QUIET, Selector
from subswarm.objective.validation import clone_estimator

__all__ = ["PermutationTest", "describe_permutations", "run_permutations", "shuffles"]


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """The scores of searches on shuffled targets, where the columns tell nothing.

    Attributes
    ----------
    score : ``best_score_`` of the search on the given target
    scores : ``best_score_`` of the same search on each shuffled target, shape (P,)
    """

    score: float
    scores: FloatArray

    @property
    def count(self) -> int:
        """The number of shuffled targets with a score at least as high."""
        return int((self.scores >= self.score).sum())

    @property
    def p_value(self) -> float:
        """``(1 + count) / (1 + P)``: the chance of such a score if the columns tell nothing about the target."""
        return (1 + self.count) / (1 + len(self.scores))

    def sentence(self) -> str:
        """Return the result in words."""
        return (
            f"p = {self.p_value:.3g}: {self.count} of {len(self.scores)} searches on shuffled targets score as well as "
            f"{self.score:.4f} (their mean {self.scores.mean():.4f}, best {self.scores.max():.4f})"
        )


def shuffles(y: AnyArray, count: int, seed: int, groups: ArrayLike | None = None) -> list[IntArray]:
    """Return orders of the rows that shuffle the target, within groups if there are any.

    DataError if no order changes the target.
    """
    rng = np.random.default_rng([seed, count])
    labels = np.zeros(len(y), dtype=np.intp)
    if groups is not None:
        labels = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    orders = []
    for _ in range(count):
        order = np.arange(len(y))
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            order[rows] = rng.permutation(rows)
        orders.append(order)
    if all(np.array_equal(y[order], y) for order in orders):
        reason = "is constant within each group" if groups is not None else "has one value only"
        raise DataError(f"permutation_test shuffles the target, but it {reason}, so that no order changes it.")
    return orders


def run_permutations(
    selector: Selector,
    X: ArrayLike,
    y: AnyArray,
    orders: list[IntArray],
    *,
    score: float,
    n_jobs: int | None = None,
    params: Mapping[str, object] | None = None,
) -> PermutationTest:
    """Repeat the search on each shuffled target, ``n_jobs`` at a time; ``params`` is the metadata of ``fit``."""
    settings = selector.get_params(deep=False) | QUIET | {"estimator": clone_estimator(selector.estimator)}
    quiet = type(selector)(**settings)
    scores = Parallel(n_jobs=n_jobs)(
        delayed(_best_score)(clone(quiet), X, y[order], dict(params or {})) for order in orders
    )
    return PermutationTest(score, np.array(scores))


def describe_permutations(count: int, n_jobs: int | None, seconds: float) -> str:
    """Say what the test will cost, given that one search took ``seconds``."""
    workers = min(count, int(effective_n_jobs(n_jobs)))
    searches = "1 more search" if count == 1 else f"{count} more searches"
    return f"permutation test: {searches}, {workers} at a time, about {format_duration(seconds * -(-count // workers))}"


def _best_score(selector: Any, X: ArrayLike, y: AnyArray, params: Mapping[str, object]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the search on the given target has warned already
        selector.fit(X, y, **params)
    if selector.result_.stop_reason == "interrupted":  # Ctrl-C means all searches, not this one
        raise KeyboardInterrupt
    return float(selector.best_score_)
