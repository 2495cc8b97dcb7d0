"""Choosing among the best subsets of each size."""

from __future__ import annotations

import numpy as np

from subswarm.core.types import SearchResult, Subset

__all__ = ["one_standard_error", "standard_error"]


def standard_error(result: SearchResult) -> float | None:
    """Standard error of the best subset's mean loss over the folds of a partition; None where it cannot be known.

    Where the cross-validation is repeated, it is the mean of the partitions' own ones: repeating makes the folds' draw
    matter less, but adds no rows.
    """
    if result.fold_losses is None or len(result.fold_losses) < 2 * result.n_partitions:
        return None
    losses = result.fold_losses.reshape(result.n_partitions, -1)
    return float(losses.std(axis=1, ddof=1).mean() / np.sqrt(losses.shape[1]))


def one_standard_error(result: SearchResult) -> Subset:
    """The smallest subset seen whose fitness is within one standard error of the best one's.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from subswarm import Budget, make_objective, search
    >>> objective = make_objective(GaussianNB(), *load_wine(return_X_y=True))
    >>> result = search("2d-upso", objective, Budget(evaluations=300), rng=0)
    >>> one_standard_error(result).cardinality <= result.best.cardinality
    True
    """
    error = standard_error(result)
    if error is None:
        return result.best
    within = np.flatnonzero(result.front.fitness <= result.best.fitness + error)
    return result.front.subset_of_size(int(result.front.cardinality[within].min()))
