"""States as plain arrays and JSON values, and back, without pickle; settings and generators, too.

A `Layout` says what the fields of a state may hold, so that a damaged checkpoint is rejected before anything computes
with it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from subswarm._types import AnyArray, FloatArray
from subswarm.errors import CheckpointError, DamagedCheckpointError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    D = TypeVar("D", bound=DataclassInstance)

__all__ = [
    "LARGEST",
    "Layout",
    "StatePart",
    "array_of",
    "check_state",
    "flatten",
    "generator_from",
    "generator_state",
    "real_number",
    "settings_of",
    "unflatten",
    "value_of",
    "whole_number",
]

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


T = TypeVar("T")
G = TypeVar("G", bound=np.generic)

_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_MT19937_WORDS, _PHILOX_WORDS = 624, 4


def flatten(state: DataclassInstance, prefix: str) -> tuple[dict[str, AnyArray], dict[str, object]]:
    """Return a dataclass's arrays under dotted names, and its other values by name (nested dataclasses as dicts)."""
    arrays: dict[str, AnyArray] = {}
    values: dict[str, object] = {}
    for field in dataclasses.fields(state):
        name, value = f"{prefix}.{field.name}", getattr(state, field.name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            inner, values[field.name] = flatten(value, name)
            arrays |= inner
        else:
            values[field.name] = _plain(value, name)
    return arrays, values


def unflatten(template: D, prefix: str, arrays: Mapping[str, AnyArray], values: Mapping[str, object]) -> D:
    """Return the dataclass that `flatten` took apart; ``template`` is any value of the same type."""
    found: dict[str, object] = {}
    for field in dataclasses.fields(template):
        name = f"{prefix}.{field.name}"
        inner, value = getattr(template, field.name), values.get(field.name)
        if name in arrays:
            found[field.name] = np.array(arrays[name])
        elif dataclasses.is_dataclass(inner) and not isinstance(inner, type) and isinstance(value, Mapping):
            found[field.name] = unflatten(inner, name, arrays, value)
        elif field.name in values:
            found[field.name] = _unlisted(value, name)
        else:
            raise DamagedCheckpointError(f"it has no {name}")
    try:
        return dataclasses.replace(template, **found)
    except (TypeError, ValueError) as error:  # raised by the state's own checks
        raise DamagedCheckpointError(f"{prefix} cannot be rebuilt: {error}") from error


def _unlisted(value: object, name: str) -> object:
    """Return a value of a state from its JSON form."""
    try:
        _plain(value, name)  # a value that cannot be saved was not saved by us
    except CheckpointError as error:
        raise DamagedCheckpointError(str(error)) from None
    return tuple(value) if isinstance(value, list) else value


def whole_number(values: Mapping[str, object], name: str, *, low: int, high: int = LARGEST) -> int:
    """Return the whole number of this name from a checkpoint."""
    value = _named(values, name)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise DamagedCheckpointError(f"its {name} is {value!r}, expected a whole number from {low} to {high}")
    return value


def real_number(values: Mapping[str, object], name: str, *, low: float = -sys.float_info.max) -> float:
    """Return the finite number of this name from a checkpoint."""
    value = _named(values, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= sys.float_info.max:
        raise DamagedCheckpointError(f"its {name} is {value!r}, expected a finite number of at least {low:g}")
    return float(value)


def value_of(values: Mapping[str, object], name: str, kind: type[T]) -> T:
    """Return the value of this name and type from a checkpoint."""
    value = _named(values, name)
    if not isinstance(value, kind):
        raise DamagedCheckpointError(f"its {name} is a {type(value).__name__} instead of a {kind.__name__}")
    return value


def array_of(arrays: Mapping[str, AnyArray], name: str, kind: type[G], shape: tuple[int | None, ...]) -> NDArray[G]:
    """Return a copy of the array of this name from a checkpoint; None in the expected shape is any length."""
    if name not in arrays:
        raise DamagedCheckpointError(f"it has no {name}")
    array = np.array(arrays[name])
    fits = array.ndim == len(shape) and all(
        expected is None or length == expected for length, expected in zip(array.shape, shape, strict=True)
    )
    if array.dtype != np.dtype(kind) or not fits:
        raise DamagedCheckpointError(f"its {name} has dtype {array.dtype} and shape {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise DamagedCheckpointError(f"its {name} has entries that are not finite")
    return cast("NDArray[G]", array)


def _named(values: Mapping[str, object], name: str) -> object:
    if name not in values:
        raise DamagedCheckpointError(f"it has no {name}")
    return values[name]


def settings_of(algorithm: DataclassInstance) -> dict[str, object]:
    """Return an algorithm's settings (the fields that can be passed to its class) as JSON values.

    Fields that `Algorithm.bind` computes from the data are marked as derived and left out.
    """
    return {
        field.name: _plain(getattr(algorithm, field.name), field.name)
        for field in dataclasses.fields(algorithm)
        if field.init and not field.metadata.get("derived")
    }


def generator_state(rng: Generator) -> object:
    """Return the generator's complete state as JSON values."""
    return _listed(rng.bit_generator.state)


def generator_from(state: Mapping[str, object]) -> Generator:
    """Return the generator that `generator_state` described."""
    name = state.get("bit_generator")
    if not isinstance(name, str) or name not in _BIT_GENERATORS:
        raise DamagedCheckpointError(f"its generator is {name!r}; the known ones are {', '.join(_BIT_GENERATORS)}")
    bits = getattr(np.random, name)()
    try:
        _check_positions(state)
        bits.state = _arrayed(state)
        is_the_same = _listed(bits.state) == state
    except Exception as error:  # NumPy checks little here, and in many ways
        raise DamagedCheckpointError(f"its generator cannot be restored: {error}") from error
    if not is_the_same:
        raise DamagedCheckpointError("its generator cannot be restored: the state has values of other types or sizes")
    return Generator(bits)


def _check_positions(state: Mapping[str, object]) -> None:
    """Reject positions outside a generator's buffer, because NumPy would read there."""
    inner = value_of(state, "state", dict)
    for place, end in ((inner.get("pos", 0), _MT19937_WORDS), (state.get("buffer_pos", 0), _PHILOX_WORDS)):
        if not isinstance(place, int) or not 0 <= place <= end:
            raise DamagedCheckpointError(f"its generator reads at {place} of {end}")


def _plain(value: object, name: str) -> object:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [_plain(item, name) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__, **settings_of(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise CheckpointError(
        f"{name} holds a {type(value).__name__}, which cannot be saved; states and settings are made of arrays, "
        "numbers, text, None, tuples and dataclasses of these."
    )


def _listed(value: object) -> object:
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "items": value.tolist()}
    return value


def _arrayed(value: object) -> object:
    if isinstance(value, Mapping):
        if set(value) == {"dtype", "items"}:
            return np.array(value["items"], dtype=value["dtype"])
        return {key: _arrayed(item) for key, item in value.items()}
    return value
