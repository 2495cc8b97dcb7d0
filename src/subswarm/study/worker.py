"""Computes one run, or several runs of one problem in lockstep."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from subswarm._display import package_versions
from subswarm._search.loop import search, search_together
from subswarm._search.result import History, SearchResult
from subswarm._search.run import Budget
from subswarm.study.definition import Contender
from subswarm.study.plan import PlannedRun
from subswarm.study.problem import Problem, ProblemSpec, problem_for
from subswarm.study.records import Failure, Outcome, RunContent, RunTiming, describe_machine

__all__ = ["Task", "perform", "perform_together"]


@dataclass(frozen=True)
class Task:
    """What a worker needs for one run."""

    planned: PlannedRun
    spec: ProblemSpec
    contender: Contender
    evaluations: int


def perform(task: Task) -> Outcome:
    """Compute one run; an exception becomes a recorded failure."""
    try:
        problem = problem_for(task.spec)
        result = search(
            task.contender.make(),
            problem.objective.fresh(),
            Budget(evaluations=task.evaluations),
            rng=np.random.default_rng(task.planned.seed),
        )
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return _make_outcome(task, result, problem)
    except Exception as error:
        return Outcome(task.planned, failure=Failure(f"{type(error).__name__}: {error}", traceback.format_exc()))


def perform_together(tasks: Sequence[Task]) -> list[Outcome]:
    """Compute runs of one problem in lockstep: the same results as one by one, scored in larger batches."""
    try:
        problem = problem_for(tasks[0].spec)
        results = search_together(
            [task.contender.make() for task in tasks],
            problem.objective.fresh(),
            Budget(evaluations=tasks[0].evaluations),
            rngs=[np.random.default_rng(task.planned.seed) for task in tasks],
        )
    except Exception:
        return [perform(task) for task in tasks]  # one by one: only those that fail are recorded as failed
    if any(result.stop_reason == "interrupted" for result in results):
        raise KeyboardInterrupt
    return [_make_outcome(task, result, problem) for task, result in zip(tasks, results, strict=True)]


def _make_outcome(task: Task, result: SearchResult, problem: Problem) -> Outcome:
    content = RunContent(
        loss=float(result.best.fitness),
        fold_losses=() if result.fold_losses is None else tuple(result.fold_losses.tolist()),
        features=tuple(result.best.features.tolist()),
        curve=_changes(result.history),
        evaluations=result.evaluations,
        computed=result.computed,
        stop_reason=result.stop_reason,
        held_out=problem.held_out(result.best.mask),
        settings=result.settings,
    )
    seconds = result.algorithm_seconds, result.evaluation_seconds
    timing = RunTiming(*seconds, result.engine, describe_machine(), package_versions())
    return Outcome(task.planned, content, timing, problem.facts)


def _changes(history: History) -> tuple[tuple[int, float, int], ...]:
    """Return the steps of the curve at which the best subset changed, and the last step."""
    best = np.stack([history.best_fitness, history.best_cardinality], axis=1)
    changed = np.ones(len(best), dtype=bool)
    changed[1:-1] = (best[1:-1] != best[:-2]).any(axis=1)
    rows = zip(history.evaluations, history.best_fitness, history.best_cardinality, changed, strict=True)
    return tuple((int(evaluations), float(loss), int(size)) for evaluations, loss, size, kept in rows if kept)
