"""Each fold's training and test rows as the model sees them: scaled by what the training rows say, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from subswarm.core.types import FloatArray
from subswarm.evaluation.folds import Fold

__all__ = ["scaled_rows"]


def scaled_rows(X: FloatArray, fold: Fold, scaler: Any) -> tuple[FloatArray, FloatArray]:
    """Training and test rows of one fold, all columns.

    scikit-learn's scalers treat the columns one by one, so the columns of a subset scale as they do here. Columns on
    which that could depend on the order of a sum (a spread that is nothing but rounding) come back as NaN: an engine
    must leave subsets with such a column to scikit-learn.
    """
    train, test = np.ascontiguousarray(X[fold.train]), np.ascontiguousarray(X[fold.test])
    if scaler is None:
        return train, test
    fitted = clone(scaler).fit(train)
    doubtful = _doubtful_columns(fitted, train)
    train, test = (np.ascontiguousarray(fitted.transform(rows)) for rows in (train, test))
    train[:, doubtful] = np.nan
    return train, test


def _doubtful_columns(fitted: Any, train: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if type(fitted) is not StandardScaler or not fitted.with_std:
        return np.zeros(train.shape[1], dtype=bool)
    constant = train.min(axis=0) == train.max(axis=0)
    rounding = 4 * len(train) * np.finfo(float).eps * np.abs(train).max(axis=0)
    return np.asarray(~constant & (np.sqrt(fitted.var_) <= rounding))
