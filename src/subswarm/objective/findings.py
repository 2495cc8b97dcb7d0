"""What to know about a selection: findings, and facts on each selected column.

A finding is something that makes the score less meaningful than it looks, with a number and what to do. The facts are
the score without the column, and its distribution by class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from subswarm._types import AnyArray, FloatArray, IntArray, Mask
from subswarm.objective.objective import Objective

__all__ = ["ColumnFacts", "Finding", "describe_columns", "find_in_scores", "find_in_table"]

_MOST_ROWS = 4000
"""The most rows that the search for suspicious columns looks at."""
_LEAST_ROWS = 500
_MOST_CELLS = 4_000_000
_CELLS_AT_ONCE = 200_000
_FEWEST_ROWS = 20
_MOST_NAMES = 8
_RARE = 0.1
_LEAK = 0.02
_EXPLAINED, _NEARLY_EXPLAINED = 0.999, 0.99
_MOST_CLASSES = 50
_FEW_VALUES = 10
_FEWEST_OTHERS = 5
_DIGITS = 6


@dataclass(frozen=True)
class Finding:
    """Something about the table or the scores that the user should know.

    Attributes
    ----------
    kind : "nothing found", "majority", "copy", "leak", "id", "constant", "duplicate", "nothing removed", "all as good"
        or "task"
    text : one or two sentences; ``{columns}`` stands for the names of the columns, ``{name 3}`` for that of one column
    columns : indices of the columns that it is about
    """

    kind: str
    text: str
    columns: tuple[int, ...] = ()

    def sentence(self, names: Sequence[str]) -> str:
        """Return the text with the names of the columns; the first few of many."""
        listed = ", ".join(repr(str(names[column])) for column in self.columns[:_MOST_NAMES])
        more = f" and {len(self.columns) - _MOST_NAMES} more" if len(self.columns) > _MOST_NAMES else ""
        text = self.text.replace("{columns}", f"column{'s' if len(self.columns) > 1 else ''} {listed}{more}")
        text = re.sub(r"\{name (\d+)\}", lambda found: repr(str(names[int(found[1])])), text)
        return text[:1].upper() + text[1:]


def find_in_table(X: FloatArray, y: AnyArray, support: Mask, *, classification: bool) -> list[Finding]:
    """Return the findings about columns: copies of the target, leaks, ids, constant and duplicated columns.

    Examples
    --------
    >>> X = np.column_stack([np.arange(40.0), np.ones(40)])
    >>> [finding.kind for finding in find_in_table(X, np.arange(40) % 2, np.ones(2, bool), classification=True)]
    ['id', 'constant']
    """
    if y.ndim != 1 or sparse.issparse(X):
        return []
    finite = np.asarray(np.isfinite(X).all(axis=0))
    constant = np.flatnonzero(_is_constant(X))
    most = max(_LEAST_ROWS, min(_MOST_ROWS, _MOST_CELLS // X.shape[1]))  # limits the time on wide tables
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), most)).astype(np.intp))
    copies, leaks, ids = [], [], []
    known = np.setdiff1d(np.flatnonzero(finite), constant)
    if len(X) >= _FEWEST_ROWS:
        few, target = X[rows], _codes(y[rows]) if classification else y[rows].astype(np.float64)
        for column in _in_blocks(_tell_target, known, few, target, classification):
            if _is_copy(few[:, column], target, classification):
                copies.append(column)
            elif _predicts_target(few[:, column], target, classification):
                leaks.append(column)
        ids = [column for column in _in_blocks(_look_like_ids, known, X) if _is_id(X[:, column])]
    return [
        *_about(copies, "copy", "{columns} {is} a copy of the target", "Leave {it} out (--drop)", support),
        *_about(
            leaks,
            "leak",
            "{columns} alone {predicts} the target in at least 98 % of the rows that the most frequent class gets wrong"
            if classification
            else "{columns} alone {explains} at least 99.9 % of the target's variance",
            "If the value is not known when you predict, leave {it} out (--drop)",
            support,
        ),
        *_about(
            ids,
            "id",
            f"{{columns}} {{look}} like {{id}}: a different whole number in each of {len(X)} rows, or sorted as the "
            "rows are",
            "Leave {it} out (--id, --drop)",
            support,
        ),
        *_about(
            constant.tolist(), "constant", "{columns} {has} the same value in every row", "Leave {it} out", support
        ),
        *_duplicates(X, finite, constant),
    ]


def find_in_scores(
    *,
    y: AnyArray,
    classification: bool,
    scoring: str,
    support: Mask,
    score: float,
    baseline: float,
    nested: tuple[float, float] | None = None,
    left_out: float | None = None,
    found_something: bool = True,
) -> list[Finding]:
    """Return the findings about the scores: no better than the most frequent class, or than all features.

    ``score`` and ``baseline`` are those of the selection and of all features, ``nested`` the same on new rows.
    ``left_out`` is the score on rows that were left out of the search, ``found_something`` whether the best subset is
    better there than a constant answer by more than chance.
    """
    found: list[Finding] = []
    if y.ndim != 1:
        return found
    if not found_something:
        found.append(
            Finding(
                "nothing found",
                "Nothing was found: on rows that the search did not use, the best subset is no better than always "
                "giving the same answer, beyond chance. The selected features are arbitrary.",
            )
        )
    estimate = score if left_out is None else left_out
    found += _about_majority(y, classification, scoring, estimate if nested is None else nested[0])
    found += _about_task(y, classification)
    if support.all():
        found.append(
            Finding(
                "nothing removed",
                f"Nothing was removed: all {len(support)} features are selected. Ask for fewer with choose='one-se' "
                "(--choose one-se) or max_features (--max-features).",
            )
        )
    else:
        ours, every = (score, baseline) if nested is None else nested
        where = "" if nested is None else " on rows that the search did not use"
        if np.isfinite(every) and every >= ours:
            found.append(
                Finding(
                    "all as good",
                    f"All {len(support)} features score {every:.4f}{where}, the {int(support.sum())} selected ones "
                    f"{ours:.4f}: the selection saves columns but does not improve the model.",
                )
            )
    return found


def _about_majority(y: AnyArray, classification: bool, scoring: str, score: float) -> Iterator[Finding]:
    if not classification:
        if scoring == "r2" and score < 0.05:
            yield Finding(
                "majority",
                f"The score, R² {score:.4f}, is about that of always predicting the mean (0): these features do not "
                "predict the target.",
            )
        return
    classes, counts = np.unique(y, return_counts=True)
    top, rows = float(counts.max() / len(y)), int(counts.min())
    if scoring != "accuracy":
        if scoring in ("balanced_accuracy", "roc_auc", "roc_auc_ovr"):
            chance = 1 / len(classes) if scoring == "balanced_accuracy" else 0.5
            if score < chance + _RARE * (1 - chance):
                yield Finding(
                    "majority",
                    f"The score, {scoring} {score:.4f}, is about that of chance ({chance:.4f}): these features do not "
                    "predict the target.",
                )
        return
    advice = "Use scoring='balanced_accuracy' or 'roc_auc' (--scoring)."
    share = f"Always predicting {str(classes[counts.argmax()])!r} has an accuracy of {top:.4f}"
    if score < top + _RARE * (1 - top):
        yield Finding("majority", f"{share}, and the score is only {score:.4f}. {advice}")
    elif top >= 1 - _RARE:
        rare = f"the rarest class has {rows} of {len(y)} rows"
        yield Finding("majority", f"{share}, because {rare}; the score is {score:.4f}. {advice}")


def _about_task(y: AnyArray, classification: bool) -> Iterator[Finding]:
    if y.dtype.kind not in "iuf":
        return
    values = len(np.unique(y))
    if classification and values > _MOST_CLASSES:
        yield Finding(
            "task",
            f"The target has {values} different numbers, which are treated as classes. If they are amounts, use a "
            "regressor (--task regression).",
        )
    elif not classification and values <= _FEW_VALUES and (y == np.round(y)).all():
        yield Finding(
            "task",
            f"The target has only {values} different whole numbers, which are treated as amounts. If they are classes, "
            "use a classifier (--task classification).",
        )


def _about(columns: Sequence[int], kind: str, what: str, advice: str, support: Mask) -> Iterator[Finding]:
    """Yield the finding about these columns, with words for one or for many."""
    if not columns:
        return
    many = len(columns) > 1
    words = {
        "is": "are" if many else "is",
        "it": "them" if many else "it",
        "has": "have" if many else "has",
        "predicts": "predict" if many else "predicts",
        "explains": "explain" if many else "explains",
        "look": "look" if many else "looks",
        "id": "ids or row numbers" if many else "an id or a row number",
    }
    chosen = int(support[list(columns)].sum())
    selected = "" if not chosen else f" ({chosen} of them selected)" if many else " (and it is selected)"
    text = f"{what}{selected}. {advice}."
    for word, replacement in words.items():
        text = text.replace(f"{{{word}}}", replacement)
    yield Finding(kind, text, tuple(columns))


def _duplicates(X: FloatArray, finite: AnyArray, constant: IntArray) -> Iterator[Finding]:
    by_content: dict[bytes, list[int]] = {}
    columns = _with_twins(X, np.flatnonzero(finite & ~np.isin(np.arange(X.shape[1]), constant)))
    for block in _blocks(columns, len(X)):
        for column, values in zip(block.tolist(), _as_rows(X, block) + 0.0, strict=True):
            by_content.setdefault(values.tobytes(), []).append(column)
    first = {column: columns[0] for columns in by_content.values() for column in columns[1:]}
    if len(first) == 1:
        ((repeated, original),) = first.items()
        yield Finding("duplicate", f"{{columns}} repeats {{name {original}}} exactly. Keep one of them.", (repeated,))
    elif first:
        pairs = ", ".join(
            f"{{name {one}}} repeats {{name {other}}}" for one, other in list(first.items())[:_MOST_NAMES]
        )
        more = ", and so on" if len(first) > _MOST_NAMES else ""
        yield Finding(
            "duplicate", f"{{columns}} repeat other columns exactly: {pairs}{more}. Keep one of each.", tuple(first)
        )


def _with_twins(X: FloatArray, columns: IntArray) -> IntArray:
    """Return the columns that have the values of another one in three rows; columns of real numbers hardly ever do."""
    if not len(columns):
        return columns
    few = X[[0, len(X) // 2, len(X) - 1]][:, columns]
    order = np.lexsort(few)
    is_same = (few[:, order[1:]] == few[:, order[:-1]]).all(axis=0)
    return np.asarray(columns[np.sort(order[np.append(is_same, False) | np.append(False, is_same)])])


def _blocks(columns: IntArray, n_rows: int) -> Iterator[IntArray]:
    """Yield the columns in parts that take little memory."""
    step = max(1, _CELLS_AT_ONCE // n_rows)
    for start in range(0, len(columns), step):
        yield columns[start : start + step]


def _as_rows(X: FloatArray, columns: IntArray) -> FloatArray:
    """Return these columns, each as a row."""
    return np.ascontiguousarray(X[:, columns].T)


def _in_blocks(condition: Callable[..., Mask], columns: IntArray, X: FloatArray, *others: object) -> list[int]:
    """Return the columns that meet a condition, which gets many columns at once, each as a row."""
    found = [block[condition(_as_rows(X, block), *others)] for block in _blocks(columns, len(X))]
    return [int(column) for block in found for column in block]


def _tell_target(values: FloatArray, target: AnyArray, classification: bool) -> Mask:
    """Return which columns (one a row) could be copies of the target or leaks; a wide table has few of them."""
    order = np.argsort(values, axis=1)
    ordered, targets = np.take_along_axis(values, order, axis=1), target[order]
    starts = np.ones(values.shape, dtype=bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=starts[:, 1:])
    if classification:
        return _tell_classes(starts, targets)
    return _follow_in_line(values, target) | _follow_in_order(starts, targets)


def _groups(starts: Mask) -> IntArray:
    """Return a number for each run of equal values, from 0 in the first row; no two rows share one."""
    return np.asarray(np.cumsum(starts, axis=1) - 1 + np.arange(len(starts))[:, None] * starts.shape[1])


def _tell_classes(starts: Mask, classes: IntArray) -> Mask:
    counts_of_all = np.bincount(classes[0])
    n_classes, n_rows, n_values = len(counts_of_all), classes.shape[1], starts.sum(axis=1)
    found = n_values == n_classes  # a copy has as many values as there are classes
    others = n_rows - int(counts_of_all.max())
    if others < _FEWEST_OTHERS or n_classes > _MOST_CLASSES:
        return np.asarray(found)
    changes = np.count_nonzero(classes[:, 1:] != classes[:, :-1], axis=1)  # right where no two rows have equal values
    tied = np.flatnonzero(n_values < n_rows)
    wrong = np.zeros(len(classes), dtype=np.intp)
    for some in np.array_split(tied, max(1, len(tied) * n_classes * n_rows // _CELLS_AT_ONCE)):
        pairs = _groups(starts[some]) * n_classes + classes[some]
        counts = np.bincount(pairs.ravel(), minlength=pairs.size * n_classes).reshape(-1, n_rows, n_classes)
        wrong[some] = n_rows - counts.max(axis=2).sum(axis=1)
        most = counts.argmax(axis=2)
        is_pair = np.arange(1, n_rows) < n_values[some, None]
        changes[some] = ((most[:, 1:] != most[:, :-1]) & is_pair).sum(axis=1)
    return np.asarray(found | (wrong + np.maximum(0, changes - (n_classes - 1)) <= _LEAK * others))


def _follow_in_line(values: FloatArray, target: FloatArray) -> Mask:
    """Return which columns have nearly all of the target's variance in a line."""
    with np.errstate(all="ignore"):
        gaps, wanted = values - values.mean(axis=1, keepdims=True), target - target.mean()
        squared = (gaps @ wanted) ** 2 / ((gaps**2).sum(axis=1) * (wanted @ wanted))
        return np.asarray(~(squared < _NEARLY_EXPLAINED))


def _follow_in_order(starts: Mask, targets: FloatArray) -> Mask:
    """Return which columns explain nearly all of the target's variance by rows of equal or neighbouring values."""
    (n_columns, n_rows), n_values, group = starts.shape, starts.sum(axis=1), _groups(starts)
    with np.errstate(all="ignore"):
        counts = np.maximum(np.bincount(group.ravel(), minlength=group.size), 1)
        means = np.bincount(group.ravel(), targets.ravel(), minlength=group.size) / counts
        within = ((targets - means[group]) ** 2).sum(axis=1) / np.maximum(n_rows - n_values, 1)
        steps = np.diff(means.reshape(n_columns, n_rows), axis=1)
        steps[np.arange(1, n_rows) >= n_values[:, None]] = 0.0  # behind the last value
        between = (steps**2).sum(axis=1) / np.maximum(n_values - 1, 1) / 2.0
        left = np.where(2 * n_values <= n_rows, within, between)
        return np.asarray(~(1.0 - left / targets[0].var() < _NEARLY_EXPLAINED))


def _look_like_ids(values: FloatArray) -> Mask:
    """Return which columns (one a row) are sorted, or are whole numbers that may all be different."""
    with np.errstate(all="ignore"):
        spread = np.ptp(values, axis=1)
    rising = (values[:, 1:] > values[:, :-1]).all(axis=1)
    falling = (values[:, 1:] < values[:, :-1]).all(axis=1)
    whole = (values == np.round(values)).all(axis=1) & (spread >= values.shape[1] - 1)
    return np.asarray(rising | falling | whole)


def _is_constant(X: FloatArray) -> AnyArray:
    return np.asarray((X[0] == X).all(axis=0) | np.isnan(X).all(axis=0))


def _codes(y: AnyArray) -> IntArray:
    return np.unique(y, return_inverse=True)[1].reshape(-1).astype(np.intp)


def _is_copy(values: FloatArray, target: AnyArray, classification: bool) -> bool:
    """Return whether the values and the target name each other, up to their labels or a linear scale."""
    if classification:
        codes = _codes(values)
        pairs = np.unique(codes * (int(target.max()) + 1) + target)
        return bool(len(pairs) == codes.max() + 1 == target.max() + 1)
    return _squared_correlation(values, target) > 1 - 1e-12


def _predicts_target(values: FloatArray, target: AnyArray, classification: bool) -> bool:
    """Return whether the values alone predict the target: rows with neighbouring values have the same class."""
    if not classification:
        return max(_squared_correlation(values, target), _explained_by_order(values, target)) >= _EXPLAINED
    counts_of_all = np.bincount(target)
    others = len(target) - int(counts_of_all.max())
    if others < _FEWEST_OTHERS or len(counts_of_all) > _MOST_CLASSES:
        return False
    order = np.argsort(values, kind="stable")
    ordered, classes = values[order], target[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.add.reduceat(np.eye(len(counts_of_all))[classes], starts, axis=0)
    wrong = len(target) - counts.max(axis=1).sum()  # rows whose class differs from that of most rows of equal value
    changes = np.count_nonzero(np.diff(counts.argmax(axis=1))) - (len(counts_of_all) - 1)
    return bool(wrong + max(0, changes) <= _LEAK * others)


def _squared_correlation(values: FloatArray, target: FloatArray) -> float:
    with np.errstate(all="ignore"):
        a, b = values - values.mean(), target - target.mean()
        found = float((a @ b) ** 2 / ((a @ a) * (b @ b)))
    return found if np.isfinite(found) else 0.0


def _explained_by_order(values: FloatArray, target: FloatArray) -> float:
    """Return the share of the target's variance that is not left among rows of equal or neighbouring values."""
    codes = _codes(values)
    counts = np.bincount(codes)
    n_rows, n_values = len(codes), len(counts)
    with np.errstate(all="ignore"):
        means = np.bincount(codes, target) / counts
        if 2 * n_values <= n_rows:
            left = float(((target - means[codes]) ** 2).sum()) / (n_rows - n_values)
        else:
            left = float((np.diff(means) ** 2).mean()) / 2.0
        found = 1.0 - left / float(target.var())
    return found if np.isfinite(found) else 0.0


def _is_id(values: FloatArray) -> bool:
    """Return whether these are sorted as the rows are, or different whole numbers, dense or of six or more digits."""
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return True
    if not (values == np.round(values)).all() or len(np.unique(values)) < len(values):
        return False
    digits = np.floor(np.log10(np.maximum(np.abs(values), 1)))
    return bool(np.ptp(values) < 2 * len(values) or (digits.min() == digits.max() >= _DIGITS - 1))


_BINS, _MOST_SHOWN_CLASSES, _MOST_SHOWN_COLUMNS = 16, 6, 60


@dataclass(frozen=True, eq=False)
class ColumnFacts:
    """Facts on the selected columns, in the order of the table.

    Attributes
    ----------
    columns : index of each column, shape (k,)
    losses : loss of the selection without the column, shape (k,); NaN where nothing would be left
    classes : names of the classes, or of thirds of a numeric target
    shares : share of each class's rows in bins of the column's values, shape (k, classes, bins)
    medians : median of the column in each class, shape (k, classes)
    """

    columns: IntArray
    losses: FloatArray
    classes: tuple[str, ...]
    shares: FloatArray
    medians: FloatArray


def describe_columns(objective: Objective, selected: Mask, *, with_losses: bool = True) -> ColumnFacts:
    """Describe at most 60 selected columns. Their losses cost one evaluation each."""
    columns = np.flatnonzero(selected)[:_MOST_SHOWN_COLUMNS]
    losses = np.full(len(columns), np.nan)
    if with_losses and selected.sum() > 1:
        without = np.repeat(selected[None], len(columns), axis=0)
        without[np.arange(len(columns)), columns] = False
        losses = objective(without)
    X: Any = objective.data.X  # an array or a sparse matrix
    y = np.asarray(objective.data.y)
    classes, codes = _classes(y, classification=is_classifier(objective.estimator))
    shares = np.zeros((len(columns), len(classes), _BINS))
    medians = np.full((len(columns), len(classes)), np.nan)
    for row, column in enumerate(columns):
        own = np.asarray(X[:, [column]].toarray() if sparse.issparse(X) else X[:, column], dtype=np.float64).ravel()
        known = np.isfinite(own)
        low, high = np.quantile(own[known], [0.01, 0.99]) if known.any() else (0.0, 1.0)
        for place in range(len(classes)):
            values = own[known & (codes == place)]
            if len(values):
                counts, _ = np.histogram(np.clip(values, low, high), bins=_BINS, range=(low, max(high, low + 1e-300)))
                shares[row, place] = counts / len(values)
                medians[row, place] = np.median(values)
    return ColumnFacts(columns, losses, classes, shares, medians)


def _classes(y: FloatArray | IntArray, *, classification: bool) -> tuple[tuple[str, ...], IntArray]:
    """Return names of classes and the class of each row (-1: not shown), or thirds of a numeric target."""
    if not classification:
        return ("low", "middle", "high"), np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y).astype(np.intp)
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    shown = np.sort(np.argsort(-counts, kind="stable")[:_MOST_SHOWN_CLASSES])
    places = np.full(len(labels), -1)
    places[shown] = np.arange(len(shown))
    return tuple(str(label) for label in labels[shown]), places[codes]
