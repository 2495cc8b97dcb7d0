"""A search in progress: its history, its timing and the evaluations it has asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from subswarm._search.ask_tell import AnySearch, Search, first_loss
from subswarm._search.fronts import CostFront
from subswarm._search.objectives import SearchObjective
from subswarm._search.result import History, SearchResult
from subswarm._types import AnyArray, FloatArray, IntArray, Masks
from subswarm.algorithms import name_of
from subswarm.algorithms import state as plain
from subswarm.algorithms.masks import spread
from subswarm.errors import DamagedCheckpointError, SettingError

__all__ = ["SearchRun"]

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
