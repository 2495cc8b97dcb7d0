"""Filters as subset searches: evaluate the prefixes of a feature ranking and keep the best one.

The scores of the features are a setting. `bind` fills them in from the ranking of the problem, because a search itself
never sees the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from subswarm._checks import as_tuple, check_int, check_real
from subswarm._types import FloatArray, IntArray, Masks
from subswarm.algorithms.base import Algorithm, Problem, State
from subswarm.algorithms.masks import SubsetRules
from subswarm.algorithms.state import Layout
from subswarm.errors import SettingError

__all__ = ["MRMR", "AnovaF", "MutualInformation", "Prefixes", "RankingSearch", "ReliefF", "prefixes"]


@dataclass(frozen=True, eq=False)
class Prefixes(State):
    """The prefixes to evaluate, shape (C, n), and the number of prefixes up to the end of these."""

    layout: ClassVar[Layout | None] = Layout(varying={"masks": "prefixes"}, ranges={"reached": (0, None)})

    masks: Masks
    reached: int


@dataclass(frozen=True, kw_only=True)
class RankingSearch(Algorithm[Prefixes]):
    """Find the best prefix of a feature ranking.

    A step evaluates ``batch`` prefixes, from short to long.

    Parameters
    ----------
    scores : tuple of float or None
        Score of each feature, higher is better; ties are broken by index. None computes them from the data when a
        search starts.
    batch : int, default=50
        Prefixes evaluated in a step.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`. Initial subsets are evaluated before the prefixes.
    """

    source: ClassVar[str] = "user-defined ranking"
    ranking: ClassVar[str] = ""
    """The name of the ranking in `subswarm.objective.filters`."""

    scores: tuple[float, ...] | None = None
    batch: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("batch", self.batch, low=1)
        if self.scores is not None:
            scores = as_tuple("scores", self.scores, of="numbers, one for each feature")
            for score in scores:
                check_real("each of scores", score)
            object.__setattr__(self, "scores", scores)  # an iterator can be read only once

    def bind(self, problem: Problem) -> Self:
        """Return the filter with the scores of its ranking, unless it has scores already."""
        bound = super().bind(problem)
        if bound.scores is not None or problem.ranking is None:
            return bound
        if not self.ranking:
            raise SettingError(
                "RankingSearch has no ranking of its own; give it scores=(...), or use a filter such as mrmr."
            )
        return replace(bound, scores=tuple(problem.ranking(self.ranking).tolist()))

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
        if not len(lengths):  # no prefix of whole groups is within the limits
            nearest = rules.legalize(
                np.zeros((int(reached == 0), n_features), dtype=bool), rng, preference=scores[None]
            )
            return Prefixes(nearest, 1)
        end = min(reached + self.batch, len(lengths))
        return Prefixes(prefixes(scores, lengths[reached:end], rules), end)

    def _scores_of(self, n_features: int) -> FloatArray:
        if self.scores is None:
            raise SettingError(
                f"{type(self).__name__} ranks the features by the data and has no scores yet; search with an objective "
                "from make_objective, which has the data, or give it scores=(...)."
            )
        if len(self.scores) != n_features:
            raise SettingError(f"scores must have one entry for each of {n_features} features; got {len(self.scores)}.")
        return np.array(self.scores, dtype=np.float64)


def ranked(scores: FloatArray, rules: SubsetRules) -> IntArray:
    """Return the features from best to worst, fixed features first, shape (n,)."""
    return np.lexsort((-scores, ~rules.fixed))


def legal_lengths(scores: FloatArray, rules: SubsetRules) -> IntArray:
    """Return the legal lengths of prefixes, ascending."""
    columns = np.cumsum(rules.sizes[ranked(scores, rules)])
    lengths = np.flatnonzero((columns >= rules.lower) & (columns <= rules.upper)) + 1
    return np.asarray(lengths[lengths >= int(rules.fixed.sum())])


def prefixes(scores: FloatArray, lengths: IntArray, rules: SubsetRules) -> Masks:
    """Return the prefixes of these lengths, shape (C, n).

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
    """Rank features by their mutual information with the target."""

    source: ClassVar[str] = "Battiti, IEEE Trans. Neural Networks 5 (1994) 537-550; estimate: Ross, PLoS ONE 9 (2014)"
    ranking: ClassVar[str] = "mutual-information"


@dataclass(frozen=True, kw_only=True)
class AnovaF(RankingSearch):
    """Rank features by the F statistic of a one-way analysis of variance between the classes."""

    source: ClassVar[str] = "Fisher, Statistical Methods for Research Workers (1925)"
    ranking: ClassVar[str] = "anova-f"


@dataclass(frozen=True, kw_only=True)
class ReliefF(RankingSearch):
    """Rank features by how much more they differ between near rows of different classes than of the same class."""

    source: ClassVar[str] = "Kononenko, European Conf. Machine Learning (1994) 171-182"
    ranking: ClassVar[str] = "relieff"


@dataclass(frozen=True, kw_only=True)
class MRMR(RankingSearch):
    """Rank features by relevance to the target minus redundancy, the mean information shared with those before."""

    source: ClassVar[str] = (
        "Peng, Long, Ding, IEEE Trans. Pattern Analysis and Machine Intelligence 27 (2005) 1226-1238"
    )
    ranking: ClassVar[str] = "mrmr"
