"""The objective of a search: maps masks to their cross-validated losses, and remembers them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import get_tags

from subswarm._checks import as_masks, check_bool, check_int, check_jobs, shown
from subswarm._fingerprint import digest
from subswarm._types import AnyArray, Estimator, FloatArray, IntArray, Limits, Mask, Masks, Scorings, Splits
from subswarm.engines.base import DEFAULT_MAX_BYTES, Engine, engine_for, uses_fast_engine
from subswarm.engines.data import FoldedData, Scoring
from subswarm.engines.reference import fold_scores
from subswarm.errors import DataError, SubswarmWarning
from subswarm.objective.filters import ranking_scores
from subswarm.objective.folds import cross_fit_folds, fixed_folds, is_number, partitions_in
from subswarm.objective.scoring import resolve_all, scoring_for_target
from subswarm.objective.validation import (
    check_estimator,
    check_groups,
    check_metadata,
    check_sample_weight,
    check_target,
    clone_estimator,
    read_table,
)

__all__ = ["Engines", "Objective", "make_objective"]


Refold = Callable[[int, int], "Objective"]
"""Draws other folds: ``refold(repeats, shift)``."""

LEAST_MAX_ROWS = 100
"""The least that ``max_rows`` may be: fewer rows tell little."""

MOST_RELIEFF_ROWS = 1000
"""Rows that ReliefF compares with each other if it guides a search: its time grows with their square."""

_SHIFT = 1_000_003
"""Added to the seed of the folds for new ones."""


class Objective:
    """Maps masks to mean losses over the folds: always finite, and computed once for each subset.

    The cross-validation may be repeated. A subset can be scored on all repeats or on one of them; each repeat scored is
    one evaluation.

    The objective may be cross-fitted: then repeat c has only the rows outside a block of rows, and partition
    ``n_partitions + c`` is the model trained on these rows and scored on the block.

    Created by `make_objective`.

    Attributes
    ----------
    n_features : number of columns
    n_partitions : number of repeats of the cross-validation
    n_left_out : number of blocks of rows that repeats leave out: ``n_partitions`` if cross-fitted, else 0
    asked : evaluations requested so far, including those of remembered subsets: repeats scored, summed over the masks
    computed : evaluations computed so far, each mask once on each repeat
    engine : the name of the engine (of the first repeat)
    """

    def __init__(
        self,
        estimator: Estimator,
        data: FoldedData,
        engines: Engines,
        ranking_seed: int = 0,
        left_out: Objective | None = None,
        refold: Refold | None = None,
    ) -> None:
        self._ranking_seed = ranking_seed
        self._left_out = left_out
        self._refold = refold
        self._on_new_folds: dict[int, Objective] = {}
        self._estimator = estimator
        self._data = data
        self._engines = engines
        self._by_others: list[Objective] | None = None
        self._memos: list[dict[bytes, FloatArray]] = [{} for _ in range(data.n_partitions)]
        self._warned = False
        self.asked = 0
        self.failed = 0

    def __call__(self, masks: ArrayLike, partitions: ArrayLike | None = None) -> FloatArray:
        """Return the loss of each mask, shape (P,), on all repeats or on the one given in ``partitions`` (P,)."""
        if partitions is not None and self._left_out is not None:
            masks = as_masks(masks, self.n_features)
            chosen = self._chosen(partitions, len(masks), self.n_partitions + self.n_left_out)
            outside = chosen >= self.n_partitions
            if outside.any():
                return self._split_losses(masks, chosen, outside)
        losses = self.fold_losses(masks, partitions)
        return np.asarray(np.add.reduce(losses, axis=1) / losses.shape[1])

    def _split_losses(self, masks: Masks, chosen: IntArray, outside: Mask) -> FloatArray:
        """Return the loss of each mask, on a repeat or (where ``outside``) on the rows that a repeat leaves out."""
        assert self._left_out is not None
        losses = np.empty(len(masks))
        losses[outside] = self._left_out(masks[outside], chosen[outside] - self.n_partitions)
        self.asked += int(outside.sum())
        if not outside.all():
            losses[~outside] = self(masks[~outside], chosen[~outside])
        return losses

    def fold_losses(self, masks: ArrayLike, partitions: ArrayLike | None = None) -> FloatArray:
        """Return the loss of each mask in each fold, shape (P, n_folds), or in the folds of the repeat given for it."""
        masks = as_masks(masks, self.n_features)
        keys = [row.tobytes() for row in np.packbits(masks, axis=1)]
        if partitions is None:
            losses = [self._on_partition(number, keys, masks) for number in range(self.n_partitions)]
            self.asked += len(masks) * self.n_partitions
            return losses[0] if len(losses) == 1 else np.concatenate(losses, axis=1)
        chosen = self._chosen(partitions, len(masks), self.n_partitions)
        found = np.empty((len(masks), self._data.folds_each))
        for number in np.unique(chosen):
            rows = np.flatnonzero(chosen == number)
            found[rows] = self._on_partition(int(number), [keys[row] for row in rows], masks[rows])
        self.asked += len(masks)
        return found

    def on_all_rows(self) -> Objective:
        """Return the objective whose folds divide all rows: this one, or one repeat if it is cross-fitted."""
        if self._left_out is None or self._refold is None:
            return self
        return self._refold(1, 0)

    def left_out_losses_of_constant(self) -> FloatArray | None:
        """Return the loss on each block of left-out rows of a model that always gives the same answer.

        It predicts the shares of the classes, or the mean. None if there are no blocks, or the scorer cannot score it.
        """
        return None if self._left_out is None else self._losses_of_constant(self._left_out.data)

    def _losses_of_constant(self, data: FoldedData) -> FloatArray | None:
        constant = DummyClassifier(strategy="prior") if is_classifier(self._estimator) else DummyRegressor()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores = fold_scores(constant, replace(data, params={}), np.ones(self.n_features, dtype=bool))
        except Exception:  # a scorer that needs a decision function, say
            return None
        return np.asarray(data.scoring.loss(scores)) if data.scoring.accepts(scores).all() else None

    def on_new_folds(self, repeats: int) -> Objective | None:
        """Return an objective with repeats of other folds of all rows; None if the folds were not drawn from a seed.

        It is kept, so that a subset is scored on these folds only once.
        """
        if self._refold is None:
            return None
        if repeats not in self._on_new_folds:
            self._on_new_folds[repeats] = self._refold(repeats, 1)
        return self._on_new_folds[repeats]

    def losses_of(self, mask: ArrayLike) -> FloatArray:
        """Return the loss of one subset in each fold, shape (n_folds,), without counting it as asked."""
        asked = self.asked
        losses = self.fold_losses(_one_mask(mask, self.n_features))[0]
        self.asked = asked
        return np.array(losses)

    def other_losses(self, masks: ArrayLike, /) -> FloatArray:
        """Return the loss of each mask by the second, third, ... scorer, shape (P, number of these), on all repeats."""
        masks = as_masks(masks, self.n_features)
        if self._by_others is None:
            self._by_others = [self._scored_by(scoring) for scoring in self._data.other_scorings]
        return np.array([scored(masks) for scored in self._by_others]).reshape(-1, len(masks)).T

    def _scored_by(self, scoring: Scoring) -> Objective:
        """Return the objective on the same folds with another scorer, and with losses remembered of its own."""
        data = replace(self._data, scoring=scoring, other_scorings=())
        return Objective(self._estimator, data, self._engines.for_data(data), self._ranking_seed)

    def importances(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray | None:
        """Return the importances of the columns in the fitted models; None, because this objective keeps none."""
        return None

    def remembered_losses(self, mask: ArrayLike) -> FloatArray:
        """Return the loss of one subset in each fold, shape (n_folds,), NaN where it has not been computed."""
        key = np.packbits(_one_mask(mask, self.n_features)).tobytes()
        unknown = np.full(self._data.folds_each, np.nan)
        return np.concatenate([memo.get(key, unknown) for memo in self._memos])

    def fresh(self) -> Objective:
        """Return the same objective without remembered losses and counts; it shares the engines and their tables."""
        left_out = None if self._left_out is None else self._left_out.fresh()
        return Objective(self._estimator, self._data, self._engines, self._ranking_seed, left_out, self._refold)

    def fold_scores(self, mask: ArrayLike, scoring: Scoring | None = None) -> FloatArray:
        """Return the score (not the loss) of one subset in each fold, from scikit-learn's ``cross_val_score``.

        ``scoring`` is another scorer than the objective's own.
        """
        chosen = _one_mask(mask, self.n_features)
        if not chosen.any():
            raise DataError("mask selects no feature; a score needs at least one.")
        data = self._data if scoring is None else replace(self._data, scoring=scoring)
        return fold_scores(self._estimator, data, chosen)

    def mean_scores(self, masks: Masks, scoring: Scoring) -> FloatArray:
        """Return the mean score of each subset by another scorer, shape (P,); NaN where it fails."""
        engine = self._engines.scored_by(scoring)
        scores = np.full(len(masks), np.nan)
        filled = masks.any(axis=1)
        if filled.any():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SubswarmWarning)  # of a device that has no engine for this scorer
                losses = engine().fold_losses(masks[filled])
            scores[filled] = [scoring.score(float(loss)) for loss in losses.mean(axis=1)]
        return scores

    @property
    def data(self) -> FoldedData:
        """The checked table and target, the folds and the scorer."""
        return self._data

    @property
    def ranking_seed(self) -> int:
        """The seed of rankings that draw random numbers."""
        return self._ranking_seed

    @property
    def refold(self) -> Refold | None:
        """Draws other folds; None if the folds were not drawn from a seed."""
        return self._refold

    @property
    def estimator(self) -> Estimator:
        """The unfitted estimator that is scored."""
        return self._estimator

    @property
    def n_features(self) -> int:
        return self._data.n_features

    @property
    def n_partitions(self) -> int:
        return self._data.n_partitions

    @property
    def n_left_out(self) -> int:
        return 0 if self._left_out is None else self._left_out.n_partitions

    @property
    def n_rows(self) -> int:
        """The number of rows of the table."""
        return int(self._data.X.shape[0])

    @property
    def computed(self) -> int:
        return sum(map(len, self._memos)) + (0 if self._left_out is None else self._left_out.computed)

    @property
    def engine(self) -> str:
        return self._engines[0].name

    @property
    def at_once(self) -> int:
        """The number of subsets that are scored at the same time: the workers, if scikit-learn itself scores."""
        return self._engines.workers if self.engine == "estimator" else 1

    @property
    def engine_facts(self) -> dict[str, int]:
        """What the first repeat's engine counts, for benchmarks."""
        return self._engines[0].facts

    @property
    def scoring(self) -> Scoring:
        """The scorer, and how its score becomes a loss."""
        return self._data.scoring

    @property
    def folds(self) -> list[tuple[IntArray, IntArray]]:
        """The fixed folds as (train rows, test rows), as scikit-learn's ``cv`` accepts them, repeat by repeat."""
        return [(fold.train.copy(), fold.test.copy()) for fold in self._data.folds]

    @property
    def limits(self) -> Limits:
        """The limits on subsets: none."""
        return Limits()

    @property
    def prices(self) -> FloatArray | None:
        """The prices of the columns: none."""
        return None

    def ranking(self, name: str, partition: int | None = None, /) -> FloatArray:
        """Return the scores of all columns in the ranking of this name, such as "mrmr".

        It is computed on the whole table. With a ``partition`` of a cross-fitted objective, it is computed on the rows
        of that repeat (or on all rows, if the partition is ``n_partitions``), of which ReliefF sees at most
        `MOST_RELIEFF_ROWS`.
        """
        rows = np.arange(self.n_rows)
        if partition is not None and self._left_out is not None and partition < self.n_partitions:
            rows = self._left_out.data.folds[partition].train
        if partition is not None and name == "relieff" and len(rows) > MOST_RELIEFF_ROWS:
            rows = rows[np.linspace(0, len(rows) - 1, MOST_RELIEFF_ROWS).astype(np.intp)]
        return ranking_scores(
            name,
            _without_missing(self._data.X[rows]),
            self._data.y[rows],
            classification=is_classifier(self._estimator),
            random_state=self._ranking_seed,
        )

    def fingerprint(self) -> str:
        """Return a digest that is equal only for objectives that score every subset in the same way."""
        return digest(self.fingerprint_parts())

    def fingerprint_parts(self) -> dict[str, str]:
        """Return the digests of table, target, folds, metadata, scoring and estimator, by name."""
        parts = self._data.fingerprint_parts() | {"estimator": digest(self._estimator)}
        if self._left_out is not None:
            parts["left-out rows"] = self._left_out.data.fingerprint_parts()["folds"]
        return parts

    def _chosen(self, partitions: ArrayLike, count: int, limit: int) -> IntArray:
        try:
            chosen = np.asarray(partitions)
        except (TypeError, ValueError):  # rows of different lengths, or an object that is not an array
            chosen = np.asarray(None)
        if chosen.shape != (count,) or chosen.dtype.kind not in "iu":
            raise DataError(
                f"partitions must be whole numbers, one for each of the {count} masks; got {shown(partitions)}."
            )
        if count and not 0 <= chosen.min() <= chosen.max() < limit:
            raise DataError(f"partitions must be from 0 to {limit - 1}; got {chosen.min()} to {chosen.max()}.")
        return chosen.astype(np.intp)

    def _on_partition(self, number: int, keys: list[bytes], masks: Masks) -> FloatArray:
        """Return the loss of each mask in each fold of one repeat."""
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
        total = self.failed + failed
        several = total > self.n_partitions  # so more than one subset failed
        if error is not None and several and total == computed:
            raise error  # nothing of this batch is remembered, so its failures are not counted either
        self.failed = total
        if not self._warned:
            self._warned = True
            reason = f"failed with {type(error).__name__}: {error}" if failed and error else "was empty"
            warnings.warn(
                f"a subset {reason}; it, and any later one like it, scores the worst loss "
                f"({self._data.scoring.worst:g}) and the search continues.",
                SubswarmWarning,
                stacklevel=5,
            )


def make_objective(
    estimator: Estimator,
    X: object,
    y: object,
    *,
    cv: Splits | None = None,
    repeats: int = 1,
    cross_fit: bool = False,
    max_rows: int | None = None,
    scoring: Scorings = None,
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
    device: str = "cpu",
    random_state: int | np.random.RandomState | None = 0,
    engine: str = "auto",
    max_bytes: int = DEFAULT_MAX_BYTES,
    params: Mapping[str, object] | None = None,
) -> Objective:
    """Return the cross-validated loss of an estimator as a function of masks.

    Parameters
    ----------
    estimator : scikit-learn estimator or pipeline, cloned; classifiers and regressors
    X : table of shape (N, n): NumPy array, pandas or Polars frame, sparse matrix, or nested lists
        The estimator gets subsets of a frame as frames and subsets of a sparse matrix as sparse matrices; other tables
        become arrays of float64.
    y : target of shape (N,)
    cv : int, splitter, list of splits or None
        The folds are drawn once. An integer means shuffled folds (stratified for a classifier) from ``random_state``.
        None means 10 of them, or fewer, with a warning, if there are fewer rows or no class has as many.
    repeats : int, default=1
        Repeats of the cross-validation if ``cv`` is an integer: the loss is the mean over the folds of all repeats,
        as with ``RepeatedStratifiedKFold(n_splits=cv, n_repeats=repeats, random_state=random_state)``, which may also
        be given as ``cv``. A list of splits is taken as that many repeats, one after the other.
    cross_fit : bool, default=False
        Whether each repeat leaves out a block of rows, on which `2d-elite` chooses the number of features and
        estimates the score of its selection. This needs ``repeats`` of at least 2, a number of folds and no groups,
        and at least two rows for each repeat; otherwise the repeats have all rows.
    max_rows : int or None
        With ``cross_fit``, about how many of its rows each repeat uses, in proportion of the classes. Each repeat draws
        others. The models for the left-out rows are trained on four times as many.
    scoring : name, callable or None
        The loss is ``1 - score``, or ``-score`` for names that begin with ``neg_``. Of several scorers, a list of names
        or a dict, the first is used; `Objective.other_losses` has the losses by the others.
    groups : array of shape (N,), optional
        Passed to the splitter.
    n_jobs : int or None
        Workers for joblib; the losses do not depend on them.
    device : "cpu" or "cuda"
        Where the subsets are scored. "cuda" needs an NVIDIA GPU and the extra ``gpu``; the losses are the same.
    random_state : int, RandomState instance or None, default=0
        Draws the folds if ``cv`` is an integer.
    engine : "auto", "estimator", "fast" or "torch"
        Which engine scores the subsets; "auto" takes the fastest exact one. "torch" computes with torch, also on the
        CPU.
    max_bytes : int
        Memory that the fast engines of all repeats may use for their tables and blocks.
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
    repeats = int(repeats)  # a NumPy integer of few bits would overflow
    check_jobs("n_jobs", n_jobs)
    if not isinstance(random_state, np.random.RandomState):
        check_int("random_state", random_state, low=0, high=2**32 - 1, optional=True)
    check_metadata(params)
    check_estimator(estimator)
    tags = get_tags(estimator)
    checked = read_table(X, estimator)
    table = checked.values
    n_rows = table.shape[0]
    target = check_target(y, n_rows, numeric=is_regressor(estimator), multi_output=tags.target_tags.multi_output)
    check_groups(groups, n_rows)
    check_sample_weight(estimator, params or {})
    scorer, *others = resolve_all(estimator, _scoring_with_note(estimator, scoring, target)).values()
    check_bool("cross_fit", cross_fit)
    check_int("max_rows", max_rows, low=LEAST_MAX_ROWS, optional=True)
    divided = None
    if cross_fit and groups is None and _allows_left_out_rows(scorer, target, repeats, is_classifier(estimator)):
        divided = cross_fit_folds(
            cv,
            target,
            estimator=estimator,
            random_state=random_state,
            repeats=repeats,
            least_test_rows=scorer.least_rows,
            max_rows=None if max_rows is None else int(max_rows),
        )
    folds = (
        divided[0]
        if divided is not None
        else fixed_folds(
            cv,
            table,
            target,
            estimator=estimator,
            groups=groups,
            random_state=random_state,
            repeats=repeats,
            least_test_rows=scorer.least_rows,
        )
    )
    data = FoldedData(
        X=table,
        y=target,
        folds=folds,
        scoring=scorer,
        params=dict(params or {}),
        n_partitions=repeats if divided is not None else partitions_in(cv, len(folds), repeats),
        frame=checked.frame,
        is_plain=checked.is_plain,
        other_scorings=tuple(others),
    )
    estimator = clone_estimator(estimator)
    _check_fit(estimator, data)
    if data.frame is not None and _has_low_precision(data.frame) and uses_fast_engine(estimator, data, engine, device):
        data = replace(data, frame=None)  # the engines compute in float64, and so must the estimator itself
    make_engines = partial(Engines, estimator, engine=engine, device=device, n_jobs=n_jobs, max_bytes=int(max_bytes))
    seed = int(random_state) if isinstance(random_state, int | np.integer) else 0
    left_out = None
    if divided is not None:
        outside = replace(data, folds=divided[1])
        left_out = Objective(estimator, outside, make_engines(data=outside), ranking_seed=seed)
    refold = None
    if groups is None and (cv is None or is_number(cv)) and isinstance(random_state, int | np.integer):
        refold = partial(_fold_again, cv, data, estimator, int(random_state), make_engines)
    return Objective(estimator, data, make_engines(data=data), seed, left_out, refold)


def _check_fit(estimator: Estimator, data: FoldedData) -> None:
    """Raise DataError if the estimator cannot be fitted on a table that is not just numbers.

    Otherwise each subset with the column in question would silently get the worst loss.
    """
    if data.frame is None or (data.is_plain and not np.isnan(data.X).any()):
        return
    fold, every = data.folds[0], np.ones(data.n_features, dtype=bool)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fold_scores(estimator, replace(data, folds=(fold,), n_partitions=1), every)
    except Exception as error:
        raise DataError(
            f"{type(estimator).__name__} fails on all columns of X as they are, which have "
            f"{'missing values' if data.is_plain else 'more than numbers'}: {error}"
        ) from error


def _has_low_precision(frame: object) -> bool:
    """Return whether a frame has floats of less than 64 bits."""
    dtypes = getattr(frame, "dtypes", ())
    return any(str(dtype).lower() in ("float16", "float32") for dtype in dtypes)


def _without_missing(X: Any) -> FloatArray:
    """Return a table for a ranking: dense, and with the mean of the column in place of missing values."""
    if sparse.issparse(X):
        X = X.toarray()
    values: FloatArray = np.asarray(X, dtype=np.float64)
    missing = np.isnan(values)
    if not missing.any():
        return values
    means = np.where(missing, 0.0, values).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
    return np.where(missing, means, values)


def _fold_again(
    cv: int | None,
    data: FoldedData,
    estimator: Estimator,
    random_state: int,
    make_engines: Callable[..., Engines],
    repeats: int,
    shift: int,
) -> Objective:
    """Return an objective with ``repeats`` repeats of other folds; a ``shift`` of 0 draws the first folds again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubswarmWarning)  # the first folds have warned already
        folds = fixed_folds(
            cv,
            data.X,
            data.y,
            estimator=estimator,
            random_state=(random_state + shift * _SHIFT) % 2**32,
            repeats=repeats,
            least_test_rows=data.scoring.least_rows,
        )
        refolded = replace(data, folds=folds, n_partitions=repeats)
        return Objective(estimator, refolded, make_engines(data=refolded), random_state)


def _allows_left_out_rows(scoring: Scoring, y: AnyArray, repeats: int, classifier: bool) -> bool:
    """Return whether every block of left-out rows can be scored: scores other than accuracy need rows of each class."""
    if not classifier or scoring.name == "accuracy":
        return True
    return y.ndim == 1 and int(np.unique(y, return_counts=True)[1].min()) >= repeats


def _scoring_with_note(estimator: Estimator, scoring: Scorings, y: AnyArray) -> Scorings:
    found = scoring_for_target(estimator, scoring, y)
    if found is not scoring and found != scoring:
        warnings.warn(
            f"scoring={scoring!r} of {len(np.unique(y))} classes is computed for each class against the rest "
            f"({found!r}).",
            SubswarmWarning,
            stacklevel=4,
        )
    return found


def _one_mask(mask: ArrayLike, n_features: int) -> Mask:
    masks = as_masks(mask, n_features)
    if len(masks) != 1:
        raise DataError(f"expected one mask of shape ({n_features},); got {len(masks)} masks.")
    return np.asarray(masks[0])


class Engines:
    """The engines of all repeats; the first is created at once, so that settings that cannot work fail at once.

    Parameters
    ----------
    estimator, data : what is scored, and on which folds
    engine, device, n_jobs, max_bytes : as for `engine_for`; the repeats share ``max_bytes``
    """

    def __init__(
        self, estimator: Estimator, data: FoldedData, *, engine: str, device: str, n_jobs: int | None, max_bytes: int
    ) -> None:
        self._estimator = estimator
        self._data = data
        self._engine_for = partial(
            engine_for,
            engine=engine,
            device=device,
            n_jobs=n_jobs,
            max_bytes=max(1, max_bytes // data.n_partitions),
        )
        self._made: dict[int, Engine] = {0: self._engine_for(estimator, data.partition(0).on_used_rows())}

    @property
    def workers(self) -> int:
        """The number of joblib's workers."""
        return int(effective_n_jobs(self._engine_for.keywords["n_jobs"]))

    def scored_by(self, scoring: Scoring) -> Callable[[], Engine]:
        """Return a function that makes an engine for another scorer, on the folds of all repeats."""
        settings = self._engine_for.keywords
        chosen = settings | {"engine": "estimator" if settings["engine"] == "estimator" else "auto"}
        return partial(engine_for, self._estimator, replace(self._data, scoring=scoring), **chosen)

    def for_data(self, data: FoldedData) -> Engines:
        """Return engines with the same settings for other data; they need not be fast if the scorer has no fast one."""
        settings = self._engine_for.keywords
        engine = "estimator" if settings["engine"] == "estimator" else "auto"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SubswarmWarning)  # of a device that has no engine for this scorer
            return Engines(
                self._estimator,
                data,
                engine=engine,
                device=settings["device"],
                n_jobs=settings["n_jobs"],
                max_bytes=settings["max_bytes"] * data.n_partitions,
            )

    def __getitem__(self, partition: int) -> Engine:
        if partition not in self._made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SubswarmWarning)  # the first engine has warned already
                data = self._data.partition(partition).on_used_rows()  # a tall table has rows that no fold samples
                self._made[partition] = self._engine_for(self._estimator, data)
        return self._made[partition]
