"""Tests between algorithms: of runs on one data set, and of means over many."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from subswarm.core.errors import SettingError
from subswarm.core.types import FloatArray

__all__ = [
    "Comparison",
    "Friedman",
    "cliffs_delta",
    "compare_runs",
    "critical_difference",
    "friedman",
    "hedges_g",
    "holm",
    "mean_ranks",
    "resampled_means",
    "signed_rank_gain",
    "wilcoxon",
]

_SAME = 1e-12


@dataclass(frozen=True)
class Comparison:
    """Runs of one algorithm against runs of another on the same problem; losses, so lower is better.

    Attributes
    ----------
    verdict : "+" (the first is significantly better), "-" (worse), "=" (identical results) or "?" (undecided)
    p_paired, p_welch, p_wilcoxon : two-sided; NaN where a test has nothing to work on
    delta : Cliff's delta, 1 where every run of the first is better than every run of the second
    g : Hedges' g, positive where the first is better
    """

    verdict: str
    p_paired: float
    p_welch: float
    p_wilcoxon: float
    delta: float
    g: float


def compare_runs(ours: ArrayLike, theirs: ArrayLike, alpha: float = 0.05) -> Comparison:
    """The paper's paired t-test, paired by run number, with Welch's and Wilcoxon's tests beside it.

    Equal differences of every pair leave the t-test no variance: the verdict is then "=" where they are all zero, and
    that of the sign otherwise.

    Examples
    --------
    >>> compare_runs([0.1, 0.2, 0.1], [0.1, 0.2, 0.1]).verdict
    '='
    >>> compare_runs([0.10, 0.11, 0.12], [0.20, 0.23, 0.21]).verdict
    '+'
    """
    first, second = (np.asarray(values, dtype=np.float64) for values in (ours, theirs))
    if first.shape != second.shape or first.ndim != 1:
        raise SettingError(f"paired runs need two rows of equal length; got shapes {first.shape} and {second.shape}.")
    difference = first - second
    p_paired = _paired(difference)
    if (np.abs(difference) <= _SAME).all():
        verdict = "="
    elif not p_paired < alpha:
        verdict = "?"
    else:
        verdict = "+" if difference.mean() < 0 else "-"
    return Comparison(
        verdict=verdict,
        p_paired=p_paired,
        p_welch=_welch(first, second),
        p_wilcoxon=wilcoxon(first, second),
        delta=cliffs_delta(first, second),
        g=hedges_g(first, second),
    )


def wilcoxon(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Two-sided p of Wilcoxon's signed-rank test; zero differences are split between the signs (as in Demšar 2006)."""
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    difference[np.abs(difference) <= _SAME] = 0.0
    if not difference.any():
        return 1.0 if len(difference) else float("nan")
    method = "approx" if (difference == 0).any() else "auto"
    with _few_runs_are_no_news():
        return float(stats.wilcoxon(difference, zero_method="zsplit", method=method).pvalue)


def signed_rank_gain(ours: ArrayLike, theirs: ArrayLike) -> float:
    """The sum of ranks in which ours is lower less that in which it is higher: which way `wilcoxon` decides.

    Examples
    --------
    >>> signed_rank_gain([0.1, 0.1, 0.5], [0.2, 0.3, 0.4])
    3.0
    """
    gain = np.round(np.asarray(theirs, dtype=np.float64) - np.asarray(ours, dtype=np.float64), 12)
    return float((stats.rankdata(np.abs(gain)) * np.sign(gain)).sum())


def cliffs_delta(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Share of pairs in which ours is lower, less the share in which it is higher.

    Examples
    --------
    >>> cliffs_delta([1, 2], [2, 3])
    0.75
    """
    difference = np.asarray(theirs, dtype=np.float64)[None, :] - np.asarray(ours, dtype=np.float64)[:, None]
    return float(np.sign(np.where(np.abs(difference) <= _SAME, 0.0, difference)).mean())


def hedges_g(ours: ArrayLike, theirs: ArrayLike) -> float:
    """The difference of the means in pooled standard deviations, corrected for small samples; NaN without spread.

    The correction is the usual 1 - 3 / (4 (n1 + n2) - 9).
    """
    first, second = (np.asarray(values, dtype=np.float64) for values in (ours, theirs))
    degrees = len(first) + len(second) - 2
    if degrees < 1:
        return float("nan")
    pooled = np.sqrt((((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum()) / degrees)
    gap = float(second.mean() - first.mean())
    if pooled <= _SAME:
        return 0.0 if abs(gap) <= _SAME else float("nan")
    return float(gap / pooled * (1.0 - 3.0 / (4.0 * (degrees + 2) - 9.0)))


def holm(p_values: ArrayLike) -> FloatArray:
    """P-values adjusted by Holm's step-down rule; compare them with the level as it is.

    Examples
    --------
    >>> [round(float(p), 4) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    stepped = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(stepped))
    return adjusted


def mean_ranks(losses: ArrayLike) -> FloatArray:
    """The mean rank of each column over the rows, lowest first; equal values have their average rank.

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
    mean_ranks : shape (k,), ties with their mean rank
    chi_square, p_chi_square : Friedman's statistic, k - 1 degrees of freedom
    f, p_f : Iman and Davenport's, (k - 1) and (k - 1)(N - 1) degrees
    critical_difference : Nemenyi's, at the level asked for
    """

    mean_ranks: FloatArray
    chi_square: float
    p_chi_square: float
    f: float
    p_f: float
    critical_difference: float


def friedman(losses: ArrayLike, alpha: float = 0.05) -> Friedman:
    """Friedman's test with Iman and Davenport's correction and Nemenyi's critical difference (Demšar 2006).

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
    """Nemenyi's: mean ranks that differ by less are not told apart.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2), round(critical_difference(4, 14, alpha=0.10), 2)  # Demšar's example
    (1.25, 1.12)
    """
    q = float(stats.studentized_range.ppf(1 - alpha, k, np.inf)) / np.sqrt(2.0)
    return float(q * np.sqrt(k * (k + 1) / (6.0 * n_datasets)))


def _paired(difference: FloatArray) -> float:
    if len(difference) < 2:
        return float("nan")
    if np.ptp(difference) <= _SAME:
        return 1.0 if abs(float(difference.mean())) <= _SAME else 0.0
    with _few_runs_are_no_news():
        return float(stats.ttest_1samp(difference, 0.0).pvalue)


def _welch(first: FloatArray, second: FloatArray) -> float:
    if len(first) < 2:
        return float("nan")
    if np.ptp(first) <= _SAME and np.ptp(second) <= _SAME:
        return 1.0 if abs(float(first.mean() - second.mean())) <= _SAME else 0.0
    with _few_runs_are_no_news():
        return float(stats.ttest_ind(first, second, equal_var=False).pvalue)


@contextmanager
def _few_runs_are_no_news() -> Iterator[None]:
    """SciPy warns of few or nearly equal values; the tables say how many runs there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def resampled_means(ours: ArrayLike, theirs: ArrayLike, *, times: int = 2000, seed: int = 0) -> FloatArray:
    """Means of both over pairs drawn anew with replacement, shape (2, times): how else it might have come out.

    Examples
    --------
    >>> ours, theirs = resampled_means([1.0, 1.0, 1.0], [2.0, 3.0, 4.0], times=500)
    >>> float(ours.max()), float(theirs.min()), float(theirs.max())
    (1.0, 2.0, 4.0)
    """
    pairs = np.array([ours, theirs], dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(0, pairs.shape[1], size=(times, pairs.shape[1]))
    return np.asarray(pairs[:, drawn].mean(axis=2))
