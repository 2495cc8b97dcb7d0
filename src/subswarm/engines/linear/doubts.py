"""Which folds have scores so close that rounding can change a metric of their order or of small probabilities."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from subswarm._types import BoolArray, FloatArray
from subswarm.engines.data import Int64Array
from subswarm.engines.linear.tables import EPS
from subswarm.engines.metrics import BatchMetric
from subswarm.engines.metrics.probabilities import LogLoss, TopK
from subswarm.engines.metrics.ranking import BinaryRanking, MulticlassRanking

__all__ = ["doubtful_losses", "doubtful_orders"]

_TOO_UNLIKELY = 1e-6
"""Where scikit-learn subtracts a probability from one, smaller results carry visible rounding."""
_SURE_ENOUGH = 1e-4
"""Largest error of a loss that is accepted, by a bound that is a million times above the errors seen, or more."""


def doubtful_orders(
    scores: FloatArray,
    bounds: FloatArray,
    truth: Int64Array,
    starts: Int64Array,
    *,
    ties: bool = True,
    precision: bool = False,
) -> BoolArray:
    """Return the folds in which two rows of different classes are closer than their bounds, but not equal, (P, F).

    ``scores`` and ``bounds`` are (P, C, rows), with the scores of each of C classes, or of the second of two classes.
    Scores that are equal are those of equal rows, which are equal for scikit-learn as well. Without ``ties`` this is
    not so, and only zeros count as equal. With ``precision`` the metric is the average precision, for which two rows of
    one class count as well: scores that tie are one threshold, and others are two.
    """
    P, C, _ = scores.shape
    doubts = np.zeros((P, len(starts) - 1), dtype=bool)
    for f, (start, stop) in enumerate(pairwise(starts)):
        for c in range(C):
            values, rows = scores[:, c, start:stop], bounds[:, c, start:stop]
            order = np.argsort(values, axis=1)
            is_class = (truth[start:stop] == (c if C > 1 else 1))[order]
            gaps = np.diff(np.take_along_axis(values, order, axis=1), axis=1)
            reach = np.take_along_axis(rows, order, axis=1)
            close = gaps <= reach[:, 1:] + reach[:, :-1]
            equal = gaps == 0
            if not ties:
                equal &= np.take_along_axis(values, order, axis=1)[:, 1:] == 0
            close &= ~equal
            doubts[:, f] |= close.any(axis=1) if precision else _joins(close, equal, is_class)
    return doubts


def _joins(close: BoolArray, equal: BoolArray, is_class: BoolArray) -> BoolArray:
    """Return the rows of sorted scores in which a run of equal or close scores has a close pair and both classes."""
    if not close.any():
        return np.zeros(len(close), dtype=bool)
    linked = close | equal
    runs = np.concatenate([np.zeros((len(close), 1), dtype=int), np.cumsum(~linked, axis=1)], axis=1)
    found = np.zeros(len(close), dtype=bool)
    for p in np.flatnonzero(close.any(axis=1)):
        for run in np.unique(runs[p, 1:][close[p]]):
            members = is_class[p, runs[p] == run]
            if members.any() and not members.all():
                found[p] = True
                break
    return found


def doubtful_losses(
    metric: BatchMetric,
    probabilities: FloatArray,
    bounds: FloatArray,
    truth: Int64Array,
    starts: Int64Array,
    subtracts: bool,
) -> BoolArray:
    """Return the folds in which rounding of the scores within ``bounds`` (P, rows) can change the metric, (P, F).

    ``subtracts`` says that scikit-learn computes the first of two probabilities as one minus the second. Otherwise
    different scores can give equal probabilities here and others there.
    """
    C = probabilities.shape[2]
    folds = np.zeros((len(probabilities), len(starts) - 1), dtype=bool)
    if isinstance(metric, BinaryRanking | MulticlassRanking):
        values = probabilities.transpose(0, 2, 1)
        reach = values * (2.0 * bounds[:, None] + 4.0 * EPS)
        if C == 2:
            values, reach = values[:, 1:], reach[:, 1:]
        return doubtful_orders(values, reach, truth, starts, ties=subtracts, precision=metric.is_precision)
    if isinstance(metric, TopK):
        ordered = np.sort(probabilities, axis=2)
        gaps = np.diff(ordered, axis=2)
        close = (gaps > 0) & (gaps <= ordered[:, :, 1:] * (4.0 * bounds[:, :, None] + 8.0 * EPS))
        rows = np.asarray(close.any(axis=2))
    else:
        sums = np.add.reduceat(bounds, starts[:-1], axis=1)
        folds |= ~(sums <= _SURE_ENOUGH * np.diff(starts))
        if not (isinstance(metric, LogLoss) and subtracts):
            return folds
        of_truth = np.where(truth == 1, probabilities[:, :, 1], probabilities[:, :, 0])
        rows = np.asarray(of_truth < _TOO_UNLIKELY)
    for f, (start, stop) in enumerate(pairwise(starts)):
        folds[:, f] |= rows[:, start:stop].any(axis=1)
    return folds
