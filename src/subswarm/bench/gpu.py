"""Compares the torch engines on a device with the CPU engines of the same machine: same folds, subsets and losses."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from subswarm._models import make_model
from subswarm._search.loop import search
from subswarm._search.run import Budget
from subswarm._types import Masks
from subswarm.algorithms import get_algorithm
from subswarm.bench.engines import half_full_masks
from subswarm.datasets import load_dataset, sound_folds
from subswarm.engines.base import check_device
from subswarm.objective.objective import Objective, make_objective

__all__ = [
    "SWARM",
    "TOGETHER",
    "DeviceRates",
    "DeviceRow",
    "SearchTime",
    "compare_device",
    "device_rates",
    "time_search",
]

SWARM, TOGETHER = 30, 1200
"""Batch sizes: of one search, and of forty searches in lockstep."""
_CHECKED = 60
"""Subsets whose losses are compared."""


@dataclass(frozen=True)
class DeviceRates:
    """Measured rates of the device: bytes copied per second (read and written), float32 operations of a product."""

    name: str
    copy: float
    float32: float


@dataclass(frozen=True)
class DeviceRow:
    """One data set and model.

    Attributes
    ----------
    swarm, together : seconds per evaluation in batches of 30 and of 1200 subsets, medians
    cpu : seconds per evaluation of the CPU engine on all cores
    copy_share : rate of bytes that must be read (the selected columns once, as doubles) over the device's copy rate
    float_share : rate of operations of a plain computation over the device's float32 rate, both in batches of 1200
    differ, compared : fold losses that differ from the CPU engine, and number of losses compared, for subsets of all
        sizes
    settled : share of the test rows that needed double precision; None for naive Bayes
    """

    dataset: str
    rows: int
    columns: int
    model: str
    swarm: float
    together: float
    cpu: float
    copy_share: float
    float_share: float
    differ: int
    compared: int
    settled: float | None


@dataclass(frozen=True)
class SearchTime:
    """Seconds of a whole search in the algorithm and in evaluation, after compilation."""

    dataset: str
    model: str
    algorithm: str
    evaluations: int
    algorithm_seconds: float
    evaluation_seconds: float

    @property
    def seconds(self) -> float:
        """The total time."""
        return self.algorithm_seconds + self.evaluation_seconds


def device_rates(device: str) -> DeviceRates:
    """Measure the rates of a large copy and of a large matrix product."""
    check_device(device)
    import torch

    on_gpu = device == "cuda"
    wait = torch.cuda.synchronize if on_gpu else (lambda: None)
    length, side = (1 << 28, 8192) if on_gpu else (1 << 22, 512)
    source = torch.rand(length, device=device)
    target = torch.empty_like(source)
    matrix = torch.rand((side, side), device=device)
    copying = _median_seconds(lambda: target.copy_(source), wait, 5)
    multiplying = _median_seconds(lambda: matrix @ matrix, wait, 5)
    name = torch.cuda.get_device_name() if on_gpu else "cpu"
    return DeviceRates(name, 2 * 4 * length / copying, 2 * side**3 / multiplying)


def compare_device(
    names: Iterable[str],
    *,
    models: Iterable[str] = ("nb", "knn"),
    device: str = "cuda",
    repeats: int = 5,
    rates: DeviceRates,
    seed: int = 0,
) -> Iterator[DeviceRow]:
    """Measure each data set and model on random half-full subsets, none of them twice."""
    for name in names:
        table = load_dataset(name)
        folds = sound_folds(table.y, 10, seed=seed)
        for model in models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours = make_objective(make_model(model), table.X, table.y, cv=folds, engine="torch", device=device)
                cpu = make_objective(make_model(model), table.X, table.y, cv=folds, engine="fast", n_jobs=-1)
                yield _row(name, model, ours, cpu, len(table.classes), repeats, rates, np.random.default_rng(seed))


def _row(
    name: str,
    model: str,
    ours: Objective,
    cpu: Objective,
    n_classes: int,
    repeats: int,
    rates: DeviceRates,
    rng: np.random.Generator,
) -> DeviceRow:
    n = ours.n_features
    rows = sum(len(test) for _, test in ours.folds)
    checked = _masks_of_all_sizes(rng, _CHECKED, n)
    ours_losses, cpu_losses = ours.fold_losses(checked), cpu.fold_losses(checked)
    swarm = _per_evaluation(ours, SWARM, repeats, rng)
    together = _per_evaluation(ours, TOGETHER, repeats, rng)
    on_cpu = _per_evaluation(cpu, SWARM, min(repeats, 3), rng)
    operations = _operations(model, rows, n / 2, n_classes, len(ours.folds))
    return DeviceRow(
        dataset=name,
        rows=rows,
        columns=n,
        model=model,
        swarm=swarm,
        together=together,
        cpu=on_cpu,
        copy_share=8 * rows * n / 2 / together / rates.copy,
        float_share=operations / together / rates.float32,
        differ=int((ours_losses != cpu_losses).sum()),
        compared=int(ours_losses.size),
        settled=_settled_share(ours),
    )


def _operations(model: str, rows: int, columns: float, n_classes: int, n_folds: int) -> float:
    """Count the operations of a plain computation: distances, squares, or factors of each fold and scores."""
    if "knn" in model:
        return 1.8 * rows**2 * columns
    if model in ("lda", "qda", "ridge", "ridge-classifier"):
        factors = n_classes if model == "qda" else 1
        return n_folds * factors * 2 * columns**3 / 3 + 2.0 * rows * n_classes * columns ** (2 if model == "qda" else 1)
    return 4.0 * rows * n_classes * columns


def time_search(
    dataset: str, *, model: str = "knn", algorithm: str = "2d-upso", device: str = "cuda", evaluations: int = 6000
) -> SearchTime:
    """Time one whole search; a search with another seed runs first, so that compilation is not timed."""
    table = load_dataset(dataset)
    objective = make_objective(
        make_model(model), table.X, table.y, cv=sound_folds(table.y, 10, seed=0), engine="torch", device=device
    )
    for seed in (1, 0):
        budget = Budget(evaluations=evaluations if seed == 0 else min(evaluations, 600))
        result = search(get_algorithm(algorithm), objective.fresh(), budget, rng=seed)
    seconds = result.algorithm_seconds, result.evaluation_seconds
    return SearchTime(dataset, model, algorithm, result.evaluations, *seconds)


def _per_evaluation(objective: Objective, batch: int, repeats: int, rng: np.random.Generator) -> float:
    """Return the median seconds per evaluation, from masks to losses, over new batches."""
    times = []
    for repeat in range(repeats + 1):
        fresh, masks = objective.fresh(), half_full_masks(rng, batch, objective.n_features)
        start = time.perf_counter()
        fresh(masks)
        if repeat:  # the first batch may compile
            times.append((time.perf_counter() - start) / fresh.computed)
    return float(np.median(times))


def _settled_share(objective: Objective) -> float | None:
    facts = objective.engine_facts
    return facts["settled"] / max(1, facts["asked"]) if "settled" in facts else None


def _masks_of_all_sizes(rng: np.random.Generator, count: int, n: int) -> Masks:
    masks = np.zeros((count, n), dtype=bool)
    for mask in masks:
        mask[rng.permutation(n)[: rng.integers(1, n + 1)]] = True
    return masks


def _median_seconds(work: Callable[[], object], wait: Callable[[], object], repeats: int) -> float:
    times = []
    for repeat in range(repeats + 1):
        start = time.perf_counter()
        work()
        wait()
        if repeat:
            times.append(time.perf_counter() - start)
    return float(np.median(times))
