"""Filters and wrappers together: scores from the data for a filter, a pre-selection, or a swarm's first likelihoods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from subswarm.algorithms.filters import RankingSearch
from subswarm.algorithms.race import inside
from subswarm.algorithms.two_d import TwoD
from subswarm.core.checks import check_int
from subswarm.core.errors import SettingError
from subswarm.core.types import FloatArray, IntArray
from subswarm.evaluation.rankings import ranking_scores

__all__ = ["preselected", "with_likelihoods", "with_scores"]


def with_scores(
    algorithm: Any,
    X: Any,
    y: Any,
    *,
    classification: bool = True,
    random_state: int | None = 0,
    owner: IntArray | None = None,
) -> Any:
    """The algorithm, with the scores of its ranking filled in where it is a filter that has none.

    Parameters
    ----------
    algorithm : any algorithm; all but filters without scores, alone or in a race, come back as they are
    X, y : table of shape (N, columns) and target of shape (N,)
    classification : bool, default=True
        Whether ``y`` holds classes.
    random_state : int or None, default=0
    owner : int array of shape (columns,), optional
        The feature of the search that each column belongs to (-1: to none), where groups of columns are one; a group
        scores as its best column.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from subswarm.algorithms import get_algorithm
    >>> filled = with_scores(get_algorithm("anova-f"), *load_iris(return_X_y=True))
    >>> [round(score, 1) for score in filled.scores]
    [119.3, 49.2, 1180.2, 960.0]
    """

    def filled(filter_: Any) -> Any:
        if not isinstance(filter_, RankingSearch) or filter_.scores is not None:
            return filter_
        if not filter_.ranking:
            raise SettingError(
                "RankingSearch has no ranking of its own; give it scores=(...), or use a filter such as mrmr."
            )
        scores = ranking_scores(filter_.ranking, X, y, classification=classification, random_state=random_state)
        return replace(filter_, scores=tuple(_of_features(scores, owner).tolist()))

    return inside(algorithm, filled)


def with_likelihoods(
    algorithm: TwoD,
    ranking: str,
    X: Any,
    y: Any,
    *,
    classification: bool = True,
    random_state: int | None = 0,
    owner: IntArray | None = None,
) -> TwoD:
    """A 2-D swarm whose features start as likely as a filter finds them good: its scores scaled to 0..1.

    See ``feature_likelihoods`` of `subswarm.algorithms.TwoD`; the other parameters are those of `with_scores`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from subswarm.algorithms import TwoDUPSO
    >>> swarm = with_likelihoods(TwoDUPSO(), "anova-f", *load_iris(return_X_y=True))
    >>> [round(likelihood, 2) for likelihood in swarm.feature_likelihoods]
    [0.06, 0.0, 1.0, 0.81]
    """
    scores = ranking_scores(ranking, X, y, classification=classification, random_state=random_state)
    scores = _of_features(scores, owner)
    extent = np.ptp(scores)
    scaled = (scores - scores.min()) / extent if extent > 0 else np.ones_like(scores)
    return replace(algorithm, feature_likelihoods=tuple(scaled.tolist()))


def preselected(
    ranking: str,
    X: Any,
    y: Any,
    keep: int,
    *,
    classification: bool = True,
    random_state: int | None = 0,
    owner: IntArray | None = None,
) -> IntArray:
    """The ``keep`` features a filter ranks highest, ascending: what a wrapper then searches among.

    ``SwarmSelector(preselect=("mrmr", 50))`` does so; the other parameters are those of `with_scores`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> preselected("mrmr", *load_iris(return_X_y=True), keep=2).tolist()
    [2, 3]
    """
    check_int("keep", keep, low=1)
    scores = ranking_scores(ranking, X, y, classification=classification, random_state=random_state)
    scores = _of_features(scores, owner)
    return np.sort(np.argsort(-scores, kind="stable")[:keep])


def _of_features(scores: FloatArray, owner: IntArray | None) -> FloatArray:
    """The scores of features from those of their columns: a group scores as its best column."""
    if owner is None:
        return scores
    best = np.full(int(owner.max()) + 1, -np.inf)
    np.maximum.at(best, owner[owner >= 0], scores[owner >= 0])
    return best
