"""What an algorithm itself costs, everything but evaluation: milliseconds a step."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from subswarm.algorithms import Search, get_algorithm

__all__ = ["POPULATIONS", "StepCost", "step_costs"]

POPULATIONS = (
    *("2d-elite", "2d-gpso", "2d-lpso", "2d-clpso", "2d-upso", "ga", "aco"),
    *("bpso", "cbpso", "chbpso", "erfs", "pso-42", "boolean-pso", "random"),
)
"""The algorithms that move a population; the others ask as many subsets a step as they have neighbours to look at."""


@dataclass(frozen=True)
class StepCost:
    """Milliseconds a step (ask and tell) of one algorithm among n features, for batches of this size."""

    algorithm: str
    n_features: int
    batch: int
    median: float
    slowest_tenth: float


def step_costs(
    sizes: Sequence[int], *, names: Sequence[str] = POPULATIONS, steps: int = 200, repeats: int = 5
) -> Iterator[StepCost]:
    """Medians over ``repeats`` searches of ``steps`` steps each, on a landscape that costs nothing to look up.

    numba is loaded, as it is beside a fast engine; where it is missing, these are the costs of NumPy.
    """
    with suppress(ImportError):
        import_module("numba")
    for n_features in sizes:
        planted = np.arange(n_features) % 3 == 0
        for name in names:
            algorithm = get_algorithm(name)
            runs = [_timed(Search(algorithm, n_features, seed), planted, steps) for seed in range(repeats)]
            seconds = np.concatenate([times for times, _ in runs])
            batch = int(np.median(np.concatenate([counts for _, counts in runs])))
            yield StepCost(
                name, n_features, batch, 1e3 * float(np.median(seconds)), 1e3 * float(np.quantile(seconds, 0.9))
            )


def _timed(search: Search[Any], planted: Any, steps: int) -> tuple[list[float], list[int]]:
    seconds: list[float] = []
    counts: list[int] = []
    while len(seconds) < steps and not search.finished:
        started = time.perf_counter()
        masks = search.ask()
        asked = time.perf_counter()
        fitness = (masks ^ planted).mean(axis=1)
        telling = time.perf_counter()
        search.tell(fitness)
        seconds.append(asked - started + time.perf_counter() - telling)
        counts.append(len(masks))
    return seconds, counts
