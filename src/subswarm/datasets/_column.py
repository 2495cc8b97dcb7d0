"""Columns of a table, and what text in them means: numbers, yes and no, dates."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from subswarm._types import AnyArray, BoolArray, FloatArray

__all__ = ["DATE_PARTS", "MISSING", "Column", "NumberFormat", "date_part", "is_number", "parse_text"]

MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None")
"""Texts that mean a missing value."""
_FLAGS = (("no", "yes"), ("n", "y"), ("false", "true"), ("off", "on"))
_DATE = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?")
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_SIGNS = "$€£¥"


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the source.

    Attributes
    ----------
    name : name of the column
    values : float array (NaN: missing), or object array of str (None: missing); dates are days since 1970
    unusable : description of the content if it is neither numbers nor text, such as "lists or records"
    is_flag : whether the values are True and False
    is_date : whether the values are dates or times
    """

    name: str
    values: AnyArray
    unusable: str | None = None
    is_flag: bool = False
    is_date: bool = False

    @property
    def is_text(self) -> bool:
        return self.values.dtype == object

    @property
    def missing(self) -> BoolArray:
        if self.is_text:
            return np.array([value is None for value in self.values], dtype=bool)
        return np.asarray(np.isnan(self.values))

    def at(self, rows: AnyArray) -> Column:
        """Return the column with these rows only."""
        return replace(self, values=self.values[rows])


@dataclass(frozen=True)
class NumberFormat:
    """How numbers are written: with decimal points, or with decimal commas."""

    decimal_comma: bool = False

    def pattern(self) -> re.Pattern[str]:
        """Return the pattern of a number that may have a currency sign, separators of thousands and a percent sign."""
        decimal, thousands = (",", r"[.\s'’]") if self.decimal_comma else (r"\.", r"[,\s'’]")
        whole = rf"(?:\d{{1,3}}(?P<gap>{thousands})\d{{3}}(?:(?P=gap)\d{{3}})*|\d+)"
        number = rf"(?P<number>(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?\d+)?)"
        return re.compile(rf"(?P<minus>[-+−]?)\s*[{_SIGNS}]?\s*(?P<inner>[-+−]?){number}\s*(?:%|[{_SIGNS}])?")

    def parse(self, text: str, pattern: re.Pattern[str]) -> float | None:
        """Return the number that a text means; None if it means none."""
        found = pattern.fullmatch(text.strip())
        if found is None or (found["minus"] and found["inner"]):
            return None
        digits = re.sub(r"[\s'’.]" if self.decimal_comma else r"[\s'’,]", "", found["number"]).replace(",", ".")
        return float(digits) * (-1 if (found["minus"] or found["inner"]) in ("-", "−") else 1)


def parse_text(column: Column, form: NumberFormat) -> tuple[Column, str | None]:
    """Return a text column as numbers, flags or dates if all its cells are such, and how it was read.

    Examples
    --------
    >>> prices = Column("price", np.array(["$1,200.50", None, "$80"], dtype=object))
    >>> read, how = parse_text(prices, NumberFormat())
    >>> read.values.tolist(), how
    ([1200.5, nan, 80.0], 'currency signs and thousands separators')
    """
    if not column.is_text:
        return column, None
    cells = list(dict.fromkeys(value for value in column.values if value is not None))
    if not cells:
        return column, None
    for reader in (_as_flags, _as_dates, _as_numbers):
        found = reader(cells, form)
        if found is not None:
            meaning, how = found
            values = np.array([np.nan if value is None else meaning[value] for value in column.values])
            is_flag, is_date = reader is _as_flags, reader is _as_dates
            return replace(column, values=values, is_flag=is_flag, is_date=is_date), how
    return column, None


def is_number(text: str, form: NumberFormat = NumberFormat()) -> bool:
    """Return whether a text means a number."""
    return form.parse(text, form.pattern()) is not None


_Meaning = tuple[dict[str, float], str]


def _as_flags(cells: Sequence[str], form: NumberFormat) -> _Meaning | None:
    if len(cells) > 6:
        return None
    lower = {cell.strip().lower() for cell in cells}
    for no, yes in _FLAGS:
        if lower == {no, yes}:
            return {cell: float(cell.strip().lower() == yes) for cell in cells}, f"{yes}/{no} as 1/0"
    return None


def _as_numbers(cells: Sequence[str], form: NumberFormat) -> _Meaning | None:
    pattern, found = form.pattern(), {}
    percents = 0
    for cell in cells:
        value = form.parse(cell, pattern)
        if value is None:
            return None
        found[cell] = value
        percents += cell.rstrip().endswith("%")
    if 0 < percents < len(cells):  # 5 and 5% are not on the same scale
        return None
    remarks = {
        "currency signs": any(sign in cell for cell in cells for sign in _SIGNS),
        "percent signs": bool(percents),
        "decimal commas": form.decimal_comma and any("," in cell for cell in cells),
        "thousands separators": any(
            (match := pattern.fullmatch(cell.strip())) is not None and match["gap"] is not None for cell in cells
        ),
    }
    return found, " and ".join(remark for remark, holds in remarks.items() if holds) or "blanks around numbers"


def _as_dates(cells: Sequence[str], form: NumberFormat) -> _Meaning | None:
    """Return the days since 1970 of dates such as 2024/1/31, 31.1.2024 and 1/31/2024, with or without a time."""
    matches = []
    for cell in cells:
        match = _DATE.fullmatch(cell.strip())
        if match is None or (len(match[1]) < 3) == (len(match[4]) < 3):
            return None
        matches.append(match)
    year_first = len(matches[0][1]) > 2
    if any((len(match[1]) > 2) != year_first for match in matches):
        return None
    sign = matches[0][2]
    day_first = sign != "/" or any(int(match[1]) > 12 for match in matches)
    if any(int(match[3]) > 12 for match in matches):
        day_first = False
    order = (
        ("year", "month", "day") if year_first else ("day", "month", "year") if day_first else ("month", "day", "year")
    )
    found = {}
    for cell, match in zip(cells, matches, strict=True):
        parts = dict(zip(order, (int(match[1]), int(match[3]), int(match[4])), strict=True))
        try:
            day = datetime.date(**parts).toordinal() - _EPOCH
        except ValueError:
            return None
        hours, minutes, seconds = (int(part or 0) for part in match.group(5, 6, 7))
        if hours > 23 or minutes > 59 or seconds > 59:
            return None
        found[cell] = day + (hours * 3600 + minutes * 60 + seconds) / 86400
    return found, f"dates as {sign.join(order)}"


def date_part(days: FloatArray, part: str, latest: float) -> FloatArray:
    """Return a part of dates given as days since 1970; "age" is the number of days before ``latest``.

    Examples
    --------
    >>> date_part(np.array([19723.5]), "year", 19723.5), date_part(np.array([19723.5]), "weekday", 0.0)
    (array([2024.]), array([0.]))
    """
    return DATE_PARTS[part](days, latest)


def _months(days: FloatArray) -> AnyArray:
    return np.asarray(_datetimes(days).astype("datetime64[M]"))


def _datetimes(days: FloatArray) -> AnyArray:
    known = np.where(np.isnan(days), 0.0, days)
    return np.asarray(np.floor(known).astype(np.int64).astype("datetime64[D]"))


def _with_missing(days: FloatArray, values: AnyArray) -> FloatArray:
    return np.where(np.isnan(days), np.nan, values.astype(np.float64))


DATE_PARTS: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "year": lambda days, _: _with_missing(days, _months(days).astype("datetime64[Y]").astype(np.int64) + 1970),
    "month": lambda days, _: _with_missing(days, _months(days).astype(np.int64) % 12 + 1),
    "day": lambda days, _: _with_missing(
        days, (_datetimes(days) - _months(days).astype("datetime64[D]")).astype(np.int64) + 1
    ),
    "weekday": lambda days, _: np.asarray((np.floor(days) + 3) % 7),
    "age": lambda days, latest: np.asarray(latest - days),
}
"""What a column of dates becomes: each part from days since 1970 and the latest day of the table."""
