"""The values that cross between rooms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from subswarm.core.errors import SettingError

__all__ = [
    "FloatArray",
    "Front",
    "History",
    "IntArray",
    "Mask",
    "Masks",
    "Recording",
    "SearchResult",
    "Snapshot",
    "Subset",
]

Masks = NDArray[np.bool_]
"""Subsets as rows, shape (P, n): True where the feature is in."""
Mask = NDArray[np.bool_]
"""One subset, shape (n,)."""
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Subset:
    """A subset of features and its fitness (a loss: lower is better).

    Examples
    --------
    >>> import numpy as np
    >>> subset = Subset(np.array([True, False, True]), 0.25)
    >>> subset.cardinality, subset.features.tolist()
    (2, [0, 2])
    """

    mask: Mask
    fitness: float

    @property
    def cardinality(self) -> int:
        """ξ, the number of selected features."""
        return int(np.count_nonzero(self.mask))

    @property
    def features(self) -> IntArray:
        """The selected features' indices, ascending."""
        return np.flatnonzero(self.mask)


@dataclass(frozen=True, eq=False)
class Front:
    """The best subset of each cardinality that a search has seen, by ascending cardinality.

    Attributes
    ----------
    masks : bool array of shape (S, n)
    fitness : float array of shape (S,)
    """

    masks: Masks
    fitness: FloatArray

    @property
    def cardinality(self) -> IntArray:
        """The S cardinalities seen, ascending."""
        return np.asarray(self.masks.sum(axis=1, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.fitness)

    def subset_of_size(self, size: int) -> Subset:
        """The best subset seen with exactly ``size`` features; KeyError where none was seen."""
        found = np.flatnonzero(self.cardinality == size)
        if not len(found):
            raise KeyError(f"no subset of size {size} was seen; the sizes seen are {self.cardinality.tolist()}")
        row = int(found[0])
        return Subset(self.masks[row].copy(), float(self.fitness[row]))


@dataclass(frozen=True, eq=False)
class History:
    """What a search looked like after each step, one entry a step.

    Attributes
    ----------
    evaluations : evaluations so far: subsets asked, times the partitions each was scored on
    best_fitness, best_cardinality : of the best subset so far
    spread : mean distance between two masks of the step's batch, as a share of the features (0: all equal)
    seconds : time since the search began
    """

    evaluations: IntArray
    best_fitness: FloatArray
    best_cardinality: IntArray
    spread: FloatArray
    seconds: FloatArray

    def __len__(self) -> int:
        return len(self.evaluations)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a callback sees after each step; return True from the callback to stop the search.

    Attributes
    ----------
    best : the best subset so far
    evaluations : evaluations so far: subsets asked, times the partitions each was scored on
    progress : share of the budget spent, 0 to 1
    spread : mean distance between two masks of this step, as a share of the features
    seconds : time since the search began
    masks, fitness : this step's batch, shapes (P, n) and (P,)
    state : the algorithm's own state *before* it learnt from this batch (read only)
    """

    best: Subset
    evaluations: int
    progress: float
    spread: float
    seconds: float
    masks: Masks
    fitness: FloatArray
    state: Any


@dataclass(frozen=True, eq=False)
class Recording:
    """Everything a search visited; only searches run with ``record=True`` have one.

    A search that goes on from a checkpoint records what it visits from there.

    Attributes
    ----------
    evaluations : evaluations after each step, shape (steps,)
    cardinality, fitness : of each subset visited, in order, repeated ones included, shape (E,)
    chosen : how often each feature was in a visited subset, shape (n,)
    likelihood : probability of each cardinality 1..n on the swarm's wheels before each step, shape (steps, n); None for
        algorithms that hold no such likelihoods
    """

    evaluations: IntArray
    cardinality: IntArray
    fitness: FloatArray
    chosen: IntArray
    likelihood: FloatArray | None


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found and how it got there.

    Attributes
    ----------
    best : the best subset ever seen (or, where a search scores most subsets on part of the partitions only, the best
        of those it vouches for, and ``front`` likewise)
    fold_losses : its loss in each fold, or None where the objective has no folds
    n_partitions : partitions of the rows that the folds are, one after the other
    front : the best subset of each cardinality seen
    history : how the best, the spread and the clock went, step by step
    stop_reason : "evaluations", "seconds", "target", "patience", "finished", "callback" or "interrupted"
    evaluations : subsets asked, times the partitions each was scored on (one, unless the cross-validation is repeated);
        ``computed`` of them had not been seen before
    algorithm_seconds, evaluation_seconds : the paper's T1 and T2
    engine : name of the engine that scored the subsets
    algorithm : name of the algorithm; ``settings`` are the ones it ran with
    recording : everything visited, where the search was run with ``record=True``
    """

    best: Subset
    fold_losses: FloatArray | None
    front: Front
    history: History
    stop_reason: str
    evaluations: int
    computed: int
    algorithm_seconds: float
    evaluation_seconds: float
    engine: str
    algorithm: str
    settings: dict[str, Any] = field(default_factory=dict)
    recording: Recording | None = None
    n_partitions: int = 1
    drawer: ClassVar[type[Any] | None] = None  # registered by subswarm.plot: this room imports none above it

    @property
    def plot(self) -> Any:
        """Plots of this result, such as ``result.plot.trade_off()``; see `subswarm.plot.Plots`."""
        if self.drawer is None:
            raise SettingError("nothing has said how to draw a result; import subswarm.plot first.")
        return self.drawer(self)

    def _repr_html_(self) -> str:
        from subswarm.core.display import result_html

        return result_html(self)

    def __repr__(self) -> str:
        return (
            f"SearchResult({self.algorithm}: fitness {self.best.fitness:.6g} with {self.best.cardinality} of "
            f"{len(self.best.mask)} features, {self.evaluations} evaluations, stopped by {self.stop_reason})"
        )
