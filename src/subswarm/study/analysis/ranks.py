"""Ranks of algorithms over data sets, and Friedman's test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from subswarm._types import FloatArray
from subswarm.errors import SettingError

__all__ = ["Friedman", "average_ranks", "critical_difference", "friedman", "mean_ranks", "ranks"]

_SAME = 1e-12


def ranks(values: ArrayLike) -> FloatArray:
    """Rank along the last axis, lowest value first; ties share the lower number, as in the paper.

    Values that differ by at most 1e-12 are tied.

    Examples
    --------
    >>> ranks([0.2, 0.1, 0.1, 0.3]).tolist()
    [3.0, 1.0, 1.0, 4.0]
    """
    array = np.asarray(values, dtype=np.float64)
    return np.asarray(1.0 + (array[..., None, :] < array[..., :, None] - _SAME).sum(axis=-1))


def average_ranks(values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the mean over the rows of each column's `ranks`, and the ranks of these means.

    Examples
    --------
    >>> average, overall = average_ranks([[0.1, 0.2, 0.3], [0.1, 0.1, 0.3]])
    >>> average.tolist(), overall.tolist()
    ([1.0, 1.5, 3.0], [1.0, 2.0, 3.0])
    """
    average = ranks(values).mean(axis=0)
    return average, ranks(average)


def mean_ranks(losses: ArrayLike) -> FloatArray:
    """Return the mean rank of each column over the rows, lowest first; ties get their mean rank.

    Examples
    --------
    >>> mean_ranks([[0.1, 0.2, 0.2], [0.3, 0.1, 0.2]]).tolist()
    [2.0, 1.75, 2.25]
    """
    return np.asarray(stats.rankdata(np.round(np.asarray(losses, dtype=np.float64), 12), axis=1).mean(axis=0))


@dataclass(frozen=True)
class Friedman:
    """Friedman's test over N data sets (rows) and k algorithms (columns).

    Attributes
    ----------
    mean_ranks : shape (k,), ties have their mean rank
    chi_square, p_chi_square : Friedman's statistic, with k - 1 degrees of freedom
    f, p_f : the statistic of Iman and Davenport, with (k - 1) and (k - 1)(N - 1) degrees of freedom
    critical_difference : of Nemenyi's test, at the level asked for
    """

    mean_ranks: FloatArray
    chi_square: float
    p_chi_square: float
    f: float
    p_f: float
    critical_difference: float


def friedman(losses: ArrayLike, alpha: float = 0.05) -> Friedman:
    """Compute Friedman's test with Iman and Davenport's correction and Nemenyi's critical difference (Demšar 2006).

    Parameters
    ----------
    losses : shape (N, k), lower is better
    """
    table = np.asarray(losses, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 2:
        raise SettingError(f"Friedman's test needs at least 2 data sets and 2 algorithms; got shape {table.shape}.")
    count, k = table.shape
    average = mean_ranks(table)
    chi_square = 12.0 * count / (k * (k + 1)) * float((average**2).sum() - k * (k + 1) ** 2 / 4)
    most = count * (k - 1)
    f = float("inf") if chi_square >= most - 1e-9 else (count - 1) * chi_square / (most - chi_square)
    return Friedman(
        mean_ranks=average,
        chi_square=chi_square,
        p_chi_square=float(stats.chi2.sf(chi_square, k - 1)),
        f=f,
        p_f=float(stats.f.sf(f, k - 1, (k - 1) * (count - 1))),
        critical_difference=critical_difference(k, count, alpha),
    )


def critical_difference(k: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return Nemenyi's critical difference: mean ranks that differ by less do not differ significantly.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2), round(critical_difference(4, 14, alpha=0.10), 2)  # Demšar's example
    (1.25, 1.12)
    """
    q = float(stats.studentized_range.ppf(1 - alpha, k, np.inf)) / np.sqrt(2.0)
    return float(q * np.sqrt(k * (k + 1) / (6.0 * n_datasets)))
