"""The reference engine: scikit-learn's own cross-validation, one subset at a time."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.utils._param_validation import InvalidParameterError

from subswarm._types import Estimator, FloatArray, Mask, Masks
from subswarm.engines.data import WORST_LOSS, FoldedData, for_columns, params_for_columns
from subswarm.engines.workers import Workers
from subswarm.errors import ScoringError, SettingError

__all__ = ["EstimatorEngine", "fold_scores", "try_scores"]


class EstimatorEngine:
    """Scores any estimator with any scorer: `cross_val_score` on the selected columns, masks in parallel by joblib."""

    name: ClassVar[str] = "estimator"

    def __init__(
        self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int = 0
    ) -> None:
        self._data = data
        self._workers = Workers(estimator, data, n_jobs)
        self._error: Exception | None = None

    @classmethod
    def is_usable_for(cls, estimator: Estimator, data: FoldedData) -> bool:
        """Return True: scikit-learn scores everything."""
        return True

    @property
    def error(self) -> Exception | None:
        """The first exception that the estimator raised, or None."""
        return self._error

    @property
    def facts(self) -> dict[str, int]:
        """Nothing is counted here."""
        return {}

    def fold_losses(self, masks: Masks) -> FloatArray:
        """Return losses of shape (P, n_folds); a row of NaN where the estimator failed."""
        outcomes = self._workers.run(try_scores, [(mask,) for mask in masks])
        losses = np.full((len(masks), self._data.n_folds), np.nan)
        for row, outcome in enumerate(outcomes):
            if isinstance(outcome, Exception):
                self._error = self._error or outcome
            else:
                losses[row] = self._data.scoring.loss(outcome)
        return losses


def fold_scores(estimator: Estimator, data: FoldedData, mask: Mask) -> FloatArray:
    """Score one subset in each fold with scikit-learn itself; errors of the estimator are raised."""
    try:
        scores = cross_val_score(
            for_columns(estimator, mask, data.names),
            data.columns(mask),
            data.y,
            cv=[(fold.train, fold.test) for fold in data.folds],
            scoring=data.scoring.scorer,
            params=params_for_columns(data.params, mask, data.names) or None,
            error_score="raise",
        )
    except InvalidParameterError as error:  # scikit-learn names the function that it passed through instead
        raise SettingError(
            f"scikit-learn refuses {str(error).replace('of cross_val_score', 'of the estimator')}"
        ) from error
    try:
        return np.asarray(scores, dtype=np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise ScoringError(f"scoring {data.scoring.name!r} gave scores that are not numbers: {error}.") from error


def try_scores(estimator: Estimator, data: FoldedData, mask: Mask) -> FloatArray | Exception:
    """Return the scores of one subset in each fold, or the exception of a subset that has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # otherwise each of thousands of fits could warn
        try:
            scores = fold_scores(estimator, data, mask)
        except Exception as error:
            return error
    if data.scoring.accepts(scores).all():
        return scores
    what = f"not below {WORST_LOSS:g} in size" if np.isfinite(scores).all() else "not finite"
    return ScoringError(
        f"scoring {data.scoring.name!r} gave scores that are {what}, {scores}; a search needs a finite score in every "
        "fold."
    )
