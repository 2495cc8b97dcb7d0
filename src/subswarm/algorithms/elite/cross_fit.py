"""What an elite swarm does on a cross-fitted objective: guided starts, and a size that is chosen on left-out rows.

Each island leaves out a block of rows. Its search, and every ranking of features that guides it, use the other rows
only, so the left-out rows tell how well its subsets do on new data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from sklearn.isotonic import isotonic_regression

from subswarm._types import FloatArray, IntArray, Masks
from subswarm.algorithms.base import Finalists, Problem
from subswarm.errors import DataError

__all__ = [
    "CrossFit",
    "best_within_sizes",
    "draw_guided",
    "first_guides",
    "nested_sizes",
    "places_of",
    "prefixes",
    "rank_finalists",
    "weigh_guides",
]

MOST_COLUMNS = 200
"""Largest subset that a search starts from, and largest prefix of a ranking."""

FLATNESS = 5
"""Added to the place of a feature in a ranking: the weight of a feature is 1 / (place + FLATNESS), places from 1."""

LEFT_OUT_WEIGHT = 0.4
"""Weight of the mean loss on the left-out rows, against that on the rows that were searched, corrected by its bias."""

MANY_ROWS = 600
"""From this many rows on, the loss of a size is averaged with that of one size on either side, else of two."""

ELITE_SIZES = 8
"""Number of sizes for which an island's best subset of at most this size is a candidate."""

_TIE = 1e-3
"""Weight of the rankings among features with equally many votes."""


@dataclass(frozen=True)
class CrossFit:
    """What a search on a cross-fitted objective knows about the table.

    Attributes
    ----------
    n_rows : number of rows
    orders : for each guide, and for each island and then the whole table, the features from best to worst
    """

    n_rows: int
    orders: tuple[tuple[tuple[int, ...], ...], ...]

    @classmethod
    def of(cls, guides: tuple[str, ...], problem: Problem) -> CrossFit:
        """Rank the features on the rows of each island and on all rows; guides that the data do not allow are left out.

        ReliefF, for example, needs classes.
        """
        orders = []
        ranking = problem.ranking
        if ranking is None:
            return cls(problem.n_rows or 1, ())
        for name in guides:
            try:
                scores = [ranking(name, island) for island in range(problem.n_partitions + 1)]
            except DataError:
                continue
            orders.append(tuple(tuple(np.argsort(-each, kind="stable").tolist()) for each in scores))
        return cls(problem.n_rows or 1, tuple(orders))


def places_of(orders: tuple[tuple[tuple[int, ...], ...], ...], islands: int, n_features: int) -> IntArray:
    """Return the place of each feature, from 0, in each ranking: shape (G, C + 1, n), the last one for all rows."""
    order = np.array(orders, dtype=np.intp).reshape(len(orders), islands + 1, n_features)
    return np.asarray(np.argsort(order, axis=2, kind="stable"))


def first_guides(count: int, guides: int) -> IntArray:
    """Return the guides of the first particles, shape (count,): every other one has none (0), the rest take turns.

    Examples
    --------
    >>> first_guides(7, 2).tolist()
    [0, 1, 0, 2, 0, 1, 0]
    """
    turns = np.arange(count)
    return np.where(turns % 2, turns // 2 % guides + 1, 0) if guides else np.zeros(count, dtype=np.intp)


def draw_guided(places: IntArray, guide: IntArray, islands: IntArray, rng: Generator) -> Masks:
    """Return one subset for each particle, of log-uniform size.

    ``guide`` (P,) is 0 for a random subset; g draws the features with weights that fall with their place in ranking
    g - 1 on the rows of the particle's island.
    """
    n_features = places.shape[2]
    count = len(guide)
    sizes = np.exp(rng.uniform(0.0, np.log(min(n_features, MOST_COLUMNS) + 1), size=(count, 1))).astype(np.intp)
    keys = rng.exponential(size=(count, n_features))
    guided = np.flatnonzero(guide)
    keys[guided] *= places[guide[guided] - 1, islands[guided]] + 1 + FLATNESS
    largest = min(n_features, int(sizes.max(initial=1)))
    first = np.argpartition(keys, largest - 1, axis=1)[:, :largest]
    first = np.take_along_axis(first, np.take_along_axis(keys, first, axis=1).argsort(axis=1), axis=1)
    masks = np.zeros(keys.shape, dtype=bool)
    np.put_along_axis(masks, first, np.arange(largest) < np.maximum(sizes, 1), axis=1)
    return masks


def weigh_guides(guide: IntArray, best: IntArray, count: int) -> FloatArray:
    """Return the probability of each guide, shape (count,): its share of the best particles, plus one particle."""
    numbers = np.bincount(guide[best], minlength=count) + 1.0
    return np.asarray(numbers / numbers.sum())


def nested_sizes(n_features: int, count: int) -> IntArray:
    """Return at most ``count`` sizes from 1 to n (or 200), spaced geometrically.

    Examples
    --------
    >>> nested_sizes(30, 6).tolist()
    [1, 2, 4, 8, 15, 30]
    """
    return np.unique(np.round(np.geomspace(1, min(n_features, MOST_COLUMNS), count)).astype(np.intp))


def prefixes(votes: FloatArray, places: IntArray, sizes: IntArray) -> tuple[Masks, FloatArray]:
    """Return the prefixes of the ranking by votes (ties broken by the guides) and of each guide's ranking.

    Parameters
    ----------
    votes : share of the best subsets that contain each feature, shape (n,)
    places : place of each feature in each guide's ranking, shape (G, n)

    Returns
    -------
    The masks, ranking by ranking, shape ((G + 1) S, n), and the scores of the features for each, of the same shape.
    """
    guided = 1.0 / (places + 1 + FLATNESS)
    scores = np.concatenate([(votes + _TIE * guided.sum(axis=0))[None], guided])
    masks = np.zeros((len(scores), len(sizes), len(votes)), dtype=bool)
    for ranking, own in zip(masks, scores, strict=True):
        best = _best(own, int(sizes.max()))
        for mask, size in zip(ranking, sizes, strict=True):
            mask[best[:size]] = True
    return masks.reshape(-1, len(votes)), np.repeat(scores, len(sizes), axis=0)


def _best(scores: FloatArray, count: int) -> IntArray:
    """Return the features with the highest scores, best first; of equal ones, the first are taken."""
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    among = np.flatnonzero(scores >= least)
    return among[np.argsort(-scores[among], kind="stable")][:count]


def best_within_sizes(cardinality: IntArray, ranking: IntArray) -> IntArray:
    """Return the best particle of each island among those of at most each of `ELITE_SIZES` sizes, shape (S, C).

    The sizes are spaced geometrically from the smallest to the largest subset of all islands. An island without a
    subset that small gives its smallest.

    Parameters
    ----------
    cardinality : size of each particle's subset, shape (P,)
    ranking : the particles of each island from best to worst, shape (C, P / C)

    Examples
    --------
    >>> best_within_sizes(np.array([1, 4, 2, 3]), np.array([[1, 0], [3, 2]]))[[0, -1]]
    array([[0, 2],
           [1, 3]])
    """
    sizes = np.geomspace(cardinality.min(), cardinality.max(), ELITE_SIZES).round()
    smallest = cardinality[ranking].min(axis=1)
    allowed = cardinality[ranking] <= np.maximum(sizes[:, None], smallest)[:, :, None]
    return np.asarray(ranking[np.arange(len(ranking)), allowed.argmax(axis=2)])


def rank_finalists(
    prefixes: Masks,
    elite: Masks,
    left_out: FloatArray,
    searched: FloatArray,
    within: FloatArray,
    sizes: int,
    n_rows: int,
    islands: Masks,
) -> Finalists:
    """Return the candidates, the best first.

    A prefix of a ranking of all rows corresponds to the prefixes of the islands' rankings. The islands' best subsets of
    a size are represented by the one of them with the lowest loss on the rows that were searched.

    Parameters
    ----------
    prefixes : the prefixes of rankings of all rows, ranking by ranking, shape (K, n)
    elite : the best subsets of the islands for each size, shape (S, C, n)
    left_out : losses of the corresponding subset of each island on the rows it left out, shape (K + S, C)
    searched : losses of the same subsets on the rows that the island searched, shape (K + S, C)
    within : losses of ``prefixes`` and then of ``elite`` on the rows that were searched, shape (K + S C,)
    sizes : number of sizes of each ranking
    n_rows : number of rows: with many, the losses of neighbouring sizes say less than a size's own
    islands : the corresponding subset of each island, shape (K + S, C, n)
    """
    count, by_size = len(prefixes), within[len(prefixes) :].reshape(elite.shape[:2])
    masks = np.concatenate([prefixes, elite[np.arange(len(elite)), by_size.argmin(axis=1)]])
    inside = np.concatenate([within[:count], by_size.min(axis=1)])
    starts = [*range(0, count, sizes), count]
    outside, blocks = left_out.copy(), left_out.shape[1]
    by_ranking = left_out[:count].reshape(-1, sizes, blocks)
    outside[:count] = _smooth(by_ranking, 1 if n_rows >= MANY_ROWS else 2).reshape(count, -1)
    bias = left_out - searched
    fitness = _estimate(inside, bias, outside, starts)
    others = ~np.eye(blocks, dtype=bool)
    without = [_estimate(searched[:, c], bias[:, others[c]], outside[:, others[c]], starts) for c in range(blocks)]
    order = np.lexsort((masks.sum(axis=1), fitness))
    return Finalists(
        masks[order],
        fitness[order],
        paired=outside[order],
        left_out=outside[order],
        islands=islands[order],
        without=np.stack(without, axis=1)[order] if blocks > 1 else None,
    )


def _estimate(searched: FloatArray, bias: FloatArray, outside: FloatArray, starts: list[int]) -> FloatArray:
    """Return an estimate of the loss of each candidate on new rows, shape (K,).

    The losses on the rows that were searched, ``searched`` (K,), are those of the candidate itself on many folds, but
    too low, the more so, the larger the subset. ``bias`` (K, C) says by how much for the islands' subsets. Its mean is
    noisy, so within a ranking, whose sizes ascend from each of ``starts``, it is made to ascend, too. The losses on the
    left-out rows, ``outside`` (K, C), have no such bias, but are noisy.
    """
    excess = bias.mean(axis=1)
    for start, stop in zip(starts, [*starts[1:], len(excess)], strict=True):
        if stop > start:
            excess[start:stop] = isotonic_regression(excess[start:stop])
    return np.asarray((1 - LEFT_OUT_WEIGHT) * (searched + excess) + LEFT_OUT_WEIGHT * outside.mean(axis=1))


def _smooth(losses: FloatArray, reach: int) -> FloatArray:
    """Return the mean of each size's losses and those of its neighbours, shape (rankings, sizes, C)."""
    padded = np.pad(losses, ((0, 0), (reach, reach), (0, 0)), mode="edge")
    count = losses.shape[1]
    return np.asarray(np.mean([padded[:, shift : shift + count] for shift in range(2 * reach + 1)], axis=0))
