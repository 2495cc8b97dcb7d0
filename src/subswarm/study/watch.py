"""Shows the progress of a running study: a progress bar in a terminal, a line every 30 seconds in a log."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from subswarm._display import format_duration
from subswarm.study.runner import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

__all__ = ["Watch"]

SECONDS_BETWEEN_LINES = 30.0


class Watch:
    """Shows each `Progress` that it is called with; use it in a ``with`` statement."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._last_line = -SECONDS_BETWEEN_LINES

    def __enter__(self) -> Watch:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        if self._console.is_terminal:
            self._bar = Bar(
                TextColumn("runs"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[left]}"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[last]}", style="dim"),
                console=self._console,
            )
            self._task = self._bar.add_task("", total=None, left="", last="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        failed = f", {progress.failed} failed" if progress.failed else ""
        left = "" if progress.seconds_left is None else f"{format_duration(progress.seconds_left)} left"
        last = "" if progress.outcome is None else str(progress.outcome.planned)
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task, total=progress.total, completed=progress.done, left=f"{left}{failed}", last=last
            )
            return
        has_ended = progress.done + progress.failed == progress.total
        if has_ended or monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = monotonic()
            print(f"{progress.done} of {progress.total} runs{failed}{left and ', '}{left}", file=sys.stderr, flush=True)
