"""Tables and targets that cannot be used: one sentence that names the columns and what to do."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

from subswarm import SwarmSelector
from subswarm.errors import DataError
from subswarm.objective.validation import check_table, check_target

ROWS = 178
DAY = datetime.date(2020, 1, 1)
NUMBERS = np.arange(ROWS) % 3
X, y = load_wine(return_X_y=True)
FRAME = load_wine(as_frame=True).data


def odd(values, dtype=None):
    """The wine table with one more column, as a pandas frame."""
    return FRAME.assign(odd=pd.Series(values, dtype=dtype))


def polars(values, dtype=None):
    column = pl.Series("odd", values, dtype=dtype)
    return pl.DataFrame({name: FRAME[name].to_numpy() for name in FRAME.columns}).with_columns(column)


def objects(value):
    """The wine table as an array of objects with one other value in column 2."""
    table = X.astype(object)
    table[3, 2] = value
    return table


def fit(table, target=y, model=None):
    settings = {"cv": 3, "max_evaluations": 30, "random_state": 0, "verbose": 0}
    return SwarmSelector(GaussianNB() if model is None else model, **settings).fit(table, target)


TABLES = {
    "pandas int categories": (odd(NUMBERS, "category"), r"categories in column 'odd'.*OneHotEncoder.*astype\(int\)"),
    "pandas ordered": (odd(pd.Categorical(NUMBERS, ordered=True)), "categories in column 'odd'"),
    "pandas numerals as categories": (odd(NUMBERS.astype(str), "category"), "categories in column 'odd'"),
    "pandas text categories": (odd(np.array(["a", "b", "c"])[NUMBERS], "category"), "text in column 'odd'.*OneHotEnc"),
    "polars categorical": (polars(NUMBERS.astype(str).tolist(), pl.Categorical), "categories in column 'odd'.*cast"),
    "polars enum": (polars(NUMBERS.astype(str).tolist(), pl.Enum(["0", "1", "2"])), "categories in column 'odd'"),
    "polars text enum": (polars(["a", "b"] * 89, pl.Enum(["a", "b"])), "text in column 'odd'"),
    "pandas dates": (odd(pd.date_range("2020", periods=ROWS)), "dates, times or durations in column 'odd'.*days since"),
    "pandas dates with a zone": (odd(pd.date_range("2020", periods=ROWS, tz="UTC")), "dates, times .* 'odd'"),
    "pandas durations": (odd(pd.to_timedelta(NUMBERS, unit="D")), "dates, times or durations in column 'odd'"),
    "pandas periods": (odd(pd.period_range("2020", periods=ROWS, freq="D")), "dates, times .* 'odd'"),
    "pandas intervals": (odd(pd.interval_range(0, periods=ROWS)), "intervals in column 'odd'"),
    "pandas date objects": (odd([DAY] * ROWS, object), "dates, times or durations in column 'odd'"),
    "pandas complex": (odd(NUMBERS * 1j), "Complex data not supported.* 'odd'"),
    "pandas dicts": (odd([{"a": 1}] * ROWS), "nested values in column 'odd'"),
    "pandas lists": (odd([[1, 2]] * ROWS), "nested values in column 'odd'"),
    "pandas NA objects": (odd([pd.NA, *range(ROWS - 1)], object), "missing values .* 'odd'.*Float64"),
    "pandas objects": (odd([object()] * ROWS), "not numbers in column 'odd'"),
    "pandas huge": (odd([10**400] * ROWS, object), "too large for a float64 in column 'odd'"),
    "pandas bytes": (odd([b"\xff"] * ROWS, object), "text in column 'odd'"),
    "two columns of one name": (
        pd.concat([FRAME, odd(NUMBERS, "category")[["odd"]], odd(["a"] * ROWS)[["odd"]]], axis=1),
        "text in column 'odd'",
    ),
    "polars dates": (polars([DAY] * ROWS), "dates, times or durations in column 'odd'"),
    "polars times": (polars([datetime.time(1)] * ROWS), "dates, times or durations in column 'odd'"),
    "polars durations": (polars([datetime.timedelta(1)] * ROWS), "dates, times or durations in column 'odd'"),
    "polars lists": (polars([[1, 2]] * ROWS), "nested values in column 'odd'"),
    "polars structs": (polars([{"a": 1}] * ROWS), "nested values in column 'odd'"),
    "polars bytes": (polars([b"abc"] * ROWS), "text in column 'odd'"),
    "pyarrow dates": (pa.table({"a": NUMBERS, "odd": [DAY] * ROWS}), "dates, times or durations in column 'odd'"),
    "pyarrow categories": (
        pa.table({"odd": pa.array(NUMBERS.astype(str)).dictionary_encode()}),
        "categories in column 'odd'",
    ),
    "numpy dates": (np.full((ROWS, 2), "2020", dtype="M8[D]"), "dates, times or durations in columns 0, 1"),
    "numpy durations": (np.full((ROWS, 2), 1, dtype="m8[D]"), "dates, times or durations in columns 0, 1"),
    "huge": (objects(10**400), "too large for a float64 in column 2"),
    "huge in a list": ([[10**400, 1.5], [1.0, 2.0]] * 89, "too large for a float64"),
    "a dict": (objects({}), "nested values in column 2"),
    "a list": (objects([1, [2]]), "nested values in column 2"),
    "a date": (objects(DAY), "dates, times or durations in column 2"),
    "complex": (objects(1j), "Complex data not supported.*column 2"),
    "None": (objects(None), r"missing values \(NaN\) in column 2"),
    "NaT": (objects(pd.NaT), "missing values .* column 2"),
    "bytes": (objects(b"red"), "text in column 2"),
    "an object": (objects(object()), "not numbers in column 2"),
    "ragged": ([[1, 2], [3]] * 89, "every row has equally many entries"),
    "records": (np.zeros((ROWS, 2), dtype=[("a", float), ("b", float)]), "cannot be read as a table of numbers"),
    "a dictionary": ({"a": [1, 2]}, "table of shape"),
    "no columns": (FRAME[[]], r"0 feature\(s\)"),
    "no rows": (FRAME[:0], "n_samples=0"),
    "an empty frame": (pd.DataFrame(), r"0 feature\(s\)"),
    "polars without columns": (pl.DataFrame(), r"0 feature\(s\)"),
    "polars without rows": (polars(NUMBERS)[:0], "n_samples=0"),
    "too long a double": (np.full((ROWS, 2), np.longdouble("1e300") ** 2), "infinite|too large"),
}


@pytest.mark.parametrize(("table", "sentence"), TABLES.values(), ids=TABLES.keys())
def test_a_table_that_is_not_of_numbers_gets_a_sentence_that_names_the_columns(table, sentence):
    with pytest.raises(DataError, match=sentence):
        fit(table)


def test_numbers_in_any_column_type_are_a_table():
    numbers = NUMBERS.astype(float)
    nullable = pd.array([None, *NUMBERS[1:]], dtype="Int64")
    frame = pd.DataFrame(
        {"int": NUMBERS, "nullable": nullable, "flag": NUMBERS > 1, "object": pd.Series(NUMBERS, dtype=object)}
    )
    table = check_table(
        frame.assign(text=NUMBERS.astype(str), exact=[Decimal(int(v)) for v in NUMBERS]), allow_nan=True
    )
    assert table.dtype == np.float64
    assert np.isnan(table[0, 1])
    assert table[1:, [0, 1, 3, 4, 5]].tolist() == np.column_stack([numbers[1:]] * 5).tolist()
    assert check_table(pa.table({"a": NUMBERS, "b": numbers})).tolist() == np.column_stack([numbers] * 2).tolist()
    assert check_table([[b"1", "2"], [3, None]], allow_nan=True)[:, 0].tolist() == [1.0, 3.0]


LABELS = np.array(["a", "b", "c"])[y]
TARGETS = {
    "dates": (np.array(["2020", "2021", "2022"], dtype="M8[Y]")[y], "y holds dates or times"),
    "durations": (y.astype("m8[D]"), "y holds dates or times"),
    "date objects": ([DAY + datetime.timedelta(int(v)) for v in y], "y holds dates or times"),
    "dates with a zone": (pd.Series(pd.date_range("2020", periods=ROWS, tz="UTC")), "y holds dates or times"),
    "periods": (pd.Series(pd.period_range("2020", periods=ROWS, freq="D")), "y holds dates or times"),
    "two columns": (np.column_stack([y, y]), r"1d array, got an array of shape \(178, 2\).*one target for each row"),
    "no dimension": (3, r"1d array, got an array of shape \(\)"),
    "ragged": ([[1], [2, 3]] * 89, "y must have one entry for each row"),
    "NA among integers": (pd.Series([None, *y[1:]], dtype="Int64"), "y has missing"),
    "NA among objects": (pd.Series([pd.NA, *LABELS[1:]], dtype=object), "y has missing"),
    "NaN among objects": (pd.Series([np.nan, *LABELS[1:]], dtype=object), "y has missing"),
    "NA among text": (pd.Series([None, *LABELS[1:]], dtype="string"), "y has missing"),
    "NA among bools": (pd.array([None, *(y[1:] > 1)], dtype="boolean"), "y has missing"),
    "NaT": ([pd.NaT, *y[1:]], "y has missing"),
    "complex": (y * 1j, "Complex data"),
}
CLASSES = {
    "mixed": (np.array([1, *LABELS[1:]], dtype=object), "classes of type int, str.*astype"),
    "mixed, text first": (np.array([*LABELS[:-1], 1], dtype=object), "classes of type int, str.*astype"),
    "dicts": ([{}, {"a": 1}] * 89, "classes of type dict"),
    "lists": (pd.Series([[1], [2, 3]] * 89), "classes of type list"),
    "decimals": ([Decimal(int(v)) for v in y], "classes of type Decimal"),
    "intervals": (pd.Series(pd.interval_range(0, periods=ROWS)), "classes of type Interval"),
    "bytes": (LABELS.astype("S"), "bytes"),
    "huge": (np.array([10**400, *y[1:]], dtype=object), "beyond 64 bits"),
}
QUANTITIES = {
    "text": (LABELS, "not numbers"),
    "huge": (np.array([10**400, *y[1:]], dtype=object), "too large"),
    "huge in a list": ([10**400, 1.5] * 89, "too large"),
    "dicts": ([{}, {"a": 1}] * 89, "not numbers"),
    "infinite": (np.where(y == 1, np.inf, y), "infinite"),
}


@pytest.mark.parametrize(
    ("target", "model", "sentence"),
    [
        pytest.param(target, model, sentence, id=f"{kind} for a {name}")
        for name, model, cases in [
            ("classifier", GaussianNB(), TARGETS | CLASSES),
            ("regressor", LinearRegression(), TARGETS | QUANTITIES),
        ]
        for kind, (target, sentence) in cases.items()
        if not (name == "regressor" and kind == "two columns")
    ],
)
def test_a_target_that_cannot_be_used_gets_a_clear_sentence(target, model, sentence):
    with pytest.raises(DataError, match=sentence):
        fit(X, target, model)


@pytest.mark.parametrize(
    "target", [y.astype(object), pd.Series(y, dtype="Int64"), pl.Series(y), (y > 1).astype(object)]
)
def test_whole_numbers_and_bools_in_any_container_are_classes(target):
    classes = check_target(target, ROWS, numeric=False)
    assert classes.tolist() == list(target)
    assert classes.dtype.kind in "ib"
    assert fit(X, target).best_score_ > 0.8


def test_a_column_of_targets_is_taken_with_scikit_learns_warning():
    with pytest.warns(match="column-vector y was passed"):
        assert check_target(y[:, None], ROWS, numeric=False).shape == (ROWS,)
