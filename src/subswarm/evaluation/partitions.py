"""One engine for each partition of the rows, made when that partition is first scored."""

from __future__ import annotations

import warnings
from typing import Any

from subswarm.core.errors import SubswarmWarning
from subswarm.evaluation.engine import Engine, engine_for
from subswarm.evaluation.folds import FoldedData

__all__ = ["Engines"]


class Engines:
    """The engines of all partitions; the first is made at once, so that what cannot work is refused at once.

    Parameters
    ----------
    estimator, data : what is scored, and on which folds
    engine, device, n_jobs, max_bytes : as for `engine_for`; the partitions share ``max_bytes``
    """

    def __init__(
        self, estimator: Any, data: FoldedData, *, engine: str, device: str, n_jobs: int | None, max_bytes: int
    ) -> None:
        self._estimator = estimator
        self._data = data
        self._choice: dict[str, Any] = {
            "engine": engine,
            "device": device,
            "n_jobs": n_jobs,
            "max_bytes": max(1, max_bytes // data.n_partitions),
        }
        self._made: dict[int, Engine] = {0: engine_for(estimator, data.partition(0), **self._choice)}

    def __getitem__(self, partition: int) -> Engine:
        if partition not in self._made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SubswarmWarning)  # the first engine has said it
                self._made[partition] = engine_for(self._estimator, self._data.partition(partition), **self._choice)
        return self._made[partition]
