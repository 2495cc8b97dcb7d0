"""Rankings of single features from the data alone, without a model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.feature_selection import f_classif, f_regression, mutual_info_classif, mutual_info_regression

from subswarm._checks import check_choice, check_int, shown
from subswarm._types import AnyArray, Float32Array, FloatArray, IntArray
from subswarm.errors import DataError, SettingError
from subswarm.objective.validation import check_table, check_target

__all__ = [
    "RANKINGS",
    "check_preselection",
    "discretized",
    "mrmr_order",
    "mutual_information_table",
    "ranking_scores",
    "relieff_weights",
]

NEIGHBOURS = 10
"""Number of hits and of misses of each row in ReliefF."""
BINS = 5
"""Number of equally filled bins of a continuous feature in mRMR."""
_CHUNK = 2**22
"""Numbers that a ranking keeps in memory at a time."""
_CACHED = 2**17
"""Numbers that stay in a processor's cache."""


def ranking_scores(
    name: str, X: object, y: object, *, classification: bool = True, random_state: int | None = 0
) -> FloatArray:
    """Return a score for each column, shape (n,); higher is better.

    Parameters
    ----------
    name : "mutual-information", "anova-f", "relieff" or "mrmr"
        For mRMR, whose result is an order, the score falls evenly from 1 for the first feature to 0 for the last.
    X, y : table of shape (N, n) and target of shape (N,)
    classification : bool, default=True
        Whether ``y`` holds classes; ReliefF needs them.
    random_state : int or None, default=0
        For the small noise that breaks ties in scikit-learn's estimate of mutual information.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> ranking_scores("anova-f", *load_iris(return_X_y=True)).round(1).tolist()
    [119.3, 49.2, 1180.2, 960.0]
    """
    check_choice("ranking", name, RANKINGS)
    table = check_table(X)
    target = check_target(y, len(table), numeric=not classification)
    scores = RANKINGS[name](table, target, classification, random_state)
    finite = scores[np.isfinite(scores)]
    # A constant column has no F statistic, and one that separates the classes perfectly an infinite one.
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    return np.nan_to_num(scores, nan=low, posinf=high + 1.0, neginf=low)


def _mutual_information(X: FloatArray, y: AnyArray, classification: bool, random_state: int | None) -> FloatArray:
    estimate = mutual_info_classif if classification else mutual_info_regression
    return np.asarray(estimate(X, y, random_state=random_state), dtype=np.float64)


def _anova_f(X: FloatArray, y: AnyArray, classification: bool, random_state: int | None) -> FloatArray:
    varies = np.ptp(X, axis=0) > 0
    scores = np.full(X.shape[1], np.nan)
    if varies.any():
        with np.errstate(divide="ignore"):
            scores[varies] = (f_classif if classification else f_regression)(X[:, varies], y)[0]
    return scores


def _relieff(X: FloatArray, y: AnyArray, classification: bool, random_state: int | None) -> FloatArray:
    if not classification:
        raise DataError("ReliefF ranks features for classes, and the target is continuous; use mutual-information.")
    return relieff_weights(X, np.unique(y, return_inverse=True)[1].reshape(-1))


def _mrmr(X: FloatArray, y: AnyArray, classification: bool, random_state: int | None) -> FloatArray:
    target = np.unique(y, return_inverse=True)[1].reshape(-1) if classification else discretized(y[:, None])[:, 0]
    order = mrmr_order(discretized(X), target)
    scores = np.empty(len(order))
    scores[order] = np.linspace(1.0, 0.0, len(order)) if len(order) > 1 else 1.0
    return scores


RANKINGS: dict[str, Callable[[FloatArray, AnyArray, bool, int | None], FloatArray]] = {
    "mutual-information": _mutual_information,
    "anova-f": _anova_f,
    "relieff": _relieff,
    "mrmr": _mrmr,
}
"""The rankings by name."""


def check_preselection(preselect: object) -> None:
    """Raise SettingError unless this is None or a pair of a ranking and a number."""
    if preselect is None:
        return
    if not isinstance(preselect, tuple | list) or len(preselect) != 2:
        raise SettingError(
            f'preselect must be a pair of a ranking and a number, such as ("mrmr", 50); got {shown(preselect)}.'
        )
    check_choice("the ranking of preselect", preselect[0], RANKINGS)
    check_int("the number of preselect", preselect[1], low=1)


def relieff_weights(X: FloatArray, classes: IntArray, neighbours: int = NEIGHBOURS) -> FloatArray:
    """Return ReliefF's weights with every row as a reference, shape (n,).

    Features are scaled by their range and rows compared by the sum of differences. For each row and class, the mean
    difference to the nearest rows (as many of ``neighbours`` as the class has) counts against a feature for the row's
    own class and for it, by the classes' shares, for the others.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.1, 1.0], [0.9, 0.0], [1.0, 1.0]])
    >>> relieff_weights(X, np.array([0, 0, 1, 1]), neighbours=1).round(6).tolist()
    [0.8, -1.0]
    """
    ranges = np.ptp(X, axis=0)
    scaled = (X - X.min(axis=0)) / np.where(ranges > 0, ranges, 1.0)
    members = [np.flatnonzero(classes == label) for label in range(classes.max() + 1)]
    shares = np.array([len(rows) for rows in members]) / len(X)
    weights = np.zeros(X.shape[1])
    step = max(1, _CHUNK // (neighbours * X.shape[1]))
    distances = squareform(pdist(scaled, metric="cityblock")) if len(X) ** 2 <= _CHUNK else None
    for start in range(0, len(X), step):
        rows = np.arange(start, min(start + step, len(X)))
        for label, others in enumerate(members):
            hit = classes[rows] == label
            factor = np.where(hit, -1.0, shares[label] / (1.0 - shares[classes[rows]]))
            apart = (
                cdist(scaled[rows], scaled[others], metric="cityblock")
                if distances is None
                else distances[rows][:, others]
            )
            weights += factor @ _mean_difference(scaled, rows, others, apart, neighbours)
    return weights / len(X)


def _mean_difference(
    X: FloatArray, rows: IntArray, others: IntArray, distance: FloatArray, neighbours: int
) -> FloatArray:
    """Return the mean difference in each feature of each row to its nearest of ``others`` (not itself), (rows, n).

    ``distance`` (rows, others) is changed.
    """
    distance[rows[:, None] == others] = np.inf
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :neighbours]
    counts = np.isfinite(np.take_along_axis(distance, nearest, axis=1))
    sums = np.empty((len(rows), X.shape[1]))
    step = max(1, _CACHED // (neighbours * X.shape[1]))
    for start in range(0, len(rows), step):  # in place and in the cache: the memory takes longer than the arithmetic
        part = slice(start, start + step)
        differences = X[others[nearest[part]]]
        differences -= X[rows[part]][:, None]
        np.abs(differences, out=differences)
        if not counts[part].all():
            differences *= counts[part][:, :, None]
        differences.sum(axis=1, out=sums[part])
    sums /= np.maximum(counts.sum(axis=1), 1)[:, None]
    return sums


def discretized(X: FloatArray, bins: int = BINS) -> IntArray:
    """Return each column as codes 0..bins-1 of equally filled bins; a column of few values keeps them, shape (N, n).

    Examples
    --------
    >>> discretized(np.array([[3.0], [1.0], [2.0], [9.0]]), bins=2).ravel().tolist()
    [1, 0, 0, 1]
    """
    codes = np.empty(X.shape, dtype=np.intp)
    for column, values in enumerate(X.T):
        distinct, code = np.unique(values, return_inverse=True)
        if len(distinct) > bins:
            cuts = np.quantile(values, np.arange(1, bins) / bins)
            code = np.searchsorted(cuts, values, side="left")
        codes[:, column] = code.reshape(-1)
    return codes


def mutual_information_table(codes: IntArray, target: IntArray) -> FloatArray:
    """Return the mutual information, in nats, of each column of codes with the target's codes, shape (n,).

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> mutual_information_table(codes, np.array([0, 0, 1, 1])).round(6).tolist()
    [0.693147, 0.0]
    """
    return _information(_indicators(codes), _indicators(target[:, None]))[:, 0]


def mrmr_order(codes: IntArray, target: IntArray) -> IntArray:
    """Return mRMR's order: repeatedly the feature of largest I(f; y) - mean I(f; those before), ties by index."""
    indicators = _indicators(codes)
    relevance = mutual_information_table(codes, target)
    shared = _information(indicators, indicators)
    redundancy = np.zeros_like(relevance)
    waiting = np.ones(len(relevance), dtype=bool)
    order = np.empty(len(relevance), dtype=np.intp)
    for place in range(len(order)):
        value = relevance - redundancy / max(place, 1)
        order[place] = chosen = int(np.where(waiting, value, -np.inf).argmax())
        waiting[chosen] = False
        redundancy += shared[:, chosen]
    return order


def _indicators(codes: IntArray) -> Float32Array:
    """Return which row has which code in each column, (n, codes, N); counts of rows are exact in float32."""
    levels = np.arange(codes.max(initial=0) + 1)
    return np.asarray(codes.T[:, None, :] == levels[None, :, None], dtype=np.float32)


def _information(columns: Float32Array, others: Float32Array) -> FloatArray:
    """Return the mutual information of columns (n, a, N) with others (m, b, N), from joint counts; shape (n, m)."""
    n, levels, rows = columns.shape
    flat = columns.reshape(n * levels, rows)
    step = max(1, _CHUNK // (n * levels * others.shape[1]))
    return np.concatenate(
        [_block_information(flat, others[start : start + step], n) for start in range(0, len(others), step)], axis=1
    )


def _block_information(flat: Float32Array, others: Float32Array, n: int) -> FloatArray:
    m, levels, rows = others.shape
    counts = flat @ others.reshape(m * levels, rows).T
    joint = counts.reshape(n, -1, m, levels).astype(np.float64) / rows
    apart = joint.sum(axis=3, keepdims=True) * joint.sum(axis=1, keepdims=True)
    ratio = np.divide(joint, apart, out=np.ones_like(joint), where=joint > 0)
    return np.asarray((joint * np.log(ratio)).sum(axis=(1, 3)))
