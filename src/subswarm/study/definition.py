"""A study as a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from subswarm.core.errors import SettingError
from subswarm.study.plan import Contender, Source, Study

__all__ = ["read_study", "study_from"]

_OPTIONS = ("name", "runs", "evaluations", "protocol", "folds", "repeats", "outer", "outer_repeats", "seed")


def read_study(path: str | PathLike[str]) -> Study:
    """Read a study file.

    ::

        datasets = ["wine", "sonar", { name = "patients", table = "patients.csv", target = "outcome" }]
        models = ["nb", "knn"]
        algorithms = ["2d-upso", "bpso", { label = "slow refresh", algorithm = "2d-upso", refresh_gap = 10 }]
        runs = 10

    ``evaluations``, ``protocol``, ``folds``, ``repeats``, ``outer``, ``outer_repeats``, ``seed`` and ``name`` may be
    added (see `Study`). With ``repeats``, a table of an algorithm may say ``race = true``: see `Race`.
    Tables are looked for beside the study file.
    """
    file = Path(path)
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"the study file {file} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"the study file {file} is not TOML: {error}.") from error
    return study_from({"name": file.stem, **content}, folder=file.parent)


def study_from(content: Mapping[str, Any], folder: Path = Path()) -> Study:
    """The study that a mapping describes, as a study file would."""
    known = [*_OPTIONS, "datasets", "models", "algorithms"]
    _refuse_unknown(content, known, "a study")
    for kind in ("datasets", "models", "algorithms"):
        if not isinstance(content.get(kind), list):
            raise SettingError(f"a study needs a list of {kind}; got {content.get(kind)!r}.")
    options = {name: content[name] for name in _OPTIONS if name in content}
    return Study(
        datasets=tuple(_source(entry, folder) for entry in content["datasets"]),
        models=tuple(_word(entry, "models") for entry in content["models"]),
        algorithms=tuple(_contender(entry) for entry in content["algorithms"]),
        **options,
    )


def _source(entry: Any, folder: Path) -> Source:
    if isinstance(entry, str):
        return Source(entry)
    if not isinstance(entry, Mapping) or "name" not in entry:
        raise SettingError(f"a data set is a name or a table with name, table and target; got {entry!r}.")
    _refuse_unknown(entry, [field.name for field in fields(Source)], f"the data set {entry['name']!r}")
    values = dict(entry)
    if "table" in values:
        values["table"] = str(folder / values["table"])
    return Source(**values | {"drop": tuple(values.get("drop", ()))})


def _contender(entry: Any) -> Contender:
    if isinstance(entry, str):
        return Contender(entry, entry)
    if not isinstance(entry, Mapping) or "algorithm" not in entry:
        raise SettingError(f"an algorithm is a name or a table with algorithm = NAME and its settings; got {entry!r}.")
    name = _word(entry["algorithm"], "algorithms")
    race = entry.get("race", False)
    if not isinstance(race, bool):
        raise SettingError(f"race of the algorithm {name!r} is true or false; got {race!r}.")
    settings = {key: _setting(value) for key, value in entry.items() if key not in ("algorithm", "label", "race")}
    return Contender(_word(entry.get("label", f"{name} (race)" if race else name), "label"), name, settings, race)


def _setting(value: Any) -> Any:
    return tuple(_setting(item) for item in value) if isinstance(value, list) else value


def _word(entry: Any, kind: str) -> str:
    if not isinstance(entry, str):
        raise SettingError(f"{kind} wants names; got {entry!r}.")
    return entry


def _refuse_unknown(content: Mapping[str, Any], known: list[str], what: str) -> None:
    for key in content:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise SettingError(f"{what} has no entry {key!r}{hint}; there are {', '.join(known)}.")
