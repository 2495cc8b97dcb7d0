"""What many good subsets have in common: features ranked by votes."""

from __future__ import annotations

import numpy as np

from subswarm.core.types import FloatArray, Masks

__all__ = ["nested_by_agreement"]


def nested_by_agreement(subsets: Masks, count: int) -> tuple[Masks, FloatArray]:
    """The first k features of the ranking by votes for at most ``count`` sizes k, and the votes.

    A feature has the share of the subsets that contain it; equal ones go by index. The sizes go up to twice the mean
    size of the subsets, in even ratios.

    Examples
    --------
    >>> subsets = np.array([[1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 0, 1]], dtype=bool)
    >>> nested, votes = nested_by_agreement(subsets, 3)
    >>> nested.astype(int)
    array([[1, 0, 0, 0],
           [1, 0, 0, 1],
           [1, 1, 1, 1]])
    """
    n_features = subsets.shape[1]
    votes = subsets.mean(axis=0)
    place = np.empty(n_features, dtype=np.intp)
    place[np.argsort(-votes, kind="stable")] = np.arange(n_features)
    largest = min(n_features, max(2.0, 2 * float(subsets.sum(axis=1).mean())))
    sizes = np.unique(np.round(np.geomspace(1, largest, count)).astype(np.intp))
    return place < sizes[:, None], np.asarray(votes)
