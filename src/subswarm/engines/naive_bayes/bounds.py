"""How far rounding can move the Gaussian log-likelihoods of scikit-learn: one bound, used by all backends.

The log-likelihood of a class is ``fixed - quadratic``: ``fixed`` is the log prior plus a constant for each column, and
``quadratic`` is the sum of (x - mean)² / (2 v) over the columns. The backends and scikit-learn sum the same terms in
different orders, so their results for k columns differ by at most

    base + rate * quadratic,   base = relative * (|log prior| + sum of |constants| + k),   rate = relative

where ``relative`` is `relative_error`: each of the k terms carries the rounding of its own operations and of the sum,
and columns whose variances differ by less than `SAME_SMOOTHING` share a table (`GaussianTables.alike`).

A subset of one column is special: NumPy sums the moments of a single column in another order too. The variance then
differs by a relative error that grows with the number of rows (`slack_alone`), and the mean by some d. That changes
q = (x - mean)² / (2 v) by at most 2 sqrt(q) s + s² with s = d / sqrt(2 v), the `swing`, and 2 sqrt(q) s is at most
s + s q. `error_terms` adds this to base and rate with a factor of two to spare.

A class is certain to win if ``fixed - base - (1 + rate) * quadratic`` of it is larger than
``fixed + base - (1 - rate) * quadratic`` of every other class; otherwise the fold is left to `GaussianNB` itself.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from subswarm._types import FloatArray

__all__ = [
    "EPS",
    "SAME_SMOOTHING",
    "SPARE_TERMS",
    "TOO_SMALL",
    "error_terms",
    "relative_error",
    "slacks",
    "swing_of",
]

EPS = float(np.finfo(np.float64).eps)
SPARE_TERMS = 16
"""Roundings of a sum of k terms beyond one for each term."""
SAME_SMOOTHING = 2e-14
"""Columns whose variances agree this well share their tables."""
TOO_SMALL = 1e-250
"""Squares over a smaller variance can overflow or underflow; scikit-learn scores such columns."""

Number = TypeVar("Number", float, FloatArray)


def slacks(n_rows: int) -> tuple[float, float]:
    """Return the relative errors of a term, in a subset of several columns and in one of a single column."""
    return 16 * EPS + 2 * SAME_SMOOTHING, (n_rows + 32) * EPS + 2 * SAME_SMOOTHING


def relative_error(slack: float, k: int) -> float:
    """Return the relative error of a sum over k columns; ``slack`` is that of a term (see `slacks`)."""
    return slack + (k + SPARE_TERMS) * EPS


def swing_of(mean_error: FloatArray, variance: FloatArray) -> FloatArray:
    """Return what an error of the mean can do to a square over this variance, as ``error_terms`` takes it."""
    return np.asarray(mean_error / np.sqrt(2.0 * variance))


def error_terms(relative: Number, swing: Number, size: Number) -> tuple[Number, Number]:
    """Return base and rate of the bound.

    ``swing`` is 0 unless the subset is a single column, and ``size`` is |log prior| + sum of |constants| + k. Only
    sums and products are used, so the arguments can be numbers, NumPy arrays or tensors; numba compiles the function,
    and the Triton kernel repeats it.
    """
    share = relative + 2.0 * swing * swing
    return share * size + 2.0 * swing, share + swing
