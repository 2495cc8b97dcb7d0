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
from subswarm.core.types import FloatArray, IntArray, Masks
from subswarm.evaluation.engine import DEFAULT_MAX_BYTES
from subswarm.evaluation.estimator import fold_scores
from subswarm.evaluation.folds import FoldedData, fixed_folds, partitions_in
from subswarm.evaluation.partitions import Engines
from subswarm.evaluation.scoring import Scoring, resolve_scoring
from subswarm.evaluation.tables import allows_nan, check_table, check_target

__all__ = ["Objective", "make_objective"]


class Objective:
    """Masks in, mean loss over the folds out: always finite, never computed twice for the same subset.

    The folds are one partition of the rows, or several where the cross-validation is repeated. A subset may be scored
    on all partitions or on one; each partition scored is one evaluation.

    Made by `make_objective`.

    Attributes
    ----------
    n_features : number of columns
    n_partitions : number of partitions
    asked : evaluations asked so far, repeated ones included: partitions scored, summed over the masks
    computed : those computed so far, each mask once on each partition
    engine : the name of the engine (the first partition's, where they differ)
    """

    def __init__(self, estimator: Any, data: FoldedData, engines: Engines) -> None:
        self._estimator = estimator
        self._data = data
        self._engines = engines
        self._memos: list[dict[bytes, FloatArray]] = [{} for _ in range(data.n_partitions)]
        self._warned = False
        self.asked = 0
        self.failed = 0

    def __call__(self, masks: ArrayLike, partitions: ArrayLike | None = None) -> FloatArray:
        """The fitness of each mask, shape (P,): on all partitions, or each on the one named in ``partitions`` (P,)."""
        losses = self.fold_losses(masks, partitions)
        return np.asarray(np.add.reduce(losses, axis=1) / losses.shape[1])

    def fold_losses(self, masks: ArrayLike, partitions: ArrayLike | None = None) -> FloatArray:
        """The loss of each mask in each fold, shape (P, n_folds); in the folds of its partition, where one is named."""
        masks = as_masks(masks, self.n_features)
        keys = [row.tobytes() for row in np.packbits(masks, axis=1)]
        if partitions is None:
            losses = [self._on_partition(number, keys, masks) for number in range(self.n_partitions)]
            self.asked += len(masks) * self.n_partitions
            return losses[0] if len(losses) == 1 else np.concatenate(losses, axis=1)
        chosen = self._chosen(partitions, len(masks))
        found = np.empty((len(masks), self._data.folds_each))
        for number in np.unique(chosen):
            rows = np.flatnonzero(chosen == number)
            found[rows] = self._on_partition(int(number), [keys[row] for row in rows], masks[rows])
        self.asked += len(masks)
        return found

    def losses_of(self, mask: ArrayLike) -> FloatArray:
        """The loss of one subset in each fold, shape (n_folds,), without counting as asked."""
        asked = self.asked
        losses = self.fold_losses(mask)[0]
        self.asked = asked
        return np.array(losses)

    def fresh(self) -> Objective:
        """The same objective with nothing remembered and nothing counted; the engines and their tables are shared."""
        return Objective(self._estimator, self._data, self._engines)

    def fold_scores(self, mask: ArrayLike) -> FloatArray:
        """The score (not the loss) of one subset in each fold, from scikit-learn's own ``cross_val_score``."""
        return fold_scores(self._estimator, self._data, as_masks(mask, self.n_features)[0])

    @property
    def n_features(self) -> int:
        return self._data.n_features

    @property
    def n_partitions(self) -> int:
        return self._data.n_partitions

    @property
    def computed(self) -> int:
        return sum(map(len, self._memos))

    @property
    def engine(self) -> str:
        return self._engines[0].name

    @property
    def engine_facts(self) -> dict[str, Any]:
        """What the first partition's engine counts, for benchmarks: ``settled`` of the torch neighbours, ``rechecked``
        of the others.
        """
        engine = self._engines[0]
        return {name: getattr(engine, name) for name in ("settled", "rechecked") if hasattr(engine, name)}

    @property
    def scoring(self) -> Scoring:
        """The scorer, and how its score becomes a loss."""
        return self._data.scoring

    @property
    def folds(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """The fixed folds as (train rows, test rows), as scikit-learn's ``cv`` takes them, partition by partition."""
        return [(fold.train.copy(), fold.test.copy()) for fold in self._data.folds]

    def fingerprint(self) -> str:
        """Equal only for objectives that score every subset the same way: data, folds, scoring and estimator."""
        return f"{self._data.fingerprint()} {self._estimator!r}"

    def _chosen(self, partitions: ArrayLike, count: int) -> IntArray:
        chosen = np.asarray(partitions)
        if chosen.shape != (count,) or chosen.dtype.kind not in "iu":
            raise DataError(
                f"partitions must be whole numbers, one for each of the {count} masks; got an array of dtype "
                f"{chosen.dtype} and shape {chosen.shape}."
            )
        if count and not 0 <= chosen.min() <= chosen.max() < self.n_partitions:
            raise DataError(
                f"partitions must be from 0 to {self.n_partitions - 1}; got {chosen.min()} to {chosen.max()}."
            )
        return chosen.astype(np.intp)

    def _on_partition(self, number: int, keys: list[bytes], masks: Masks) -> FloatArray:
        """The loss of each mask in each fold of one partition."""
        memo = self._memos[number]
        fresh = {key: row for row, key in enumerate(keys) if key not in memo}
        if len(fresh) == len(keys):
            losses = self._computed_losses(number, masks)
            memo.update(zip(keys, losses, strict=True))
            return losses.copy()
        if fresh:
            memo.update(zip(fresh, self._computed_losses(number, masks[list(fresh.values())]), strict=True))
        return np.array([memo[key] for key in keys]).reshape(len(masks), self._data.folds_each)

    def _computed_losses(self, number: int, masks: Masks) -> FloatArray:
        engine = self._engines[number]
        filled = masks.any(axis=1)
        if filled.all():
            losses = engine.fold_losses(masks)
        else:
            losses = np.full((len(masks), self._data.folds_each), np.nan)
            if filled.any():
                losses[filled] = engine.fold_losses(masks[filled])
        finite = np.isfinite(losses)
        if not finite.all():
            bad = ~finite.all(axis=1)
            self._note_failures(int((bad & filled).sum()), computed=self.computed + len(masks), error=engine.error)
            losses[bad] = self._data.scoring.worst
        return losses

    def _note_failures(self, failed: int, computed: int, error: Exception | None) -> None:
        self.failed += failed
        several = self.failed > self.n_partitions  # more than one subset, then
        if error is not None and several and self.failed == computed:
            raise error
        if not self._warned:
            self._warned = True
            reason = f"failed with {type(error).__name__}: {error}" if failed and error else "was empty"
            warnings.warn(
                f"a subset {reason}; it, and any later one like it, scores the worst loss "
                f"({self._data.scoring.worst:g}) and the search goes on.",
                SubswarmWarning,
                stacklevel=5,
            )


def make_objective(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 10,
    repeats: int = 1,
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
    repeats : int, default=1
        Partitions of the rows, where ``cv`` is an integer: the loss is the mean over the folds of them all, as with
        scikit-learn's ``RepeatedStratifiedKFold(n_splits=cv, n_repeats=repeats, random_state=random_state)``, which may
        also be given for ``cv``. A list of splits is taken as that many partitions, one after the other.
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
        Memory the fast engines of all partitions may use for their tables and blocks.
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
    check_int("repeats", repeats, low=1)
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise DataError(
            f"estimator must be a scikit-learn estimator object with a fit method; got {estimator!r}. "
            "Pass an instance, such as GaussianNB()."
        )
    tags = get_tags(estimator)
    X = check_table(X, allow_nan=allows_nan(estimator))
    y = check_target(y, len(X), numeric=is_regressor(estimator), multi_output=tags.target_tags.multi_output)
    folds = fixed_folds(cv, X, y, estimator=estimator, groups=groups, random_state=random_state, repeats=repeats)
    data = FoldedData(
        X=X,
        y=y,
        folds=folds,
        scoring=resolve_scoring(estimator, scoring),
        params=dict(params or {}),
        n_partitions=partitions_in(cv, len(folds), repeats),
    )
    estimator = clone(estimator)
    engines = Engines(estimator, data, engine=engine, device=device, n_jobs=n_jobs, max_bytes=max_bytes)
    return Objective(estimator, data, engines)
