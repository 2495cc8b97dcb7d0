"""One live line for people who watch, and nothing for logs."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from subswarm.core.types import Snapshot

__all__ = ["ProgressLine"]


class ProgressLine:
    """Shows evaluations, best score, features and time left in a terminal or notebook; silent elsewhere.

    Parameters
    ----------
    total : evaluations planned, or None where they are not limited
    score : from the best loss to what the user knows it by (a score)
    label : what that number is called
    """

    def __init__(self, total: int | None, score: Any, label: str = "score") -> None:
        self._total = total
        self._score = score
        self._label = label
        self._progress: Any = None
        self._task: Any = None

    def __enter__(self) -> ProgressLine:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        if console.is_terminal or console.is_jupyter:
            self._progress = Progress(
                TextColumn("searching"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[found]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=console,
                transient=False,
                refresh_per_second=8,
            )
            self._task = self._progress.add_task("", total=self._total, found="")
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, snapshot: Snapshot) -> None:
        if self._progress is not None:
            found = f"{self._label} {self._score(snapshot.best.fitness):.4f} with {snapshot.best.cardinality} features"
            self._progress.update(self._task, completed=snapshot.evaluations, found=found)
