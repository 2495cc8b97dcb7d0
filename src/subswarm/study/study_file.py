"""Reads a study from a TOML file."""

from __future__ import annotations

import math
import reprlib
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from subswarm._checks import suggest
from subswarm.errors import SettingError
from subswarm.study.definition import Contender, Source, Study, name_key_in_errors

__all__ = ["read_study"]

_NOT_IN_NAMES = ("Cc", "Zl", "Zp")
"""Unicode categories that a name must not contain: control characters and line ends."""

_MOST_LEVELS = 20
"""Nested tables and lists; a study needs three."""

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 80

_LISTS = ("datasets", "models", "algorithms")
_OPTIONS = ("name", "runs", "evaluations", "protocol", "folds", "repeats", "outer", "outer_repeats", "seed")


def read_study(path: str | PathLike[str]) -> Study:
    """Read a study file.

    ::

        datasets = ["wine", "sonar", { name = "patients", table = "patients.csv", target = "outcome" }]
        models = ["nb", "knn"]
        algorithms = ["2d-upso", "bpso", { label = "slow refresh", algorithm = "2d-upso", refresh_gap = 10 }]
        runs = 10

    ``evaluations``, ``protocol``, ``folds``, ``repeats``, ``outer``, ``outer_repeats``, ``seed`` and ``name`` are
    optional (see `Study`). With ``repeats``, the table of an algorithm may contain ``race = true`` (see `Race`).
    Paths of tables are relative to the folder of the study file.
    """
    file = Path(path)
    content = _parse(file)
    try:
        return _make_study({"name": file.stem, **content}, file.parent)
    except SettingError as error:
        raise SettingError(f"the study file {file}: {error}") from error


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingError(f"the study file {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingError(
            f"the study file {file} cannot be read: it is not UTF-8 text (byte {error.start}); save it as UTF-8."
        ) from error
    except ValueError as error:  # includes tomllib's own error, numbers with too many digits, and NUL in the path
        if "\0" in str(file):
            raise SettingError(f"the path of the study file, {str(file)!r}, contains a NUL character.") from error
        raise SettingError(f"the study file {file} is not TOML: {error}.") from error
    except RecursionError as error:
        raise SettingError(f"the study file {file} is not TOML that can be read: it is nested too deeply.") from error


def _make_study(content: Mapping[str, Any], folder: Path) -> Study:
    _check_keys(content, [*_OPTIONS, *_LISTS], "a study")
    for key, value in content.items():
        _check_value(value, key)
    for kind in _LISTS:
        if kind not in content:
            raise SettingError(f"a study needs a list of {kind}; add {kind} = [...].")
        if not isinstance(content[kind], list):
            raise SettingError(f"a study needs a list of {kind}; got {_show(content[kind])}.")
    options = {name: content[name] for name in _OPTIONS if name in content}
    if "name" in options:
        _check_word(options["name"], "name")
    return Study(
        datasets=tuple(_make_source(entry, folder, place) for place, entry in _entries(content, "datasets")),
        models=tuple(_check_word(entry, place) for place, entry in _entries(content, "models")),
        algorithms=tuple(_make_contender(entry, place) for place, entry in _entries(content, "algorithms")),
        **options,
    )


def _entries(content: Mapping[str, Any], kind: str) -> Iterator[tuple[str, object]]:
    """Yield the entries of a list, each with its place as error messages name it."""
    return ((f"{kind}, entry {number}", entry) for number, entry in enumerate(content[kind], start=1))


def _make_source(entry: object, folder: Path, place: str) -> Source:
    if isinstance(entry, str):
        return Source(_check_word(entry, place))
    if not isinstance(entry, Mapping) or "name" not in entry:
        raise SettingError(f"{place}: expected a name, or a table with name, table and target; got {_show(entry)}.")
    _check_keys(entry, [field.name for field in fields(Source)], f"{place}: the data set {_show(entry['name'])}")
    for key in ("name", "table", "target"):
        if key in entry:
            _check_word(entry[key], f"{place}, {key}")
    drop, impute = entry.get("drop", []), entry.get("impute", False)
    if not isinstance(drop, list) or not all(isinstance(column, str) for column in drop):
        raise SettingError(f"{place}, drop: expected a list of column names; got {_show(drop)}.")
    if not isinstance(impute, bool):
        raise SettingError(f"{place}, impute: expected true or false; got {_show(impute)}.")
    table = str(folder / entry["table"]) if "table" in entry else None
    return Source(entry["name"], table, entry.get("target"), tuple(drop), impute)


def _make_contender(entry: object, place: str) -> Contender:
    if isinstance(entry, str):
        return Contender(_check_word(entry, place), entry)
    if not isinstance(entry, Mapping) or "algorithm" not in entry:
        raise SettingError(
            f"{place}: expected a name, or a table with algorithm = NAME and its settings; got {_show(entry)}."
        )
    name = _check_word(entry["algorithm"], f"{place}, algorithm")
    race = entry.get("race", False)
    if not isinstance(race, bool):
        raise SettingError(f"{place}: race of the algorithm {name!r}: expected true or false; got {_show(race)}.")
    settings = {key: _freeze(value) for key, value in entry.items() if key not in ("algorithm", "label", "race")}
    label = _check_word(entry.get("label", f"{name} (race)" if race else name), f"{place}, label")
    contender = Contender(label, name, settings, race)
    with name_key_in_errors(place):
        contender.make()
    return contender


def _freeze(value: object) -> object:
    """Return lists as tuples, as the settings of algorithms are."""
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def _check_word(entry: object, place: str) -> str:
    if not isinstance(entry, str):
        raise SettingError(f"{place}: expected a name in quotes; got {_show(entry)}.")
    if not entry.strip() or any(unicodedata.category(letter) in _NOT_IN_NAMES for letter in entry):
        raise SettingError(f"{place}: expected a name on one line without control characters; got {_show(entry)}.")
    return entry


def _show(value: object) -> str:
    """Return a value as error messages quote it."""
    return _repr.repr(value)


def _check_value(value: object, place: str, level: int = 1) -> None:
    """Raise SettingError for what TOML allows and no key of a study uses: huge numbers, NaN, dates, deep nesting."""
    if level > _MOST_LEVELS:
        raise SettingError(f"{place.split(',')[0]}: tables and lists are nested more than {_MOST_LEVELS} deep.")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_value(inner, f"{place}, {key if key.isprintable() else repr(key)}", level + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value, start=1):
            _check_value(inner, f"{place}, entry {number}", level + 1)
    elif isinstance(value, int):
        if value.bit_length() > 63:
            raise SettingError(f"{place}: the number has more than the 64 bits of an integer in TOML.")
    elif isinstance(value, float) and math.isnan(value):
        raise SettingError(f"{place}: expected a number; got nan.")
    elif not isinstance(value, str | float):
        raise SettingError(f"{place}: a study cannot use a date or a time; got {value}.")


def _check_keys(content: Mapping[str, object], known: list[str], what: str) -> None:
    for key in content:
        if key not in known:
            raise SettingError(
                f"{what} has no entry {_show(key)}.{suggest(key, known)} The entries are {', '.join(known)}."
            )
