"""Everything a search visited, for those who ask: a callback that collects it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from subswarm.core.types import FloatArray, IntArray, Recording, Snapshot

__all__ = ["Recorder"]


@dataclass(frozen=True)
class _Step:
    evaluations: int
    cardinality: IntArray
    fitness: FloatArray
    chosen: IntArray
    likelihood: FloatArray | None


class Recorder:
    """A callback that notes every subset visited, how often each feature was in, and what the swarm held likely.

    Parameters
    ----------
    feature_sizes : columns behind each feature, where a group of columns is one feature of the search

    Examples
    --------
    >>> from subswarm import Budget, search
    >>> result = search("2d-upso", lambda masks: masks.mean(axis=1), Budget(evaluations=60), rng=0, n_features=6,
    ...                 record=True)
    >>> result.recording.fitness.shape, result.recording.likelihood.shape
    ((60,), (2, 6))
    """

    def __init__(self, feature_sizes: Sequence[int] | None = None) -> None:
        self._sizes = None if feature_sizes is None else np.asarray(feature_sizes, dtype=np.intp)
        self._steps: list[_Step] = []

    def __call__(self, snapshot: Snapshot) -> None:
        masks = snapshot.masks
        likelihood = getattr(snapshot.state, "cardinality_likelihood", None)
        self._steps.append(
            _Step(
                evaluations=snapshot.evaluations,
                cardinality=masks.sum(axis=1, dtype=np.intp) if self._sizes is None else masks @ self._sizes,
                fitness=snapshot.fitness,
                chosen=masks.sum(axis=0, dtype=np.intp),
                likelihood=None if likelihood is None else np.asarray(likelihood, dtype=np.float64),
            )
        )

    def recording(self) -> Recording | None:
        """What was noted; None where nothing was."""
        if not self._steps:
            return None
        rows = [step.likelihood for step in self._steps if step.likelihood is not None]
        return Recording(
            evaluations=np.array([step.evaluations for step in self._steps], dtype=np.intp),
            cardinality=np.concatenate([step.cardinality for step in self._steps]),
            fitness=np.concatenate([step.fitness for step in self._steps]),
            chosen=np.sum([step.chosen for step in self._steps], axis=0, dtype=np.intp),
            likelihood=np.array(rows) if len(rows) == len(self._steps) else None,
        )
