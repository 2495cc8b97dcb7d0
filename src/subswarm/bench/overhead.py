"""Measures the time of the algorithms themselves, without evaluation, in milliseconds per step."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from subswarm._search.ask_tell import Search
from subswarm._types import Mask
from subswarm.algorithms import get_algorithm
from subswarm.algorithms.base import State

__all__ = ["POPULATIONS", "StepCost", "step_costs"]

POPULATIONS = (
    *("2d-elite", "2d-gpso", "2d-lpso", "2d-clpso", "2d-upso", "ga", "aco"),
    *("bpso", "cbpso", "chbpso", "erfs", "pso-42", "boolean-pso", "random"),
)
"""The algorithms with a population. The others ask for as many subsets per step as they have neighbours."""


@dataclass(frozen=True)
class StepCost:
    """Milliseconds per step (ask and tell) of one algorithm with n features, for batches of this size."""

    algorithm: str
    n_features: int
    batch: int
    median: float
    slowest_tenth: float


def step_costs(
    sizes: Sequence[int], *, names: Sequence[str] = POPULATIONS, steps: int = 200, repeats: int = 5
) -> Iterator[StepCost]:
    """Yield medians over ``repeats`` searches of ``steps`` steps each, with a loss that costs almost nothing.

    numba is loaded, as it is with a fast engine; without it, the costs are those of the NumPy code.
    """
    with suppress(ImportError):
        import_module("numba")
    for n_features in sizes:
        planted = np.arange(n_features) % 3 == 0
        for name in names:
            algorithm = get_algorithm(name)
            runs = [_time_steps(Search(algorithm, n_features, seed), planted, steps) for seed in range(repeats)]
            seconds = np.concatenate([times for times, _ in runs])
            batch = int(np.median(np.concatenate([counts for _, counts in runs])))
            yield StepCost(
                name, n_features, batch, 1e3 * float(np.median(seconds)), 1e3 * float(np.quantile(seconds, 0.9))
            )


def _time_steps(search: Search[State], planted: Mask, steps: int) -> tuple[list[float], list[int]]:
    seconds: list[float] = []
    counts: list[int] = []
    while len(seconds) < steps and not search.finished:
        start = time.perf_counter()
        masks = search.ask()
        asked = time.perf_counter()
        fitness = (masks ^ planted).mean(axis=1)
        telling = time.perf_counter()
        search.tell(fitness)
        seconds.append(asked - start + time.perf_counter() - telling)
        counts.append(len(masks))
    return seconds, counts
