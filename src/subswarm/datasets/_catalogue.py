"""The catalogue of the paper's sixteen data sets, read from `catalogue.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from subswarm._checks import check_choice, suggest
from subswarm.errors import SettingError

__all__ = ["PROTOCOLS", "Entry", "Reading", "SourceFile", "catalogue", "describe", "names"]

PROTOCOLS = ("sound", "published")


@dataclass(frozen=True)
class SourceFile:
    """One file of a data set.

    Attributes
    ----------
    name : the file's name
    size : its length in bytes
    sha256 : digest of its bytes
    text_sha256 : digest of its text with LF line ends; the same as ``sha256`` for a file that is not text
    archive : the zip file that contains it, if any
    """

    name: str
    size: int
    sha256: str
    text_sha256: str
    archive: str | None = None

    @property
    def is_text(self) -> bool:
        return not self.name.endswith(".xlsx")


@dataclass(frozen=True)
class Reading:
    """Which columns and rows a protocol uses.

    Attributes
    ----------
    label : the label's column, counted from 1
    features : first and last feature column, counted from 1
    rows : "all" (missing cells are imputed) or "complete" (rows with missing cells are dropped)
    shape : resulting numbers of rows and features
    n_classes : number of classes
    note : remark on the choice of columns and rows
    """

    label: int
    features: tuple[int, int]
    rows: str
    shape: tuple[int, int]
    n_classes: int
    note: str

    @property
    def columns(self) -> range:
        """The feature columns, counted from 1."""
        return range(self.features[0], self.features[1] + 1)


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue.

    Attributes
    ----------
    name, title, citation, doi, licence : name and source
    page : its page at UCI
    repository, folder : server and folder of its files
    files : its files, in reading order
    format : "comma", "blank" or "workbook"
    header : whether the first row has the names
    beside : whether several files are joined side by side (otherwise below each other)
    sheets : sheets of the workbook, joined side by side
    feature_names : names of the features, or empty if the header has them
    readings : a `Reading` for each protocol
    scikit_learn : name of scikit-learn's own copy, if it has one
    by_hand : why the files have to be downloaded by hand, if so
    """

    name: str
    title: str
    citation: str
    doi: str
    licence: str
    page: str
    repository: str
    folder: str
    files: tuple[SourceFile, ...]
    format: str
    header: bool
    beside: bool
    sheets: tuple[str, ...]
    feature_names: tuple[str, ...]
    readings: Mapping[str, Reading]
    scikit_learn: str | None
    by_hand: str | None

    def reading(self, protocol: str) -> Reading:
        """Return the reading of a protocol."""
        check_choice("protocol", protocol, PROTOCOLS)
        return self.readings[protocol]


def names() -> tuple[str, ...]:
    """Return the names of the sixteen data sets, by ascending number of features.

    Examples
    --------
    >>> from subswarm.datasets import names
    >>> names()[:3]
    ('wine', 'australian', 'zoo')
    """
    return tuple(catalogue())


def describe(name: str) -> Entry:
    """Return the catalogue's entry of a data set; SettingError for an unknown name.

    Examples
    --------
    >>> from subswarm.datasets import describe
    >>> describe("wine").reading("sound").shape
    (178, 13)
    """
    entries = catalogue()
    if name not in entries:
        raise SettingError(
            f"there is no data set {name!r}.{suggest(name, entries)} The names are {', '.join(entries)}."
        )
    return entries[name]


@cache
def catalogue() -> Mapping[str, Entry]:
    """Return all entries by name."""
    text = resources.files("subswarm.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    repository = tables.pop("repository")
    return {name: _entry(name, table, repository) for name, table in tables.items()}


def _entry(name: str, table: dict[str, Any], repository: dict[str, str]) -> Entry:
    return Entry(
        name=name,
        title=table["title"],
        citation=table["citation"],
        doi=table["doi"],
        licence=repository["licence"],
        page=f"{repository['page']}{table['page']}",
        repository=repository["url"],
        folder=table["folder"],
        files=tuple(_file(file) for file in table["files"]),
        format=table["format"],
        header=table.get("header", False),
        beside=table.get("beside", False),
        sheets=tuple(table.get("sheets", ())),
        feature_names=tuple(_expand_names(table.get("feature_names", []))),
        readings={
            "sound": _reading(table),
            "published": _reading(table | table.get("published", {})),
        },
        scikit_learn=table.get("shipped_by_scikit_learn"),
        by_hand=table.get("by_hand"),
    )


def _file(table: dict[str, Any]) -> SourceFile:
    return SourceFile(
        name=table["name"],
        size=table["bytes"],
        sha256=table["sha256"],
        text_sha256=table.get("text_sha256", table["sha256"]),
        archive=table.get("archive"),
    )


def _reading(table: dict[str, Any]) -> Reading:
    first, last = table["features"]
    rows, features = table["shape"]
    return Reading(
        label=table["label"],
        features=(first, last),
        rows=table["rows"],
        shape=(rows, features),
        n_classes=table["n_classes"],
        note=table.get("note", ""),
    )


def _expand_names(items: list[Any]) -> list[str]:
    """Return the names, with each ``{each, names}`` table expanded to one name for each item (or number)."""
    names: list[str] = []
    for item in items:
        if isinstance(item, str):
            names.append(item)
            continue
        each = item["each"]
        values = range(each[0], each[1] + 1) if isinstance(each[0], int) else each
        names += [name.format(value) for value in values for name in item["names"]]
    return names
