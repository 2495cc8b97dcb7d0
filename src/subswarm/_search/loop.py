"""The search loop. It owns the clock, the budget and the callbacks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from subswarm._checks import as_tuple, check_bool, shown
from subswarm._search.ask_tell import Search, first_loss
from subswarm._search.callbacks import Callback, Checkpoint, Recorder, check_callbacks
from subswarm._search.result import SearchResult, Snapshot
from subswarm._search.run import (
    Budget,
    ObjectiveLike,
    SearchObjective,
    SearchRun,
    as_objective,
    losses_from,
    second_losses_from,
)
from subswarm._seeding import RandomSource
from subswarm._types import CostFront, FloatArray, IntArray, Masks
from subswarm.algorithms.base import AnyAlgorithm, State
from subswarm.errors import SettingError

__all__ = ["Callback", "search", "search_together"]

SLOW_ENGINE = "estimator"
"""The engine that scores one subset at a time, so slowly that a first batch is worth keeping after Ctrl-C."""
_PART_SECONDS = 5.0
"""Time that one part of a batch takes at most, if a batch is scored in parts."""


def search(
    algorithm: AnyAlgorithm | str,
    objective: SearchObjective | ObjectiveLike,
    budget: Budget | None = None,
    *,
    rng: RandomSource = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_seconds: float = 5.0,
    n_features: int | None = None,
    record: bool = False,
) -> SearchResult:
    """Search for the subset with the lowest loss.

    Parameters
    ----------
    algorithm : an algorithm such as ``TwoDUPSO()``, or a registered name
    objective : Objective or function
        From masks (P, n) to losses (P,); lower is better.
    budget : Budget, default 6000 evaluations
    rng : numpy.random.Generator, or a seed for one
    callbacks : functions called with a `Snapshot` after each step; one that returns True stops the search
    checkpoint : path, optional
        File to save the search to: after the first step, then every ``checkpoint_seconds``, and at the end. If the
        file exists, the interrupted search that wrote it continues bit for bit; delete it to start again. The file of
        another search (other data, folds, scoring, estimator, algorithm or settings) is rejected. The ``fingerprint()``
        of an objective (or its ``fingerprint_parts()``, digests by name) identifies the search. A plain function has
        none, so use a separate file for each function.
    n_features : int
        Only needed for a plain function; an `Objective` knows it.
    record : bool, default=False
        Whether to keep all evaluated subsets and the likelihoods of cardinalities in ``result.recording``, for plots.

    Returns
    -------
    SearchResult
        Ctrl-C ends the search with the best subset so far and ``stop_reason`` "interrupted".

    Examples
    --------
    >>> import numpy as np
    >>> from subswarm import Budget, search
    >>> planted = np.arange(12) < 4
    >>> def distance(masks):
    ...     return (masks ^ planted).mean(axis=1)
    >>> result = search("2d-upso", distance, Budget(target=0.0), rng=0, n_features=12)
    >>> result.best.features.tolist(), result.stop_reason
    ([0, 1, 2, 3], 'target')
    """
    budget = _as_budget(budget)
    check_bool("record", record)
    listeners = check_callbacks(callbacks)
    scored_by = as_objective(objective, n_features)
    run = _start(algorithm, scored_by, budget, rng)
    saver = Checkpoint(checkpoint, {} if checkpoint is None else scored_by.fingerprint_parts(), checkpoint_seconds)
    run = saver.restore(run, budget.evaluations)
    recorder = Recorder(run.search.algorithm.feature_sizes) if record else None
    if recorder is not None:
        listeners = (*listeners, recorder)
    stop_reason = _run_until_stopped(run, scored_by, budget, listeners, saver)
    if not run.has_evaluated or (stop_reason == "interrupted" and not run.search.answered):
        raise KeyboardInterrupt
    saver.write(run)
    result = run.result(scored_by, stop_reason)
    return result if recorder is None else replace(result, recording=recorder.recording())


def search_together(
    algorithms: Sequence[AnyAlgorithm | str],
    objective: SearchObjective | ObjectiveLike,
    budget: Budget | None = None,
    *,
    rngs: Sequence[RandomSource],
    n_features: int | None = None,
) -> list[SearchResult]:
    """Run several searches in lockstep: each step scores the subsets of all searches as one batch.

    Every search gives exactly the result it would give alone, and a subset that two of them ask for is scored once.
    This is useful on a GPU, which needs large batches: with ``make_objective(..., device="cuda")`` forty searches take
    little longer than one.

    Parameters
    ----------
    algorithms : one algorithm (or registered name) for each search; the same one may be given many times
    objective : Objective or function
        From masks (P, n) to losses (P,); lower is better.
    budget : Budget, default 6000 evaluations
        The budget of each search.
    rngs : a numpy.random.Generator, or a seed for one, for each search
    n_features : int
        Only needed for a plain function; an `Objective` knows it.

    Returns
    -------
    list of SearchResult
        In the order of ``algorithms``. The time of a common batch is divided by the number of evaluations.

    Examples
    --------
    >>> import numpy as np
    >>> from subswarm import Budget, search_together
    >>> planted = np.arange(12) < 4
    >>> def distance(masks):
    ...     return (masks ^ planted).mean(axis=1)
    >>> results = search_together(["2d-upso", "2d-upso", "bpso"], distance, rngs=[0, 1, 0], n_features=12)
    >>> [result.best.features.tolist() for result in results]
    [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
    """
    budget = _as_budget(budget)
    listed = as_tuple("algorithms", algorithms, of="algorithms or their names")
    seeds = as_tuple("rngs", rngs, of="generators or seeds")
    if len(listed) != len(seeds):
        raise SettingError(
            f"search_together() got {len(listed)} algorithms and {len(seeds)} rngs; give one for each search."
        )
    scored_by = as_objective(objective, n_features)
    runs = [_start(algorithm, scored_by, budget, rng) for algorithm, rng in zip(listed, seeds, strict=True)]
    reasons: dict[int, str] = {}
    try:
        while active := [place for place in range(len(runs)) if place not in reasons]:
            for place in active:
                if (reason := _stop_reason(runs[place], budget)) is not None:
                    reasons[place] = reason
            _step_together([runs[place] for place in active if place not in reasons], scored_by, budget)
    except KeyboardInterrupt:
        if not all(run.search.answered for run in runs):
            raise
    return [run.result(scored_by, reasons.get(place, "interrupted")) for place, run in enumerate(runs)]


def _as_budget(budget: object) -> Budget:
    if budget is None:
        return Budget()
    if not isinstance(budget, Budget):
        raise SettingError(f"budget must be a Budget, such as Budget(evaluations=1000), or None; got {shown(budget)}.")
    return budget


def _start(algorithm: AnyAlgorithm | str, objective: SearchObjective, budget: Budget, rng: RandomSource) -> SearchRun:
    started = time.perf_counter()
    search = Search(
        algorithm,
        objective.n_features,
        rng,
        evaluations=budget.evaluations,
        n_partitions=objective.n_partitions,
        n_left_out=objective.n_left_out,
        n_rows=objective.n_rows,
        limits=objective.limits,
        ranking=objective.ranking,
    )
    if budget.evaluations is not None and budget.evaluations < search.cost:
        raise SettingError(
            f"one subset costs {search.cost} evaluations, one for each repeat of the cross-validation, and the budget "
            f"allows {budget.evaluations}; allow more evaluations, or use fewer repeats."
        )
    seconds = time.perf_counter() - started  # rankings of the columns take time
    tracks = objective.prices is not None or search.algorithm.n_losses > 1
    return SearchRun(search, seconds, front=CostFront.empty(search.n_features) if tracks else None)


def _run_until_stopped(
    run: SearchRun, objective: SearchObjective, budget: Budget, callbacks: tuple[Callback, ...], saver: Checkpoint
) -> str:
    """Ask, evaluate and tell until a limit is reached or a callback stops the search; return the reason."""
    track = saver.path is not None and objective.computed is not None  # the objective's memory ends with the process
    try:
        while (reason := _stop_reason(run, budget)) is None:
            snapshot = _step(run, objective, budget, saver, track=track)
            stops = [callback(snapshot) is True for callback in callbacks]  # a list: every callback sees every step
            if any(stops):
                return "callback"
            saver.write_if_due(run)
    except KeyboardInterrupt:
        return "interrupted"
    return reason


def _stop_reason(run: SearchRun, budget: Budget) -> str | None:
    search = run.search
    if budget.target is not None and search.answered and search.best.fitness <= budget.target:
        return "target"
    if budget.evaluations is not None and search.evaluations + search.cost > budget.evaluations:
        return "evaluations"
    if search.finished:
        return "seconds" if search.cut_short else "finished"
    if budget.patience is not None and search.evaluations - run.improved_at >= budget.patience:
        return "patience"
    if budget.seconds is not None and run.has_evaluated and run.seconds >= budget.seconds:
        return "seconds"
    return None


@dataclass(frozen=True, eq=False)
class _Question:
    """The masks that a search asks for next; ``whole`` is False if the budget ends inside the batch."""

    masks: Masks
    partitions: IntArray | None
    cost: int
    state: State
    whole: bool
    n_losses: int
    best_before: float
    seconds: float

    def slice(self, start: int, stop: int) -> _Question:
        """Return the question for some of its masks."""
        partitions = None if self.partitions is None else self.partitions[start:stop]
        return replace(self, masks=self.masks[start:stop], partitions=partitions)

    def first(self, count: int) -> _Question:
        """Return the question cut after this many masks."""
        return replace(self.slice(0, count), whole=False)


def _step(run: SearchRun, objective: SearchObjective, budget: Budget, saver: Checkpoint, *, track: bool) -> Snapshot:
    question = _ask(run, budget)
    started = time.perf_counter()
    if budget.seconds is None and objective.engine != SLOW_ENGINE:
        (fitness,) = _score([question], objective)
        interrupted = False
    else:
        seconds_left = np.inf if budget.seconds is None else budget.seconds - run.seconds - question.seconds
        fitness, interrupted = _score_in_parts(question, objective, run, seconds_left)
    seconds = time.perf_counter() - started
    if len(fitness) < len(question.masks):
        if run.has_evaluated:
            saver.write(run)  # the file keeps the state before the batch that was cut
        question = question.first(len(fitness))
    if track:
        run.track_evaluations(question.masks, question.partitions)
    snapshot = _tell(run, objective, budget, question, fitness, seconds)
    if interrupted:
        raise KeyboardInterrupt
    return snapshot


def _score_in_parts(
    question: _Question, objective: SearchObjective, run: SearchRun, seconds_left: float
) -> tuple[FloatArray, bool]:
    """Return the losses of the first masks, as many as the time allows, and whether Ctrl-C ended the first batch.

    A part is sized by the time that each mask of the last part took, so that the limit is kept to about one evaluation.
    """
    started = time.perf_counter()
    rate = run.evaluation_seconds / run.search.evaluations * question.cost if run.has_evaluated else np.inf
    found: list[FloatArray] = []
    done, count = 0, len(question.masks)
    least = objective.at_once  # fewer would leave workers without a subset
    try:
        while done < count:
            left = seconds_left - (time.perf_counter() - started)
            if done and left <= 0:
                break
            allowed = min(_PART_SECONDS, left / 2)
            size = least if np.isinf(rate) or allowed <= 0 else count - done if rate == 0 else int(allowed / rate)
            size = max(size, least)
            part = question.slice(done, min(done + size, count))
            part_started = time.perf_counter()
            (losses,) = _score([part], objective)
            now = (time.perf_counter() - part_started) / len(losses)
            rate = now if np.isinf(rate) else max(now, rate / 2)  # remembers slow subsets for a while
            found.append(losses)
            done += len(losses)
    except KeyboardInterrupt:
        if run.has_evaluated or not found:  # a later batch is left out whole, so that a checkpoint has no gap
            raise
        return np.concatenate(found), True
    return np.concatenate(found), False


def _step_together(runs: Sequence[SearchRun], objective: SearchObjective, budget: Budget) -> None:
    """Make one step of each search, with all their masks scored as one batch."""
    if not runs:
        return
    questions = [_ask(run, budget) for run in runs]
    for run, question in zip(runs, questions, strict=True):
        run.track_evaluations(question.masks, question.partitions)
    started = time.perf_counter()
    answers = _score(questions, objective)
    costs = np.array([question.cost * len(question.masks) for question in questions])
    seconds = (time.perf_counter() - started) * costs / costs.sum()
    for run, question, fitness, share in zip(runs, questions, answers, seconds.tolist(), strict=True):
        _tell(run, objective, budget, question, fitness, share)


def _score(questions: Sequence[_Question], objective: SearchObjective) -> list[FloatArray]:
    """Return the losses for each question, computed in one batch for all repeats and one for single repeats."""
    repeated = objective.n_partitions > 1
    on_all = [place for place, question in enumerate(questions) if not repeated or question.partitions is None]
    on_single = [place for place, question in enumerate(questions) if repeated and question.partitions is not None]
    found: dict[int, FloatArray] = {}
    for places in (on_all, on_single):
        if not places:
            continue
        masks = np.concatenate([questions[place].masks for place in places])
        named = [partitions for place in places if (partitions := questions[place].partitions) is not None]
        fitness = losses_from(objective, masks, np.concatenate(named) if places is on_single else None)
        stops = np.cumsum([len(questions[place].masks) for place in places[:-1]], dtype=np.intp)
        found.update(zip(places, np.split(fitness, stops) if len(stops) else [fitness], strict=True))
    for place, question in enumerate(questions):
        if question.n_losses > 1:
            second = second_losses_from(objective, question.masks)
            found[place] = np.column_stack([found[place], second])
    return [found[place] for place in range(len(questions))]


def _ask(run: SearchRun, budget: Budget) -> _Question:
    search = run.search
    started = time.perf_counter()
    masks, partitions, cost = search.ask(), search.partitions, search.cost
    room = len(masks) if budget.evaluations is None else (budget.evaluations - search.evaluations) // cost
    return _Question(
        masks[:room],
        None if partitions is None else partitions[:room],
        cost,
        search.state,
        whole=len(masks) <= room,
        n_losses=search.algorithm.n_losses,
        best_before=search.best.fitness if search.answered else np.inf,
        seconds=time.perf_counter() - started,
    )


def _tell(
    run: SearchRun,
    objective: SearchObjective,
    budget: Budget,
    question: _Question,
    fitness: FloatArray,
    seconds: float,
) -> Snapshot:
    """Tell a search the losses of its masks, which took this many seconds to compute, and record the step."""
    search = run.search
    started = time.perf_counter()
    progress = budget.progress(search.evaluations + len(question.masks) * question.cost, run.seconds)
    if question.whole:
        wanted = search.algorithm.uses_importances
        search.tell(fitness, progress, objective.importances(question.masks, question.partitions) if wanted else None)
    else:
        search.tell_part(fitness)
    run.evaluation_seconds += seconds
    run.algorithm_seconds += question.seconds + time.perf_counter() - started
    run.record_step(question.masks, question.best_before)
    if question.partitions is None or search.n_partitions == 1:
        run.track_front(question.masks, fitness, objective.prices)
    return Snapshot(
        best=search.best,
        evaluations=search.evaluations,
        progress=progress,
        spread=run.rows[-1][3],
        seconds=run.seconds,
        masks=question.masks,
        fitness=first_loss(fitness),
        state=question.state,
    )
