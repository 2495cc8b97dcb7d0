"""Filters as subset searches: the features in the order of a ranking, and the best prefix by the same objective.

A ranking needs the table, which a search never sees. So these settings hold the scores of the features, and
`subswarm.hybrid.with_scores` fills them in from the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm.algorithms.subset_settings import SubsetSettings
from subswarm.core.checks import check_int, check_real
from subswarm.core.errors import SettingError
from subswarm.core.masks import SubsetRules
from subswarm.core.types import FloatArray, IntArray, Masks

__all__ = ["MRMR", "AnovaF", "MutualInformation", "Prefixes", "RankingSearch", "ReliefF", "prefixes"]


@dataclass(frozen=True, eq=False)
class Prefixes:
    """The prefixes to evaluate, shape (C, n), and how many there have been up to the end of these."""

    masks: Masks
    reached: int


@dataclass(frozen=True, kw_only=True)
class RankingSearch(SubsetSettings):
    """The best prefix of a ranking of the features.

    A step asks ``batch`` prefixes, from short to long.

    Parameters
    ----------
    scores : tuple of float or None
        How good each feature is alone, the higher the better (equals go by index). None until someone who has the
        data fills them in: `subswarm.hybrid.with_scores`, as the selector and the command line do.
    batch : int, default=50
        Prefixes a step.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.SubsetSettings`. Initial subsets are evaluated before the prefixes.
    """

    source: ClassVar[str] = "a ranking of your own"
    ranking: ClassVar[str] = ""
    """The name of the ranking in `subswarm.evaluation.rankings`."""

    scores: tuple[float, ...] | None = None
    batch: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("batch", self.batch, low=1)
        for score in self.scores or ():
            check_real("each of scores", score)

    def begin(self, n_features: int, rng: Generator) -> Prefixes:
        first = self._following(0, n_features, rng)
        if not self.initial_subsets:
            return first
        given = self.first_masks(len(self.initial_subsets), n_features, rng)
        return Prefixes(np.concatenate([given, first.masks]), first.reached)

    def step(self, state: Prefixes, fitness: FloatArray, progress: float, rng: Generator) -> Prefixes | None:
        following = self._following(state.reached, state.masks.shape[1], rng)
        return following if len(following.masks) else None

    def _following(self, reached: int, n_features: int, rng: Generator) -> Prefixes:
        rules, scores = self.rules(n_features), self._scores_of(n_features)
        lengths = legal_lengths(scores, rules)
        if not len(lengths):  # whole groups fit no prefix between the limits: the nearest subset to the ranking
            nearest = rules.legalize(
                np.zeros((int(reached == 0), n_features), dtype=bool), rng, preference=scores[None]
            )
            return Prefixes(nearest, 1)
        end = min(reached + self.batch, len(lengths))
        return Prefixes(prefixes(scores, lengths[reached:end], rules), end)

    def _scores_of(self, n_features: int) -> FloatArray:
        if self.scores is None:
            raise SettingError(
                f"{type(self).__name__} ranks the features by the data and has no scores yet; use "
                "subswarm.hybrid.with_scores(algorithm, X, y) first, or the selector, which does so itself."
            )
        if len(self.scores) != n_features:
            raise SettingError(f"scores must have one entry for each of {n_features} features; got {len(self.scores)}.")
        return np.array(self.scores, dtype=np.float64)


def ranked(scores: FloatArray, rules: SubsetRules) -> IntArray:
    """The features from best to worst, the fixed ones before all, shape (n,)."""
    return np.lexsort((-scores, ~rules.fixed))


def legal_lengths(scores: FloatArray, rules: SubsetRules) -> IntArray:
    """Which lengths of prefixes are legal, ascending."""
    columns = np.cumsum(rules.sizes[ranked(scores, rules)])
    lengths = np.flatnonzero((columns >= rules.lower) & (columns <= rules.upper)) + 1
    return np.asarray(lengths[lengths >= int(rules.fixed.sum())])


def prefixes(scores: FloatArray, lengths: IntArray, rules: SubsetRules) -> Masks:
    """The prefixes of these lengths, shape (C, n).

    Examples
    --------
    >>> prefixes(np.array([0.2, 0.9, 0.5]), np.array([1, 2]), SubsetRules.of(3)).astype(int)
    array([[0, 1, 0],
           [0, 1, 1]])
    """
    place = np.empty(len(scores), dtype=np.intp)
    place[ranked(scores, rules)] = np.arange(len(scores))
    return np.asarray(place < lengths[:, None])


@dataclass(frozen=True, kw_only=True)
class MutualInformation(RankingSearch):
    """Features by their mutual information with the target."""

    source: ClassVar[str] = "Battiti, IEEE Trans. Neural Networks 5 (1994) 537-550; estimate: Ross, PLoS ONE 9 (2014)"
    ranking: ClassVar[str] = "mutual-information"


@dataclass(frozen=True, kw_only=True)
class AnovaF(RankingSearch):
    """Features by the F statistic of a one-way analysis of variance between the classes."""

    source: ClassVar[str] = "Fisher, Statistical Methods for Research Workers (1925)"
    ranking: ClassVar[str] = "anova-f"


@dataclass(frozen=True, kw_only=True)
class ReliefF(RankingSearch):
    """Features by how they differ between near rows of other classes, less between near rows of the same."""

    source: ClassVar[str] = "Kononenko, European Conf. Machine Learning (1994) 171-182"
    ranking: ClassVar[str] = "relieff"


@dataclass(frozen=True, kw_only=True)
class MRMR(RankingSearch):
    """Features by relevance less redundancy: information on the target, less the mean shared with those before."""

    source: ClassVar[str] = (
        "Peng, Long, Ding, IEEE Trans. Pattern Analysis and Machine Intelligence 27 (2005) 1226-1238"
    )
    ranking: ClassVar[str] = "mrmr"
