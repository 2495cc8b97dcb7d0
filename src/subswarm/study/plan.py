"""The runs of a study. Each has a key, and a seed that depends only on what the key depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Group", "PlannedRun", "canonical_json", "key_and_seed"]

Group = tuple[str, str, int | None]
"""Data set, model, and outer fold (None: the search sees all rows). Runs of one group share data, folds and engine."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of the grid.

    Attributes
    ----------
    dataset, model, algorithm : names; ``algorithm`` is the label of the contender
    run : its number, from 0
    outer_fold : the outer fold that the search does not see, or None if it sees all rows
    key : 32 hexadecimal digits, a digest of everything that the result depends on
    seed : seed of the search, derived from the same digest
    """

    dataset: str
    model: str
    algorithm: str
    run: int
    outer_fold: int | None
    key: str
    seed: int

    @property
    def group(self) -> Group:
        """The group that the run belongs to."""
        return self.dataset, self.model, self.outer_fold

    def __str__(self) -> str:
        left_out = "" if self.outer_fold is None else f", outer fold {self.outer_fold + 1}"
        return f"{self.dataset}, {self.model}, {self.algorithm}, run {self.run + 1}{left_out}"


def key_and_seed(facts: Mapping[str, object]) -> tuple[str, int]:
    """Return the key and the seed of a run from everything that its result depends on."""
    digest = hashlib.sha256(canonical_json(facts).encode()).hexdigest()
    return digest[:32], int(digest[32:], 16)


def canonical_json(value: object) -> str:
    """Return a value as JSON text; equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=list)
