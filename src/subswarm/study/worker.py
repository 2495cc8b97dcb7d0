"""One run, wherever it is computed."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from subswarm.core.budget import Budget
from subswarm.core.types import History, SearchResult
from subswarm.drive import search, search_together
from subswarm.hybrid import with_scores
from subswarm.study.plan import Contender, PlannedRun
from subswarm.study.problem import Problem, ProblemSpec, problem_for
from subswarm.study.records import Failure, Outcome, RunContent, RunTiming, machine, versions

__all__ = ["Task", "perform", "perform_together"]


@dataclass(frozen=True)
class Task:
    """All that a worker needs for one run."""

    planned: PlannedRun
    spec: ProblemSpec
    contender: Contender
    evaluations: int


def perform(task: Task) -> Outcome:
    """Search, and say what was found; an error becomes a recorded failure."""
    try:
        problem = problem_for(task.spec)
        result = search(
            with_scores(task.contender.make(), *problem.train),
            problem.objective.fresh(),
            Budget(evaluations=task.evaluations),
            rng=np.random.default_rng(task.planned.seed),
        )
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return Outcome(task.planned, _content(result, problem), _timing(result), problem.facts)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return Outcome(task.planned, failure=Failure(said, traceback.format_exc()))


def perform_together(tasks: Sequence[Task]) -> list[Outcome]:
    """The outcomes of runs that share one problem, searched in lockstep: the same as one by one, in larger batches."""
    try:
        problem = problem_for(tasks[0].spec)
        results = search_together(
            [with_scores(task.contender.make(), *problem.train) for task in tasks],
            problem.objective.fresh(),
            Budget(evaluations=tasks[0].evaluations),
            rngs=[np.random.default_rng(task.planned.seed) for task in tasks],
        )
    except Exception:
        return [perform(task) for task in tasks]  # one by one, so that only those that fail are recorded as failed
    if any(result.stop_reason == "interrupted" for result in results):
        raise KeyboardInterrupt
    return [
        Outcome(task.planned, _content(result, problem), _timing(result), problem.facts)
        for task, result in zip(tasks, results, strict=True)
    ]


def _content(result: SearchResult, problem: Problem) -> RunContent:
    losses = () if result.fold_losses is None else tuple(result.fold_losses.tolist())
    return RunContent(
        loss=float(result.best.fitness),
        fold_losses=losses,
        features=tuple(result.best.features.tolist()),
        curve=_changes(result.history),
        evaluations=result.evaluations,
        computed=result.computed,
        stop_reason=result.stop_reason,
        held_out=problem.held_out(result.best.mask),
        settings=result.settings,
    )


def _timing(result: SearchResult) -> RunTiming:
    return RunTiming(result.algorithm_seconds, result.evaluation_seconds, result.engine, machine(), versions())


def _changes(history: History) -> tuple[tuple[int, float, int], ...]:
    """The curve where it changes, and its end."""
    best = np.stack([history.best_fitness, history.best_cardinality], axis=1)
    changed = np.ones(len(best), dtype=bool)
    changed[1:-1] = (best[1:-1] != best[:-2]).any(axis=1)
    rows = zip(history.evaluations, history.best_fitness, history.best_cardinality, changed, strict=True)
    return tuple((int(evaluations), float(loss), int(size)) for evaluations, loss, size, kept in rows if kept)
