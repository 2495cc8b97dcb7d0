"""What an algorithm is, and the one object that runs it by ask and tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from subswarm.algorithms import plain
from subswarm.algorithms.partitions import check_partitions, informed
from subswarm.algorithms.subset_settings import rules_of
from subswarm.core.checks import check_int
from subswarm.core.errors import CheckpointError, FitnessError, SettingError
from subswarm.core.types import FloatArray, Front, IntArray, Mask, Masks, Subset

__all__ = ["Algorithm", "Search", "State"]


class State(Protocol):
    """A frozen dataclass of arrays, numbers and further such dataclasses.

    It may have ``partitions``, an int array of shape (P,): the partition of a repeated cross-validation to score each
    mask on, one evaluation each. Without it (or where it is None) every mask is scored on all of them.
    """

    @property
    def masks(self) -> Masks:
        """The subsets to evaluate next, shape (P, n)."""
        ...


S = TypeVar("S", bound=State)


class Algorithm(Protocol[S]):
    """Settings with two pure rules. All randomness comes from the generator that is passed in.

    An algorithm that scores subsets on single partitions (see `State`) has a setting ``n_partitions``, None by default:
    the search fills in how many there are. It may also have a third rule, ``answers(state) -> (masks, fitness)``: the
    subsets it vouches for, each with its best estimate, the one to choose first. Where there are several partitions,
    the search's ``best`` and ``front`` then come from these, because losses on different partitions do not compare.
    Where the budget may end inside a batch, a fourth one, ``cut_short(state, fitness) -> state``, takes in what was
    scored of it, the first few masks, before the answers are read for the last time.

    One that has limits says so by ``rules`` and ``passing_rules``, as `SubsetSettings` does.
    """

    def begin(self, n_features: int, rng: Generator) -> S:
        """The first state: what to evaluate first."""
        ...

    def step(self, state: S, fitness: FloatArray, progress: float, rng: Generator) -> S | None:
        """The next state, from the fitness of ``state.masks``; None when the algorithm has finished.

        A last state without masks says so too; its answers are still read.
        ``progress`` goes from 0 to 1 over the budget and feeds schedules.
        """
        ...


class Search(Generic[S]):
    """An algorithm at work on one problem, by ask and tell.

    `ask` only reads, so asking twice is harmless; only `tell` moves. Whatever the algorithm proposes is made legal
    before it is asked, and the best subset ever told is never lost.

    Parameters
    ----------
    algorithm : an algorithm, such as ``TwoDUPSO()``
    n_features : int
    rng : numpy.random.Generator, or a seed for one
    evaluations : int, default=6000
        The evaluations planned, from which the progress of schedules is reckoned.
    n_partitions : int, default=1
        Partitions of the objective. A mask costs as many evaluations, or one where `partitions` names its partition.

    Attributes
    ----------
    finished : bool
        Whether there is nothing more to ask.
    cut_short : bool
        Whether the budget ended inside a batch.
    evaluations : int
        Evaluations told so far: subsets, times the partitions each was scored on.
    answered : bool
        Whether a subset within the limits has been told; only a stepwise search passes through others before.
    best : Subset

    Examples
    --------
    >>> from subswarm.algorithms import TwoDUPSO
    >>> search = Search(TwoDUPSO(), n_features=10, rng=1)
    >>> for _ in range(20):
    ...     masks = search.ask()
    ...     search.tell((masks ^ (np.arange(10) < 3)).mean(axis=1))  # distance to the first three features
    >>> search.evaluations, search.best.features.tolist()
    (600, [0, 1, 2])
    """

    def __init__(
        self,
        algorithm: Algorithm[S],
        n_features: int,
        rng: Generator | int | None = None,
        *,
        evaluations: int | None = 6000,
        n_partitions: int = 1,
    ) -> None:
        check_int("n_features", n_features, low=1)
        check_int("evaluations", evaluations, low=1, optional=True)
        check_int("n_partitions", n_partitions, low=1)
        algorithm = informed(algorithm, n_partitions)
        self.algorithm = algorithm
        self.n_features = int(n_features)
        self.n_partitions = int(n_partitions)
        self.evaluations = 0
        self.finished = False
        self.cut_short = False
        self._planned = evaluations
        self._rng = np.random.default_rng(rng)
        self._rules, self._passing = rules_of(algorithm, n_features)
        self._parsimonious = bool(getattr(algorithm, "parsimonious", False))
        self._best: Subset | None = None
        self._front: dict[int, tuple[float, Mask]] = {}
        self._vouched: tuple[Masks, FloatArray] | None = None
        self._state: S = self._legal(algorithm.begin(self.n_features, self._rng))

    def ask(self) -> Masks:
        """The subsets to evaluate next, a copy of shape (P, n); P may vary between calls."""
        if self.finished:
            raise SettingError("the search has finished; there is nothing more to ask. Read its best subset.")
        return self._state.masks.copy()

    @property
    def partitions(self) -> IntArray | None:
        """The partition to score each of these subsets on, a copy of shape (P,); None where all are meant."""
        partitions = getattr(self._state, "partitions", None)
        return None if partitions is None else np.array(partitions, dtype=np.intp)

    @property
    def cost(self) -> int:
        """The evaluations that each of these subsets costs: the partitions it is scored on."""
        return self.n_partitions if getattr(self._state, "partitions", None) is None else 1

    def tell(self, fitness: ArrayLike, progress: float | None = None) -> None:
        """Learn the fitness of the subsets that `ask` gave, and move on.

        ``progress`` (0 to 1) is reckoned from the planned evaluations where it is not given.
        """
        values = self._checked(fitness, len(self._state.masks))
        self._observe(self._state.masks, values)
        if progress is None:
            progress = min(1.0, self.evaluations / self._planned) if self._planned else 0.0
        state = self.algorithm.step(self._state, values, progress, self._rng)
        self.finished = state is None or np.size(state.masks) == 0
        if state is not None:
            self._state = state if self.finished else self._legal(state)
            self._consult()

    def tell_part(self, fitness: ArrayLike) -> None:
        """Learn the fitness of the first few subsets that `ask` gave, and stop: the budget ended inside a batch."""
        values = np.asarray(fitness, dtype=np.float64)
        if values.ndim != 1 or len(values) > len(self._state.masks):
            raise FitnessError(
                f"tell_part() got fitness of shape {values.shape}; ask() gave {len(self._state.masks)} masks."
            )
        self._observe(self._state.masks[: len(values)], self._checked(values, len(values)))
        take_in = getattr(self.algorithm, "cut_short", None)
        if take_in is not None:
            self._state = take_in(self._state, values)
            self._consult()
        self.finished = self.cut_short = True

    @property
    def best(self) -> Subset:
        """The best subset told so far (the first found, where several are equally good).

        Until one within the limits has been told (see `answered`), the best of those passed on the way. Where the
        algorithm vouches for subsets (see `Algorithm`), the first of these.
        """
        if self._vouched is not None:
            masks, fitness = self._vouched
            return Subset(masks[0].copy(), float(fitness[0]))
        if self._best is None:
            raise SettingError("nothing has been told yet, so there is no best subset; ask() and tell() first.")
        return self._best

    @property
    def answered(self) -> bool:
        """Whether a subset within the limits has been told."""
        if self._best is None:
            return False
        return self._passing is self._rules or bool(self._rules.is_legal(self._best.mask[None])[0])

    @property
    def front(self) -> Front:
        """The best subset of each number of columns within the limits told so far, by ascending number."""
        if self._vouched is None:
            return self._as_front(self._front)
        vouched: dict[int, tuple[float, Mask]] = {}
        self._remember_sizes(*self._vouched, into=vouched)
        return self._as_front(vouched)

    @property
    def state(self) -> S:
        """The algorithm's state, to look at and not to change."""
        return self._state

    def saved(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """All there is to know of this search as plain arrays and JSON values; `restored` reads them."""
        arrays, values = plain.flatten(self._state, "state")
        front = self._as_front(self._front)
        arrays |= {"front.masks": front.masks, "front.fitness": front.fitness}
        if self._best is not None:
            arrays["best.mask"] = self._best.mask
        return arrays, {
            "state": values,
            "n_features": self.n_features,
            "n_partitions": self.n_partitions,
            "evaluations": self.evaluations,
            "finished": self.finished,
            "planned": self._planned,
            "best_fitness": None if self._best is None else self._best.fitness,
            "generator": plain.generator_state(self._rng),
            "algorithm": type(self.algorithm).__name__,
            "settings": plain.settings_of(self.algorithm),
        }

    @classmethod
    def restored(
        cls, algorithm: Algorithm[S], arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]
    ) -> Search[S]:
        """The search that `saved` wrote, to go on bit for bit; the algorithm must be the one it was saved with."""
        n_partitions = values.get("n_partitions", 1)
        algorithm = informed(algorithm, n_partitions)
        ours = {"algorithm": type(algorithm).__name__, "settings": plain.settings_of(algorithm)}
        for key, value in ours.items():
            if values[key] != value:
                raise CheckpointError(
                    f"the checkpoint was written by another search: its {key} is {values[key]}, this one's is {value}. "
                    "Use the same settings, or another checkpoint file."
                )
        search = cls(
            algorithm,
            values["n_features"],
            np.random.default_rng(0),
            evaluations=values["planned"],
            n_partitions=n_partitions,
        )
        search._state = plain.unflatten(search._state, "state", arrays, values["state"])
        search._rng = plain.generator_from(values["generator"])
        search.evaluations = values["evaluations"]
        search.finished = values["finished"]
        if values["best_fitness"] is not None:
            search._best = Subset(np.array(arrays["best.mask"]), values["best_fitness"])
        search._remember_sizes(arrays["front.masks"], arrays["front.fitness"], into=search._front)
        search._consult()
        return search

    def _legal(self, state: S) -> S:
        masks = np.asarray(state.masks)
        if masks.dtype != np.bool_ or masks.ndim != 2 or masks.shape[1] != self.n_features or not len(masks):
            raise SettingError(
                f"{type(self.algorithm).__name__} proposed masks of dtype {masks.dtype} and shape {masks.shape}; "
                f"bool of shape (P, {self.n_features}) with P of at least 1 is wanted."
            )
        check_partitions(state, len(masks), self.n_partitions, by=type(self.algorithm).__name__)
        legal = self._passing.legalize(masks, self._rng)
        return state if legal is masks else dataclasses.replace(state, masks=legal)  # type: ignore[type-var]

    def _consult(self) -> None:
        """Ask the algorithm what it vouches for, where single losses do not compare."""
        vouch = getattr(self.algorithm, "answers", None)
        if vouch is None or self.n_partitions == 1:
            return
        masks, fitness = vouch(self._state)
        within = self._is_answer(masks)
        self._vouched = (masks[within], fitness[within]) if within.any() else None

    def _checked(self, fitness: ArrayLike, count: int) -> FloatArray:
        if self.finished:
            raise FitnessError("tell() was called after the search had finished; start a new search.")
        try:
            values = np.array(fitness, dtype=np.float64)
        except (TypeError, ValueError):
            raise FitnessError(f"tell() got fitness of type {type(fitness).__name__}; numbers are wanted.") from None
        if values.shape != (count,):
            raise FitnessError(
                f"tell() got fitness of shape {values.shape}; ask() gave {count} masks, so the shape must be "
                f"({count},)."
            )
        if not np.isfinite(values).all():
            bad = int(np.flatnonzero(~np.isfinite(values))[0])
            raise FitnessError(
                f"tell() got fitness {values[bad]} for mask {bad}; every fitness must be finite. "
                "Give a failed subset a large finite loss."
            )
        return values

    def _observe(self, masks: Masks, fitness: FloatArray) -> None:
        self.evaluations += len(masks) * self.cost
        answers = self._is_answer(masks)
        if answers.any():
            if not answers.all():
                masks, fitness = masks[answers], fitness[answers]
            self._remember_sizes(masks, fitness, into=self._front)
            if not self.answered:
                self._best = None
        elif self.answered:
            return
        first = self._first(masks, fitness)
        if self._best is None or self._beats(masks[first], fitness[first], self._best):
            self._best = Subset(masks[first].copy(), float(fitness[first]))

    def _first(self, masks: Masks, fitness: FloatArray) -> int:
        """The place of the best of these subsets."""
        return int(np.lexsort((masks.sum(axis=1), fitness))[0] if self._parsimonious else np.argmin(fitness))

    def _is_answer(self, masks: Masks) -> Mask:
        """Which of these subsets, all of them legal to pass, are within the limits, shape (P,)."""
        if self._passing is self._rules:
            return np.ones(len(masks), dtype=bool)
        return self._rules.is_legal(masks)

    def _beats(self, mask: Mask, fitness: float, best: Subset) -> bool:
        if self._parsimonious and fitness == best.fitness:
            return int(mask.sum()) < best.cardinality
        return bool(fitness < best.fitness)

    def _remember_sizes(self, masks: Masks, fitness: FloatArray, *, into: dict[int, tuple[float, Mask]]) -> None:
        columns = self._rules.columns(masks)
        for row, (size, value) in enumerate(zip(columns.tolist(), fitness.tolist(), strict=True)):
            if size not in into or value < into[size][0]:
                into[size] = (value, masks[row].copy())

    def _as_front(self, best: Mapping[int, tuple[float, Mask]]) -> Front:
        sizes = sorted(best)
        masks = [best[size][1] for size in sizes]
        return Front(
            np.array(masks, dtype=bool).reshape(len(sizes), self.n_features),
            np.array([best[size][0] for size in sizes], dtype=np.float64),
        )
