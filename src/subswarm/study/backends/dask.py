"""Computes runs on a Dask cluster. If a worker dies, Dask gives its runs to other workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from subswarm._display import package_versions
from subswarm.errors import MissingExtraError, SettingError
from subswarm.study.records import Failure, Outcome
from subswarm.study.worker import Task, perform

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["dask_outcomes"]


def dask_outcomes(tasks: Sequence[Task], scheduler: str) -> Iterator[Outcome]:
    """Yield the outcomes as they finish; a run whose workers died repeatedly is a failure."""
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
        task_of = {
            client.submit(perform, task, key=f"subswarm-{task.planned.key}", priority=-place, pure=False): task
            for place, task in enumerate(tasks)
        }
        for future in as_completed(list(task_of), loop=client.loop):
            task = task_of.pop(future)
            lost = future.exception()
            yield future.result() if lost is None else _lost_outcome(task, lost)


def _check(client: Client) -> None:
    """Raise SettingError if the cluster cannot run subswarm, so that not every run is recorded as failed."""
    probe = client.submit(package_versions, key=f"subswarm-probe-{uuid4().hex}")
    try:
        probe.result(timeout=60)
    except Exception as error:
        raise SettingError(
            f"the Dask cluster cannot run subswarm: {error} Its scheduler and workers need the same version installed, "
            "and there must be at least one worker."
        ) from error


def _lost_outcome(task: Task, error: BaseException) -> Outcome:
    message = f"{type(error).__name__}: {error}"
    return Outcome(task.planned, failure=Failure(message, message))
