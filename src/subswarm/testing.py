"""Contracts as code: run them on your own algorithm."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from subswarm.algorithms.search import Search
from subswarm.core.types import FloatArray, Masks

__all__ = ["check_algorithm"]


def check_algorithm(algorithm: Any, *, n_features: int = 12, steps: int = 12, seed: int = 0) -> None:
    """Check that an algorithm keeps the contract of `subswarm.algorithms.Algorithm`; AssertionError where it does not.

    Its masks are legal, the same seed gives the same course, asking twice changes nothing, a search saved and
    restored anywhere goes on bit for bit, the best subset told is never lost, and any finite fitness is survived.

    Examples
    --------
    >>> from subswarm.algorithms import TwoDUPSO
    >>> check_algorithm(TwoDUPSO(max_features=5))
    """
    for landscape in (_planted, _flat, _huge):
        masks = _course(algorithm, n_features, steps, seed, landscape)
        again = _course(algorithm, n_features, steps, seed, landscape, ask_twice=True, restore=True)
        _require(len(masks) == len(again), "asking twice, or saving and restoring, changed the number of steps")
        for step, (one, other) in enumerate(zip(masks, again, strict=True)):
            _require(np.array_equal(one, other), f"asking twice, or saving and restoring, changed step {step}")


def _course(
    algorithm: Any,
    n_features: int,
    steps: int,
    seed: int,
    landscape: Callable[[Masks], FloatArray],
    *,
    ask_twice: bool = False,
    restore: bool = False,
) -> list[Masks]:
    search: Search[Any] = Search(algorithm, n_features, np.random.default_rng(seed), evaluations=1000)
    told: list[float] = []
    asked: list[Masks] = []
    while not search.finished and len(asked) < steps:
        if restore:
            arrays, values = search.saved()
            search = Search.restored(algorithm, arrays, json.loads(json.dumps(values)))
        masks = search.ask()
        if ask_twice:
            _require(np.array_equal(masks, search.ask()), "ask() twice gave two answers")
        _check_masks(masks, algorithm, n_features)
        fitness = landscape(masks)
        before = len(told)
        told += fitness.tolist()
        search.tell(fitness)
        _require(search.evaluations == before + len(masks), "evaluations were miscounted")
        _require(search.best.fitness == min(told), "the best fitness told was lost")
        _require(
            landscape(search.best.mask[None])[0] == search.best.fitness,
            "the best subset is not the one that was told",
        )
        asked.append(masks)
    return asked


def _check_masks(masks: Masks, algorithm: Any, n_features: int) -> None:
    _require(
        masks.dtype == np.bool_ and masks.ndim == 2 and masks.shape[1] == n_features,
        "masks have a wrong shape or dtype",
    )
    _require(len(masks) > 0, "an empty batch was asked")
    rules = getattr(algorithm, "rules", None)
    legal = masks.any(axis=1) if rules is None else rules(n_features).is_legal(masks)
    _require(bool(legal.all()), "an illegal subset was asked")


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def _planted(masks: Masks) -> FloatArray:
    return np.asarray((masks ^ (np.arange(masks.shape[1]) % 3 == 0)).mean(axis=1))


def _flat(masks: Masks) -> FloatArray:
    return np.zeros(len(masks))


def _huge(masks: Masks) -> FloatArray:
    return _planted(masks) * 1e300
