"""Workers on a Dask cluster, by Dask's own client: it gives a dead worker's runs to the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from subswarm.core.errors import MissingExtraError, SettingError
from subswarm.study.records import Failure, Outcome, versions
from subswarm.study.worker import Task, perform

__all__ = ["dask_outcomes"]


def dask_outcomes(tasks: Sequence[Task], scheduler: str) -> Iterator[Outcome]:
    """The outcomes as they land; a run whose workers died again and again is a failure like any other."""
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise MissingExtraError("a Dask cluster needs the extra 'dask'; pip install 'subswarm[dask]'") from error
    try:
        client = Client(scheduler, timeout=5, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SettingError(f"there is no Dask scheduler at {scheduler!r}: {error}") from error
    with client:
        _check(client)
        order = {
            client.submit(perform, task, key=f"subswarm-{task.planned.key}", priority=-place, pure=False): task
            for place, task in enumerate(tasks)
        }
        for future in as_completed(list(order), loop=client.loop):
            task = order.pop(future)
            lost = future.exception()
            yield future.result() if lost is None else _lost(task, lost)


def _check(client: Any) -> None:
    """Refuse a cluster that cannot run anything of ours, rather than record that every run failed."""
    probe = client.submit(versions, key=f"subswarm-probe-{uuid4().hex}")
    try:
        probe.result(timeout=60)
    except Exception as error:
        raise SettingError(
            f"the Dask cluster cannot run subswarm: {error} Its scheduler and workers need the same release installed, "
            "and there must be at least one worker."
        ) from error


def _lost(task: Task, error: BaseException) -> Outcome:
    said = f"{type(error).__name__}: {error}"
    return Outcome(task.planned, failure=Failure(said, said))
