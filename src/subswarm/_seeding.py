"""The seeding rule: one seed fixes the folds, the search and every random estimator.

A selector and a run of a study follow the same rule. ``random_state`` becomes one integer seed (`seed_from`). The folds
are drawn from that seed, the search from ``default_rng(seed)``, and every unset ``random_state`` inside the estimator
is set to it (`set_random_states`). Further independent draws of the same kind, such as the second repeat of a
cross-validation, use `seed_of_repeat`. The global random state is never used.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Protocol, TypeVar

import numpy as np
from numpy.random import BitGenerator, Generator, SeedSequence

from subswarm._checks import check_int, shown
from subswarm.errors import SettingError

__all__ = ["RandomSource", "as_generator", "seed_from", "seed_of_repeat", "set_random_states"]

RandomSource = Generator | BitGenerator | SeedSequence | int | list[int] | tuple[int, ...] | None
"""A generator, or a seed for one."""


class _Tunable(Protocol):
    """An estimator with scikit-learn's parameter interface."""

    def get_params(self, deep: bool = True) -> Mapping[str, object]: ...

    def set_params(self, **params: object) -> object: ...


E = TypeVar("E", bound=_Tunable)


def seed_from(random_state: object) -> int:
    """Return a seed for anything that scikit-learn accepts as ``random_state``; None draws new entropy."""
    if random_state is None:
        return int(SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    check_int("random_state", random_state, low=0, high=2**32 - 1)
    return int(random_state)  # type: ignore[call-overload, no-any-return]


def seed_of_repeat(seed: int, repeat: int) -> int:
    """Return the seed of a repeat; the first one (0) uses the seed itself.

    Examples
    --------
    >>> seed_of_repeat(7, 0), seed_of_repeat(7, 1) != seed_of_repeat(7, 2)
    (7, True)
    """
    return int(SeedSequence([seed, repeat]).generate_state(1)[0]) if repeat else seed


def set_random_states(estimator: E, seed: int) -> E:
    """Set every ``random_state`` that is None inside the estimator, so that a subset always has the same score."""
    unset = [
        name
        for name, value in sorted(estimator.get_params(deep=True).items())
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
    if unset:
        estimator.set_params(**dict.fromkeys(unset, seed))
    return estimator


def as_generator(rng: object, name: str = "rng") -> Generator:
    """Return a generator for a generator or a seed; raise SettingError for anything else.

    The type is checked here because NumPy raises errors of many kinds, and crashes for a list that contains itself.
    """
    if isinstance(rng, np.random.RandomState):
        return Generator(rng._bit_generator)
    if rng is None or isinstance(rng, Generator | BitGenerator | SeedSequence) or _is_seed(rng):
        return np.random.default_rng(rng)  # type: ignore[arg-type]
    listed = rng.tolist() if isinstance(rng, np.ndarray) and rng.dtype.kind in "iu" else rng
    if isinstance(listed, list | tuple) and all(map(_is_seed, listed)):
        return np.random.default_rng(listed)
    raise SettingError(
        f"{name} must be a numpy.random.Generator, a seed (a whole number of at least 0) or None; got {shown(rng)}."
    )


def _is_seed(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 0
