"""The search object: holds an algorithm's state and exchanges masks and losses by ask and tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Generic, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from subswarm._checks import check_int, check_real
from subswarm._seeding import RandomSource, as_generator
from subswarm._types import AnyArray, FloatArray, Front, IntArray, Limits, Mask, Masks, Subset
from subswarm.algorithms import as_algorithm
from subswarm.algorithms import state as plain
from subswarm.algorithms.base import Algorithm, AnyAlgorithm, Finalists, Problem, Ranking, S, State
from subswarm.algorithms.state import check_state
from subswarm.errors import CheckpointError, DamagedCheckpointError, FitnessError, SettingError

__all__ = ["AnySearch", "Search", "differences", "first_loss"]


class Search(Generic[S]):
    """An algorithm searching for a subset of features, by ask and tell.

    `ask` only reads; only `tell` changes the state. Masks that break a limit are made legal before they are asked, and
    the best subset ever told is kept.

    Parameters
    ----------
    algorithm : an algorithm, such as ``TwoDUPSO()``, or a registered name
    n_features : int
    rng : numpy.random.Generator, or a seed for one
    evaluations : int or None, default=6000
        The planned number of evaluations, from which the progress of schedules is computed.
    n_partitions : int, default=1
        Repeats of the cross-validation. A mask costs this many evaluations, or one if `partitions` names its repeat.
    n_left_out : int, default=0
        Blocks of rows that the repeats leave out: ``n_partitions`` if the objective is cross-fitted.
    n_rows : int, optional
        Number of rows of the table.
    limits : Limits, optional
        Limits on the subsets; they replace those of the algorithm.
    ranking : callable, optional
        Returns the scores of all features for the name of a ranking; a filter algorithm without scores needs it.

    Attributes
    ----------
    finished : bool
        Whether there is nothing more to ask.
    cut_short : bool
        Whether the budget ended inside a batch.
    evaluations : int
        Evaluations told so far: masks times the repeats each was scored on.
    answered : bool
        Whether a subset within the limits has been told; a stepwise search tells others first.
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
        algorithm: Algorithm[S] | str,
        n_features: int,
        rng: RandomSource = None,
        *,
        evaluations: int | None = 6000,
        n_partitions: int = 1,
        n_left_out: int = 0,
        n_rows: int | None = None,
        limits: Limits | None = None,
        ranking: Ranking | None = None,
    ) -> None:
        check_int("n_features", n_features, low=1)
        check_int("evaluations", evaluations, low=1, optional=True)
        check_int("n_partitions", n_partitions, low=1)
        check_int("n_left_out", n_left_out, low=0)
        check_int("n_rows", n_rows, low=1, optional=True)
        problem = Problem(
            int(n_features), int(n_partitions), int(n_left_out), n_rows, limits=limits or Limits(), ranking=ranking
        )
        self.algorithm: Algorithm[S] = as_algorithm(algorithm).bind(problem)
        self.n_features = int(n_features)
        self.n_partitions = int(n_partitions)
        self.n_left_out = int(n_left_out)
        self.n_rows = n_rows
        self.evaluations = 0
        self.finished = False
        self.cut_short = False
        self._planned = evaluations
        self._rng = as_generator(rng)
        self._rules = self.algorithm.rules(self.n_features)
        self._passing = self.algorithm.passing_rules(self.n_features)
        self._parsimonious = bool(self.algorithm.parsimonious)
        self._best: Subset | None = None
        self._front: dict[int, tuple[float, Mask]] = {}
        self._finalists: Finalists | None = None
        self._state: S = self._legal(self.algorithm.begin(self.n_features, self._rng))

    def ask(self) -> Masks:
        """Return a copy of the masks to evaluate next, shape (P, n); P may vary between calls."""
        if self.finished:
            raise SettingError("the search has finished; there is nothing more to ask. Read its best subset.")
        return self._state.masks.copy()

    @property
    def partitions(self) -> IntArray | None:
        """The repeat to score each of these masks on, a copy of shape (P,); None for all repeats."""
        partitions = self._state.partitions
        return None if partitions is None else np.array(partitions, dtype=np.intp)

    @property
    def cost(self) -> int:
        """The evaluations that each of these masks costs: the number of repeats it is scored on."""
        return self.n_partitions if self._state.partitions is None else 1

    def tell(self, fitness: ArrayLike, progress: float | None = None, importances: FloatArray | None = None) -> None:
        """Learn the losses of the masks that `ask` returned, and step.

        An algorithm with two losses of each mask (see `Algorithm.n_losses`) is told ``fitness`` of shape (P, 2).
        ``progress`` (0 to 1) is computed from the planned evaluations if it is not given. ``importances`` has the
        importances of the features in the models of these masks, shape (P, n), for algorithms that use them.
        """
        if progress is not None and not (type(progress) is float and 0 <= progress <= 1):
            check_real("progress", progress, low=0, high=1)
        values = self._as_losses(fitness, len(self._state.masks))
        self._observe(self._state.masks, values)
        if progress is None:
            progress = min(1.0, self.evaluations / self._planned) if self._planned else 0.0
        told = self._state
        if importances is not None and self.algorithm.uses_importances:
            told = self.algorithm.on_importances(told, importances)
        state = self.algorithm.step(told, values, float(progress), self._rng)
        self.finished = state is None or np.size(state.masks) == 0
        if state is not None:
            self._state = state if self.finished else self._legal(state)
            self._update_finalists()

    def tell_part(self, fitness: ArrayLike) -> None:
        """Learn the losses of the first masks that `ask` returned, and stop: the budget ended inside a batch."""
        values = _as_floats(fitness)
        if values.shape != self._shape(len(values) if values.ndim else 0) or len(values) > len(self._state.masks):
            raise FitnessError(
                f"tell_part() expected at most {len(self._state.masks)} losses, one for each mask of ask(); got an "
                f"array of shape {values.shape}."
            )
        values = self._as_losses(values, len(values))
        self._observe(self._state.masks[: len(values)], values)
        self._state = self.algorithm.on_truncated(self._state, values)
        self._update_finalists()
        self.finished = self.cut_short = True

    @property
    def best(self) -> Subset:
        """The best subset told so far; the first one of equally good subsets.

        Before a subset within the limits has been told (see `answered`), it is the best of those told. If the
        cross-validation is repeated and the algorithm has `Algorithm.finalists`, it is the first of these.
        """
        if self._finalists is not None:
            return Subset(self._finalists.masks[0].copy(), float(self._finalists.fitness[0]))
        if self._best is None:
            raise SettingError("there is no best subset before the first tell(); call ask() and tell() first.")
        return self._best

    @property
    def answered(self) -> bool:
        """Whether a subset within the limits has been told."""
        if self._best is None:
            return False
        return self._passing is self._rules or bool(self._rules.is_legal(self._best.mask[None])[0])

    @property
    def front(self) -> Front:
        """The best subset of each number of columns told so far, within the limits, in ascending order."""
        if self._finalists is None:
            return self._as_front(self._front)
        best: dict[int, tuple[float, Mask]] = {}
        self._remember_sizes(self._finalists.masks, self._finalists.fitness, into=best)
        return self._as_front(best)

    @property
    def finalists(self) -> Finalists | None:
        """The algorithm's finalists within the limits, the best first; None if it has none."""
        return self._finalists

    @property
    def state(self) -> S:
        """The algorithm's state (read only)."""
        return self._state

    def saved(self) -> tuple[dict[str, AnyArray], dict[str, object]]:
        """Return the complete search as plain arrays and JSON values, for `restored`."""
        arrays, values = plain.flatten(self._state, "state")
        front = self._as_front(self._front)
        arrays |= {"front.masks": front.masks, "front.fitness": front.fitness}
        if self._best is not None:
            arrays["best.mask"] = self._best.mask
        return arrays, {
            "state": values,
            "n_features": self.n_features,
            "n_partitions": self.n_partitions,
            "n_left_out": self.n_left_out,
            "n_rows": self.n_rows,
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
        cls, algorithm: Algorithm[S], arrays: Mapping[str, AnyArray], values: Mapping[str, object]
    ) -> Search[S]:
        """Return the search that `saved` described; it continues bit for bit.

        Raises CheckpointError if the search was saved with another algorithm or other settings, or if the arrays and
        values cannot have come from `saved`.
        """
        n_features = plain.whole_number(values, "n_features", low=1)
        n_partitions = plain.whole_number(values, "n_partitions", low=1)
        n_left_out = plain.whole_number(values, "n_left_out", low=0)
        n_rows = None if values.get("n_rows") is None else plain.whole_number(values, "n_rows", low=1)
        algorithm = algorithm.bind(Problem(n_features, n_partitions, n_left_out, n_rows))
        if differing := differences(algorithm, values):
            raise CheckpointError(
                f"the checkpoint was written by another search; what differs: {', '.join(differing)}. "
                "Use the same algorithm and settings, or another checkpoint file."
            )
        if "state.masks" in arrays:  # checked before anything of this many features is allocated
            plain.array_of(arrays, "state.masks", np.bool_, (None, n_features))
        planned = None if values.get("planned") is None else plain.whole_number(values, "planned", low=1)
        search = cls(
            algorithm,
            n_features,
            np.random.default_rng(0),
            evaluations=planned,
            n_partitions=n_partitions,
            n_left_out=n_left_out,
            n_rows=n_rows,
        )
        search._restore(arrays, values)
        return search

    def _restore(self, arrays: Mapping[str, AnyArray], values: Mapping[str, object]) -> None:
        """Load the saved state of a search of the same algorithm, and check it."""
        self.evaluations = plain.whole_number(values, "evaluations", low=0)
        self.finished = plain.value_of(values, "finished", bool)
        state = plain.unflatten(self._state, "state", arrays, plain.value_of(values, "state", dict))
        check_state(state, self._state, self.n_features, stepping=not self.finished)
        if not self.finished:
            self._check_masks(state)
        self._state = state
        self._rng = plain.generator_from(plain.value_of(values, "generator", dict))
        if self.evaluations:
            self._restore_best(arrays, values)
        try:
            self._update_finalists()
        except (ValueError, IndexError) as error:  # arrays whose lengths only the algorithm can tell to be wrong
            raise DamagedCheckpointError("its state has no finalists") from error
        if self._finalists is not None and not (
            self._rules.is_legal(self._finalists.masks).all() and np.isfinite(self._finalists.fitness).all()
        ):
            raise DamagedCheckpointError("its finalists are not within the limits")

    def _check_masks(self, state: S) -> None:
        try:
            self._check_proposed(state)
        except SettingError as error:
            raise DamagedCheckpointError(str(error)) from None
        if not self._passing.is_legal(state.masks).all():
            raise DamagedCheckpointError("its next subsets are not within the limits")

    def _restore_best(self, arrays: Mapping[str, AnyArray], values: Mapping[str, object]) -> None:
        mask = plain.array_of(arrays, "best.mask", np.bool_, (self.n_features,))
        self._best = Subset(mask, plain.real_number(values, "best_fitness"))
        masks = plain.array_of(arrays, "front.masks", np.bool_, (None, self.n_features))
        fitness = plain.array_of(arrays, "front.fitness", np.float64, (len(masks),))
        sizes = self._rules.columns(masks)
        is_front = self._rules.is_legal(masks).all() and (np.diff(sizes) > 0).all()
        if not is_front or not self._passing.is_legal(mask[None])[0] or self.answered != bool(len(masks)):
            raise DamagedCheckpointError("its best subsets are not within the limits")
        if self.answered and fitness.min() != self._best.fitness:
            raise DamagedCheckpointError("its best subset is not the best of those of each size")
        self._remember_sizes(masks, fitness, into=self._front)

    def _legal(self, state: S) -> S:
        self._check_proposed(state)
        masks = np.asarray(state.masks)
        legal = self._passing.legalize(masks, self._rng)
        return state if legal is masks else dataclasses.replace(state, masks=legal)

    def _check_proposed(self, state: S) -> None:
        name = type(self.algorithm).__name__
        if not isinstance(state, State):
            raise SettingError(f"{name} returned a {type(state).__name__}; expected a dataclass derived from State.")
        masks = np.asarray(state.masks)
        if masks.dtype != np.bool_ or masks.ndim != 2 or masks.shape[1] != self.n_features or not len(masks):
            raise SettingError(
                f"{name} proposed masks of dtype {masks.dtype} and shape {masks.shape}; expected bool of shape "
                f"(P, {self.n_features}) with P of at least 1."
            )
        if state.partitions is not None:
            self._check_partitions(np.asarray(state.partitions), len(masks), name)

    def _check_partitions(self, partitions: AnyArray, count: int, name: str) -> None:
        limit = self.n_partitions + self.n_left_out
        expected = f"expected {count} whole numbers from 0 to {limit - 1}, one for each mask"
        if partitions.dtype.kind not in "iu" or partitions.shape != (count,):
            raise SettingError(
                f"{name} proposed partitions of dtype {partitions.dtype} and shape {partitions.shape}; {expected}."
            )
        numbers = partitions.astype(np.intp)
        if not 0 <= numbers.min() <= numbers.max() < limit:
            raise SettingError(f"{name} proposed partitions from {numbers.min()} to {numbers.max()}; {expected}.")

    def _update_finalists(self) -> None:
        """Read the algorithm's finalists if the cross-validation is repeated, where single losses do not compare."""
        found = None if self.n_partitions == 1 else self.algorithm.finalists(self._state)
        if found is None:
            return
        found = Finalists(*found)
        within = self.is_answer(found.masks)
        self._finalists = found.among(within) if within.any() else None

    def _shape(self, count: int) -> tuple[int, ...]:
        """Return the shape of the losses of ``count`` masks."""
        return (count,) if self.algorithm.n_losses == 1 else (count, self.algorithm.n_losses)

    def _as_losses(self, fitness: ArrayLike, count: int) -> FloatArray:
        if self.finished:
            raise FitnessError("tell() was called after the search had finished; start a new search.")
        values = _as_floats(fitness)
        expected = self._shape(count)
        if values.shape != expected:
            raise FitnessError(
                f"tell() got fitness of shape {values.shape}; ask() gave {count} masks, so the shape must be "
                f"{expected}."
            )
        if not np.isfinite(values).all():
            bad = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise FitnessError(
                f"tell() got fitness {values[bad]} for mask {bad}; every fitness must be finite. "
                "Give a failed subset a large finite loss."
            )
        return values

    def _observe(self, masks: Masks, fitness: FloatArray) -> None:
        fitness = first_loss(fitness)
        self.evaluations += len(masks) * self.cost
        answers = self.is_answer(masks)
        if answers.any():
            if not answers.all():
                masks, fitness = masks[answers], fitness[answers]
            self._remember_sizes(masks, fitness, into=self._front)
            if not self.answered:
                self._best = None
        elif self.answered:
            return
        first = self._best_row(masks, fitness)
        if self._best is None or self._beats(masks[first], fitness[first], self._best):
            self._best = Subset(masks[first].copy(), float(fitness[first]))

    def _best_row(self, masks: Masks, fitness: FloatArray) -> int:
        """Return the index of the best of these masks."""
        return int(np.lexsort((masks.sum(axis=1), fitness))[0] if self._parsimonious else np.argmin(fitness))

    def is_answer(self, masks: Masks) -> Mask:
        """Return which of these masks are within the limits, shape (P,)."""
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


def first_loss(fitness: FloatArray) -> FloatArray:
    """Return the loss that the search optimises, shape (P,), from one or more losses of each mask."""
    return fitness if fitness.ndim == 1 else fitness[:, 0]


def _as_floats(fitness: ArrayLike) -> FloatArray:
    """Return a copy of the losses as floats; raise FitnessError if they are no numbers."""
    try:
        return np.array(fitness, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise FitnessError(
            f"tell() got fitness of type {type(fitness).__name__}; expected a finite number for each mask."
        ) from None


AnySearch: TypeAlias = Search[Any]
"""A search with states of any class."""


def differences(algorithm: AnyAlgorithm, values: Mapping[str, object]) -> list[str]:
    """Return what differs between an algorithm and the one that wrote a checkpoint."""
    theirs, ours = plain.value_of(values, "algorithm", str), type(algorithm).__name__
    if theirs != ours:
        return [f"algorithm ({theirs} there, {ours} here)"]
    there, here = plain.value_of(values, "settings", dict), plain.settings_of(algorithm)
    names = [name for name in dict.fromkeys((*here, *there)) if there.get(name) != here.get(name)]
    return [f"setting {name}{_both(there.get(name), here.get(name))}" for name in names]


def _both(there: object, here: object) -> str:
    """Return both values of a setting as text if they are short."""
    shown = f" ({there!r} there, {here!r} here)"
    return shown if len(shown) <= 60 else ""
