"""The contract of an algorithm: shared settings, `Algorithm`, its `State` and the `Problem` it is bound to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import as_tuple, check_int
from subswarm._types import FloatArray, IntArray, Limits, Mask, Masks
from subswarm.algorithms.masks import SubsetRules
from subswarm.algorithms.state import StatePart
from subswarm.errors import SettingError

__all__ = ["Algorithm", "AnyAlgorithm", "Finalists", "Problem", "Ranking", "State"]


class Ranking(Protocol):
    """Computes the scores of all features, shape (n,), for the name of a ranking such as "mrmr"; higher is better."""

    def __call__(self, name: str, partition: int | None = None, /) -> FloatArray:
        """Return the scores on all rows, or on those of a repeat of a cross-fitted objective (n_partitions: all)."""
        ...


class Finalists(NamedTuple):
    """Subsets to select from, the best first.

    Attributes
    ----------
    masks : the subsets, shape (K, n)
    fitness : their losses, shape (K,)
    paired : their losses on the same C parts of the rows, shape (K, C), for paired comparisons; None if unknown. Their
        means may differ from ``fitness``, which may know more than these parts
    left_out : the losses on each of these parts of models whose search did not use its rows, shape (K, C); None if
        unknown
    islands : the corresponding subset of each of C islands, shape (K, C, n); None without islands
    noise_width : standard errors of a paired difference that count as noise; None for a number that grows with the
        rows of the table
    without : for each part, ``fitness`` as it is estimated without this part, shape (K, C); None for the mean of
        ``paired`` over the other parts
    """

    masks: Masks
    fitness: FloatArray
    paired: FloatArray | None = None
    left_out: FloatArray | None = None
    islands: Masks | None = None
    noise_width: float | None = None
    without: FloatArray | None = None

    def among(self, rows: Mask) -> Finalists:
        """Return only these subsets."""
        return Finalists(
            self.masks[rows],
            self.fitness[rows],
            None if self.paired is None else self.paired[rows],
            None if self.left_out is None else self.left_out[rows],
            None if self.islands is None else self.islands[rows],
            self.noise_width,
            None if self.without is None else self.without[rows],
        )


@dataclass(frozen=True)
class Problem:
    """What an algorithm is told before a search starts.

    Attributes
    ----------
    n_features : number of features the search selects from
    n_partitions : number of repeats of the cross-validation; 1 if it is not repeated
    n_left_out : number of blocks of rows that repeats leave out: ``n_partitions`` if the objective is cross-fitted,
        else 0
    n_rows : number of rows of the table; None if there is no table
    limits : limits set by the caller; they replace those of the algorithm
    ranking : computes feature rankings from the data; None if there is no data, as with a plain function
    """

    n_features: int
    n_partitions: int = 1
    n_left_out: int = 0
    n_rows: int | None = None
    limits: Limits = field(default_factory=Limits)
    ranking: Ranking | None = None


class State(StatePart):
    """Base class of an algorithm's states: frozen dataclasses of arrays, numbers and further dataclasses.

    Attributes
    ----------
    masks : the subsets to evaluate next, shape (P, n)
    partitions : the repeat of the cross-validation to score each mask on, shape (P,), for one evaluation each. None
        (the default) scores every mask on all repeats. If the objective is cross-fitted, ``n_partitions + c`` names the
        rows that repeat c leaves out.
    """

    masks: Masks
    partitions: IntArray | None = None

    @property
    def cardinality_likelihood(self) -> FloatArray | None:
        """Probability of each cardinality 1..n, shape (n,), for plots; None if the algorithm has none."""
        return None


S = TypeVar("S", bound=State)


@dataclass(frozen=True, kw_only=True)
class Algorithm(ABC, Generic[S]):
    """A search algorithm: a frozen dataclass of settings with pure methods.

    A subclass implements `begin` and `step`; everything else has a default. All randomness comes from the generator
    that is passed in, and a method never changes the state it is given.

    Parameters
    ----------
    min_features, max_features : int, int or None
        Fewest and most columns of a subset; ``max_features=None`` allows all of them.
    fixed_features : tuple of int
        Features that are in every subset.
    feature_sizes : tuple of int or None
        Number of columns behind each feature, where a group of columns is one feature of the search.
    initial_subsets : tuple of tuples of int
        Subsets, as feature indices, to start from.
    """

    source: ClassVar[str] = ""
    """Where the algorithm was published."""
    # Plain class attributes: a subclass may turn them into settings, and a wrapper takes them from its inner algorithm.
    parsimonious = False
    """Whether the smaller of two equally good subsets is the better one."""
    needs_monotone = False
    """Whether the loss must never fall when a feature is dropped."""
    uses_single_partitions: ClassVar[bool] = False
    """Whether its states may name single repeats of the cross-validation in ``partitions``."""
    takes_best_of_batch: ClassVar[bool] = False
    """Whether only the best of the masks asked for together affects the search, so that the others may be given up."""
    scores_folds: ClassVar[bool] = False
    """Whether each fold should be a repeat of its own, so that a mask can be given up after its first folds."""
    uses_importances: ClassVar[bool] = False
    """Whether it is told the importances of the features in the fitted models; see `on_importances`."""

    min_features: int = 1
    max_features: int | None = None
    fixed_features: tuple[int, ...] = ()
    feature_sizes: tuple[int, ...] | None = None
    initial_subsets: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if type(value) not in _PLAIN_TYPES:
                object.__setattr__(self, setting.name, _as_plain_number(value))
        check_int("min_features", self.min_features, low=1)
        check_int("max_features", self.max_features, low=1, optional=True)
        self._check_indices()
        if self.max_features is not None and self.max_features < self.min_features:
            raise SettingError(f"min_features={self.min_features} is more than max_features={self.max_features}.")

    def _check_indices(self) -> None:
        """Check the settings that are lists, and store them as tuples because the rules are cached by them."""
        fixed = () if self.fixed_features is None else _whole_numbers("fixed_features", self.fixed_features, low=0)
        sizes = None if self.feature_sizes is None else _whole_numbers("feature_sizes", self.feature_sizes, low=1)
        given = () if self.initial_subsets is None else self.initial_subsets
        subsets = as_tuple("initial_subsets", given, of="lists of feature indices")
        initial = tuple(_whole_numbers("each of initial_subsets", subset, low=0) for subset in subsets)
        for name, value in (("fixed_features", fixed), ("feature_sizes", sizes), ("initial_subsets", initial)):
            object.__setattr__(self, name, value)

    def bind(self, problem: Problem) -> Self:
        """Return the algorithm with everything filled in that depends on the problem.

        A search calls this once, before `begin`. The default applies the caller's limits and the number of repeats.
        Binding an algorithm to the same problem again changes nothing.
        """
        given = problem.limits.given()
        limited = replace(self, **given) if given else self  # type: ignore[arg-type]
        return limited.with_partitions(problem.n_partitions)

    def with_partitions(self, n_partitions: int) -> Self:
        """Return the algorithm for a cross-validation with this many repeats; the default ignores the number."""
        return self

    def with_costs(self, costs: tuple[float, ...]) -> Self:
        """Return the algorithm for features of these prices; the default ignores them."""
        return self

    @property
    def n_losses(self) -> int:
        """Losses of each mask that `step` is told: with more than one, ``fitness`` has shape (P, n_losses)."""
        return 1

    @abstractmethod
    def begin(self, n_features: int, rng: Generator) -> S:
        """Return the first state, whose masks are evaluated first."""

    @abstractmethod
    def step(self, state: S, fitness: FloatArray, progress: float, rng: Generator) -> S | None:
        """Return the next state, given the losses of ``state.masks``; None ends the search.

        A state without masks ends it too, but its `finalists` are still read. ``progress`` goes from 0 to 1 over the
        budget, for schedules.
        """

    def on_importances(self, state: S, importances: FloatArray) -> S:
        """Return the state with the importances of the features in the models of its masks, shape (P, n).

        This is called before `step` if ``uses_importances`` is true and the objective knows them: 0 for features that a
        mask leaves out, and a sum of 1 over the others (0 if the model has no importances). The default ignores them.
        """
        return state

    def rivals(self, state: S) -> Masks | None:
        """Return the subset that each of the state's masks must beat to affect the search, shape (P, n).

        `FoldwiseRace` gives up a mask that is behind. None (the default) means that every loss matters.
        """
        return None

    def finalists(self, state: S) -> Finalists | None:
        """Return the subsets to select from, with their losses, the best first; None for the best mask told.

        This is read only if the cross-validation is repeated, where the losses of masks scored on different repeats
        cannot be compared. A plain pair of masks and losses will do.
        """
        return None

    def on_truncated(self, state: S, fitness: FloatArray) -> S:
        """Return the last state after the budget ended inside a batch; ``fitness`` has the losses of the first masks.

        The default ignores them.
        """
        return state

    def rules(self, n_features: int) -> SubsetRules:
        """Return the rules that a legal subset of ``n_features`` features obeys under these settings."""
        return SubsetRules.of(
            n_features,
            min_features=self.min_features,
            max_features=self.max_features,
            fixed_features=self.fixed_features,
            feature_sizes=self.feature_sizes,
        )

    def passing_rules(self, n_features: int) -> SubsetRules:
        """Return the rules for subsets that may be evaluated on the way; the selected subset obeys `rules`.

        They are the same for most algorithms. A stepwise search that starts from no (or all) features also evaluates
        subsets that are too small (or too large) to be selected.
        """
        return self.rules(n_features)

    def first_masks(self, count: int, n_features: int, rng: Generator) -> Masks:
        """Return ``count`` legal subsets: the initial ones, then random ones (each bit with probability ½)."""
        rules = self.rules(n_features)
        masks = rules.random(count, rng)
        if self.initial_subsets:
            masks[: len(self.initial_subsets)] = rules.legalize(self.initial_masks(n_features, room=count), rng)
        return masks

    def initial_masks(self, n_features: int, room: int | None = None) -> Masks:
        """Return the initial subsets as masks, unchanged; raise SettingError if there are more than ``room``."""
        if room is not None and len(self.initial_subsets) > room:
            raise SettingError(
                f"initial_subsets gives {len(self.initial_subsets)} subsets, but the first batch holds {room}; "
                "give fewer, or enlarge the population."
            )
        given = np.zeros((len(self.initial_subsets), n_features), dtype=bool)
        for row, subset in enumerate(self.initial_subsets):
            if max(subset, default=0) >= n_features:
                raise SettingError(f"initial_subsets names feature {max(subset)}, but there are {n_features} features.")
            given[row, list(subset)] = True
        return given


AnyAlgorithm: TypeAlias = Algorithm[Any]
"""An algorithm with states of any class."""


_PLAIN_TYPES = (bool, float, str, tuple, type(None))
"""Types of settings that are stored unchanged."""


def _as_plain_number(value: object) -> object:
    """Return a number as bool, int or float, because arithmetic with other kinds gives arrays that no kernel takes."""
    if isinstance(value, np.bool_):
        return bool(value)
    if not isinstance(value, Real):
        return value
    if isinstance(value, Integral) and abs(int(value)) < 2**63:
        return int(value)
    try:
        return float(value)
    except OverflowError:
        return value


def _whole_numbers(name: str, values: object, *, low: int) -> tuple[int, ...]:
    listed = as_tuple(name, values, of="whole numbers")
    for value in listed:
        check_int(f"each entry of {name}", value, low=low)
    return listed
