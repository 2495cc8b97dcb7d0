"""A small search that races: newcomers are scored on one partition, the few that look best on the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subswarm.algorithms import SubsetSettings


@dataclass(frozen=True)
class Field:
    masks: np.ndarray
    partitions: np.ndarray
    known: np.ndarray  # masks scored on every partition, (K, n)
    estimates: np.ndarray  # their mean loss, (K,)
    first: np.ndarray  # losses on partition 0 of the ones being scored on the others


@dataclass(frozen=True, kw_only=True)
class Racing(SubsetSettings):
    n_partitions: int | None = None
    newcomers: int = 6

    def begin(self, n_features, rng):
        return self._newcomers(np.zeros((0, n_features), bool), np.zeros(0), rng)

    def step(self, state, fitness, progress, rng):
        if not len(state.first):
            if self.n_partitions == 1:
                return self._newcomers(*self._learnt(state, state.masks, fitness), rng)
            promising = np.argsort(fitness, kind="stable")[:2]
            others = self.n_partitions - 1
            return Field(
                masks=np.repeat(state.masks[promising], others, axis=0),
                partitions=np.tile(np.arange(1, self.n_partitions), len(promising)),
                known=state.known,
                estimates=state.estimates,
                first=fitness[promising],
            )
        losses = np.column_stack([state.first, fitness.reshape(len(state.first), -1)])
        masks = state.masks[:: self.n_partitions - 1]
        return self._newcomers(*self._learnt(state, masks, losses.mean(axis=1)), rng)

    def answers(self, state):
        order = np.argsort(state.estimates, kind="stable")
        return state.known[order], state.estimates[order]

    def _learnt(self, state, masks, fitness):
        return np.concatenate([state.known, masks]), np.concatenate([state.estimates, fitness])

    def _newcomers(self, known, estimates, rng):
        masks = self.first_masks(self.newcomers, known.shape[1], rng)
        return Field(masks, np.zeros(len(masks), int), known, estimates, np.zeros(0))
