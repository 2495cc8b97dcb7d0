"""Partitions of a repeated cross-validation, as algorithms see them: how many there are, and which are asked for."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import numpy as np

from subswarm.core.errors import SettingError

__all__ = ["check_partitions", "informed"]

A = TypeVar("A")


def informed(algorithm: A, n_partitions: int) -> A:
    """The algorithm, told how many partitions there are, where it has a setting for that and nobody has set it."""
    if getattr(algorithm, "n_partitions", n_partitions) is None:
        return dataclasses.replace(algorithm, n_partitions=n_partitions)  # type: ignore[type-var]
    return algorithm


def check_partitions(state: Any, count: int, n_partitions: int, *, by: str) -> None:
    """Refuse a state whose ``partitions``, where it has them, do not name one for each of its ``count`` masks."""
    partitions = getattr(state, "partitions", None)
    if partitions is None:
        return
    found = np.asarray(partitions)
    wanted = f"{count} whole numbers from 0 to {n_partitions - 1}, one for each mask, are wanted"
    if found.dtype.kind not in "iu" or found.shape != (count,):
        raise SettingError(f"{by} proposed partitions of dtype {found.dtype} and shape {found.shape}; {wanted}.")
    if not 0 <= found.min() <= found.max() < n_partitions:
        raise SettingError(f"{by} proposed partitions from {found.min()} to {found.max()}; {wanted}.")
