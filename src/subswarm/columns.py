"""An objective over columns, seen as one over the features of a search."""

from __future__ import annotations

from subswarm.core.space import Space
from subswarm.core.types import FloatArray, IntArray, Mask, Masks
from subswarm.evaluation.objective import Objective

__all__ = ["ColumnsView"]


class ColumnsView:
    """An objective seen through a space: masks over features in, fitness out."""

    def __init__(self, objective: Objective, space: Space) -> None:
        self._objective = objective
        self._space = space
        self.n_features = space.n_features
        self.n_partitions = objective.n_partitions

    def __call__(self, masks: Masks, partitions: IntArray | None = None) -> FloatArray:
        return self._objective(self._space.columns(masks), partitions)

    def losses_of(self, mask: Mask) -> FloatArray:
        return self._objective.losses_of(self._space.columns(mask))

    def fingerprint(self) -> str:
        return f"{self._objective.fingerprint()} {self._space.owner.tolist()}"

    @property
    def computed(self) -> int:
        return self._objective.computed

    @property
    def engine(self) -> str:
        return self._objective.engine
