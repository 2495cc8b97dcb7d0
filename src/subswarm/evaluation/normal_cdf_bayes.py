"""The classifier behind the published numbers: naive Bayes with cumulative normal probabilities for densities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from subswarm.core.types import FloatArray

__all__ = ["NormalCDFBayes", "class_moments", "log_cumulative"]


class NormalCDFBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes that multiplies normal *cumulative* probabilities.

    A class scores its prior times the product over the features of Φ((x − mean) / sd), with the class's mean and
    population standard deviation; where the deviation is zero, Φ is a step at the mean. Equal scores go to the lowest
    class. No density does that: it is what the published tables of the two-dimensional swarm appear to be made of,
    and is here so that they can be compared with. For a classifier of your own, take `sklearn.naive_bayes.GaussianNB`.

    Attributes
    ----------
    classes_ : the class labels, sorted
    class_prior_ : share of each class in the training rows
    theta_, scale_ : mean and standard deviation of each class and feature, shape (n_classes, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1])
    >>> NormalCDFBayes().fit(X, y).predict([[0.2], [9.0]])
    array([0, 0])
    """

    def fit(self, X: Any, y: Any) -> NormalCDFBayes:
        """Learn each class's prior, means and deviations from rows X (N, n) and labels y (N,)."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.class_prior_ = np.bincount(codes) / len(codes)
        moments = [class_moments(X[codes == c]) for c in range(len(self.classes_))]
        self.theta_ = np.array([mean for mean, _ in moments])
        self.scale_ = np.array([deviation for _, deviation in moments])
        return self

    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Log of prior times product for each row and class, shape (N, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        columns = np.ascontiguousarray(X.T)
        scores = np.empty((len(self.classes_), len(X)))
        for c, (means, deviations) in enumerate(zip(self.theta_, self.scale_, strict=True)):
            scores[c] = np.log(self.class_prior_[c])
            for j, column in enumerate(columns):  # one after the other, so that a sum does not depend on its shape
                scores[c] += log_cumulative(column, means[j], deviations[j])
        return np.ascontiguousarray(scores.T)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        scores = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log of each class's share of the scores; equal shares where every score is zero."""
        scores = self.predict_joint_log_proba(X)
        scores[np.isneginf(scores).all(axis=1)] = 0.0
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> FloatArray:
        """Each class's share of the scores."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # cumulative probabilities do not tell classes apart well
        return tags


def class_moments(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and population standard deviation of each column; of a constant column exactly its value and zero."""
    columns = np.ascontiguousarray(rows.T)
    constant = columns.min(axis=1) == columns.max(axis=1)
    means = np.where(constant, columns[:, 0], columns.mean(axis=1))
    return means, np.where(constant, 0.0, columns.std(axis=1))


def log_cumulative(x: FloatArray, mean: float, deviation: float) -> FloatArray:
    """log Φ((x − mean) / deviation), a step from minus infinity to zero at the mean where the deviation is zero."""
    if deviation > 0:
        return np.asarray(log_ndtr((x - mean) / deviation))
    return np.where(x >= mean, 0.0, -np.inf)
