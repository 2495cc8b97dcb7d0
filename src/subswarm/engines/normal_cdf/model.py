"""The classifier of the published results: naive Bayes with cumulative normal probabilities in place of densities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from subswarm._types import AnyArray, FloatArray

__all__ = ["NormalCDFBayes", "class_moments", "log_cumulative"]


class NormalCDFBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes that multiplies normal *cumulative* probabilities.

    A class scores its prior times the product over the features of Φ((x − mean) / sd), with the class's mean and
    population standard deviation; if the deviation is zero, Φ is a step at the mean. Equal scores go to the lowest
    class. This is not a proper likelihood. It is what the published tables of the two-dimensional swarm appear to be
    computed with, and is provided for comparison with them. For your own work, use `sklearn.naive_bayes.GaussianNB`.

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

    def fit(self, X: ArrayLike, y: ArrayLike) -> NormalCDFBayes:
        """Estimate each class's prior, means and deviations from rows X (N, n) and labels y (N,)."""
        rows, target = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(target)
        self.classes_, codes = np.unique(target, return_inverse=True)
        self.class_prior_ = np.bincount(codes) / len(codes)
        moments = [class_moments(rows[codes == c]) for c in range(len(self.classes_))]
        self.theta_ = np.array([mean for mean, _ in moments])
        self.scale_ = np.array([deviation for _, deviation in moments])
        return self

    def predict_joint_log_proba(self, X: ArrayLike) -> FloatArray:
        """Return the log of prior times product for each row and class, shape (N, n_classes)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        columns = np.ascontiguousarray(rows.T)
        scores = np.empty((len(self.classes_), len(rows)))
        for c, (means, deviations) in enumerate(zip(self.theta_, self.scale_, strict=True)):
            scores[c] = np.log(self.class_prior_[c])
            for j, column in enumerate(columns):  # one after the other, so that the sum does not depend on the shape
                scores[c] += log_cumulative(column, means[j], deviations[j])
        return np.ascontiguousarray(scores.T)

    def predict(self, X: ArrayLike) -> AnyArray:
        """Return the class of each row."""
        scores = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Return the log of each class's share of the scores; equal shares if every score is zero."""
        scores = self.predict_joint_log_proba(X)
        scores[np.isneginf(scores).all(axis=1)] = 0.0
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return each class's share of the scores."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # cumulative probabilities do not separate classes well
        return tags


def class_moments(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and population standard deviation of each column; of a constant column exactly its value and 0."""
    columns = np.ascontiguousarray(rows.T)
    constant = columns.min(axis=1) == columns.max(axis=1)
    means = np.where(constant, columns[:, 0], columns.mean(axis=1))
    return means, np.where(constant, 0.0, columns.std(axis=1))


def log_cumulative(x: FloatArray, mean: float, deviation: float) -> FloatArray:
    """Return log Φ((x − mean) / deviation); if the deviation is zero, a step from -inf to 0 at the mean."""
    if deviation > 0:
        return np.asarray(log_ndtr((x - mean) / deviation))
    return np.where(x >= mean, 0.0, -np.inf)
