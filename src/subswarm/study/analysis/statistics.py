"""Tests that compare two algorithms."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from subswarm._types import FloatArray
from subswarm.errors import SettingError

__all__ = [
    "RunComparison",
    "cliffs_delta",
    "compare_runs",
    "holm",
    "resampled_means",
    "signed_rank_gain",
    "wilcoxon",
]

_SAME = 1e-12


@dataclass(frozen=True)
class RunComparison:
    """Runs of one algorithm against runs of another on the same problem; values are losses, so lower is better.

    Attributes
    ----------
    verdict : "+" (the first is significantly better), "-" (worse), "=" (identical results) or "?" (not significant)
    p_paired, p_welch, p_wilcoxon : two-sided p; NaN if a test cannot be computed
    delta : Cliff's delta, 1 if every run of the first is better than every run of the second
    """

    verdict: str
    p_paired: float
    p_welch: float
    p_wilcoxon: float
    delta: float


def compare_runs(ours: ArrayLike, theirs: ArrayLike, alpha: float = 0.05) -> RunComparison:
    """Compute the paper's paired t-test, paired by run number, with Welch's and Wilcoxon's tests.

    If all pairs differ by the same amount, the t-test has no variance. The verdict is then "=" if the difference is
    zero, and follows its sign otherwise.

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
    p_paired = _paired_t_test(difference)
    if (np.abs(difference) <= _SAME).all():
        verdict = "="
    elif not p_paired < alpha:
        verdict = "?"
    else:
        verdict = "+" if difference.mean() < 0 else "-"
    return RunComparison(
        verdict=verdict,
        p_paired=p_paired,
        p_welch=_welch_test(first, second),
        p_wilcoxon=wilcoxon(first, second),
        delta=cliffs_delta(first, second),
    )


def wilcoxon(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test; zero differences are split between the signs.

    This is the version that Demšar (2006) recommends.
    """
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    difference[np.abs(difference) <= _SAME] = 0.0
    if not difference.any():
        return 1.0 if len(difference) else float("nan")
    method = "approx" if (difference == 0).any() else "auto"
    with _without_warnings():
        return float(stats.wilcoxon(difference, zero_method="zsplit", method=method).pvalue)


def signed_rank_gain(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Return the sum of ranks in favour of ours minus the sum against it: the direction of `wilcoxon`.

    Examples
    --------
    >>> signed_rank_gain([0.1, 0.1, 0.5], [0.2, 0.3, 0.4])
    3.0
    """
    gain = np.round(np.asarray(theirs, dtype=np.float64) - np.asarray(ours, dtype=np.float64), 12)
    return float((stats.rankdata(np.abs(gain)) * np.sign(gain)).sum())


def cliffs_delta(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Return the share of pairs in which ours is lower, minus the share in which it is higher.

    Examples
    --------
    >>> cliffs_delta([1, 2], [2, 3])
    0.75
    """
    difference = np.asarray(theirs, dtype=np.float64)[None, :] - np.asarray(ours, dtype=np.float64)[:, None]
    return float(np.sign(np.where(np.abs(difference) <= _SAME, 0.0, difference)).mean())


def holm(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values with Holm's step-down rule; compare the result with the unadjusted level.

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


def resampled_means(ours: ArrayLike, theirs: ArrayLike, *, times: int = 2000, seed: int = 0) -> FloatArray:
    """Return bootstrap means of both, over pairs drawn with replacement, shape (2, times).

    Examples
    --------
    >>> ours, theirs = resampled_means([1.0, 1.0, 1.0], [2.0, 3.0, 4.0], times=500)
    >>> float(ours.max()), float(theirs.min()), float(theirs.max())
    (1.0, 2.0, 4.0)
    """
    pairs = np.array([ours, theirs], dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(0, pairs.shape[1], size=(times, pairs.shape[1]))
    return np.asarray(pairs[:, drawn].mean(axis=2))


def _paired_t_test(difference: FloatArray) -> float:
    if len(difference) < 2:
        return float("nan")
    if np.ptp(difference) <= _SAME:
        return 1.0 if abs(float(difference.mean())) <= _SAME else 0.0
    with _without_warnings():
        return float(stats.ttest_1samp(difference, 0.0).pvalue)


def _welch_test(first: FloatArray, second: FloatArray) -> float:
    if len(first) < 2:
        return float("nan")
    if np.ptp(first) <= _SAME and np.ptp(second) <= _SAME:
        return 1.0 if abs(float(first.mean() - second.mean())) <= _SAME else 0.0
    with _without_warnings():
        return float(stats.ttest_ind(first, second, equal_var=False).pvalue)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Ignore SciPy's warnings about few or nearly equal values; the tables show how many runs there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
