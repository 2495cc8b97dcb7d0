"""Runs a study: workers compute the runs, and one writer commits each run when it finishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from time import monotonic

from subswarm._checks import check_choice
from subswarm.datasets import is_present, load_dataset
from subswarm.engines.base import check_device
from subswarm.errors import SettingError
from subswarm.study.backends.joblib import local_outcomes
from subswarm.study.definition import Study
from subswarm.study.plan import PlannedRun
from subswarm.study.problem import ProblemSpec
from subswarm.study.records import Outcome
from subswarm.study.status import Costs
from subswarm.study.store import Store
from subswarm.study.worker import Task

__all__ = ["Progress", "Summary", "run_study", "task_for"]

BACKENDS = ("local", "dask")


@dataclass(frozen=True)
class Progress:
    """The progress of a study; the callback gets it before the first run and after each run.

    Attributes
    ----------
    total, done, failed : number of runs in the study, of finished ones and of failed ones
    outcome : of the run that has just finished, or None
    seconds_left : an estimate from the runs measured so far, or None
    """

    total: int
    done: int
    failed: int
    outcome: Outcome | None
    seconds_left: float | None


@dataclass(frozen=True)
class Summary:
    """What a call of `run_study` did: the runs of the study, those finished before, run now, and failed."""

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
    """Run the missing runs of a study, and save each result when it is there.

    The content of the store does not depend on the order, the number of jobs, the backend or interruptions.

    Parameters
    ----------
    study : Study
    store : path of the SQLite file, which is created if it does not exist
    jobs : int, default=1
        Worker processes of the local backend. One process computes a run, on one core.
    data_dir : path, optional
        Folder with the UCI files.
    retry_failed : bool, default=False
        Whether to try runs again that failed before.
    backend : "local" or "dask"
    scheduler : str, optional
        Address of the Dask scheduler. The workers read the data themselves, so ``data_dir`` must exist there too.
    wait : bool, default=False
        Whether to wait for another process that writes to the store. If False, that is an error.
    device : "cpu" or "cuda"
        What scores the subsets. With "cuda", each worker process computes many runs in lockstep, so that the GPU gets
        large batches. The results are the same.
    progress : function, optional
        Called with a `Progress`.

    Returns
    -------
    Summary
    """
    check_choice("backend", backend, BACKENDS)
    if (backend == "dask") != (scheduler is not None):
        raise SettingError(
            "backend 'dask' needs the address of its scheduler, and a scheduler needs backend 'dask'; give both."
        )
    if jobs < 1:
        raise SettingError(f"jobs must be at least 1; got {jobs}.")
    check_device(device)
    started = monotonic()
    with Store.writing(store, jobs=jobs, wait=wait) as opened:
        opened.adopt(study)
        plan = study.plan()
        done, failures = opened.done(), opened.failures()
        missing = [run for run in plan if run.key not in done and (retry_failed or run.key not in failures)]
        _download_missing(study, missing, data_dir)
        costs = Costs(study.protocol, study.evaluations, opened.seconds())
        tasks = [task_for(study, run, data_dir, device) for run in costs.sort_longest_first(missing)]
        reporter = _ProgressReporter(opened, study, plan, jobs, progress)
        reporter.report(None)
        for outcome in _outcomes(tasks, jobs, scheduler, lockstep=device != "cpu"):
            opened.record(outcome)
            reporter.report(outcome)
        return Summary(len(plan), len(plan) - len(missing), len(missing), reporter.failed, monotonic() - started)


def _outcomes(tasks: list[Task], jobs: int, scheduler: str | None, *, lockstep: bool) -> Iterator[Outcome]:
    if scheduler is None:
        return local_outcomes(tasks, jobs, lockstep=lockstep)
    from subswarm.study.backends.dask import dask_outcomes

    return dask_outcomes(tasks, scheduler)


class _ProgressReporter:
    """Counts finished and failed runs, and calls the progress function."""

    def __init__(
        self,
        store: Store,
        study: Study,
        plan: Sequence[PlannedRun],
        jobs: int,
        progress: Callable[[Progress], object] | None,
    ) -> None:
        self._study, self._jobs, self._progress = study, jobs, progress
        self._total = len(plan)
        done, failures = store.done(), store.failures()
        self._left = {run.key: run for run in plan if run.key not in done and run.key not in failures}
        self._failed = {run.key for run in plan if run.key in failures}
        self._seconds = store.seconds()

    @property
    def failed(self) -> int:
        return len(self._failed)

    def report(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            key = outcome.planned.key
            self._left.pop(key, None)
            (self._failed.add if outcome.failure is not None else self._failed.discard)(key)
            if outcome.timing is not None:
                self._seconds.append((outcome.planned.group, outcome.timing.seconds))
        if self._progress is not None:
            costs = Costs(self._study.protocol, self._study.evaluations, self._seconds)
            left = costs.seconds_left(self._left.values(), self._jobs)
            done = self._total - len(self._left) - self.failed
            self._progress(Progress(self._total, done, self.failed, outcome, left))


def task_for(study: Study, run: PlannedRun, data_dir: str | PathLike[str] | None = None, device: str = "cpu") -> Task:
    """Return what a worker needs for a planned run."""
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


def _download_missing(study: Study, missing: list[PlannedRun], data_dir: str | PathLike[str] | None) -> None:
    """Download missing data sets once, before anything runs, and not in every worker at the same time."""
    for name in dict.fromkeys(run.dataset for run in missing):
        if study.source(name).in_catalogue and not is_present(name, data_dir=data_dir):
            load_dataset(name, protocol=study.protocol, data_dir=data_dir)
