"""One run of a search: its budget, the objective it asks for losses, its history and its timing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from subswarm._checks import check_int, check_real, shown
from subswarm._search.ask_tell import AnySearch, Search, first_loss
from subswarm._search.result import History, SearchResult
from subswarm._types import AnyArray, CostFront, FloatArray, IntArray, Limits, Mask, Masks
from subswarm.algorithms import name_of
from subswarm.algorithms import state as plain
from subswarm.algorithms.base import Ranking
from subswarm.algorithms.masks import spread
from subswarm.errors import DamagedCheckpointError, FitnessError, SettingError

__all__ = ["Budget", "FunctionObjective", "ObjectiveLike", "SearchObjective", "SearchRun", "as_objective"]


class ObjectiveLike(Protocol):
    """Any function from masks (P, n) to losses (P,); lower is better."""

    def __call__(self, masks: Masks, /) -> FloatArray: ...


@runtime_checkable
class SearchObjective(Protocol):
    """An objective that knows its features, its repeats and its data, such as `subswarm.Objective`.

    Attributes
    ----------
    n_features : number of features to select from
    n_partitions : number of repeats of the cross-validation
    n_left_out : number of blocks of rows that repeats leave out; 0 unless the objective is cross-fitted
    n_rows : number of rows of the table; None if there is no table
    limits : the limits that the caller sets for subsets
    ranking : computes the scores of a feature ranking by name; None if there is no data
    computed : distinct evaluations computed so far; None if they are not counted
    engine : name of what computes the losses
    at_once : number of subsets that are scored at the same time, by that many workers
    prices : price of each feature, shape (n,), for a front of loss and cost; None for no prices
    """

    @property
    def n_features(self) -> int: ...

    @property
    def n_partitions(self) -> int: ...

    @property
    def n_left_out(self) -> int: ...

    @property
    def n_rows(self) -> int | None: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def ranking(self) -> Ranking | None: ...

    @property
    def computed(self) -> int | None: ...

    @property
    def engine(self) -> str: ...

    @property
    def at_once(self) -> int: ...

    @property
    def prices(self) -> FloatArray | None: ...

    def __call__(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray:
        """Return the losses of the masks, each on the repeat that ``partitions`` names, or on all of them."""
        ...

    def losses_of(self, mask: Mask, /) -> FloatArray | None:
        """Return the loss of one subset in each fold; None if there are no folds."""
        ...

    def other_losses(self, masks: Masks, /) -> FloatArray:
        """Return the losses of the masks by further scorers, shape (P, number of these scorers), on all repeats."""
        ...

    def importances(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray | None:
        """Return the importances of the features in the models last fitted on these masks, shape (P, n).

        None if they are unknown. Losses must have been asked for first; nothing is fitted here.
        """
        ...

    def fingerprint_parts(self) -> dict[str, str]:
        """Return digests, by name, of everything the losses depend on; empty if that is unknown."""
        ...


class FunctionObjective:
    """A plain function of masks as a `SearchObjective`.

    A callable object may also provide any of ``n_features``, ``n_partitions``, ``computed``, ``engine``, ``losses_of``,
    ``fingerprint_parts`` and ``fingerprint``; with ``n_partitions`` above 1 it takes the repeats as second argument.
    """

    def __init__(self, function: Callable[..., FloatArray], n_features: int | None = None) -> None:
        found = n_features if n_features is not None else getattr(function, "n_features", None)
        if found is None:
            raise SettingError("the objective does not say how many features there are; pass n_features=...")
        check_int("n_features", found, low=1)
        self._function = function
        self.n_features = int(found)
        self.n_partitions: int = getattr(function, "n_partitions", 1)
        check_int("n_partitions", self.n_partitions, low=1)
        self.n_left_out = 0
        self.n_rows: int | None = None
        self.limits = Limits()
        self.ranking: Ranking | None = None
        self.engine = str(getattr(function, "engine", "function"))
        self.at_once = 1
        self.prices: FloatArray | None = None

    def __call__(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray:
        return self._function(masks) if partitions is None else self._function(masks, partitions)

    @property
    def computed(self) -> int | None:
        return getattr(self._function, "computed", None)

    def losses_of(self, mask: Mask, /) -> FloatArray | None:
        losses_of: Callable[[Mask], FloatArray] | None = getattr(self._function, "losses_of", None)
        return None if losses_of is None else losses_of(mask)

    def other_losses(self, masks: Masks, /) -> FloatArray:
        return np.empty((len(masks), 0))

    def importances(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray | None:
        return None

    def fingerprint_parts(self) -> dict[str, str]:
        parts: Callable[[], dict[str, str]] | None = getattr(self._function, "fingerprint_parts", None)
        if parts is not None:
            return dict(parts())
        fingerprint: Callable[[], str] | None = getattr(self._function, "fingerprint", None)
        return {} if fingerprint is None else {"objective": str(fingerprint())}


def as_objective(objective: object, n_features: int | None = None) -> SearchObjective:
    """Return the objective as a `SearchObjective`; ``n_features`` is needed only for a plain function."""
    if isinstance(objective, type) or not callable(objective):
        raise SettingError(
            f"objective must be a function from masks to losses, such as make_objective(...); got {shown(objective)}."
        )
    if not isinstance(objective, SearchObjective):
        return FunctionObjective(objective, n_features)
    if n_features is not None:
        check_int("n_features", n_features, low=1)
        if n_features != objective.n_features:
            raise SettingError(f"n_features is {n_features}, but the objective has {objective.n_features} features.")
    return objective


def losses_from(objective: SearchObjective, masks: Masks, partitions: IntArray | None) -> FloatArray:
    """Return the losses of a batch as an array of shape (P,); raise FitnessError if the objective returns no losses."""
    found: object = objective(masks) if partitions is None else objective(masks, partitions)
    try:
        losses = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise FitnessError(
            f"the objective must return one number for each mask; got {shown(found)} for {len(masks)} masks."
        ) from None
    if losses.shape != (len(masks),):
        raise FitnessError(
            f"the objective must return one number for each mask; got an array of shape {losses.shape} for "
            f"{len(masks)} masks."
        )
    return losses


def second_losses_from(objective: SearchObjective, masks: Masks) -> FloatArray:
    """Return the losses by the second scorer, shape (P,); raise SettingError unless there are two scorers."""
    losses = np.asarray(objective.other_losses(masks), dtype=np.float64)
    if losses.shape != (len(masks), 1):
        raise SettingError(
            'objectives="scores" minimises the losses by two scorers, and the objective has '
            f'{losses.shape[1] + 1}; set scoring to two of them, such as ["accuracy", "neg_log_loss"].'
        )
    return losses[:, 0]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of a search; it stops at the first one it reaches.

    Parameters
    ----------
    evaluations : int or None, default=6000
        Maximum number of subsets to evaluate, including initial and repeated ones. If the cross-validation is
        repeated, each repeat that a subset is scored on counts. A last batch that does not fit is evaluated in part.
    seconds : float or None
        Wall-clock time. It is kept to one evaluation or about 10 %, whichever is longer; a batch is evaluated in part.
        (`search_together` checks it between batches.)
    target : float or None
        Stop once the best loss is at most this value.
    patience : int or None
        Stop after this many evaluations without a better subset.

    Examples
    --------
    >>> Budget(evaluations=300, patience=100)
    Budget(evaluations=300, seconds=None, target=None, patience=100)
    """

    evaluations: int | None = 6000
    seconds: float | None = None
    target: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        check_int("evaluations", self.evaluations, low=1, optional=True)
        check_real("seconds", self.seconds, low=0, optional=True)
        check_real("target", self.target, optional=True)
        check_int("patience", self.patience, low=1, optional=True)
        if self.evaluations is self.seconds is self.target is self.patience is None:
            raise SettingError(
                "a budget needs at least one limit; got None for evaluations, seconds, target and patience."
            )

    def progress(self, evaluations: int, seconds: float) -> float:
        """Return the share of the budget spent, 0 to 1; by evaluations if they are limited, which is reproducible."""
        if self.evaluations is not None:
            return min(1.0, evaluations / self.evaluations)
        if self.seconds:
            return float(min(1.0, seconds / self.seconds))
        return 0.0


_HISTORY = ("evaluations", "best_fitness", "best_cardinality", "spread", "seconds")
"""Columns of the history, one row a step."""

_KEY_BYTES = 16
"""Maximum length of the key of an evaluation; longer keys are hashed to this length."""


@dataclass(eq=False)
class SearchRun:
    """A search with its history and timing.

    Attributes
    ----------
    search : the search itself
    algorithm_seconds, evaluation_seconds : time spent in the algorithm and in the objective
    improved_at : evaluations at the last improvement of the best subset
    rows : the history, one row for each step
    evaluated : keys of the distinct evaluations asked for, if they are tracked
    front : the best subsets in loss and cost, if they are tracked
    """

    search: AnySearch
    algorithm_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    improved_at: int = 0
    rows: list[tuple[float, ...]] = field(default_factory=list)
    evaluated: dict[bytes, None] = field(default_factory=dict)
    front: CostFront | None = None

    @property
    def seconds(self) -> float:
        return self.algorithm_seconds + self.evaluation_seconds

    @property
    def has_evaluated(self) -> bool:
        return self.search.evaluations > 0

    def record_step(self, masks: Masks, best_before: float) -> None:
        """Add a row to the history after a step that evaluated these masks."""
        best = self.search.best
        if best.fitness < best_before:
            self.improved_at = self.search.evaluations
        self.rows.append((self.search.evaluations, best.fitness, best.cardinality, spread(masks), self.seconds))

    def track_evaluations(self, masks: Masks, partitions: IntArray | None) -> None:
        """Remember these evaluations, to count distinct ones independently of the objective's memory."""
        packed, repeats = np.packbits(masks, axis=1), self.search.n_partitions
        partitions = np.tile(np.arange(repeats), len(masks)) if partitions is None else partitions
        numbers = partitions.astype("<u4")[:, None].view(np.uint8)
        keys = np.concatenate([numbers, np.repeat(packed, len(partitions) // len(masks), axis=0)], axis=1)
        if keys.shape[1] > _KEY_BYTES:  # limits memory for tables with many features
            found = [hashlib.blake2b(key.tobytes(), digest_size=_KEY_BYTES).digest() for key in keys]
        else:
            found = [key.tobytes() for key in keys]
        self.evaluated.update(dict.fromkeys(found))

    def track_front(self, masks: Masks, fitness: FloatArray, prices: FloatArray | None) -> None:
        """Remember the subsets that are best in loss and cost; losses on single repeats do not compare."""
        if self.front is None:
            return
        within = self.search.is_answer(masks)
        masks, fitness = masks[within], fitness[within]
        costs = masks @ prices if fitness.ndim == 1 and prices is not None else fitness[:, 1]
        self.front = self.front.with_more(masks, costs, first_loss(fitness))

    def history(self) -> History:
        columns = np.array(self.rows, dtype=np.float64).reshape(-1, len(_HISTORY)).T
        return History(
            evaluations=columns[0].astype(np.intp),
            best_fitness=columns[1],
            best_cardinality=columns[2].astype(np.intp),
            spread=columns[3],
            seconds=columns[4],
        )

    def result(self, objective: SearchObjective, stop_reason: str) -> SearchResult:
        """Return the result; raise SettingError if no subset within the limits was evaluated."""
        search = self.search
        if not search.answered:
            raise SettingError(
                f"{name_of(search.algorithm)} was stopped by {stop_reason} after {search.evaluations} evaluations, "
                "before it evaluated a subset within min_features and max_features; allow more evaluations, or widen "
                "the limits."
            )
        best = search.best
        computed = self._count_computed(objective)  # before the best subset is scored in folds it may not have seen
        return SearchResult(
            best=best,
            fold_losses=objective.losses_of(best.mask),
            front=search.front,
            history=self.history(),
            stop_reason=stop_reason,
            evaluations=search.evaluations,
            computed=computed,
            algorithm_seconds=self.algorithm_seconds,
            evaluation_seconds=self.evaluation_seconds,
            engine=objective.engine,
            algorithm=name_of(search.algorithm),
            settings=plain.settings_of(search.algorithm),
            n_partitions=search.n_partitions,
            finalists=search.finalists,
            cost_front=self.front,
        )

    def _count_computed(self, objective: SearchObjective) -> int:
        """Return the distinct evaluations, as if no other search had used the objective."""
        computed = objective.computed
        if computed is None:
            return self.search.evaluations
        return len(self.evaluated) if self.evaluated else int(computed)

    def saved(self) -> tuple[dict[str, AnyArray], dict[str, object]]:
        """Return everything needed to continue the run as plain arrays and JSON values, for `restored`."""
        arrays, values = self.search.saved()
        arrays["history"] = np.array(self.rows, dtype=np.float64).reshape(-1, len(_HISTORY))
        keys = np.frombuffer(b"".join(self.evaluated), dtype=np.uint8)
        arrays["evaluated"] = keys.reshape(len(self.evaluated), -1) if len(keys) else keys.reshape(0, 0)
        if self.front is not None:
            front = {"masks": self.front.masks, "costs": self.front.costs, "losses": self.front.losses}
            arrays |= {f"cost_front.{name}": array for name, array in front.items()}
        return arrays, values | {
            "algorithm_seconds": self.algorithm_seconds,
            "evaluation_seconds": self.evaluation_seconds,
            "improved_at": self.improved_at,
        }

    def restored(
        self, arrays: Mapping[str, AnyArray], values: Mapping[str, object], evaluations: int | None
    ) -> SearchRun:
        """Return the saved run of the same algorithm; ``evaluations`` is the budget it continues with."""
        search = Search.restored(self.search.algorithm, arrays, {**values, "planned": evaluations})
        return SearchRun(
            search,
            algorithm_seconds=plain.real_number(values, "algorithm_seconds", low=0),
            evaluation_seconds=plain.real_number(values, "evaluation_seconds", low=0),
            improved_at=plain.whole_number(values, "improved_at", low=0, high=search.evaluations),
            rows=[tuple(row) for row in _checked_history(search, arrays).tolist()],
            evaluated=_checked_keys(search, arrays),
            front=None if self.front is None else _checked_front(search, arrays),
        )


def _checked_history(search: AnySearch, arrays: Mapping[str, AnyArray]) -> FloatArray:
    history = plain.array_of(arrays, "history", np.float64, (None, len(_HISTORY)))
    evaluations, cardinality = history[:, 0], history[:, 2]
    counted = np.concatenate([[0.0], evaluations])
    if (np.diff(counted) <= 0).any() or counted[-1] != search.evaluations or (evaluations % 1).any():
        raise DamagedCheckpointError("its history does not lead to the number of evaluations")
    if (cardinality % 1).any() or not 0 <= cardinality.min(initial=0) <= cardinality.max(
        initial=0
    ) <= search.n_features:
        raise DamagedCheckpointError("its history has subsets of impossible sizes")
    if history[:, 3:].min(initial=0) < 0:
        raise DamagedCheckpointError("its history has a spread or a time below zero")
    return history


def _checked_front(search: AnySearch, arrays: Mapping[str, AnyArray]) -> CostFront:
    masks = plain.array_of(arrays, "cost_front.masks", np.bool_, (None, search.n_features))
    costs = plain.array_of(arrays, "cost_front.costs", np.float64, (len(masks),))
    losses = plain.array_of(arrays, "cost_front.losses", np.float64, (len(masks),))
    if not np.isfinite([costs, losses]).all() or (np.diff(costs) <= 0).any() or (np.diff(losses) >= 0).any():
        raise DamagedCheckpointError("its front of loss and cost has subsets that are worse than others")
    return CostFront(masks, costs, losses)


def _checked_keys(search: AnySearch, arrays: Mapping[str, AnyArray]) -> dict[bytes, None]:
    keys = plain.array_of(arrays, "evaluated", np.uint8, (None, None))
    width = min(4 + (search.n_features + 7) // 8, _KEY_BYTES)
    found = dict.fromkeys(key.tobytes() for key in keys)
    if len(found) != len(keys) or len(keys) > search.evaluations or (len(keys) and keys.shape[1] != width):
        raise DamagedCheckpointError("its list of evaluations does not fit their number")
    return found
