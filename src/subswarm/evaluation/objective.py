"""The objective: memo, engine and criterion, from masks to one finite fitness each."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_regressor
from sklearn.utils import get_tags

from subswarm.core.checks import as_masks, check_int
from subswarm.core.errors import DataError, SubswarmWarning
from subswarm.core.types import FloatArray, Masks
from subswarm.evaluation.engine import DEFAULT_MAX_BYTES, Engine, engine_for
from subswarm.evaluation.estimator import fold_scores
from subswarm.evaluation.folds import FoldedData, fixed_folds
from subswarm.evaluation.scoring import Scoring, resolve_scoring
from subswarm.evaluation.tables import allows_nan, check_table, check_target

__all__ = ["Objective", "make_objective"]


class Objective:
    """Masks in, mean loss over the folds out: always finite, never computed twice for the same subset.

    Made by `make_objective`.

    Attributes
    ----------
    n_features : number of columns
    asked : masks asked so far, repeated ones included
    computed : distinct masks computed so far
    engine : the engine's name
    """

    def __init__(self, estimator: Any, data: FoldedData, engine: Engine) -> None:
        self._estimator = estimator
        self._data = data
        self._engine = engine
        self._memo: dict[bytes, FloatArray] = {}
        self._warned = False
        self.asked = 0
        self.failed = 0

    def __call__(self, masks: ArrayLike) -> FloatArray:
        """The fitness of each mask, shape (P,)."""
        return np.asarray(self.fold_losses(masks).mean(axis=1))

    def fold_losses(self, masks: ArrayLike) -> FloatArray:
        """The loss of each mask in each fold, shape (P, n_folds)."""
        masks = as_masks(masks, self.n_features)
        keys = [row.tobytes() for row in np.packbits(masks, axis=1)]
        fresh = {key: row for row, key in enumerate(keys) if key not in self._memo}
        if fresh:
            self._remember(list(fresh), masks[list(fresh.values())])
        self.asked += len(masks)
        return np.array([self._memo[key] for key in keys]).reshape(len(masks), self._data.n_folds)

    def losses_of(self, mask: ArrayLike) -> FloatArray:
        """The loss of one subset in each fold, shape (n_folds,), without counting as asked."""
        asked = self.asked
        losses = self.fold_losses(mask)[0]
        self.asked = asked
        return np.array(losses)

    def fresh(self) -> Objective:
        """The same objective with nothing remembered and nothing counted; the engine and its tables are shared."""
        return Objective(self._estimator, self._data, self._engine)

    def fold_scores(self, mask: ArrayLike) -> FloatArray:
        """The score (not the loss) of one subset in each fold, from scikit-learn's own ``cross_val_score``."""
        return fold_scores(self._estimator, self._data, as_masks(mask, self.n_features)[0])

    @property
    def n_features(self) -> int:
        return self._data.n_features

    @property
    def computed(self) -> int:
        return len(self._memo)

    @property
    def engine(self) -> str:
        return self._engine.name

    @property
    def engine_facts(self) -> dict[str, Any]:
        """What the engine counts, for benchmarks: ``settled`` of the torch neighbours, ``rechecked`` of the others."""
        return {name: getattr(self._engine, name) for name in ("settled", "rechecked") if hasattr(self._engine, name)}

    @property
    def scoring(self) -> Scoring:
        """The scorer, and how its score becomes a loss."""
        return self._data.scoring

    @property
    def folds(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """The fixed folds as (train rows, test rows), as scikit-learn's ``cv`` takes them."""
        return [(fold.train.copy(), fold.test.copy()) for fold in self._data.folds]

    def fingerprint(self) -> str:
        """Equal only for objectives that score every subset the same way: data, folds, scoring and estimator."""
        return f"{self._data.fingerprint()} {self._estimator!r}"

    def _remember(self, keys: list[bytes], masks: Masks) -> None:
        filled = masks.any(axis=1)
        if filled.all():
            losses = self._engine.fold_losses(masks)
        else:
            losses = np.full((len(masks), self._data.n_folds), np.nan)
            if filled.any():
                losses[filled] = self._engine.fold_losses(masks[filled])
        finite = np.isfinite(losses)
        if not finite.all():
            bad = ~finite.all(axis=1)
            self._note_failures(int((bad & filled).sum()), computed=self.computed + len(masks))
            losses[bad] = self._data.scoring.worst
        self._memo.update(zip(keys, losses, strict=True))

    def _note_failures(self, failed: int, computed: int) -> None:
        self.failed += failed
        error = self._engine.error
        if error is not None and self.failed >= 2 and self.failed == computed:
            raise error
        if not self._warned:
            self._warned = True
            reason = f"failed with {type(error).__name__}: {error}" if failed and error else "was empty"
            warnings.warn(
                f"a subset {reason}; it, and any later one like it, scores the worst loss "
                f"({self._data.scoring.worst:g}) and the search goes on.",
                SubswarmWarning,
                stacklevel=4,
            )


def make_objective(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 10,
    scoring: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    device: str = "cpu",
    random_state: int | None = 0,
    engine: str = "auto",
    max_bytes: int = DEFAULT_MAX_BYTES,
    params: Mapping[str, Any] | None = None,
) -> Objective:
    """The cross-validated loss of an estimator as a function of masks.

    Parameters
    ----------
    estimator : scikit-learn estimator or pipeline, cloned; classifiers and regressors
    X : table of shape (N, n): NumPy array, pandas or Polars frame, or nested lists
    y : target of shape (N,)
    cv : int, splitter or list of splits, default=10
        The folds are drawn once. An integer means shuffled folds (stratified for a classifier) from ``random_state``.
    scoring : name, callable or None
        The loss is ``1 - score``, or ``-score`` for names that begin with ``neg_``.
    groups : array of shape (N,), optional
        Passed to the splitter.
    n_jobs : int or None
        Workers for joblib; whatever its backend, the losses are the same.
    device : "cpu" or "cuda"
        What scores the subsets. "cuda" needs an NVIDIA GPU and the extra ``gpu``; the losses are the same.
    random_state : int or None, default=0
        Draws the folds where ``cv`` is an integer.
    engine : "auto", "estimator", "fast" or "torch"
        Which engine scores the subsets; "auto" takes the fastest that is exact. "torch" computes with torch, on the
        CPU too.
    max_bytes : int
        Memory a fast engine may use for its tables and blocks.
    params : dict, optional
        Metadata for ``fit`` and the scorer, such as ``sample_weight``.

    Returns
    -------
    Objective

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_wine(return_X_y=True)
    >>> objective = make_objective(GaussianNB(), X, y)
    >>> losses = objective(np.eye(13, dtype=bool))
    >>> losses.shape, objective.asked, objective.computed
    ((13,), 13, 13)
    """
    check_int("max_bytes", max_bytes, low=1)
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise DataError(
            f"estimator must be a scikit-learn estimator object with a fit method; got {estimator!r}. "
            "Pass an instance, such as GaussianNB()."
        )
    tags = get_tags(estimator)
    X = check_table(X, allow_nan=allows_nan(estimator))
    y = check_target(y, len(X), numeric=is_regressor(estimator), multi_output=tags.target_tags.multi_output)
    data = FoldedData(
        X=X,
        y=y,
        folds=fixed_folds(cv, X, y, estimator=estimator, groups=groups, random_state=random_state),
        scoring=resolve_scoring(estimator, scoring),
        params=dict(params or {}),
    )
    estimator = clone(estimator)
    return Objective(
        estimator,
        data,
        engine_for(estimator, data, engine=engine, device=device, n_jobs=n_jobs, max_bytes=max_bytes),
    )
