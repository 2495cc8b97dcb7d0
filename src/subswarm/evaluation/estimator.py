"""The slow truth: scikit-learn's own cross-validation, one subset at a time. Fallback and oracle."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.utils.parallel import Parallel, delayed

from subswarm.core.types import FloatArray, Mask, Masks
from subswarm.evaluation.folds import FoldedData

__all__ = ["EstimatorEngine", "fold_scores"]


class EstimatorEngine:
    """Any estimator, any scorer: `cross_val_score` on the selected columns, masks spread over joblib's workers."""

    name: ClassVar[str] = "estimator"

    def __init__(self, estimator: Any, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int = 0) -> None:
        self._estimator = estimator
        self._data = data
        self._n_jobs = n_jobs
        self._error: Exception | None = None

    @classmethod
    def is_usable_for(cls, estimator: Any, data: FoldedData, device: str) -> bool:
        return device == "cpu"

    @property
    def error(self) -> Exception | None:
        return self._error

    def fold_losses(self, masks: Masks) -> FloatArray:
        """Losses of shape (P, n_folds); a row of NaN where the estimator failed."""
        outcomes = Parallel(n_jobs=self._n_jobs)(
            delayed(_try_scores)(self._estimator, self._data, mask) for mask in masks
        )
        losses = np.full((len(masks), self._data.n_folds), np.nan)
        for row, outcome in enumerate(outcomes):
            if isinstance(outcome, Exception):
                self._error = self._error or outcome
            else:
                losses[row] = self._data.scoring.loss(outcome)
        return losses


def fold_scores(estimator: Any, data: FoldedData, mask: Mask) -> FloatArray:
    """The score of one subset in each fold, from scikit-learn itself; the estimator's errors come through."""
    return np.asarray(
        cross_val_score(
            estimator,
            data.X[:, mask],
            data.y,
            cv=[(fold.train, fold.test) for fold in data.folds],
            scoring=data.scoring.scorer,
            params=dict(data.params) or None,
            error_score="raise",
        ),
        dtype=np.float64,
    )


def _try_scores(estimator: Any, data: FoldedData, mask: Mask) -> FloatArray | Exception:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # thousands of fits: a warning a fit helps nobody
        try:
            scores = fold_scores(estimator, data, mask)
        except Exception as error:
            return error
    return scores if np.isfinite(scores).all() else ValueError(f"the scores of a subset were not finite: {scores}")
