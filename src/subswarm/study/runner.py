"""Runs a plan: workers search, one writer commits each run as it lands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from time import monotonic

from subswarm.core.checks import check_choice
from subswarm.core.errors import SettingError
from subswarm.datasets import is_present, load_dataset
from subswarm.evaluation import check_device
from subswarm.study.costs import Costs
from subswarm.study.local import local_outcomes
from subswarm.study.plan import PlannedRun, Study
from subswarm.study.problem import ProblemSpec
from subswarm.study.records import Outcome
from subswarm.study.store import Store
from subswarm.study.worker import Task

__all__ = ["Progress", "Summary", "run_study", "task_for"]

BACKENDS = ("local", "dask")


@dataclass(frozen=True)
class Progress:
    """How far a study is; given to the callback before the first run and after each one.

    Attributes
    ----------
    total, done, failed : runs asked for, and how many of them are finished or have failed
    outcome : of the run that has just landed, or None
    seconds_left : an estimate from the runs measured so far, or None
    """

    total: int
    done: int
    failed: int
    outcome: Outcome | None
    seconds_left: float | None


@dataclass(frozen=True)
class Summary:
    """What a call of `run_study` did: runs asked for, of these finished before, run now, and failed."""

    asked: int
    already_done: int
    ran: int
    failed: int
    seconds: float


def run_study(
    study: Study,
    store: str | PathLike[str],
    *,
    jobs: int = 1,
    data_dir: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    backend: str = "local",
    scheduler: str | None = None,
    wait: bool = False,
    device: str = "cpu",
    progress: Callable[[Progress], object] | None = None,
) -> Summary:
    """Run what is missing of a study, and keep each result as it lands.

    Whatever the order, the number of jobs, the backend or the interruptions, the store ends with the same content.

    Parameters
    ----------
    study : Study
    store : path of the SQLite file; made where it is not there
    jobs : int, default=1
        Worker processes of the local backend. Each run is computed by one of them, on one core.
    data_dir : path, optional
        The folder with the UCI files.
    retry_failed : bool, default=False
        Whether runs that failed before are tried again.
    backend : "local" or "dask"
    scheduler : str, optional
        Address of the Dask scheduler. Its workers read the data themselves: ``data_dir`` must mean the same to them.
    wait : bool, default=False
        Whether to wait for another process that writes to the store; else it is an error.
    device : "cpu" or "cuda"
        What scores the subsets. With "cuda" each worker process searches many runs in lockstep, so that the GPU gets
        large batches; the results are the same.
    progress : function, called with a `Progress`

    Returns
    -------
    Summary
    """
    check_choice("backend", backend, BACKENDS)
    if (backend == "dask") != (scheduler is not None):
        raise SettingError("backend 'dask' and the address of its scheduler belong together; give both or neither.")
    if jobs < 1:
        raise SettingError(f"jobs must be at least 1; got {jobs}.")
    check_device(device)
    began = monotonic()
    with Store.writing(store, jobs=jobs, wait=wait) as opened:
        opened.adopt(study)
        asked = study.plan()
        done, failures = opened.done(), opened.failures()
        missing = [run for run in asked if run.key not in done and (retry_failed or run.key not in failures)]
        _fetch_absent(study, missing, data_dir)
        costs = Costs(study.protocol, study.evaluations, opened.seconds())
        tasks = [task_for(study, run, data_dir, device) for run in costs.costliest_first(missing)]
        counted = _Counter(opened, study, asked, jobs, progress)
        counted.show(None)
        for outcome in _outcomes(tasks, jobs, scheduler, lockstep=device != "cpu"):
            opened.record(outcome)
            counted.show(outcome)
        return Summary(len(asked), len(asked) - len(missing), len(missing), counted.failed, monotonic() - began)


def _outcomes(tasks: list[Task], jobs: int, scheduler: str | None, *, lockstep: bool) -> Iterator[Outcome]:
    if scheduler is None:
        return local_outcomes(tasks, jobs, lockstep=lockstep)
    from subswarm.study.cluster import dask_outcomes

    return dask_outcomes(tasks, scheduler)


class _Counter:
    """Counts what lands, and tells whoever watches."""

    def __init__(
        self,
        store: Store,
        study: Study,
        asked: Iterable[PlannedRun],
        jobs: int,
        progress: Callable[[Progress], object] | None,
    ) -> None:
        self._study, self._jobs, self._tell = study, jobs, progress
        self._asked = list(asked)
        done, failures = store.done(), store.failures()
        self._left = {run.key: run for run in self._asked if run.key not in done and run.key not in failures}
        self._failed = {run.key for run in self._asked if run.key in failures}
        self._seconds = store.seconds()

    @property
    def failed(self) -> int:
        return len(self._failed)

    def show(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            key = outcome.planned.key
            self._left.pop(key, None)
            (self._failed.add if outcome.failure is not None else self._failed.discard)(key)
            if outcome.timing is not None:
                self._seconds.append((outcome.planned.group, outcome.timing.seconds))
        if self._tell is not None:
            costs = Costs(self._study.protocol, self._study.evaluations, self._seconds)
            left = costs.seconds_left(self._left.values(), self._jobs)
            total, failed = len(self._asked), self.failed
            self._tell(Progress(total, total - len(self._left) - failed, failed, outcome, left))


def task_for(study: Study, run: PlannedRun, data_dir: str | PathLike[str] | None = None, device: str = "cpu") -> Task:
    """All that a worker needs for a planned run."""
    spec = ProblemSpec(
        source=study.source(run.dataset),
        model=run.model,
        protocol=study.protocol,
        folds=study.folds,
        repeats=study.repeats,
        outer=None if run.outer_fold is None else (run.outer_fold, study.outer),
        seed=study.seed,
        data_dir=None if data_dir is None else fspath(data_dir),
        device=device,
    )
    return Task(run, spec, study.contender(run.algorithm), study.evaluations)


def _fetch_absent(study: Study, missing: list[PlannedRun], data_dir: str | PathLike[str] | None) -> None:
    """Download what is not at hand once, here, and not in every worker at once; or say so before anything runs."""
    wanted = dict.fromkeys(run.dataset for run in missing)
    for name in wanted:
        if study.source(name).in_catalogue and not is_present(name, data_dir=data_dir):
            load_dataset(name, protocol=study.protocol, data_dir=data_dir)
