"""Contracts as code: run them on your own algorithm."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subswarm.algorithms.plain import flatten
from subswarm.algorithms.search import Search
from subswarm.core.budget import Budget
from subswarm.core.errors import SettingError
from subswarm.core.types import FloatArray, Mask, Masks
from subswarm.drive import search as run_search

__all__ = ["check_algorithm"]

Landscape = Callable[[Masks], FloatArray]


def check_algorithm(algorithm: Any, *, n_features: int = 12, steps: int = 12, seed: int = 0) -> None:
    """Check that an algorithm keeps the contract of `subswarm.algorithms.Algorithm`; AssertionError where it does not.

    - Its masks are legal, and its answer is within the limits.
    - The same seed gives the same course, and asking twice changes nothing.
    - A search saved and restored anywhere goes on bit for bit.
    - The best subset told is never lost, even if the caller overwrites every array it was given.
    - A step leaves the state it was given as it was.
    - A budget is spent to the last evaluation, unless the algorithm finishes before.
    - Any finite fitness of at least zero is survived: equal, huge or tiny.

    An algorithm that says ``needs_monotone = True`` is given only fitness that never falls when a feature is dropped.
    One with a setting ``n_partitions`` is also run on three partitions, each with a fitness of its own.

    Examples
    --------
    >>> from subswarm.algorithms import TwoDUPSO
    >>> check_algorithm(TwoDUPSO(max_features=5))
    """
    shape = _missing if getattr(algorithm, "needs_monotone", False) else _distance
    for scale in (1.0, 0.0, 1e300, 1e-320):
        masks = _check_course(algorithm, n_features, steps, seed, _scaled(shape, scale))
    if hasattr(algorithm, "n_partitions"):
        _check_course(algorithm, n_features, steps, seed, _scaled(shape, 1.0), n_partitions=3)
    _check_budget(algorithm, n_features, sum(map(len, masks)), seed, _scaled(shape, 1.0))


def _check_course(
    algorithm: Any, n_features: int, steps: int, seed: int, landscape: Landscape, n_partitions: int = 1
) -> list[Masks]:
    """The masks of a course, which is the same where it is asked twice, saved and restored at every step."""
    masks = _course(algorithm, n_features, steps, seed, landscape, n_partitions)
    again = _course(algorithm, n_features, steps, seed, landscape, n_partitions, ask_twice=True, restore=True)
    _require(len(masks) == len(again), "asking twice, or saving and restoring, changed the number of steps")
    for step, (one, other) in enumerate(zip(masks, again, strict=True)):
        _require(np.array_equal(one, other), f"asking twice, or saving and restoring, changed step {step}")
    return masks


def _course(
    algorithm: Any,
    n_features: int,
    steps: int,
    seed: int,
    landscape: Landscape,
    n_partitions: int,
    *,
    ask_twice: bool = False,
    restore: bool = False,
) -> list[Masks]:
    search: Search[Any] = Search(
        algorithm, n_features, np.random.default_rng(seed), evaluations=1000, n_partitions=n_partitions
    )
    ledger = _Ledger(algorithm, n_features)
    asked: list[Masks] = []
    while not search.finished and len(asked) < steps:
        if restore:
            arrays, values = search.saved()
            search = Search.restored(algorithm, arrays, json.loads(json.dumps(values)))
        masks = search.ask()
        if ask_twice:
            _require(np.array_equal(masks, search.ask()), "ask() twice gave two answers")
        asked.append(masks.copy())
        fitness = landscape(masks)
        if n_partitions > 1 and search.partitions is not None:
            fitness = fitness * (1 + 0.1 * search.partitions)
        ledger.note(masks, fitness, search.cost)
        state, before = search.state, _arrays(search.state)
        search.tell(fitness)
        _require(_same(before, _arrays(state)), "step() changed the state it was given")
        masks[:], fitness[:] = ~masks, -1.0
        ledger.check(search, landscape)
    return asked


class _Ledger:
    """What a search was told, to hold it to."""

    def __init__(self, algorithm: Any, n_features: int) -> None:
        rules = getattr(algorithm, "rules", None)
        passing = getattr(algorithm, "passing_rules", rules)
        self._is_answer = _is_not_empty if rules is None else rules(n_features).is_legal
        self._is_legal = _is_not_empty if passing is None else passing(n_features).is_legal
        self._n_features = n_features
        self.evaluations = 0
        self.best = np.inf
        self.best_passed = np.inf

    def note(self, masks: Masks, fitness: FloatArray, cost: int) -> None:
        _require(
            masks.dtype == np.bool_ and masks.ndim == 2 and masks.shape[1] == self._n_features,
            "masks have a wrong shape or dtype",
        )
        _require(len(masks) > 0, "an empty batch was asked")
        _require(bool(self._is_legal(masks).all()), "an illegal subset was asked")
        self.evaluations += len(masks) * cost
        self.best = min(self.best, float(fitness[self._is_answer(masks)].min(initial=np.inf)))
        self.best_passed = min(self.best_passed, float(fitness.min()))

    def check(self, search: Search[Any], landscape: Landscape) -> None:
        _require(search.evaluations == self.evaluations, "evaluations were miscounted")
        _require(search.answered == bool(np.isfinite(self.best)), "a subset within the limits went unnoticed")
        best = search.best
        if search.n_partitions == 1:
            wanted = self.best if search.answered else self.best_passed
            _require(best.fitness == wanted, "the best fitness told was lost")
            _require(landscape(best.mask[None])[0] == best.fitness, "the best subset is not the one that was told")
        if search.answered:
            _require(bool(self._is_answer(best.mask[None])[0]), "the best subset is not within the limits")


def _check_budget(algorithm: Any, n_features: int, evaluations: int, seed: int, landscape: Landscape) -> None:
    """A budget that may end inside a batch is spent to the last evaluation."""
    spent = 0

    def counted(masks: Masks) -> FloatArray:
        nonlocal spent
        spent += len(masks)
        return landscape(masks)

    planned = max(1, evaluations - 1)
    try:
        result = run_search(algorithm, counted, Budget(evaluations=planned), rng=seed, n_features=n_features)
    except SettingError:  # a stepwise search may run out of evaluations before it comes within its limits
        _require(spent == planned, "the search gave up before its budget was spent")
        return
    _require(result.evaluations == spent, "the result miscounts its evaluations")
    _require(spent == planned or result.stop_reason == "finished", "the budget was not spent exactly")


def _arrays(state: Any) -> dict[str, NDArray[Any]]:
    return {name: array.copy() for name, array in flatten(state, "state")[0].items()}


def _same(one: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def _is_not_empty(masks: Masks) -> Mask:
    return np.asarray(masks.any(axis=1))


def _scaled(shape: Landscape, scale: float) -> Landscape:
    return lambda masks: shape(masks) * scale


def _planted(n_features: int) -> Mask:
    return np.asarray(np.arange(n_features) % 3 == 0)


def _distance(masks: Masks) -> FloatArray:
    """Share of the features that differ from a planted subset."""
    return np.asarray((masks ^ _planted(masks.shape[1])).mean(axis=1))


def _missing(masks: Masks) -> FloatArray:
    """Share of the weight of the features that are left out, planted ones weighing more: monotone."""
    weight = 1.0 + 3.0 * _planted(masks.shape[1]) + np.linspace(0.0, 0.5, masks.shape[1])
    return np.asarray((~masks @ weight) / weight.sum())
