"""What a search needs from an objective, and an adapter for plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

from subswarm._checks import check_int, shown
from subswarm._types import FloatArray, IntArray, Limits, Mask, Masks
from subswarm.algorithms.base import Ranking
from subswarm.errors import FitnessError, SettingError

__all__ = ["FunctionObjective", "ObjectiveLike", "SearchObjective", "as_objective"]


class ObjectiveLike(Protocol):
    """Any function from masks (P, n) to losses (P,); lower is better."""

    def __call__(self, masks: Masks, /) -> FloatArray: ...


@runtime_checkable
class SearchObjective(Protocol):
    """An objective that knows its features, its repeats and its data, such as `subswarm.Objective`.

    Attributes
    ----------
    n_features : number of features to select from
    n_partitions : number of repeats of the cross-validation
    n_left_out : number of blocks of rows that repeats leave out; 0 unless the objective is cross-fitted
    n_rows : number of rows of the table; None if there is no table
    limits : the limits that the caller sets for subsets
    ranking : computes the scores of a feature ranking by name; None if there is no data
    computed : distinct evaluations computed so far; None if they are not counted
    engine : name of what computes the losses
    at_once : number of subsets that are scored at the same time, by that many workers
    prices : price of each feature, shape (n,), for a front of loss and cost; None for no prices
    """

    @property
    def n_features(self) -> int: ...

    @property
    def n_partitions(self) -> int: ...

    @property
    def n_left_out(self) -> int: ...

    @property
    def n_rows(self) -> int | None: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def ranking(self) -> Ranking | None: ...

    @property
    def computed(self) -> int | None: ...

    @property
    def engine(self) -> str: ...

    @property
    def at_once(self) -> int: ...

    @property
    def prices(self) -> FloatArray | None: ...

    def __call__(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray:
        """Return the losses of the masks, each on the repeat that ``partitions`` names, or on all of them."""
        ...

    def losses_of(self, mask: Mask, /) -> FloatArray | None:
        """Return the loss of one subset in each fold; None if there are no folds."""
        ...

    def other_losses(self, masks: Masks, /) -> FloatArray:
        """Return the losses of the masks by further scorers, shape (P, number of these scorers), on all repeats."""
        ...

    def importances(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray | None:
        """Return the importances of the features in the models last fitted on these masks, shape (P, n).

        None if they are unknown. Losses must have been asked for first; nothing is fitted here.
        """
        ...

    def fingerprint_parts(self) -> dict[str, str]:
        """Return digests, by name, of everything the losses depend on; empty if that is unknown."""
        ...


class FunctionObjective:
    """A plain function of masks as a `SearchObjective`.

    A callable object may also provide any of ``n_features``, ``n_partitions``, ``computed``, ``engine``, ``losses_of``,
    ``fingerprint_parts`` and ``fingerprint``; with ``n_partitions`` above 1 it takes the repeats as second argument.
    """

    def __init__(self, function: Callable[..., FloatArray], n_features: int | None = None) -> None:
        found = n_features if n_features is not None else getattr(function, "n_features", None)
        if found is None:
            raise SettingError("the objective does not say how many features there are; pass n_features=...")
        check_int("n_features", found, low=1)
        self._function = function
        self.n_features = int(found)
        self.n_partitions: int = getattr(function, "n_partitions", 1)
        check_int("n_partitions", self.n_partitions, low=1)
        self.n_left_out = 0
        self.n_rows: int | None = None
        self.limits = Limits()
        self.ranking: Ranking | None = None
        self.engine = str(getattr(function, "engine", "function"))
        self.at_once = 1
        self.prices: FloatArray | None = None

    def __call__(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray:
        return self._function(masks) if partitions is None else self._function(masks, partitions)

    @property
    def computed(self) -> int | None:
        return getattr(self._function, "computed", None)

    def losses_of(self, mask: Mask, /) -> FloatArray | None:
        losses_of: Callable[[Mask], FloatArray] | None = getattr(self._function, "losses_of", None)
        return None if losses_of is None else losses_of(mask)

    def other_losses(self, masks: Masks, /) -> FloatArray:
        return np.empty((len(masks), 0))

    def importances(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray | None:
        return None

    def fingerprint_parts(self) -> dict[str, str]:
        parts: Callable[[], dict[str, str]] | None = getattr(self._function, "fingerprint_parts", None)
        if parts is not None:
            return dict(parts())
        fingerprint: Callable[[], str] | None = getattr(self._function, "fingerprint", None)
        return {} if fingerprint is None else {"objective": str(fingerprint())}


def as_objective(objective: object, n_features: int | None = None) -> SearchObjective:
    """Return the objective as a `SearchObjective`; ``n_features`` is needed only for a plain function."""
    if isinstance(objective, type) or not callable(objective):
        raise SettingError(
            f"objective must be a function from masks to losses, such as make_objective(...); got {shown(objective)}."
        )
    if not isinstance(objective, SearchObjective):
        return FunctionObjective(objective, n_features)
    if n_features is not None:
        check_int("n_features", n_features, low=1)
        if n_features != objective.n_features:
            raise SettingError(f"n_features is {n_features}, but the objective has {objective.n_features} features.")
    return objective


def losses_from(objective: SearchObjective, masks: Masks, partitions: IntArray | None) -> FloatArray:
    """Return the losses of a batch as an array of shape (P,); raise FitnessError if the objective returns no losses."""
    found: object = objective(masks) if partitions is None else objective(masks, partitions)
    try:
        losses = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise FitnessError(
            f"the objective must return one number for each mask; got {shown(found)} for {len(masks)} masks."
        ) from None
    if losses.shape != (len(masks),):
        raise FitnessError(
            f"the objective must return one number for each mask; got an array of shape {losses.shape} for "
            f"{len(masks)} masks."
        )
    return losses


def second_losses_from(objective: SearchObjective, masks: Masks) -> FloatArray:
    """Return the losses by the second scorer, shape (P,); raise SettingError unless there are two scorers."""
    losses = np.asarray(objective.other_losses(masks), dtype=np.float64)
    if losses.shape != (len(masks), 1):
        raise SettingError(
            'objectives="scores" minimises the losses by two scorers, and the objective has '
            f'{losses.shape[1] + 1}; set scoring to two of them, such as ["accuracy", "neg_log_loss"].'
        )
    return losses[:, 0]
