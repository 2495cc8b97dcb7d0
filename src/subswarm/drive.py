"""The one loop of the package. It owns the clock, the budget and the callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

import subswarm.plot.methods  # noqa: F401  (registers itself, so that every result can draw itself)
from subswarm import checkpoint as files
from subswarm.algorithms import Search, get_algorithm
from subswarm.core.budget import Budget
from subswarm.core.checks import check_int
from subswarm.core.errors import SettingError
from subswarm.core.recording import Recorder
from subswarm.core.types import FloatArray, IntArray, Masks, SearchResult, Snapshot
from subswarm.course import Course, Keeper, resumed

__all__ = ["Callback", "search", "search_together"]

Callback = Callable[[Snapshot], object]
"""Called after each step; a return value of True stops the search."""


class ObjectiveLike(Protocol):
    """Anything that turns masks (P, n) into fitness (P,).

    One that says ``n_partitions`` of more than 1 also takes, as a second argument, the partition to score each mask on.
    """

    def __call__(self, masks: Masks, /) -> FloatArray: ...


def search(
    algorithm: Any,
    objective: ObjectiveLike,
    budget: Budget | None = None,
    *,
    rng: Generator | int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_seconds: float = 5.0,
    n_features: int | None = None,
    record: bool = False,
) -> SearchResult:
    """Search for the subset of lowest fitness.

    Parameters
    ----------
    algorithm : an algorithm such as ``TwoDUPSO()``, or a registered name
    objective : Objective or function
        From masks (P, n) to fitness (P,), lower is better.
    budget : Budget, default 6000 evaluations
    rng : numpy.random.Generator, or a seed for one
    callbacks : functions called with a `Snapshot` after each step; one that returns True stops the search
    checkpoint : path, optional
        A file from which an earlier, broken-off search goes on bit for bit, and to which this one is saved: after the
        first step, then every ``checkpoint_seconds``, and at the end. Delete it to begin anew.
    n_features : int
        Only needed for a plain function; an `Objective` knows it.
    record : bool, default=False
        Whether to keep every subset visited and the swarm's likelihoods in ``result.recording``, for plots.

    Returns
    -------
    SearchResult
        Ctrl-C ends the search cleanly, with the best so far and ``stop_reason`` "interrupted".

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
    budget = budget or Budget()
    fingerprint = getattr(objective, "fingerprint", str)()
    course = _begun(algorithm, objective, budget, rng, n_features)
    if checkpoint is not None:
        course = resumed(course, files.read(checkpoint, fingerprint), budget)
    keep = Keeper(checkpoint, fingerprint, checkpoint_seconds)
    recorder = Recorder(getattr(course.search.algorithm, "feature_sizes", None)) if record else None
    seen_by = (*callbacks, *(() if recorder is None else (recorder,)))
    stop_reason = _run(course, objective, budget, seen_by, keep)
    if not course.seen_anything or (stop_reason == "interrupted" and not course.search.answered):
        raise KeyboardInterrupt
    keep.now(course)
    result = course.result(objective, stop_reason)
    return result if recorder is None else replace(result, recording=recorder.recording())


def search_together(
    algorithms: Sequence[Any],
    objective: ObjectiveLike,
    budget: Budget | None = None,
    *,
    rngs: Sequence[Generator | int | None],
    n_features: int | None = None,
) -> list[SearchResult]:
    """Run many searches side by side: each step scores the subsets of all of them as one batch.

    Every search goes exactly the way it would have gone alone; a subset that two of them ask for is scored once.
    Large batches are what a GPU needs: with ``make_objective(..., device="cuda")`` forty searches take little longer
    than one.

    Parameters
    ----------
    algorithms : one algorithm (or registered name) for each search; the same one may be given many times
    objective : Objective or function
        From masks (P, n) to fitness (P,), lower is better.
    budget : Budget, default 6000 evaluations
        Of each search.
    rngs : a numpy.random.Generator, or a seed for one, for each search
    n_features : int
        Only needed for a plain function; an `Objective` knows it.

    Returns
    -------
    list of SearchResult
        In the order of ``algorithms``. The time of a common batch is shared out by the number of evaluations.

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
    budget = budget or Budget()
    if len(algorithms) != len(rngs):
        raise SettingError(
            f"search_together() got {len(algorithms)} algorithms and {len(rngs)} rngs; give one for each search."
        )
    courses = [
        _begun(algorithm, objective, budget, rng, n_features) for algorithm, rng in zip(algorithms, rngs, strict=True)
    ]
    reasons: dict[int, str] = {}
    try:
        while active := [place for place in range(len(courses)) if place not in reasons]:
            for place in active:
                if (reason := _stop_reason(courses[place], budget)) is not None:
                    reasons[place] = reason
            _step_together([courses[place] for place in active if place not in reasons], objective, budget)
    except KeyboardInterrupt:
        if not all(course.search.answered for course in courses):
            raise
    return [course.result(objective, reasons.get(place, "interrupted")) for place, course in enumerate(courses)]


def _begun(
    algorithm: Any, objective: ObjectiveLike, budget: Budget, rng: Generator | int | None, n_features: int | None
) -> Course:
    if isinstance(algorithm, str):
        algorithm = get_algorithm(algorithm)
    n_features = n_features if n_features is not None else getattr(objective, "n_features", None)
    if n_features is None:
        raise SettingError("the objective does not say how many features there are; pass n_features=...")
    check_int("n_features", n_features, low=1)
    search: Search[Any] = Search(
        algorithm,
        n_features,
        np.random.default_rng(rng),
        evaluations=budget.evaluations,
        n_partitions=getattr(objective, "n_partitions", 1),
    )
    if budget.evaluations is not None and budget.evaluations < search.cost:
        raise SettingError(
            f"one subset costs {search.cost} evaluations, one for each partition, and the budget allows "
            f"{budget.evaluations}; allow more evaluations, or use fewer repeats."
        )
    return Course(search)


def _run(
    course: Course, objective: ObjectiveLike, budget: Budget, callbacks: tuple[Callback, ...], keep: Keeper
) -> str:
    """Ask, evaluate and tell until something says stop; the reason why."""
    try:
        while (reason := _stop_reason(course, budget)) is None:
            snapshot = _one_step(course, objective, budget)
            asked_to_stop = [callback(snapshot) is True for callback in callbacks]  # every callback sees every step
            if any(asked_to_stop):
                return "callback"
            keep.sometimes(course)
    except KeyboardInterrupt:
        return "interrupted"
    return reason


def _stop_reason(course: Course, budget: Budget) -> str | None:
    search = course.search
    if budget.target is not None and search.answered and search.best.fitness <= budget.target:
        return "target"
    if budget.evaluations is not None and search.evaluations + search.cost > budget.evaluations:
        return "evaluations"
    if search.finished:
        return "finished"
    if budget.patience is not None and search.evaluations - course.improved_at >= budget.patience:
        return "patience"
    if budget.seconds is not None and course.seen_anything and course.seconds >= budget.seconds:
        return "seconds"
    return None


@dataclass(frozen=True, eq=False)
class _Question:
    """What a search asks next; ``whole`` is False where the budget ends inside the batch."""

    masks: Masks
    partitions: IntArray | None
    cost: int
    state: Any
    whole: bool
    best_before: float
    seconds: float


def _one_step(course: Course, objective: ObjectiveLike, budget: Budget) -> Snapshot:
    question = _asked(course, budget)
    started = time.perf_counter()
    (fitness,) = _scored([question], objective)
    return _told(course, budget, question, fitness, time.perf_counter() - started)


def _step_together(courses: Sequence[Course], objective: ObjectiveLike, budget: Budget) -> None:
    """One step of each search, all their subsets scored as one batch."""
    if not courses:
        return
    questions = [_asked(course, budget) for course in courses]
    for course, question in zip(courses, questions, strict=True):
        course.remember(question.masks, question.partitions)
    started = time.perf_counter()
    answers = _scored(questions, objective)
    costs = np.array([question.cost * len(question.masks) for question in questions])
    seconds = (time.perf_counter() - started) * costs / costs.sum()
    for course, question, fitness, share in zip(courses, questions, answers, seconds.tolist(), strict=True):
        _told(course, budget, question, fitness, share)


def _scored(questions: Sequence[_Question], objective: Any) -> list[FloatArray]:
    """The fitness each question asks for: those about all partitions as one batch, those about single ones as one."""
    several = getattr(objective, "n_partitions", 1) > 1
    single = [several and question.partitions is not None for question in questions]
    found: dict[int, FloatArray] = {}
    for kind in (False, True):
        places = [place for place, is_single in enumerate(single) if is_single is kind]
        if places:
            masks = np.concatenate([questions[place].masks for place in places])
            named = [np.concatenate([questions[place].partitions for place in places])] if kind else []
            fitness = np.asarray(objective(masks, *named), dtype=np.float64)
            stops = np.cumsum([len(questions[place].masks) for place in places[:-1]], dtype=np.intp)
            found.update(zip(places, np.split(fitness, stops) if len(stops) else [fitness], strict=True))
    return [found[place] for place in range(len(questions))]


def _asked(course: Course, budget: Budget) -> _Question:
    search = course.search
    started = time.perf_counter()
    masks, partitions, cost = search.ask(), search.partitions, search.cost
    room = len(masks) if budget.evaluations is None else (budget.evaluations - search.evaluations) // cost
    return _Question(
        masks[:room],
        None if partitions is None else partitions[:room],
        cost,
        search.state,
        whole=len(masks) <= room,
        best_before=search.best.fitness if search.answered else np.inf,
        seconds=time.perf_counter() - started,
    )


def _told(course: Course, budget: Budget, question: _Question, fitness: FloatArray, seconds: float) -> Snapshot:
    """Tell a search the fitness of what it asked, which took so many seconds, and note how it stands."""
    search = course.search
    started = time.perf_counter()
    progress = budget.progress(search.evaluations + len(question.masks) * question.cost, course.seconds)
    if question.whole:
        search.tell(fitness, progress)
    else:
        search.tell_part(fitness)
    course.evaluation_seconds += seconds
    course.algorithm_seconds += question.seconds + time.perf_counter() - started
    course.note(question.masks, question.best_before)
    return Snapshot(
        best=search.best,
        evaluations=search.evaluations,
        progress=progress,
        spread=course.rows[-1][3],
        seconds=course.seconds,
        masks=question.masks,
        fitness=fitness,
        state=question.state,
    )
