"""What runs cost: a rough guess beforehand, measured means as soon as there are any."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from subswarm.datasets import describe, names
from subswarm.study.plan import PlannedRun

__all__ = ["Costs"]

Group = tuple[str, str, int | None]


@dataclass(frozen=True)
class Costs:
    """Seconds of a run, for each group.

    Attributes
    ----------
    protocol, evaluations : the study's
    measured : the group of each finished run, and how long it took
    """

    protocol: str
    evaluations: int
    measured: Sequence[tuple[Group, float]]

    def costliest_first(self, runs: Iterable[PlannedRun]) -> list[PlannedRun]:
        """The runs, the costliest groups first, so that all workers stay busy until the end; a group stays together."""
        runs = list(runs)
        cost = self._of({run.group for run in runs})
        return sorted(
            runs, key=lambda run: (-cost[run.group], *run.group[:2], -1 if run.group[2] is None else run.group[2])
        )

    def seconds_left(self, left: Iterable[PlannedRun], jobs: int) -> float | None:
        """How long the runs that are left may take on ``jobs`` workers; None where nothing was measured yet."""
        if not self.measured:
            return None
        left = list(left)
        cost = self._of({run.group for run in left})
        return sum(cost[run.group] for run in left) / jobs

    def _of(self, groups: set[Group]) -> dict[Group, float]:
        """Mean seconds of a run of each group; a guess, scaled by the measured ones, where none was measured."""
        seconds: dict[Group, list[float]] = defaultdict(list)
        for group, value in self.measured:
            seconds[group].append(value)
        means = {group: fmean(values) for group, values in seconds.items()}
        ratios = [mean / self._guess(*group) for group, mean in means.items()]
        scale = median(ratios) if ratios else 1.0
        return {group: means.get(group, scale * self._guess(*group)) for group in groups}

    def _guess(self, dataset: str, model: str, outer_fold: int | None) -> float:
        """Seconds of a run, roughly: neighbours cost the square of the rows, anything else rows times classes."""
        rows, features, classes = 500, 30, 2
        if dataset in names():
            reading = describe(dataset).reading(self.protocol)
            (rows, features), classes = reading.shape, reading.n_classes
        if "knn" in model:
            return self.evaluations * (1e-5 + 2.5e-11 * rows * rows * features)
        return self.evaluations * (5e-5 + 1.5e-10 * rows * features * classes)
