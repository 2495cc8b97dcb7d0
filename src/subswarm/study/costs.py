"""What runs cost: a rough guess beforehand, measured means as soon as there are any."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, median

from subswarm.datasets import describe
from subswarm.study.plan import PlannedRun, Source, Study

__all__ = ["remaining_seconds", "with_costs"]

Group = tuple[str, str, int | None]
Measured = Sequence[tuple[Group, float]]


def with_costs(study: Study, runs: Sequence[PlannedRun], measured: Measured) -> list[PlannedRun]:
    """The runs, costliest groups first, so that all workers stay busy until the end; a group's runs stay together."""
    cost = _costs(study, {run.group for run in runs}, measured)
    return sorted(
        runs,
        key=lambda run: (-cost[run.group], run.dataset, run.model, -1 if run.outer_fold is None else run.outer_fold),
    )


def remaining_seconds(study: Study, left: Iterable[PlannedRun], measured: Measured, jobs: int) -> float | None:
    """How long the runs that are left may take on ``jobs`` workers; None where nothing was measured yet."""
    if not measured:
        return None
    left = list(left)
    cost = _costs(study, {run.group for run in left}, measured)
    return sum(cost[run.group] for run in left) / jobs


def _costs(study: Study, groups: set[Group], measured: Measured) -> dict[Group, float]:
    """Mean seconds of a run of each group; a guess, scaled by the measured ones, where none was measured."""
    seconds: dict[Group, list[float]] = defaultdict(list)
    for group, value in measured:
        seconds[group].append(value)
    means = {group: fmean(values) for group, values in seconds.items()}
    known = {source.name: source for source in study.datasets}
    ratios = [mean / _guess(study, known[group[0]], group[1]) for group, mean in means.items() if group[0] in known]
    scale = median(ratios) if ratios else 1.0
    return {group: means.get(group, scale * _guess(study, known[group[0]], group[1])) for group in groups}


def _guess(study: Study, source: Source, model: str) -> float:
    """Seconds of a run, roughly: neighbours cost the square of the rows, anything else rows times classes."""
    rows, features, classes = 500, 30, 2
    if source.in_catalogue:
        reading = describe(source.name).reading(study.protocol)
        (rows, features), classes = reading.shape, reading.n_classes
    work = rows * (rows if "knn" in model else 100 * classes) * features
    return study.evaluations * (1e-4 + 1e-9 * work)
