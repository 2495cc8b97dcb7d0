"""Progress for people: a live line in a terminal, a plain line now and then in a log."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import Any

from subswarm.study.runner import Progress
from subswarm.study.status import in_words

__all__ = ["Watch"]

EVERY_SECONDS = 30.0


class Watch:
    """Called with each `Progress`; use it in ``with``."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._live: Any = None
        self._bar: Any = None
        self._said = -EVERY_SECONDS

    def __enter__(self) -> Watch:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        if self._console.is_terminal:
            self._live = Progress(
                TextColumn("runs"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[left]}"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[last]}", style="dim"),
                console=self._console,
            )
            self._bar = self._live.add_task("", total=None, left="", last="")
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        failed = f", {progress.failed} failed" if progress.failed else ""
        left = "" if progress.seconds_left is None else f"{in_words(progress.seconds_left)} left"
        last = "" if progress.outcome is None else str(progress.outcome.planned)
        if self._live is not None:
            self._live.update(
                self._bar, total=progress.total, completed=progress.done, left=f"{left}{failed}", last=last
            )
            return
        ended = progress.done + progress.failed == progress.total
        if ended or monotonic() - self._said >= EVERY_SECONDS:
            self._said = monotonic()
            print(f"{progress.done} of {progress.total} runs{failed}{left and ', '}{left}", file=sys.stderr, flush=True)
