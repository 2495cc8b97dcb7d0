"""Dominance, crowding and the quality of fronts, as pure functions; every objective is minimised.

P points, M objectives. A point dominates another if it is nowhere worse and somewhere better.
"""

from __future__ import annotations

import numpy as np

from subswarm._types import FloatArray, IntArray, non_dominated

__all__ = [
    "crowding_distance",
    "dominance_ranks",
    "hypervolume",
    "inverted_generational_distance",
    "survivors",
]


def dominance_ranks(points: FloatArray) -> IntArray:
    """Return the number of the front each point (P, M) is in, shape (P,); 0 is the non-dominated front.

    Examples
    --------
    >>> dominance_ranks(np.array([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0], [1.0, 4.0]])).tolist()
    [0, 0, 1, 2, 0]
    """
    below, above = points[:, None], points[None]
    dominates = np.asarray((below <= above).all(axis=2) & (below < above).any(axis=2))
    waiting = dominates.sum(axis=0)
    ranks = np.full(len(points), -1, dtype=np.intp)
    rank = 0
    while (ranks < 0).any():
        front = (waiting == 0) & (ranks < 0)
        ranks[front] = rank
        waiting = waiting - dominates[front].sum(axis=0)
        rank += 1
    return ranks


def crowding_distance(points: FloatArray) -> FloatArray:
    """Return the crowding distance of each point (P, M) of one front, shape (P,); infinite at both ends.

    It is the sum over the objectives of the distance between a point's two neighbours, as a share of the range of the
    objective (Deb and others 2002).

    Examples
    --------
    >>> crowding_distance(np.array([[1.0, 5.0], [2.0, 3.0], [4.0, 2.0], [5.0, 1.0]])).tolist()
    [inf, 1.5, 1.25, inf]
    """
    count = len(points)
    distance = np.zeros(count)
    for values in points.T:
        order = np.argsort(values, kind="stable")
        ascending = values[order]
        span = float(ascending[-1] - ascending[0])
        if span > 0 and count > 2:
            distance[order[1:-1]] += ascending[2:] / span - ascending[:-2] / span
        distance[order[[0, -1]]] = np.inf
    return distance


def survivors(points: FloatArray, count: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the rows of the ``count`` best points by front and then by crowding, with their fronts and crowding.

    Of the last front that does not fit, the points of the largest crowding distance survive.

    Examples
    --------
    >>> points = np.array([[1.0, 5.0], [2.0, 3.0], [4.0, 2.0], [5.0, 1.0], [5.0, 5.0]])
    >>> survivors(points, 3)[0].tolist()
    [0, 1, 3]
    """
    ranks = dominance_ranks(points)
    crowding = np.zeros(len(points))
    for rank in range(int(ranks.max()) + 1):
        rows = np.flatnonzero(ranks == rank)
        crowding[rows] = crowding_distance(points[rows])
    kept = np.sort(np.lexsort((-crowding, ranks))[:count])
    return kept, ranks[kept], crowding[kept]


def hypervolume(points: FloatArray, reference: tuple[float, float]) -> float:
    """Return the area that points of two objectives (P, 2) dominate, up to the reference point.

    Points that are not better than the reference in both objectives add nothing.

    Examples
    --------
    >>> hypervolume(np.array([[1.0, 3.0], [2.0, 1.0], [3.0, 2.0]]), (4.0, 4.0))
    7.0
    """
    inside = points[(points < reference).all(axis=1)]
    if not len(inside):
        return 0.0
    front = inside[non_dominated(inside[:, 0], inside[:, 1])]
    front = front[np.argsort(front[:, 0])]
    ends = np.append(front[1:, 0], reference[0])
    return float(((ends - front[:, 0]) * (reference[1] - front[:, 1])).sum())


def inverted_generational_distance(points: FloatArray, best: FloatArray) -> float:
    """Return the mean distance of each point of the ``best`` front (Q, M) to the nearest of the points (P, M).

    Examples
    --------
    >>> inverted_generational_distance(np.array([[0.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 1.0]]))
    0.5
    """
    return float(np.sqrt(((best[:, None] - points[None]) ** 2).sum(axis=2)).min(axis=1).mean())
