"""Tables from named columns: features as numbers, and a target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypedDict

import numpy as np

from subswarm._checks import as_tuple, check_bool, check_int, shown, suggest
from subswarm._types import AnyArray, BoolArray, FloatArray, Mask
from subswarm.datasets._column import DATE_PARTS, Column, NumberFormat, date_part, is_number
from subswarm.datasets._impute import impute_nearest
from subswarm.errors import DataError, MissingExtraError, SettingError, TableError

__all__ = [
    "Block",
    "Problems",
    "Table",
    "TableKeywords",
    "TableOptions",
    "as_frame",
    "listed",
    "make_table",
    "with_positive_class",
]

_MOST_CLASSES = 20
_MOST_ODD = 3
_FEWEST_IDS = 20
_USUAL_TARGETS = ("target", "class", "label", "outcome", "y")


class TableKeywords(TypedDict, total=False):
    """The keyword arguments that make a table of columns, as in `load_table`."""

    drop: Collection[str]
    impute: bool
    one_hot: bool
    max_categories: int
    dates: bool
    skip_unlabelled: bool
    positive: object
    id: Collection[str]
    groups: str | None
    time: str | None
    weights: str | None
    categories: bool
    keep_missing: bool


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a table is made of its columns; the fields are the arguments of `load_table` of the same names."""

    drop: Collection[str] = ()
    impute: bool = False
    one_hot: bool = False
    max_categories: int = 100
    dates: bool = False
    skip_unlabelled: bool = False
    positive: object = None
    id: Collection[str] = ()
    groups: str | None = None
    time: str | None = None
    weights: str | None = None
    categories: bool = False
    keep_missing: bool = False

    def __post_init__(self) -> None:
        for name in ("impute", "one_hot", "dates", "skip_unlabelled", "categories", "keep_missing"):
            check_bool(name, getattr(self, name))
        check_int("max_categories", self.max_categories, low=1)
        for name in ("drop", "id"):
            as_tuple(name, getattr(self, name), of="column names")
        if self.groups is not None and self.time is not None:
            raise SettingError(
                "groups and time exclude each other: folds keep either groups together or time in order."
            )

    def roles(self) -> list[tuple[str, str]]:
        """Return the columns that are not features, each with its role."""
        single = [(name, role) for role in ("groups", "time", "weights") if (name := getattr(self, role)) is not None]
        return [*((name, "dropped") for name in self.drop), *((name, "id") for name in self.id), *single]


@dataclass(eq=False)
class Problems:
    """Problems of a table, collected so that one error lists them all with what solves them.

    Attributes
    ----------
    name : name of the source
    found : one sentence for each problem
    remedies : arguments that solve the problems so far
    solvable : whether arguments can solve all of them
    form : how numbers are written in the source
    """

    name: str
    found: list[str] = field(default_factory=list)
    remedies: dict[str, object] = field(default_factory=dict)
    solvable: bool = True
    form: NumberFormat = field(default_factory=NumberFormat)

    def add(self, sentence: str, **remedies: object) -> None:
        """Add a problem. Without remedies, no argument solves it."""
        self.found.append(sentence)
        self.solvable = self.solvable and bool(remedies)
        for name, value in remedies.items():
            before = self.remedies.setdefault(name, value)
            if before is not value and isinstance(before, list) and isinstance(value, list):
                self.remedies[name] = [*before, *value]

    def check(self) -> None:
        """Raise TableError if there are problems."""
        if self.found:
            raise TableError(self.name, self.found, self.remedies if self.solvable else {})


@dataclass(frozen=True, eq=False)
class Table:
    """A table of numbers and its target.

    Attributes
    ----------
    name : name of the source
    X : float array of shape (N, n), without missing values unless they are kept; the position of a category among the
        categories of its column
    y : array of shape (N,): text, booleans, integers or floats, as in the source
    feature_names : n names; the columns of an encoded text column are named ``column=value``, those of dates
        ``column.year`` and so on
    feature_groups : lists of columns that are selected together (those of one encoded text column)
    target_name : name of the target
    task : "classification" or "regression", decided from the target
    imputed : number of imputed cells
    notes : remarks on how the source was read
    groups : label of each row's group, or None
    in_time_order : whether the rows are sorted by a column of times
    weights : weight of each row, or None
    """

    name: str
    X: FloatArray
    y: AnyArray
    feature_names: tuple[str, ...]
    feature_groups: list[list[int]]
    target_name: str
    task: str
    imputed: int
    notes: tuple[str, ...] = ()
    groups: AnyArray | None = None
    in_time_order: bool = False
    weights: FloatArray | None = None
    _source: _Source | None = field(default=None, repr=False)

    @property
    def features(self) -> Any:
        """What to pass to ``fit``: ``X``, or a pandas frame if columns are kept as categories."""
        blocks = () if self._source is None else self._source.blocks
        if not any(block.kind == "category" for block in blocks):
            return self.X
        return as_frame(self.feature_names, blocks, self.X)

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"Table({self.name}: {rows} rows, {features} features, {self.task} of {self.target_name!r})"


@dataclass(frozen=True, eq=False)
class _Source:
    """The columns behind a table, for writing the selected ones and for preparing new rows.

    Attributes
    ----------
    columns : all columns of the source that are not dropped, in their order
    blocks : how each column that holds features becomes numbers, in the order of the features
    """

    columns: Sequence[Column]
    blocks: Sequence[Block]

    def selected(self, support: Mask) -> list[Block]:
        """Return the blocks of the selected features, each with only those."""
        stops = np.cumsum([len(block.labels) for block in self.blocks])[:-1]
        parts = zip(self.blocks, np.split(np.asarray(support), stops), strict=True)
        return [block.keep(part) for block, part in parts if part.any()]


@dataclass(frozen=True, eq=False)
class Block:
    """How a column becomes one or more columns of numbers.

    Attributes
    ----------
    name : name of the column
    kind : "number", "flag", "text", "category" or "date"
    labels : names of the columns of numbers
    values : the category, or the part of a date, behind each of them; empty for a number. The categories of a column
        of the kind "category", which stays one column
    latest : the latest day of a column of dates
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    values: tuple[str, ...] = ()
    latest: float = 0.0

    def keep(self, chosen: BoolArray) -> Block:
        """Return the block with some of its columns only."""
        if not self.values or self.kind == "category":
            return self
        places = np.flatnonzero(chosen).tolist()
        labels, values = (tuple(names[place] for place in places) for names in (self.labels, self.values))
        return replace(self, labels=labels, values=values)

    def numbers(self, column: Column) -> FloatArray:
        """Return a column as numbers of shape (N, k). A missing text is missing in all its columns."""
        if self.kind == "category":
            code_of: dict[object, float] = {category: float(code) for code, category in enumerate(self.values)}
            return np.array([code_of.get(value, np.nan) for value in column.values], dtype=np.float64)[:, None]
        if self.kind == "text":
            block = np.array([[float(value == category) for category in self.values] for value in column.values])
            block = block.reshape(len(column.values), len(self.values))
            block[column.missing] = np.nan
            return block
        if self.kind == "date":
            return np.column_stack([date_part(column.values, part, self.latest) for part in self.values])
        return column.values.astype(np.float64)[:, None]


def make_table(
    name: str, columns: Sequence[Column], target: str | None, options: TableOptions, problems: Problems | None = None
) -> Table:
    """Make a table from its columns; a TableError lists all columns that cannot be used and says what to do.

    Parameters
    ----------
    name : str
        Name of the source, for messages.
    columns : sequence of Column
        All columns, including the target.
    target : str or None
        Name of the target column.
    options : TableOptions
        How the columns are used.
    problems : Problems, optional
        Problems found while the source was read.
    """
    problems = problems or Problems(name)
    columns, notes = _number_duplicates(columns)
    by_name = {column.name: column for column in columns}
    target = _find_target(by_name, target, problems)
    taken = _find_roles(by_name, target, options, problems)
    if target is None:
        problems.check()
        raise DataError(f"{name} has no column.")
    features = [column for column in columns if column.name != target and column.name not in taken]
    if not features:
        problems.add(f"{name} has no column besides the target {target!r}; at least one feature is needed.")
    chosen = by_name[target]
    if not len(chosen.values):
        problems.add(f"{name} has column names but no rows; at least 2 rows are needed.")
    problems.solvable = problems.solvable and bool(features) and bool(len(chosen.values))
    if features and len(chosen.values):
        labelled = _check_target(chosen, options, problems)
        _check_features([column.at(labelled) for column in features], options, problems)
        _check_role_values(by_name, labelled, options, problems)
    problems.check()
    rows = _rows(labelled, by_name, options)
    if len(rows) < len(labelled):
        notes.append(f"{len(labelled) - len(rows)} rows without a value of {target!r} are left out.")
    if options.time is not None:
        notes.append(f"the rows are sorted by {options.time!r}.")
    dropped = set(options.drop) - {options.groups, options.weights}  # a column with a role is no feature anyway
    columns = [column.at(rows) for column in columns if column.name not in dropped]
    by_name = {column.name: column for column in columns}
    y, task = _target(by_name[target], options.positive)
    return _assemble(name, by_name, [by_name[column.name] for column in features], target, y, task, options, notes)


def with_positive_class(table: Table, positive: object) -> Table:
    """Return a table whose target is 1 for the positive class and 0 for all others."""
    problems = Problems(table.name)
    column = Column(table.target_name, table.y.astype(object) if table.y.dtype.kind in "US" else table.y)
    _check_positive(column, positive, problems)
    problems.check()
    y, task = _target(column, positive)
    return replace(table, y=y, task=task, notes=(*table.notes, _positive_note(y, table.target_name, positive)))


def _positive_note(y: AnyArray, target: str, positive: object) -> str:
    return f"{int(y.sum())} of {len(y)} rows have {positive!r} as {target!r}, the positive class."


def _assemble(
    name: str,
    by_name: Mapping[str, Column],
    features: Sequence[Column],
    target: str,
    y: AnyArray,
    task: str,
    options: TableOptions,
    notes: Sequence[str],
) -> Table:
    blocks = [_block(column, keep=options.categories and not options.one_hot) for column in features]
    labels, renamed = _number([label for block in blocks for label in block.labels])
    notes = [*notes, *renamed]
    X = np.column_stack([block.numbers(column) for block, column in zip(blocks, features, strict=True)])
    groups, weights = (None if role is None else by_name[role].values for role in (options.groups, options.weights))
    keeps_missing = options.keep_missing and not options.impute
    if options.positive is not None:
        notes.append(_positive_note(y, target, options.positive))
    return Table(
        name=name,
        X=X if keeps_missing else _impute(name, X),
        y=y,
        feature_names=tuple(labels),
        feature_groups=_groups(blocks),
        target_name=target,
        task=task,
        imputed=0 if keeps_missing else sum(int(column.missing.sum()) for column in features),
        notes=tuple(notes),
        groups=None if groups is None else _as_labels(groups),
        in_time_order=options.time is not None,
        weights=weights,
        _source=_Source(list(by_name.values()), blocks),
    )


def _impute(name: str, X: FloatArray) -> FloatArray:
    try:
        return impute_nearest(X)
    except DataError as error:
        raise DataError(f"in {name}, {error}") from error


def _number_duplicates(columns: Sequence[Column]) -> tuple[list[Column], list[str]]:
    names, notes = _number([column.name for column in columns])
    return [replace(column, name=name) for name, column in zip(names, columns, strict=True)], notes


def _number(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names with a number after each one that occurred before, and a note on it."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if not twice:
        return list(names), []
    taken, found = set(names), []
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        numbered, number = name, seen[name]
        while number > 1 and numbered in taken:
            numbered = f"{name} ({number})"
            number += 1
        taken.add(numbered)
        found.append(numbered)
    return found, [
        f"{listed(twice)} {'occurs' if len(twice) == 1 else 'occur'} more than once; the others are "
        f"numbered, such as {twice[0] + ' (2)'!r}."
    ]


def _find_target(by_name: Mapping[str, Column], target: str | None, problems: Problems) -> str | None:
    """Return the target, or the most likely one if there is no such column, which is a problem."""
    if target is not None and target in by_name:
        return target
    names = list(by_name)
    if target is None:
        likely = next((name for usual in _USUAL_TARGETS for name in names if name.lower() == usual), None)
        guess = likely or (names[-1] if names else None)
        shown_names = f"{', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}"
        sentence = (
            f"{problems.name!r} needs a target: name the column to predict (target=..., --target), one of "
            f"{shown_names}."
        )
    else:
        close = suggest(target, names)
        guess = next((name for name in names if f"'{name}'" in close or f'"{name}"' in close), None)
        hint = suggest(target, names, most=3) or f" It has {listed(names, most=10)}."
        sentence = f"{problems.name} has no column {target!r} (the target one).{hint}"
    if guess is None:
        problems.add(sentence)
        return names[-1] if names else None
    problems.add(sentence, target=guess)
    return guess


def _find_roles(
    by_name: Mapping[str, Column], target: str | None, options: TableOptions, problems: Problems
) -> set[str]:
    """Return the names of the columns that are no features."""
    for name, role in options.roles():
        if name not in by_name:
            hint = suggest(name, by_name, most=3) or f" It has {listed(list(by_name), most=10)}."
            problems.add(f"{problems.name} has no column {shown(name)} (the {role} one).{hint}")
        elif name == target:
            problems.add(f"{target!r} is both the target and {role}; choose one.")
    return {name for name, _ in options.roles()}


def _check_target(column: Column, options: TableOptions, problems: Problems) -> BoolArray:
    """Return which rows have a target, and add what is wrong with it to the problems."""
    name, every = problems.name, np.ones(len(column.values), dtype=bool)
    if column.unusable or column.is_date:
        holds = column.unusable or "dates or times"
        problems.add(f"the target {column.name!r} of {name} holds {holds}; expected text or numbers.")
        return every
    missing = column.missing
    count = int(missing.sum())
    if count and not options.skip_unlabelled:
        rows = np.flatnonzero(missing)
        listed_rows = ", ".join(str(row + 1) for row in rows[:5]) + (", ..." if count > 5 else "")
        problems.add(
            f"the target {column.name!r} of {name} lacks {count} of {len(column.values)} values (in row "
            f"{listed_rows}, counted from 1); leave those rows out (skip_unlabelled=True, --skip-unlabelled), since "
            "targets are not imputed.",
            skip_unlabelled=True,
        )
    if not column.is_text and np.isinf(column.values).any():
        problems.add(
            f"the target {column.name!r} of {name} has infinite values, or numbers too large for a "
            "float; replace or drop those rows."
        )
    if options.positive is not None:
        _check_positive(column, options.positive, problems)
    return every if missing.all() else ~missing


def _check_positive(column: Column, positive: object, problems: Problems) -> None:
    """Add to the problems that the target does not have the positive class."""
    known = _classes_in(column)
    if str(positive) not in known:
        hint = suggest(positive, known) or f" It has {', '.join(map(repr, known[:10]))}."
        problems.add(
            f"the target {column.name!r} of {problems.name} has no class {positive!r} (the positive one).{hint}"
        )


def _classes_in(column: Column) -> list[str]:
    return sorted({_as_label(value) for value in column.values[~column.missing].tolist()})


def _as_label(value: object) -> str:
    """Return a value as the text that names its class: whole numbers without a decimal point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _target(column: Column, positive: object) -> tuple[AnyArray, str]:
    """Return the values of the target, and the task decided from them."""
    if positive is not None:
        labels = [_as_label(value) for value in column.values.tolist()]
        return np.array([int(label == str(positive)) for label in labels], dtype=np.int64), "classification"
    if column.is_text:
        return column.values.astype(str), "classification"
    if column.is_flag:
        return column.values.astype(bool), "classification"
    if (column.values == np.round(column.values)).all() and np.abs(column.values).max() < 2**53:
        few = len(np.unique(column.values)) <= min(_MOST_CLASSES, len(column.values) // 2)
        return column.values.astype(np.int64), "classification" if few else "regression"
    return column.values, "regression"


def _check_features(features: Sequence[Column], options: TableOptions, problems: Problems) -> None:
    """Add every column that is not numbers and is not to be converted to numbers to the problems."""
    name, left, n_declared = problems.name, list(features), 0

    def report(is_bad: Callable[[Column], bool], what: str, remedy: str, **remedies: object) -> list[Column]:
        """Report these columns; they are dropped where the remedy is to drop them."""
        bad = [column for column in left if is_bad(column)]
        if bad:
            names = [column.name for column in bad]
            for way in ("drop", "id"):
                if remedies.get(way) == []:
                    remedies[way] = names
                    left[:] = [column for column in left if column.name not in names]
            problems.add(f"{name} has {what} in {listed(names)}. {remedy}", **remedies)
        return bad

    for kind in dict.fromkeys(column.unusable for column in features if column.unusable):
        report(
            partial(_holds, kind),
            kind,
            "Features must be numbers: drop these columns (drop=..., --drop), or convert them first.",
            drop=[],
        )
    report(
        lambda column: bool(column.missing.all()), "no value at all", "Drop such columns (drop=..., --drop).", drop=[]
    )
    report(
        lambda column: not column.is_text and bool(np.isinf(column.values).any()),
        "infinite values, or numbers too large for a float,",
        "Replace them, or drop these columns (drop=..., --drop).",
        drop=[],
    )
    if not options.dates:
        report(
            lambda column: column.is_date,
            "dates or times",
            "Features must be numbers: use their year, month, day, weekday and age (dates=True, --dates), or drop them "
            "(drop=..., --drop).",
            dates=True,
        )
    odd = (
        {}
        if options.one_hot
        else {column.name: cells for column in left if (cells := _odd_cells(column, problems.form))}
    )
    ways = "encode these columns (one_hot=True, --one-hot), or drop them (drop=..., --drop)."
    for column_name, cells in odd.items():
        texts = list(dict.fromkeys(cell[:40] for _, cell in cells))
        reason = f"{column_name!r} is text because of {texts[0]!r} in row {cells[0][0] + 1}. Features must be numbers: "
        is_it = partial(_is_called, column_name)
        if len(texts) > _MOST_ODD:
            report(is_it, "text", f"{reason}{ways}", drop=[])
        else:
            declare = f"declare {', '.join(map(repr, texts))} missing (missing=..., --missing), "
            report(is_it, "text", f"{reason}{declare}{ways}", missing=texts, impute=True)
            left[:] = [column for column in left if column.name != column_name]
            n_declared += 1
    if not options.one_hot:
        report(
            _identifies_rows,
            "a different text in every row",
            "Features must be numbers: say that it identifies rows (id=..., --id), or drop it (drop=..., --drop).",
            id=[],
        )
    report(
        lambda column: column.is_text and len(_categories(column)) > options.max_categories,
        f"more than {options.max_categories} different texts",
        "Drop these columns (drop=..., --drop), or raise max_categories (--max-categories).",
        drop=[],
    )
    if not (options.one_hot or options.categories):
        report(
            lambda column: column.is_text,
            "text",
            f"Features must be numbers: {ways}",
            one_hot=True,
        )
    if not (options.impute or options.keep_missing):
        report(
            lambda column: bool(column.missing.any()),
            f"{sum(int(column.missing.sum()) for column in left)} missing cells",
            "Fill them from the nearest row (impute=True, --impute), or drop the rows or columns.",
            impute=True,
        )
    if not left and not n_declared:
        problems.solvable = False


def _holds(kind: str, column: Column) -> bool:
    return column.unusable == kind


def _identifies_rows(column: Column) -> bool:
    return (
        column.is_text
        and len(column.values) >= _FEWEST_IDS == len(set(column.values[:_FEWEST_IDS]))
        and len(set(column.values)) == len(column.values)
    )


def _is_called(name: str, column: Column) -> bool:
    return column.name == name


def _odd_cells(column: Column, form: NumberFormat) -> list[tuple[int, str]]:
    """Return the row and the text of the cells that make a column text although most of its cells are numbers."""
    if not column.is_text:
        return []
    means_number = {value: value is None or is_number(value, form) for value in set(column.values)}
    odd = [(row, value) for row, value in enumerate(column.values) if not means_number[value]]
    return odd if len(odd) <= int((~column.missing).sum()) // 2 else []


def _check_role_values(
    by_name: Mapping[str, Column], labelled: BoolArray, options: TableOptions, problems: Problems
) -> None:
    """Add what is wrong with the columns of groups, times and weights to the problems."""
    roles = {role: by_name.get(name) for name, role in options.roles() if role in ("groups", "time", "weights")}
    for role, found in roles.items():
        if found is None:
            continue
        column = found.at(labelled)
        if column.unusable:
            problems.add(f"{problems.name} has {column.unusable} in column {column.name!r}, which {role} cannot use.")
        elif column.missing.any():
            problems.add(
                f"column {column.name!r} of {problems.name} lacks {int(column.missing.sum())} values; as "
                f"{role} it must be complete."
            )
        elif role != "groups" and column.is_text:
            expected = "dates or numbers" if role == "time" else "numbers"
            problems.add(f"column {column.name!r} of {problems.name} holds text; {role} must be {expected}.")
        elif role == "weights" and not (np.isfinite(column.values).all() and (column.values >= 0).all()):
            problems.add(
                f"column {column.name!r} of {problems.name} has negative or infinite values; weights must be "
                "at least 0."
            )
        elif role == "weights" and not column.values.any():
            problems.add(
                f"column {column.name!r} of {problems.name} is zero in every row; some weight must be above 0."
            )


def _rows(labelled: BoolArray, by_name: Mapping[str, Column], options: TableOptions) -> AnyArray:
    """Return the rows to use, in their order."""
    rows = np.flatnonzero(labelled)
    if options.time is None:
        return rows
    return np.asarray(rows[np.argsort(by_name[options.time].values[rows], kind="stable")])


def _as_labels(values: AnyArray) -> AnyArray:
    return np.unique(values.astype(str) if values.dtype == object else values, return_inverse=True)[1].reshape(-1)


def as_frame(labels: Sequence[str], blocks: Sequence[Block], numbers: FloatArray) -> Any:
    """Return columns of numbers as a pandas frame, in which those of kept categories are categories again."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError(
            "columns of categories need pandas; install it with `pip install pandas`, or encode them (one_hot=True, "
            "--one-hot)."
        ) from error
    frame = pd.DataFrame(numbers, columns=list(labels))
    kept = [block for block in blocks for _ in block.labels]
    for place, block in enumerate(kept):
        if block.kind == "category":
            codes = np.where(np.isnan(numbers[:, place]), -1.0, numbers[:, place]).astype(np.intp)
            frame[labels[place]] = pd.Categorical.from_codes(codes, categories=list(block.values))
    return frame


def _block(column: Column, *, keep: bool) -> Block:
    """Return how a column becomes numbers; text stays one column of categories if ``keep``."""
    if column.is_date:
        latest = float(np.nanmax(column.values))
        varying = [part for part in DATE_PARTS if np.ptp(_known(date_part(column.values, part, latest)))] or ["age"]
        return Block(column.name, "date", tuple(f"{column.name}.{part}" for part in varying), tuple(varying), latest)
    if not column.is_text:
        return Block(column.name, "flag" if column.is_flag else "number", (column.name,))
    categories = _categories(column)
    if keep:
        return Block(column.name, "category", (column.name,), tuple(categories))
    kept = categories[1:] if len(categories) == 2 else categories
    return Block(column.name, "text", tuple(f"{column.name}={category}" for category in kept), tuple(kept))


def _known(values: FloatArray) -> FloatArray:
    return values[~np.isnan(values)]


def _categories(column: Column) -> list[str]:
    return sorted({value for value in column.values if value is not None})


def _groups(blocks: Sequence[Block]) -> list[list[int]]:
    """Return the column indices of each encoded text column wider than one."""
    ends = np.cumsum([len(block.labels) for block in blocks]).tolist()
    wide = [(block, end) for block, end in zip(blocks, ends, strict=True) if block.kind == "text"]
    return [list(range(end - len(block.labels), end)) for block, end in wide if len(block.labels) > 1]


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Return column names for a message: all of them, or only the first few."""
    most = len(names) if most is None else most
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names[:most]))}{more}"
