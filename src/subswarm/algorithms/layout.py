"""What the fields of a state may hold, so that a damaged checkpoint is rejected before anything computes with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from subswarm._types import AnyArray, FloatArray
from subswarm.errors import DamagedCheckpointError

__all__ = ["LARGEST", "Layout", "StatePart", "check_state"]

LARGEST = 2**53
"""Largest whole number in a state or checkpoint: far more than any search counts, and exact as a float too."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """How the later states of a search may differ from its first one.

    Arrays keep their dtype and shape, and numbers stay finite if they are finite in the first state, except as stated
    here.

    Attributes
    ----------
    varying : fields whose first axis changes from step to step, each with a name for that axis; fields with the same
        axis name have the same length
    optional : arrays that may be None
    ranges : lowest value of fields of whole numbers, and their exclusive upper bound: None for no bound, "n_features",
        or the name of a field whose first axis they index
    free : fields that are not checked
    """

    varying: Mapping[str, str] = dataclasses.field(default_factory=dict)
    optional: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[int, str | None]] = dataclasses.field(default_factory=dict)
    free: tuple[str, ...] = ()


class StatePart:
    """Base class of states and of the dataclasses inside them.

    A part without a ``layout`` is checked less strictly: only dtypes, and shapes except for the first axis.
    """

    layout: ClassVar[Layout | None] = None
    if TYPE_CHECKING:  # every subclass is a dataclass
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[object]]]

    def is_consistent(self) -> bool:
        """Return whether the fields fit together; checked only where there is a ``layout``."""
        return True


def check_state(state: object, first: object, n_features: int, *, name: str = "state", stepping: bool = True) -> None:
    """Raise DamagedCheckpointError if a restored state cannot have developed from the ``first`` one.

    If no further step follows (``stepping`` is False), the fields need not fit together.
    """
    layout = first.layout if isinstance(first, StatePart) else None
    values, begun_values = _fields_of(state), _fields_of(first)
    lengths: dict[str, int] = {}
    for field, begun in begun_values.items():
        path, value = f"{name}.{field}", values[field]
        if _is_dataclass(begun):
            if type(value) is not type(begun):
                raise DamagedCheckpointError(f"{path} is not a {type(begun).__name__}")
            check_state(value, begun, n_features, name=path, stepping=stepping)
        elif layout is None:
            _check_roughly(value, begun, path)
        elif field not in layout.free and not (value is None and field in layout.optional):
            axis = layout.varying.get(field)
            _check_like(value, begun, path, varying=axis is not None)
            if axis is not None and isinstance(value, np.ndarray):
                length = lengths.setdefault(axis, len(value))
                if length != len(value):
                    raise DamagedCheckpointError(f"{path} has {len(value)} entries, and others like it {length}")
    for field, (low, below) in ({} if layout is None else layout.ranges).items():
        limit = LARGEST if below is None else n_features if below == "n_features" else len(np.asarray(values[below]))
        _check_range(values[field], low, limit, f"{name}.{field}")
    if stepping and layout is not None and isinstance(state, StatePart) and not state.is_consistent():
        raise DamagedCheckpointError(f"the fields of {name} do not fit together")


def _fields_of(part: object) -> dict[str, object]:
    """Return the fields of a dataclass by name."""
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}  # type: ignore[arg-type]


def _is_dataclass(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _check_roughly(value: object, begun: object, path: str) -> None:
    """Compare what an array of a class without a layout always keeps."""
    if isinstance(begun, np.ndarray) and isinstance(value, np.ndarray):
        if value.dtype.kind != begun.dtype.kind or value.shape[1:] != begun.shape[1:] or value.ndim != begun.ndim:
            raise _unlike(value, begun, path)
    elif isinstance(begun, np.ndarray) and value is not None:
        raise DamagedCheckpointError(f"{path} is not an array")


def _check_like(value: object, begun: object, path: str, *, varying: bool) -> None:
    begun = begun.item() if isinstance(begun, np.generic) else begun
    if isinstance(begun, np.ndarray):
        _check_array(value, begun, path, varying=varying)
    elif isinstance(begun, bool) or not isinstance(begun, int | float):
        if type(value) is not type(begun):
            raise DamagedCheckpointError(f"{path} is {value!r}, and {begun!r} at first")
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise DamagedCheckpointError(f"{path} is {value!r} and not a number")
    elif isinstance(value, int):
        if abs(value) > LARGEST:
            raise DamagedCheckpointError(f"{path} is out of range")
    elif not _is_as_finite(np.array(value), np.array(begun, dtype=np.float64)):
        raise DamagedCheckpointError(f"{path} is {value}")


def _check_array(value: object, begun: AnyArray, path: str, *, varying: bool) -> None:
    if not isinstance(value, np.ndarray):
        raise DamagedCheckpointError(f"{path} is not an array")
    expected = (len(value), *begun.shape[1:]) if varying and value.ndim else begun.shape
    if value.shape != expected or not _is_same_dtype(value.dtype, begun.dtype):
        raise _unlike(value, begun, path)
    if begun.dtype.kind == "f" and not _is_as_finite(value, begun.astype(np.float64)):
        raise DamagedCheckpointError(f"{path} has entries that are not finite")


def _is_same_dtype(dtype: np.dtype[np.generic], begun: np.dtype[np.generic]) -> bool:
    """Return whether the dtypes are equal; 32-bit and 64-bit integers are, because platforms differ in the default."""
    whole = (np.dtype(np.int32), np.dtype(np.int64))
    return dtype == begun or (dtype in whole and begun in whole)


def _is_as_finite(value: FloatArray, begun: FloatArray) -> bool:
    """Return whether all numbers are finite, or no number is NaN if the first state had infinite ones."""
    if np.isfinite(begun).all():
        return bool(np.isfinite(value).all())
    return not np.isnan(value).any()


def _check_range(value: object, low: int, limit: int, path: str) -> None:
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iu":
        raise DamagedCheckpointError(f"{path} is not a whole number")
    if numbers.size and not low <= int(numbers.min()) <= int(numbers.max()) < limit:
        raise DamagedCheckpointError(f"{path} is not between {low} and {limit - 1}")


def _unlike(value: AnyArray, begun: AnyArray, path: str) -> DamagedCheckpointError:
    return DamagedCheckpointError(
        f"{path} has dtype {value.dtype} and shape {value.shape}, and {begun.dtype} and {begun.shape} at first"
    )
