"""Checks of settings: each raises an error that names the setting, what was expected and what came."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from importlib import import_module
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subswarm.errors import DataError, SettingError

__all__ = [
    "as_masks",
    "as_tuple",
    "check_bool",
    "check_choice",
    "check_int",
    "check_jobs",
    "check_real",
    "import_named",
    "shown",
    "suggest",
]

LARGEST = 2**63 - 1
"""The largest integer that NumPy can hold."""
LONGEST = 120
"""The most characters of a value that a message shows."""


def shown(value: object) -> str:
    """Return the repr of a value for a message, cut where it is long."""
    try:
        text = repr(value)
    except Exception:  # a very long int has no repr, and an object's own may fail
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def suggest(word: object, known: Iterable[object], *, most: int = 1) -> str:
    """Return " Did you mean ...?" with the known names closest to a misspelt one, or "" if none is close.

    Upper and lower case count as equal.

    Examples
    --------
    >>> suggest("2D-upsi", ["2d-upso", "2d-gpso", "random"])
    " Did you mean '2d-upso'?"
    >>> suggest("x", ["2d-upso"])
    ''
    """
    by_lower = {str(name).lower(): str(name) for name in known}
    close = difflib.get_close_matches(str(word).lower()[:LONGEST], by_lower, n=most)
    return f" Did you mean {' or '.join(repr(by_lower[name]) for name in close)}?" if close else ""


def import_named(path: str) -> object:
    """Return the object at an import path, such as "mypackage.mymodule:MyAlgorithm"; SettingError if it has none.

    Examples
    --------
    >>> import_named("math:tau")
    6.283185307179586
    """
    module_name, _, name = path.partition(":")
    try:
        return getattr(import_module(module_name), name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SettingError(
            f"{shown(path)} cannot be imported: {error}. Expected an import path, such as "
            "'mypackage.mymodule:MyClass', that Python finds from this folder."
        ) from error


def check_int(
    name: str, value: object, *, low: int | None = None, high: int | None = None, optional: bool = False
) -> None:
    """Raise SettingError unless the value is an integer in [low, high] (or None, if optional)."""
    if value is None and optional:
        return
    expected = f"a whole number{_range(low, high)}" + (" or None" if optional else "")
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise SettingError(f"{name} must be {expected}; got {shown(value)}.")
    _check_range(name, int(value), low, high, expected)
    _check_range(name, int(value), None, LARGEST, f"{expected}, below 2**63")


def check_bool(name: str, value: object) -> None:
    """Raise SettingError unless the value is True or False: text such as "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise SettingError(f"{name} must be True or False; got {shown(value)}.")


def check_jobs(name: str, value: object) -> None:
    """Raise SettingError unless the value is a number of workers that joblib accepts: None, or any integer but 0."""
    if value is None:
        return
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value == 0:
        raise SettingError(
            f"{name} must be a number of workers (-1 means one for every core) or None; got {shown(value)}."
        )
    _check_range(name, int(value), -LARGEST, LARGEST, "a number of workers or None")


def as_tuple(name: str, value: object, of: str) -> tuple[Any, ...]:
    """Return a list, tuple or array as a tuple; ``of`` names what it should hold, for the message."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise SettingError(f"{name} must be a list of {of}; got {shown(value)}.")
    try:
        return tuple(value)
    except TypeError:  # an array without dimensions is iterable only by its type
        raise SettingError(f"{name} must be a list of {of}; got {shown(value)}.") from None


def check_real(
    name: str,
    value: object,
    *,
    low: float | None = None,
    high: float | None = None,
    optional: bool = False,
    above: float | None = None,
) -> None:
    """Raise SettingError unless the value is a finite number in [low, high] and above ``above``."""
    if value is None and optional:
        return
    expected = f"a finite number{_range(low, high)}"
    if above is not None:
        expected += f" above {above:g}"
    if optional:
        expected += " or None"
    number = _as_finite(value)
    if number is None:
        raise SettingError(f"{name} must be {expected}; got {shown(value)}.")
    _check_range(name, number, low, high, expected)
    if above is not None and not number > above:
        raise SettingError(f"{name} must be {expected}; got {shown(value)}.")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise SettingError unless the value is one of the choices."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise SettingError(f"{name} must be one of {', '.join(map(repr, choices))}; got {shown(value)}.")


def as_masks(masks: ArrayLike, n_features: int) -> NDArray[np.bool_]:
    """Return the masks as a (P, n) bool array; a single mask of shape (n,) becomes (1, n)."""
    try:
        array = np.asarray(masks)
    except (TypeError, ValueError):  # lists of different lengths, or nested too deeply
        raise DataError(f"masks must be an array of shape (P, {n_features}); got {shown(masks)}.") from None
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


def _as_finite(value: object) -> float | None:
    """Return a real number as a float, or None if it is not one, is not finite or is too large."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {_number(low)} to {_number(high)}"
    if low is not None:
        return f" of at least {_number(low)}"
    if high is not None:
        return f" of at most {_number(high)}"
    return ""


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _check_range(name: str, value: float, low: float | None, high: float | None, expected: str) -> None:
    if (low is not None and value < low) or (high is not None and value > high):
        raise SettingError(f"{name} must be {expected}; got {shown(value)}.")
