"""Checks of the contracts, to run on your own algorithms."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from subswarm._search.ask_tell import AnySearch, Search
from subswarm._search.loop import search as run_search
from subswarm._search.run import Budget
from subswarm._types import AnyArray, Estimator, FloatArray, Mask, Masks, Scorer, Splits
from subswarm.algorithms import as_algorithm
from subswarm.algorithms.base import AnyAlgorithm, State
from subswarm.algorithms.state import flatten
from subswarm.engines.base import DEFAULT_MAX_BYTES, Engine
from subswarm.engines.reference import EstimatorEngine
from subswarm.errors import SettingError
from subswarm.objective.objective import make_objective

__all__ = ["check_algorithm", "check_engine"]

Landscape = Callable[[Masks], FloatArray]


def check_algorithm(algorithm: AnyAlgorithm, *, n_features: int = 12, steps: int = 12, seed: int = 0) -> None:
    """Check that an algorithm keeps the contract of `subswarm.algorithms.Algorithm`; raise AssertionError if not.

    - Its masks are legal, and the selected subset is within the limits.
    - The same seed gives the same masks, and asking twice changes nothing.
    - A search that is saved and restored at any step continues bit for bit.
    - The best subset told is kept, even if the caller overwrites every array it was given.
    - A step does not change the state it was given.
    - A budget is spent to the last evaluation, unless the algorithm finishes before.
    - Any finite losses work: equal, huge, tiny or below zero.

    An algorithm with ``needs_monotone`` is tested only with losses that never fall when a feature is dropped. One with
    ``uses_single_partitions`` is also run on three repeats with different losses.

    Examples
    --------
    >>> from subswarm.algorithms import TwoDUPSO
    >>> check_algorithm(TwoDUPSO(max_features=5))
    """
    algorithm = as_algorithm(algorithm)
    shape = _missing if algorithm.needs_monotone else _distance
    for scale, shift in ((1.0, -1e3), (1.0, 0.0), (0.0, 0.0), (1e300, 0.0), (1e-320, 0.0)):
        masks = _check_search(algorithm, n_features, steps, seed, _scaled(shape, scale, shift))
    if algorithm.uses_single_partitions:
        _check_search(algorithm, n_features, steps, seed, _scaled(shape, 1.0), n_partitions=3)
        _check_search(algorithm, n_features, steps, seed, _scaled(shape, 1.0), n_partitions=3, n_left_out=3)
    _check_budget(algorithm, n_features, sum(map(len, masks)), seed, _scaled(shape, 1.0))


def _check_search(
    algorithm: AnyAlgorithm,
    n_features: int,
    steps: int,
    seed: int,
    landscape: Landscape,
    n_partitions: int = 1,
    n_left_out: int = 0,
) -> list[Masks]:
    """Return the masks of a search; check that they are the same if it is asked twice and restored at every step."""
    repeats = (n_partitions, n_left_out)
    masks = _run_search(algorithm, n_features, steps, seed, landscape, *repeats)
    again = _run_search(algorithm, n_features, steps, seed, landscape, *repeats, ask_twice=True, restore=True)
    _require(len(masks) == len(again), "asking twice, or saving and restoring, changed the number of steps")
    for step, (one, other) in enumerate(zip(masks, again, strict=True)):
        _require(np.array_equal(one, other), f"asking twice, or saving and restoring, changed step {step}")
    return masks


def _run_search(
    algorithm: AnyAlgorithm,
    n_features: int,
    steps: int,
    seed: int,
    landscape: Landscape,
    n_partitions: int,
    n_left_out: int,
    *,
    ask_twice: bool = False,
    restore: bool = False,
) -> list[Masks]:
    search: AnySearch = Search(
        algorithm,
        n_features,
        np.random.default_rng(seed),
        evaluations=1000,
        n_partitions=n_partitions,
        n_left_out=n_left_out,
        n_rows=100 if n_left_out else None,
    )
    ledger = _Ledger(algorithm, n_features)
    asked: list[Masks] = []
    while not search.finished and len(asked) < steps:
        if restore:
            arrays, values = search.saved()
            search = Search.restored(algorithm, arrays, json.loads(json.dumps(values)))
        masks = search.ask()
        if ask_twice:
            _require(np.array_equal(masks, search.ask()), "ask() returned different masks the second time")
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
    """Keeps what a search was told, to compare its answers with it."""

    def __init__(self, algorithm: AnyAlgorithm, n_features: int) -> None:
        self._is_answer = algorithm.rules(n_features).is_legal
        self._is_legal = algorithm.passing_rules(n_features).is_legal
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

    def check(self, search: AnySearch, landscape: Landscape) -> None:
        _require(search.evaluations == self.evaluations, "evaluations were miscounted")
        _require(
            search.answered == bool(np.isfinite(self.best)),
            "answered does not tell whether a subset within the limits was told",
        )
        best = search.best
        if search.n_partitions == 1:
            expected = self.best if search.answered else self.best_passed
            _require(best.fitness == expected, "the best fitness told was lost")
            _require(landscape(best.mask[None])[0] == best.fitness, "the best subset is not the one that was told")
        if search.answered:
            _require(bool(self._is_answer(best.mask[None])[0]), "the best subset is not within the limits")


def _check_budget(algorithm: AnyAlgorithm, n_features: int, evaluations: int, seed: int, landscape: Landscape) -> None:
    """Check that a budget that ends inside a batch is spent to the last evaluation."""
    spent = 0

    def counted(masks: Masks) -> FloatArray:
        nonlocal spent
        spent += len(masks)
        return landscape(masks)

    planned = max(1, evaluations - 1)
    try:
        result = run_search(algorithm, counted, Budget(evaluations=planned), rng=seed, n_features=n_features)
    except SettingError:  # a stepwise search may use its budget before it reaches its limits
        _require(spent == planned, "the search stopped before its budget was spent")
        return
    _require(result.evaluations == spent, "the result miscounts its evaluations")
    _require(spent == planned or result.stop_reason == "finished", "the budget was not spent exactly")


def _arrays(state: State) -> dict[str, AnyArray]:
    return {name: array.copy() for name, array in flatten(state, "state")[0].items()}


def _same(one: dict[str, AnyArray], other: dict[str, AnyArray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def _scaled(shape: Landscape, scale: float, shift: float = 0.0) -> Landscape:
    return lambda masks: shape(masks) * scale + shift


def _planted(n_features: int) -> Mask:
    return np.asarray(np.arange(n_features) % 3 == 0)


def _distance(masks: Masks) -> FloatArray:
    """Return the share of the features that differ from a planted subset."""
    return np.asarray((masks ^ _planted(masks.shape[1])).mean(axis=1))


def _missing(masks: Masks) -> FloatArray:
    """Return the share of the weight of the features that are left out; this is monotone."""
    weight = 1.0 + 3.0 * _planted(masks.shape[1]) + np.linspace(0.0, 0.5, masks.shape[1])
    return np.asarray((~masks @ weight) / weight.sum())


def check_engine(
    engine: type[Engine],
    estimator: Estimator,
    X: object,
    y: object,
    *,
    cv: Splits = 5,
    scoring: str | Scorer | None = None,
    n_masks: int = 20,
    seed: int = 0,
) -> None:
    """Check that an engine keeps the contract of `subswarm.engines.base.Engine`; AssertionError if it does not.

    - It is usable for the estimator, the data and the scorer.
    - Its losses are those of the reference engine, scikit-learn's ``cross_val_score``, bit for bit, in every fold; NaN
      where the estimator fails. For nearest neighbours, pass data without ties.
    - The losses depend neither on the batch that a mask is in, nor on the number of workers, nor on the memory.
    - The masks it is given are left unchanged.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from subswarm.engines.naive_bayes.engine import GaussianNBEngine
    >>> check_engine(GaussianNBEngine, GaussianNB(), *load_wine(return_X_y=True))
    """
    data = make_objective(estimator, X, y, cv=cv, scoring=scoring, engine="estimator").data
    rng = np.random.default_rng(seed)
    masks = rng.random((n_masks, data.n_features)) < rng.random((n_masks, 1))
    masks[np.arange(n_masks), rng.integers(data.n_features, size=n_masks)] = True
    _require(engine.is_usable_for(estimator, data), "is_usable_for() refuses the estimator, the data or the scorer")
    expected = EstimatorEngine(estimator, data).fold_losses(masks)
    for n_jobs, max_bytes in ((None, DEFAULT_MAX_BYTES), (2, DEFAULT_MAX_BYTES), (1, 1)):
        made, given = engine(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes), masks.copy()
        where = f"n_jobs={n_jobs}, max_bytes={max_bytes}"
        losses = made.fold_losses(given)
        _require(np.array_equal(given, masks), "fold_losses() changed the masks it was given")
        _require(losses.shape == expected.shape, f"losses have shape {losses.shape}, expected {expected.shape}")
        _require(np.array_equal(losses, expected, equal_nan=True), f"losses differ from scikit-learn's ({where})")
        alone = np.concatenate([made.fold_losses(mask[None]) for mask in masks])
        _require(np.array_equal(alone, expected, equal_nan=True), f"losses depend on the batch ({where})")
