"""An objective for expensive models: every fold is a repeat of its own, so that one evaluation is one fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from subswarm._checks import as_masks
from subswarm._types import Estimator, FloatArray, IntArray, Mask, Masks
from subswarm.engines.base import DEFAULT_MAX_BYTES
from subswarm.engines.data import FoldedData, Scoring
from subswarm.engines.importances import FoldFit, score_fold
from subswarm.engines.workers import Workers
from subswarm.errors import SubswarmWarning
from subswarm.objective.objective import Engines, Objective

__all__ = ["FoldwiseObjective", "foldwise"]


class FoldwiseObjective(Objective):
    """Scores subsets on single folds with scikit-learn itself, and remembers the importances of the columns.

    ``n_partitions`` is the number of folds. A mask can be scored on one fold, which is one fit and one evaluation, so
    that a search may give up a subset after its first folds. All fits of a batch are distributed among the workers.
    Losses are those of ``cross_val_score``.

    Created by `foldwise`.
    """

    def __init__(
        self,
        estimator: Estimator,
        data: FoldedData,
        *,
        n_jobs: int | None = None,
        ranking_seed: int = 0,
        refold: Callable[[int, int], Objective] | None = None,
    ) -> None:
        data = replace(data, n_partitions=data.n_folds)
        engines = Engines(estimator, data, engine="estimator", device="cpu", n_jobs=n_jobs, max_bytes=DEFAULT_MAX_BYTES)
        super().__init__(estimator, data, engines, ranking_seed, refold=refold)
        self._n_jobs = n_jobs
        self._workers = Workers(estimator, data, n_jobs)
        self._importances: list[dict[bytes, FloatArray]] = [{} for _ in range(data.n_folds)]
        self._scores: list[dict[bytes, FloatArray]] = [{} for _ in range(data.n_folds)]
        self._error: Exception | None = None
        self.offers_importances = False

    def fold_losses(self, masks: ArrayLike, partitions: ArrayLike | None = None) -> FloatArray:
        """Return the loss of each mask in each fold, shape (P, n_folds), or in the fold given for it, shape (P, 1)."""
        masks = as_masks(masks, self.n_features)
        if partitions is None:
            folds = np.tile(np.arange(self.n_partitions), len(masks))
            self._fit(np.repeat(masks, self.n_partitions, axis=0), folds)
        else:
            self._fit(masks, self._chosen(partitions, len(masks), self.n_partitions))
        return super().fold_losses(masks, partitions)

    def importances(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray:
        """Return the importances of the columns in the models of these masks, shape (P, n).

        They are those on the fold given for each mask, or means over the folds that each has been scored on. The
        importances in one model sum to 1; they are 0 for columns that the mask leaves out.
        """
        found = np.zeros(masks.shape)
        for row, key in enumerate(_keys(masks)):
            memos = self._importances if partitions is None else [self._importances[partitions[row]]]
            known = [memo[key] for memo in memos if key in memo]
            if known:
                found[row] = np.mean(known, axis=0)
        return found

    def fold_scores(self, mask: ArrayLike, scoring: Scoring | None = None) -> FloatArray:
        """Return the score (not the loss) of one subset in each fold; remembered fits are not made again."""
        (key,) = _keys(as_masks(mask, self.n_features)[:1])
        if scoring is None:
            self.losses_of(mask)
            if all(key in scores for scores in self._scores):
                return np.concatenate([scores[key] for scores in self._scores])
        return super().fold_scores(mask, scoring)

    def left_out_losses_of_constant(self) -> FloatArray | None:
        return self._losses_of_constant(self._data)

    def measure_fit(self) -> float:
        """Return the seconds that a fit of all columns takes: the shorter of two, in two folds, on one worker."""
        every, seconds = np.ones((1, self.n_features), dtype=bool), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SubswarmWarning)  # the search itself reports a subset that fails
            for fold in range(min(2, self.n_partitions)):
                started = time.perf_counter()
                self._fit(every, np.array([fold]))
                seconds.append(time.perf_counter() - started)
        return max(min(seconds), 1e-6)

    def fresh(self) -> Objective:
        """Return the same objective without remembered losses and counts."""
        return FoldwiseObjective(
            self._estimator, self._data, n_jobs=self._n_jobs, ranking_seed=self._ranking_seed, refold=self._refold
        )

    def _fit(self, masks: Masks, folds: IntArray) -> None:
        """Fit and score what is not remembered: each mask on its fold."""
        jobs: dict[tuple[int, bytes], int] = {}
        for row, (fold, key) in enumerate(zip(folds.tolist(), _keys(masks), strict=True)):
            if key not in self._memos[fold] and masks[row].any():
                jobs.setdefault((fold, key), row)
        outcomes = self._workers.run(_score_on_fold, [(fold, masks[row]) for (fold, _), row in jobs.items()])
        failed: list[tuple[int, bytes]] = []
        for (fold, key), fit in zip(jobs, outcomes, strict=True):
            if isinstance(fit.scores, Exception):
                self._error = self._error or fit.scores
                failed.append((fold, key))
                continue
            self._memos[fold][key] = np.asarray(self._data.scoring.loss(fit.scores))
            self._scores[fold][key] = fit.scores
            self._importances[fold][key] = fit.importances
            self.offers_importances |= fit.offered
        if failed:
            self._note_failures(len(failed), computed=self.computed + len(failed), error=self._error)
            for fold, key in failed:
                self._memos[fold][key] = np.array([self._data.scoring.worst])


def _score_on_fold(estimator: Estimator, data: FoldedData, fold: int, mask: Mask) -> FoldFit:
    return score_fold(estimator, data.partition(fold), mask)


def foldwise(objective: Objective, n_jobs: int | None = None) -> FoldwiseObjective:
    """Return the objective of the same estimator, rows, folds and scorer that scores fold by fold."""
    whole = objective.on_all_rows()
    return FoldwiseObjective(
        whole.estimator, whole.data, n_jobs=n_jobs, ranking_seed=objective.ranking_seed, refold=objective.refold
    )


def _keys(masks: Masks) -> list[bytes]:
    return [row.tobytes() for row in np.packbits(masks, axis=1)]
