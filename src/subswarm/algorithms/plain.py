"""States, settings and generators as plain arrays and JSON values, and back. No pickle anywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from subswarm.core.errors import CheckpointError

__all__ = ["flatten", "generator_from", "generator_state", "settings_of", "unflatten"]

T = TypeVar("T")


def flatten(state: Any, prefix: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """A dataclass's arrays under dotted names, and its other values by name (nested dataclasses as nested dicts)."""
    arrays: dict[str, NDArray[Any]] = {}
    values: dict[str, Any] = {}
    for field in dataclasses.fields(state):
        name, value = f"{prefix}.{field.name}", getattr(state, field.name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif dataclasses.is_dataclass(value):
            inner, values[field.name] = flatten(value, name)
            arrays |= inner
        else:
            values[field.name] = _plain(value, name)
    return arrays, values


def unflatten(template: T, prefix: str, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> T:
    """The dataclass that `flatten` took apart; ``template`` is any value of the same type."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(template):  # type: ignore[arg-type]
        name = f"{prefix}.{field.name}"
        inner = getattr(template, field.name)
        if name in arrays:
            found[field.name] = np.array(arrays[name])
        elif dataclasses.is_dataclass(inner) and isinstance(values.get(field.name), Mapping):
            found[field.name] = unflatten(inner, name, arrays, values[field.name])
        elif field.name in values:
            value = values[field.name]
            found[field.name] = tuple(value) if isinstance(value, list) else value
        else:
            raise CheckpointError(f"the checkpoint has no {name}; it was written by another version or is damaged.")
    return dataclasses.replace(template, **found)  # type: ignore[type-var]


def settings_of(algorithm: Any) -> dict[str, Any]:
    """An algorithm's settings as JSON values."""
    if not dataclasses.is_dataclass(algorithm):
        return {}
    return {field.name: _plain(getattr(algorithm, field.name), field.name) for field in dataclasses.fields(algorithm)}


def generator_state(rng: Generator) -> dict[str, Any]:
    """The generator's whole state as JSON values."""
    state: dict[str, Any] = _listed(rng.bit_generator.state)
    return state


def generator_from(state: Mapping[str, Any]) -> Generator:
    """The generator that `generator_state` described."""
    kind = getattr(np.random, state["bit_generator"], None)
    if kind is None:
        raise CheckpointError(f"the checkpoint's generator {state['bit_generator']!r} is unknown to this NumPy.")
    bits = kind()
    bits.state = _arrayed(state)
    return Generator(bits)


def _plain(value: Any, name: str) -> Any:
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


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "items": value.tolist()}
    return value


def _arrayed(value: Any) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"dtype", "items"}:
            return np.array(value["items"], dtype=value["dtype"])
        return {key: _arrayed(item) for key, item in value.items()}
    return value
