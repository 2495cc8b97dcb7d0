"""The documented rule of the neighbours engine, slowly, and where scikit-learn's own answer is certain.

The rule: the smallest sum over the columns, in order, of squared (or absolute) differences in double precision; rows at
the same distance in the order of their number; votes tie to the lowest class. It is written here a second time, from
the sentence and not from the engine, in plain NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.extmath import weighted_mode

from .scorers import uses_labels

__all__ = ["Ruling", "rule_on_fold"]

_EPS = np.finfo(np.float64).eps
_MOST_ROOM = 1e-6


@dataclass(frozen=True, eq=False)
class Ruling:
    """What the rule says of a fold: the answers, their score, and where scikit-learn may differ.

    ``open_rows`` are the test rows with ties, and ``room`` is how far rounding of scikit-learn's distances can move a
    mean over the probabilities.
    """

    answers: Any
    score: float
    open_rows: Any
    room: float


def rule_on_fold(estimator: Any, data: Any, mask: Any, fold: Any, *, scaler_sees_all: bool = False) -> Ruling:
    """The rule's answers for the test rows of one fold.

    With ``scaler_sees_all`` the scaler is fitted to all columns rather than to the selected ones: the same numbers,
    but that NumPy may sum a lone column in another order.
    """
    model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    train, test = _scaled(estimator, data, mask, fold, scaler_sees_all)
    order = np.argsort(fold.train, kind="stable")  # rows at the same distance in the order of their number
    rows, train = fold.train[order], train[order]
    distances = _distances(test, train, is_city_block(model))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, : model.n_neighbors]
    near = np.take_along_axis(distances, nearest, axis=1)
    margins = _margins(model, train, test, distances, mask)
    is_open = _too_close(model, distances, margins)
    room = 0.0
    if is_regressor(model):
        answers = _means(model, data.y[rows][nearest], near)
        given: Any = _Numbers(answers)
    else:
        answers, shares, doubtful = _votes(model, data.y[rows], nearest, near, margins)
        is_open |= doubtful
        given = _Classes(np.unique(data.y[rows]), answers, shares)
        if not uses_labels(data.scoring) and model.weights == "distance":
            is_open |= _nearly_equal_shares(shares)
            # one over a distance that brute force computes as x² - 2xy + y² has fewer digits than the metric shows
            room = min(_MOST_ROOM, 8 * float(_weight_errors(near, np.take_along_axis(margins, nearest, axis=1)).max()))
    with np.errstate(all="ignore"):
        try:
            score = float(data.scoring.scorer(given, test, data.y[fold.test]))
        except Exception:
            score = float("nan")
    return Ruling(answers, score, is_open, room)


def is_city_block(model: Any) -> bool:
    return model.metric in ("manhattan", "l1", "cityblock") or (model.metric == "minkowski" and model.p == 1)


def _scaled(estimator: Any, data: Any, mask: Any, fold: Any, scaler_sees_all: bool) -> tuple[Any, Any]:
    if not isinstance(estimator, Pipeline):
        return data.X[:, mask][fold.train], data.X[:, mask][fold.test]
    X = np.ascontiguousarray(data.X) if scaler_sees_all else data.X[:, mask]
    scaler = clone(estimator.steps[0][1]).fit(X[fold.train])
    train, test = scaler.transform(X[fold.train]), scaler.transform(X[fold.test])
    return (train[:, mask], test[:, mask]) if scaler_sees_all else (train, test)


def _distances(test: Any, train: Any, city_block: bool) -> Any:
    """Squared or city-block distances, summed over the columns in order."""
    total = np.zeros((len(test), len(train)))
    with np.errstate(all="ignore"):
        for own, other in zip(test.T, train.T, strict=True):
            gap = own[:, None] - other[None, :]
            total += np.abs(gap) if city_block else gap * gap
    return total


def _margins(model: Any, train: Any, test: Any, distances: Any, mask: Any) -> Any:
    """By how much scikit-learn's own distances may be off, for each pair of rows.

    Its search trees sum differences as the rule does. Its brute force takes x² − 2xy + y² for euclidean distances,
    whose rounding goes with the squares of the values, however near the two rows are.
    """
    rounding = 8 * (int(mask.sum()) + 4) * _EPS
    fitted = clone(model).fit(train, np.zeros(len(train), dtype=int))
    with np.errstate(all="ignore"):
        if is_city_block(model):
            return rounding * distances + 1e-320
        if fitted._fit_method == "brute":
            size = (test * test).sum(axis=1)[:, None] + (train * train).sum(axis=1).max()
            return rounding * size + np.zeros_like(distances) + 1e-300
        return rounding * distances + 1e-300


def _too_close(model: Any, distances: Any, margins: Any) -> Any:
    """Test rows with a tie that matters: at the edge of the k nearest, or where their order counts, among them."""
    order = np.argsort(distances, axis=1, kind="stable")[:, : model.n_neighbors + 1]
    ranked, off = (np.take_along_axis(values, order, axis=1) for values in (distances, margins))
    with np.errstate(all="ignore"):
        close = ~(np.diff(ranked, axis=1) > off[:, 1:] + off[:, :-1])
    strange = ~np.isfinite(ranked).all(axis=1) | ~np.isfinite(off).all(axis=1)
    if is_regressor(model) or model.weights == "distance":  # sums of floats depend on the order
        return close.any(axis=1) | strange
    at_edge = close[:, model.n_neighbors - 1] if close.shape[1] >= model.n_neighbors else np.zeros(len(close), bool)
    return at_edge | strange


def _votes(model: Any, labels: Any, nearest: Any, near: Any, margins: Any) -> tuple[Any, Any, Any]:
    """The classes that win, every class's share, and rows whose weighted votes rounding could turn."""
    classes, codes = np.unique(labels, return_inverse=True)
    ballots = codes[nearest]
    is_class = ballots[:, :, None] == np.arange(len(classes))
    if model.weights == "uniform":
        counts = is_class.sum(axis=1)
        return classes[counts.argmax(axis=1)], counts / model.n_neighbors, np.zeros(len(nearest), dtype=bool)
    with np.errstate(all="ignore"):
        weights = _inverse(near if is_city_block(model) else np.sqrt(near))
        winners = weighted_mode(ballots, weights, axis=1)[0].ravel().astype(int)
        votes = np.zeros((len(nearest), len(classes)))
        for place in range(nearest.shape[1]):
            votes[np.arange(len(nearest)), ballots[:, place]] += weights[:, place]
        shares = votes / votes.sum(axis=1)[:, None]
        off = np.take_along_axis(margins, nearest, axis=1)
        at_zero = (near <= 4 * off).any(axis=1)  # a distance that rounding may take to zero, or away from it
        spread = _weight_errors(near, off)
        ranked = np.sort(shares, axis=1)
        tight = np.zeros(len(ranked), bool) if len(classes) == 1 else ~(ranked[:, -1] - ranked[:, -2] > 4 * spread)
    return classes[winners], shares, (tight | at_zero) & (len(classes) > 1)


def _weight_errors(near: Any, off: Any) -> Any:
    """How far each row's weights may be off, as a share of them, from squared distances and their errors."""
    with np.errstate(all="ignore"):
        return np.where(near > 0, off / near, 1.0).max(axis=1) + 64 * _EPS * near.shape[1]


def _means(model: Any, values: Any, near: Any) -> Any:
    """The mean of the neighbours' values, each weighted by one over its distance if the model says so."""
    if model.weights == "uniform":
        return np.mean(values, axis=1)
    with np.errstate(all="ignore"):
        weights = _inverse(near if is_city_block(model) else np.sqrt(near))
        return (values * weights).sum(axis=1) / weights.sum(axis=1)


def _inverse(lengths: Any) -> Any:
    """One over the distance; a row with neighbours at no distance counts only these."""
    weights = 1.0 / lengths
    infinite = np.isinf(weights)
    weights[infinite.any(axis=1)] = infinite[infinite.any(axis=1)]
    return weights


def _nearly_equal_shares(shares: Any) -> Any:
    """Rows whose share of a class is that of another row but for rounding, so that their ranking is open."""
    close = np.abs(shares[:, None, :] - shares[None, :, :]) < 1e-6
    settled = (shares == 0) | (shares == 1)
    harmless = settled[:, None, :] & settled[None, :, :]
    both = (close & ~harmless).any(axis=2)
    np.fill_diagonal(both, False)
    return both.any(axis=1)


class _Classes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that says what it was told to."""

    def __init__(self, classes: Any, labels: Any, shares: Any) -> None:
        self.classes, self.labels, self.shares = classes, labels, shares
        self.classes_ = classes

    def predict(self, X: Any) -> Any:
        return self.labels

    def predict_proba(self, X: Any) -> Any:
        return self.shares


class _Numbers(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that says what it was told to."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def predict(self, X: Any) -> Any:
        return self.values
