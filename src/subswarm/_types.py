"""Array aliases, the protocols of scikit-learn objects, and the values that the packages exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subswarm._checks import check_int

__all__ = [
    "AnyArray",
    "BoolArray",
    "CostFront",
    "Estimator",
    "Float32Array",
    "FloatArray",
    "Front",
    "IntArray",
    "Limits",
    "Mask",
    "Masks",
    "Predictor",
    "Scorer",
    "Scorings",
    "Splits",
    "Splitter",
    "Subset",
    "WordArray",
    "non_dominated",
]

Masks = NDArray[np.bool_]
"""Subsets as rows, shape (P, n): True where a feature is selected."""
Mask = NDArray[np.bool_]
"""One subset, shape (n,)."""
FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
WordArray = NDArray[np.uint64]
"""64-bit words, such as the keys of subsets."""
AnyArray = NDArray[Any]
"""An array of any dtype, such as a target of text or numbers."""

Scorer = Callable[..., float]
"""A scikit-learn scorer: ``scorer(estimator, X, y)``, higher is better."""


Scorings = str | Scorer | Sequence[str] | Mapping[str, str | Scorer] | None
"""A scorer, or several: a list of names, or a dict of scorers by name. A search optimises the first."""


class Estimator(Protocol):
    """What this package uses of a scikit-learn estimator."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def set_params(self, **params: Any) -> Self: ...

    def fit(self, X: Any, y: Any = None) -> Self: ...


class Predictor(Estimator, Protocol):
    """A fitted estimator; it may lack some of these methods, which `available_if` then hides."""

    classes_: AnyArray

    def predict(self, X: ArrayLike) -> AnyArray: ...

    def predict_proba(self, X: ArrayLike) -> FloatArray: ...

    def decision_function(self, X: ArrayLike) -> FloatArray: ...


class Splitter(Protocol):
    """What this package uses of a scikit-learn splitter."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]: ...

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int: ...


Splits = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]]
"""What scikit-learn accepts as ``cv``: a number of folds, a splitter, or a list of (train rows, test rows)."""


@dataclass(frozen=True, eq=False)
class Subset:
    """A subset of features and its fitness, which is a loss: lower is better.

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
    """The best subset of each cardinality that a search saw, by ascending cardinality.

    Attributes
    ----------
    masks : bool array of shape (S, n)
        The subsets.
    fitness : float array of shape (S,)
        Their losses.
    cardinality : int array of shape (S,)
        Their numbers of features.
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
        """Return the best subset seen with exactly ``size`` features.

        Raises
        ------
        SettingError
            If ``size`` is not a whole number of at least 0.
        KeyError
            If the search saw no subset of that size. The message lists the sizes it saw.
        """
        check_int("size", size, low=0)
        found = np.flatnonzero(self.cardinality == size)
        if not len(found):
            raise KeyError(f"no subset of size {size} was seen; the sizes seen are {self.cardinality.tolist()}")
        row = int(found[0])
        return Subset(self.masks[row].copy(), float(self.fitness[row]))


@dataclass(frozen=True, eq=False)
class CostFront:
    """The subsets that no other one beats in both cost and loss; the cost may be a second loss.

    Attributes
    ----------
    masks : the subsets, by ascending cost, shape (S, n)
    costs, losses : their costs and losses, each of shape (S,)
    """

    masks: Masks
    costs: FloatArray
    losses: FloatArray

    @classmethod
    def empty(cls, n_features: int) -> CostFront:
        return cls(np.empty((0, n_features), dtype=bool), np.empty(0), np.empty(0))

    def with_more(self, masks: Masks, costs: FloatArray, losses: FloatArray) -> CostFront:
        """Return the front with the non-dominated of these subsets; of equally good ones, that with fewest features."""
        masks = np.concatenate([self.masks, masks])
        costs, losses = np.concatenate([self.costs, costs]), np.concatenate([self.losses, losses])
        order = np.lexsort((masks.sum(axis=1), losses, costs))
        kept = order[non_dominated(costs[order], losses[order])]
        return CostFront(masks[kept], costs[kept], losses[kept])

    def on_columns(self, owner: IntArray) -> CostFront:
        """Return the front with masks over columns; ``owner`` is the feature of each column, -1 for none."""
        return replace(self, masks=np.asarray(self.masks[:, owner] & (owner >= 0)))


def non_dominated(first: FloatArray, second: FloatArray) -> Mask:
    """Return which points of two objectives no other point dominates; of equal points only the first one.

    Examples
    --------
    >>> import numpy as np
    >>> non_dominated(np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.4, 0.3, 0.2, 0.2])).tolist()
    [True, False, True, False]
    """
    order = np.lexsort((second, first))
    ascending = second[order]
    lowest_before = np.concatenate([[np.inf], np.minimum.accumulate(ascending)[:-1]])
    keeps = np.zeros(len(first), dtype=bool)
    keeps[order] = ascending < lowest_before
    return keeps


@dataclass(frozen=True)
class Limits:
    """Which subsets a caller allows, and which ones the search starts from.

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

    Examples
    --------
    >>> Limits(max_features=3).given()
    {'max_features': 3}
    """

    min_features: int = 1
    max_features: int | None = None
    fixed_features: tuple[int, ...] = ()
    feature_sizes: tuple[int, ...] | None = None
    initial_subsets: tuple[tuple[int, ...], ...] = ()

    def given(self) -> dict[str, object]:
        """The limits that differ from their defaults, by name."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}
