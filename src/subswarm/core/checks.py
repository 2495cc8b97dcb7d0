"""Settings are checked when they are built, with sentences a person can act on."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from subswarm.core.errors import DataError, SettingError
from subswarm.core.types import Masks

__all__ = ["as_masks", "check_choice", "check_int", "check_real"]


def check_int(
    name: str, value: Any, *, low: int | None = None, high: int | None = None, optional: bool = False
) -> None:
    """Refuse a value that is not a whole number in [low, high] (or None, where optional)."""
    if value is None and optional:
        return
    wanted = f"a whole number{_range(low, high)}" + (" or None" if optional else "")
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise SettingError(f"{name} must be {wanted}; got {value!r}.")
    _check_range(name, int(value), low, high, wanted)


def check_real(
    name: str,
    value: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    optional: bool = False,
    above: float | None = None,
) -> None:
    """Refuse a value that is not a finite number in [low, high] (and above ``above``)."""
    if value is None and optional:
        return
    wanted = f"a finite number{_range(low, high)}"
    if above is not None:
        wanted += f" above {above:g}"
    if optional:
        wanted += " or None"
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise SettingError(f"{name} must be {wanted}; got {value!r}.")
    _check_range(name, float(value), low, high, wanted)
    if above is not None and not float(value) > above:
        raise SettingError(f"{name} must be {wanted}; got {value!r}.")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the named choices."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise SettingError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def as_masks(masks: ArrayLike, n_features: int) -> Masks:
    """The masks as a (P, n) bool array; one mask may be given alone."""
    array = np.asarray(masks)
    if array.dtype != np.bool_:
        if array.dtype.kind not in "iuf" or not np.isin(array, (0, 1)).all():
            raise DataError(
                f"masks must be True/False (or 0/1) for each feature; got an array of dtype {array.dtype}. "
                "Turn indices into a mask first."
            )
        array = array.astype(bool)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != n_features:
        raise DataError(f"masks must have shape (P, {n_features}); got {np.shape(masks)}.")
    return array


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    if low is not None:
        return f" of at least {low:g}"
    if high is not None:
        return f" of at most {high:g}"
    return ""


def _check_range(name: str, value: float, low: float | None, high: float | None, wanted: str) -> None:
    if (low is not None and value < low) or (high is not None and value > high):
        raise SettingError(f"{name} must be {wanted}; got {value!r}.")
