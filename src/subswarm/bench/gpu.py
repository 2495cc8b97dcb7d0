"""The torch engines on a device against the CPU engines of the same machine: same folds, same subsets, same losses."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from subswarm.algorithms import get_algorithm
from subswarm.core.budget import Budget
from subswarm.core.types import Masks
from subswarm.datasets import load_dataset, sound_folds
from subswarm.drive import search
from subswarm.evaluation import Objective, check_device, make_objective
from subswarm.models import make_model

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
"""Subsets in a batch: of one search, and of forty in lockstep."""
_CHECKED = 60


@dataclass(frozen=True)
class DeviceRates:
    """What the device does at best: bytes copied a second (read and written), float32 operations of a product."""

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
    copy_share : bytes that must be read (the selected columns once, as doubles) over the device's copy rate
    float_share : operations of a plain computation over the device's float32 rate, both in batches of 1200
    differ, compared : fold losses that are not the CPU engine's, and how many were compared, over subsets of all sizes
    settled : share of the test rows whose neighbours needed double precision; None for naive Bayes
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
    """A whole search of 6000 evaluations, once everything is compiled: seconds of the algorithm and of evaluation."""

    dataset: str
    model: str
    algorithm: str
    evaluations: int
    algorithm_seconds: float
    evaluation_seconds: float

    @property
    def seconds(self) -> float:
        return self.algorithm_seconds + self.evaluation_seconds


def device_rates(device: str) -> DeviceRates:
    """Measure a large copy and a large matrix product."""
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
    """Measure each data set and model on random half-full subsets; nothing is computed twice."""
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
    checked = _of_all_sizes(rng, _CHECKED, n)
    ours_losses, cpu_losses = ours.fold_losses(checked), cpu.fold_losses(checked)
    swarm = _per_evaluation(ours, SWARM, repeats, rng)
    together = _per_evaluation(ours, TOGETHER, repeats, rng)
    on_cpu = _per_evaluation(cpu, SWARM, min(repeats, 3), rng)
    operations = 1.8 * rows**2 * n / 2 if "knn" in model else 4.0 * rows * n_classes * n / 2
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


def time_search(
    dataset: str, *, model: str = "knn", algorithm: str = "2d-upso", device: str = "cuda", evaluations: int = 6000
) -> SearchTime:
    """Time one whole search; a search of another seed goes first, so that nothing is compiled on the clock."""
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
    """Median seconds per evaluation, everything from masks to losses included, over batches not seen before."""
    times = []
    for repeat in range(repeats + 1):
        fresh, masks = objective.fresh(), _half_full(rng, batch, objective.n_features)
        start = time.perf_counter()
        fresh(masks)
        if repeat:  # the first batch may compile
            times.append((time.perf_counter() - start) / fresh.computed)
    return float(np.median(times))


def _settled_share(objective: Objective) -> float | None:
    settled = objective.engine_facts.get("settled")
    return None if settled is None else settled[0] / max(1, settled[1])


def _half_full(rng: np.random.Generator, count: int, n: int) -> Masks:
    masks = rng.random((count, n)) < 0.5
    masks[~masks.any(axis=1), 0] = True
    return masks


def _of_all_sizes(rng: np.random.Generator, count: int, n: int) -> Masks:
    masks = np.zeros((count, n), dtype=bool)
    for mask in masks:
        mask[rng.permutation(n)[: rng.integers(1, n + 1)]] = True
    return masks


def _median_seconds(work: Callable[[], Any], wait: Callable[[], Any], repeats: int) -> float:
    times = []
    for repeat in range(repeats + 1):
        start = time.perf_counter()
        work()
        wait()
        if repeat:
            times.append(time.perf_counter() - start)
    return float(np.median(times))
