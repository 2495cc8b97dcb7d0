"""Estimates how long runs take: a rough guess at first, measured means as soon as there are any."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from subswarm.datasets import describe, names
from subswarm.study.plan import Group, PlannedRun

__all__ = ["Costs"]


@dataclass(frozen=True)
class Costs:
    """The seconds that a run of each group takes.

    Attributes
    ----------
    protocol, evaluations : of the study
    measured : the group of each finished run and how long the run took
    """

    protocol: str
    evaluations: int
    measured: Sequence[tuple[Group, float]]

    def sort_longest_first(self, runs: Iterable[PlannedRun]) -> list[PlannedRun]:
        """Sort the runs, longest first, so that all workers stay busy until the end; groups stay together."""
        runs = list(runs)
        cost = self._estimate({run.group for run in runs})
        return sorted(
            runs, key=lambda run: (-cost[run.group], *run.group[:2], -1 if run.group[2] is None else run.group[2])
        )

    def seconds_left(self, left: Iterable[PlannedRun], jobs: int) -> float | None:
        """Estimate how long the remaining runs take on ``jobs`` workers; None if no run has been measured yet."""
        if not self.measured:
            return None
        left = list(left)
        cost = self._estimate({run.group for run in left})
        return sum(cost[run.group] for run in left) / jobs

    def _estimate(self, groups: set[Group]) -> dict[Group, float]:
        """Return the mean seconds of a run of each group; a group without measurements gets a scaled guess."""
        seconds: dict[Group, list[float]] = defaultdict(list)
        for group, value in self.measured:
            seconds[group].append(value)
        means = {group: fmean(values) for group, values in seconds.items()}
        ratios = [mean / self._guess(group) for group, mean in means.items()]
        scale = median(ratios) if ratios else 1.0
        return {group: means.get(group, scale * self._guess(group)) for group in groups}

    def _guess(self, group: Group) -> float:
        """Guess the seconds of a run: quadratic in the rows for neighbours, rows times classes for other models."""
        dataset, model, _ = group
        rows, features, classes = 500, 30, 2
        if dataset in names():
            reading = describe(dataset).reading(self.protocol)
            (rows, features), classes = reading.shape, reading.n_classes
        if "knn" in model:
            return self.evaluations * (1e-5 + 2.5e-11 * rows * rows * features)
        return self.evaluations * (5e-5 + 1.5e-10 * rows * features * classes)
