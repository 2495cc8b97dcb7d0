"""Writing the selected columns of a table, and preparing new rows for a model of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from subswarm._files import write_whole
from subswarm._types import AnyArray, Estimator, Mask
from subswarm.datasets._column import MISSING, Column, NumberFormat, parse_text
from subswarm.datasets._table import Block, Table, as_frame
from subswarm.errors import DataError, DatasetError, MissingExtraError

__all__ = ["SelectedColumns", "selected_pipeline", "write_table"]

_ENDINGS = (".csv", ".csv.gz", ".tsv", ".parquet", ".pq")


class SelectedColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Take the selected columns of a frame by name, as numbers: the first step of a saved pipeline.

    Text, dates and flags become numbers as in the table that the columns were selected from. A text that was not in it
    is 0 in all columns of its categories.

    Parameters
    ----------
    blocks : how each column becomes numbers
    as_frame : whether the result is a pandas frame, in which kept categories are categories
    """

    def __init__(self, blocks: tuple[Block, ...] = (), as_frame: bool = False) -> None:
        self.blocks = blocks
        self.as_frame = as_frame

    def fit(self, X: object, y: object = None) -> Self:
        """Do nothing: the columns are given."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return bool(self.blocks)

    def transform(self, X: object) -> Any:
        """Return the columns of a pandas or Polars frame, or of an Arrow table, as numbers."""
        check_is_fitted(self)
        names = list(getattr(X, "column_names", getattr(X, "columns", ())))
        absent = [block.name for block in self.blocks if block.name not in names]
        if absent:
            raise DataError(
                f"the frame lacks {len(absent)} of the {len(self.blocks)} columns that the model needs: "
                f"{', '.join(map(repr, absent))}."
            )
        numbers = np.column_stack([block.numbers(_as_column(block, X[block.name])) for block in self.blocks])  # type: ignore[index]
        return as_frame(self.get_feature_names_out().tolist(), self.blocks, numbers) if self.as_frame else numbers

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> AnyArray:
        """Return the names of the columns of numbers."""
        return np.array([label for block in self.blocks for label in block.labels], dtype=object)


def selected_pipeline(table: Table, support: Mask, model: Estimator) -> Pipeline:
    """Return a fitted pipeline that takes frames with the columns of the table's file.

    ``model`` is fitted on the selected columns. Missing values are filled from the nearest row if the table had some.
    """
    is_frame = not isinstance(table.features, np.ndarray)
    steps: list[tuple[str, object]] = [("columns", SelectedColumns(tuple(_blocks(table, support)), as_frame=is_frame))]
    if table.imputed:
        from sklearn.impute import KNNImputer

        steps.append(("impute", KNNImputer(n_neighbors=1, keep_empty_features=True).fit(table.X[:, support])))
    return Pipeline([*steps, ("model", model)])


def write_table(table: Table, path: str | os.PathLike[str], support: ArrayLike | None = None) -> Path:
    """Write a table with the selected columns only, as CSV or Parquet.

    The columns are those of the source, with its values (text and dates are not encoded, missing values stay missing).
    The target and the columns of ``id``, ``groups``, ``time`` and ``weights`` are kept.

    Parameters
    ----------
    table : Table
        From `load_table` or `open_table`.
    path : path
        A file that ends in .csv, .csv.gz, .tsv, .parquet or .pq; an existing file is replaced.
    support : bool array of shape (n,), optional
        The selected features, such as ``selector.support_``. A column is written if one of its features is selected.
        All of them by default.

    Returns
    -------
    Path
        The file written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from subswarm.datasets import open_table
    >>> wine = open_table("wine")
    >>> path = write_table(wine, pathlib.Path(tempfile.mkdtemp()) / "small.csv", [True] * 2 + [False] * 11)
    >>> path.read_text().splitlines()[0]
    '"alcohol","malic_acid","class"'
    """
    file = Path(path)
    check_ending(file)
    chosen = np.ones(table.X.shape[1], dtype=bool) if support is None else np.asarray(support)
    if chosen.dtype != np.bool_ or chosen.shape != (table.X.shape[1],):
        raise DataError(
            f"support must be True or False for each of the {table.X.shape[1]} features; got an array of dtype "
            f"{chosen.dtype} and shape {chosen.shape}."
        )
    try:
        import pyarrow
        from pyarrow import csv, parquet
    except ImportError as error:
        raise MissingExtraError(
            "writing a table needs pyarrow; install it with `pip install 'subswarm[cli]'`."
        ) from error
    content = pyarrow.table({column.name: _as_arrow(column) for column in _columns(table, chosen)})
    sink = pyarrow.BufferOutputStream()
    name = file.name.lower()
    if name.endswith((".parquet", ".pq")):
        parquet.write_table(content, sink)
    elif name.endswith(".gz"):
        with pyarrow.CompressedOutputStream(sink, "gzip") as packed:
            csv.write_csv(content, packed)
    else:
        csv.write_csv(content, sink, csv.WriteOptions(delimiter="\t" if name.endswith(".tsv") else ","))
    try:
        write_whole(file, sink.getvalue().to_pybytes())
    except OSError as error:
        raise DatasetError(f"cannot write {file}: {error.strerror}.") from error
    return file


def check_ending(file: Path) -> None:
    """Raise DataError unless a table can be written under this name."""
    if not file.name.lower().endswith(_ENDINGS):
        raise DataError(f"{file.name!r} does not end in one of {', '.join(_ENDINGS)}; tables are written as these.")


def _columns(table: Table, support: Mask) -> list[Column]:
    """Return the columns of the source that are written, in their order, and the target."""
    source = table._source
    if source is None:
        target = table.y.astype(object) if table.y.dtype.kind in "US" else table.y
        pairs = zip(table.feature_names, table.X.T, support, strict=True)
        return [*(Column(name, values) for name, values, chosen in pairs if chosen), Column(table.target_name, target)]
    features = {block.name for block in source.blocks}
    selected = {block.name for block in source.selected(support)}
    return [column for column in source.columns if column.name in selected or column.name not in features]


def _blocks(table: Table, support: Mask) -> list[Block]:
    if table._source is not None:
        return table._source.selected(support)
    names = np.array(table.feature_names, dtype=object)[support]
    return [Block(name, "number", (name,)) for name in names.tolist()]


def _as_arrow(column: Column) -> object:
    import pyarrow

    values = column.values
    if column.is_text or values.dtype.kind != "f":
        return pyarrow.array(values.tolist())
    missing = np.isnan(values)
    known = np.where(missing, 0.0, values)
    if column.is_date:
        times = np.round(known * 86_400e6).astype("datetime64[us]")
        kind = pyarrow.date32() if not (known % 1).any() else pyarrow.timestamp("us")
        return pyarrow.array(times, mask=missing).cast(kind)
    if column.is_flag:
        return pyarrow.array(known.astype(bool), mask=missing)
    if (known == np.round(known)).all() and np.abs(known).max(initial=0) < 2**53:
        return pyarrow.array(known.astype(np.int64), mask=missing)
    return pyarrow.array(values, mask=missing)


def _as_column(block: Block, values: object) -> Column:
    """Return a column of a frame as the numbers or the text that the block expects."""
    array = np.asarray(values)
    if array.dtype.kind == "M":
        days = array.astype("datetime64[us]").astype(np.int64) / 86_400e6
        return Column(block.name, np.where(np.isnat(array), np.nan, days), is_date=True)
    if array.dtype.kind in "iufb":
        if block.kind not in ("text", "category"):
            return Column(block.name, array.astype(np.float64))
        array = array.astype(str)
    cells = [
        None if value is None or value != value or str(value).strip() in MISSING else str(value)
        for value in array.tolist()
    ]
    text = Column(block.name, np.array(cells, dtype=object))
    if block.kind in ("text", "category") or all(cell is None for cell in cells):
        return text if block.kind in ("text", "category") else Column(block.name, np.full(len(cells), np.nan))
    read = next(
        (found for form in (NumberFormat(), NumberFormat(True)) if not (found := parse_text(text, form)[0]).is_text),
        None,
    )
    if read is None:
        raise DataError(
            f"column {block.name!r} of the frame holds text; the model was fitted on a column of {block.kind}s."
        )
    return read
