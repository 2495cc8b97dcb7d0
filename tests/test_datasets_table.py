"""Tables from files are read, or refused with an error that names the column and says what to do."""

from __future__ import annotations

import datetime
import decimal
import gzip
import pickle
import subprocess
import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from sklearn.datasets import load_breast_cancer

from subswarm.datasets import load_demo, load_table, open_table
from subswarm.errors import DataError, DatasetError, SettingError, TableError


@pytest.fixture
def csv(tmp_path):
    """``csv(text)``: the path of a CSV file with that text."""

    def write(text: str | bytes, name: str = "table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def parquet(tmp_path):
    """``parquet(columns)``: the path of a Parquet file with those columns."""

    def write(columns: dict[str, object]):
        path = tmp_path / "table.parquet"
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return path

    return write


def test_numbers_and_flags_become_floats_and_names_are_kept(csv):
    table = load_table(csv("Größe (m),is new,n,kind\n1.5,true,1,a\n2e1,false,2,b\n-3,true,3,a\n"), "kind")
    assert table.feature_names == ("Größe (m)", "is new", "n")
    assert table.X.dtype == np.float64
    assert table.X.tolist() == [[1.5, 1.0, 1.0], [20.0, 0.0, 2.0], [-3.0, 1.0, 3.0]]
    assert table.y.tolist() == ["a", "b", "a"]
    assert (table.target_name, table.task, table.feature_groups, table.imputed) == ("kind", "classification", [], 0)


def test_parquet_types_come_through(parquet):
    path = parquet(
        {
            "whole": pyarrow.array([1, 2, 3, 4], pyarrow.int16()),
            "half": pyarrow.array(np.array([1, 2, 3, 4], np.float16), mask=np.zeros(4, bool)),
            "exact": pyarrow.array([decimal.Decimal("1.25")] * 4),
            "flag": pyarrow.array([True, False, True, False]),
            "coded": pyarrow.array([5, 6, 5, 6]).dictionary_encode(),
            "colour": pyarrow.array(["red", "blue", "white", "red"]).dictionary_encode(),
            "long": pyarrow.array(["x", "y", "x", "x"], pyarrow.large_string()),
            "price": pyarrow.array([1.5, 2.5, 3.5, 4.5]),
            "__index_level_0__": pyarrow.array([9, 9, 9, 9]),
        }
    )
    table = load_table(path, "price", one_hot=True)
    assert table.feature_names == (
        "whole", "half", "exact", "flag", "coded", "colour=blue", "colour=red", "colour=white", "long=y",
    )  # fmt: skip
    assert table.X[0].tolist() == [1, 1, 1.25, 1, 5, 0, 1, 0, 0]
    assert table.feature_groups == [[5, 6, 7]]
    assert table.task == "regression"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_detected_from_the_header(csv, separator):
    text = '"a, b";c;y\n1;2;3\n4;5;6\n'.replace(";", separator)
    assert load_table(csv(text), "y").feature_names == ("a, b", "c")


def test_packed_and_marked_files_are_read(csv):
    text = "a,y\n1,x\n2,z\n".encode("utf-8-sig")
    assert load_table(csv(text), "y").feature_names == ("a",)
    assert load_table(csv(gzip.compress(b"a,y\n1,x\n2,z\n"), "table.csv.gz"), "y").X.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("values", "task", "kind"),
    [
        (["a", "b"] * 20, "classification", "U"),
        (["true", "false"] * 20, "classification", "b"),
        (["1", "2", "3", "4"] * 10, "classification", "i"),
        (["1.0", "2.0"] * 20, "classification", "i"),
        ([str(value) for value in range(40)], "regression", "i"),
        (["0.5", "1.5"] * 20, "regression", "f"),
    ],
)
def test_the_task_is_decided_from_the_target(csv, values, task, kind):
    table = load_table(csv("a,y\n" + "".join(f"{row},{value}\n" for row, value in enumerate(values))), "y")
    assert (table.task, table.y.dtype.kind) == (task, kind)


def test_text_columns_are_named_with_what_to_do(csv):
    path = csv("a,city,colour,y\n1,Rome,red,0\n2,Oslo,blue,1\n")
    with pytest.raises(DataError, match=r"text in columns 'city', 'colour'.*one_hot=True, --one-hot.*drop=") as caught:
        load_table(path, "y")
    assert "table.csv" in str(caught.value)
    assert load_table(path, "y", drop=["city", "colour"]).feature_names == ("a",)


def test_a_text_column_of_two_values_becomes_one_column(csv):
    table = load_table(csv("sex,one,y\nm,k,0\nf,k,1\nm,k,1\n"), "y", one_hot=True)
    assert table.feature_names == ("sex=m", "one=k")
    assert table.X.tolist() == [[1, 1], [0, 1], [1, 1]]
    assert table.feature_groups == []


def test_text_columns_with_too_many_values_are_refused(csv):
    path = csv("who,a,y\n" + "".join(f"name{row},{row},{row % 2}\n" for row in range(120)))
    with pytest.raises(DataError, match=r"more than 100 different texts in column 'who'.*raise max_categories"):
        load_table(path, "y", one_hot=True)
    assert load_table(path, "y", one_hot=True, max_categories=120).X.shape == (120, 121)


@pytest.mark.parametrize("missing", ["", "?", "NA", "NaN", "null"])
def test_missing_cells_are_counted_named_or_filled(csv, missing):
    path = csv(f"a,b,y\n1,10,0\n1.1,{missing},1\n9,30,0\n8,31,1\n")
    with pytest.raises(DataError, match=r"1 missing cells in column 'b'.*impute=True, --impute"):
        load_table(path, "y")
    table = load_table(path, "y", impute=True)
    assert table.X[:, 1].tolist() == [10, 10, 30, 31]
    assert table.imputed == 1


def test_a_missing_text_is_filled_with_one_whole_category(csv):
    path = csv("a,colour,y\n1,red,0\n5,blue,1\n9,white,0\n9.1,,1\n4.9,?,1\n")
    table = load_table(path, "y", impute=True, one_hot=True)
    assert table.feature_names[1:] == ("colour=blue", "colour=red", "colour=white")
    assert table.X[3:, 1:].tolist() == [[0, 0, 1], [1, 0, 0]]
    assert table.imputed == 2


def test_a_column_without_any_value_is_refused(csv):
    with pytest.raises(DataError, match=r"no value at all in column 'b'.*Drop such columns"):
        load_table(csv("a,b,y\n1,,0\n2,,1\n"), "y", impute=True)


def test_infinite_values_are_refused(csv):
    with pytest.raises(DataError, match="infinite values, or numbers too large for a float, in column 'a'"):
        load_table(csv("a,y\ninf,0\n2,1\n"), "y")
    with pytest.raises(DataError, match=r"target 'y' of table.csv has infinite values"):
        load_table(csv("a,y\n1,inf\n2,1.5\n"), "y")


def test_dates_lists_and_bytes_are_refused_by_name(csv, parquet):
    with pytest.raises(DataError, match=r"dates or times in columns 'day', 'at'.*drop="):
        load_table(csv("day,at,a,y\n2024-01-02,2024-01-02 10:00:00,1,0\n2024-01-03,2024-01-03 11:00:00,2,1\n"), "y")
    days = [datetime.date(2024, 1, 2), datetime.date(2024, 1, 3)]
    with pytest.raises(DataError, match=r"target 'day' of table.parquet holds dates or times"):
        load_table(parquet({"a": [1, 2], "day": days}), "day")
    with pytest.raises(DataError, match="lists or records in column 'items'"):
        load_table(parquet({"items": [[1], [2]], "y": [0, 1]}), "y")
    with pytest.raises(DataError, match=r"type binary \(text must be UTF-8\) in column 'a'"):
        load_table(parquet({"a": [b"Gr\xf6\xdfe", b"x"], "y": [0, 1]}), "y")


def test_missing_targets_are_counted(csv):
    with pytest.raises(DataError, match=r"target 'y' of table.csv lacks 2 of 3 values \(in row 1, 3"):
        load_table(csv("a,y\n1,\n2,x\n3,NA\n"), "y")


def test_an_unknown_target_gets_a_suggestion(csv):
    path = csv("age,Price,size\n1,2,3\n4,5,6\n")
    with pytest.raises(DataError, match=r"no column 'prize' \(the target one\). Did you mean 'Price'"):
        load_table(path, "prize")
    with pytest.raises(DataError, match=r"no column 'qqq'.*It has columns 'age', 'Price', 'size'"):
        load_table(path, "qqq")
    with pytest.raises(DataError, match=r"no column 'sise' \(the dropped one\)"):
        load_table(path, "age", drop=["sise"])
    with pytest.raises(DataError, match="both the target and dropped"):
        load_table(path, "age", drop=["age"])
    with pytest.raises(DataError, match=r"needs a target: name the column.*'age', 'Price', 'size'"):
        open_table(path)


def test_a_name_that_occurs_twice_is_numbered(csv):
    table = load_table(csv("a,b,a,y\n1,2,3,0\n4,5,6,1\n"), "y")
    assert table.feature_names == ("a", "b", "a (2)")
    assert table.notes == ("column 'a' occurs more than once; the others are numbered, such as 'a (2)'.",)
    table = load_table(csv("c,c=x,y\nx,1,0\ny,2,1\nz,3,0\n"), "y", one_hot=True)
    assert table.feature_names == ("c=x", "c=y", "c=z", "c=x (2)")


def test_all_problems_are_listed_at_once_with_what_solves_them(csv):
    path = csv("day,a,b,empty,c,y\n2024-01-01,1,,,u,0\n2024-01-02,,5,,v,1\n2024-01-03,3,6,,u,\n")
    with pytest.raises(TableError) as caught:
        load_table(path, "y")
    error = pickle.loads(pickle.dumps(caught.value))
    assert len(error.problems) == 5
    assert error.remedies == {
        "skip_unlabelled": True, "drop": ["empty"], "dates": True, "one_hot": True, "impute": True,
    }  # fmt: skip
    assert str(error).startswith("table.csv has 5 problems. (1) the target 'y' of table.csv lacks 1 of 3 values")
    assert load_table(path, "y", **error.remedies).y.tolist() == [0, 1]


@pytest.mark.parametrize("text", ["", "\n", "   \n"])
def test_an_empty_file_is_refused(csv, text):
    with pytest.raises(DataError, match=r"table.csv' is empty"):
        load_table(csv(text), "y")


def test_a_header_without_rows_or_features_is_refused(csv, parquet):
    empty = {
        "a": pyarrow.array([], pyarrow.float32()),
        "b": pyarrow.array([], pyarrow.string()),
        "y": pyarrow.array([]),
    }
    with pytest.raises(DataError, match="column names but no rows"):
        load_table(parquet(empty), "y")
    with pytest.raises(DataError, match="column names but no rows"):
        load_table(csv("a,y\n"), "y")
    with pytest.raises(DataError, match="no column besides the target 'y'"):
        load_table(csv("y\n1\n2\n"), "y")


def test_files_that_are_not_tables_are_refused(csv, tmp_path):
    with pytest.raises(
        DatasetError, match=r"'ragged.csv' cannot be read as a table: line 2 has 3 cells and the header 2"
    ):
        load_table(csv("a,y\n1,2,3\n", "ragged.csv"), "y")
    with pytest.raises(DatasetError, match=r"'table.parquet' is not a Parquet file: it starts with b'a,y"):
        load_table(csv("a,y\n1,2\n", "table.parquet"), "y")
    with pytest.raises(DatasetError, match=r"'cut.csv.gz' is truncated"):
        load_table(csv(gzip.compress(b"a,y\n1,2\n" * 100)[:-12], "cut.csv.gz"), "y")
    with pytest.raises(DataError, match=r"'table.xls' does not end in one of .csv.*save the table as CSV or Parquet"):
        load_table(csv("a,y\n1,2\n", "table.xls"), "y")
    with pytest.raises(DatasetError, match="there is no file"):
        load_table(tmp_path / "nowhere.csv", "y")


def test_demo_tables_have_names_and_labels():
    table = load_demo("breast-cancer")
    data = load_breast_cancer()
    np.testing.assert_array_equal(table.X, data.data)
    assert table.feature_names == tuple(data.feature_names)
    assert set(table.y) == {"benign", "malignant"}
    assert load_demo("digits").X.shape == (1797, 64)
    with pytest.raises(SettingError, match="'wine', 'breast-cancer', 'digits', 'diabetes'"):
        load_demo("iris")


def test_tables_are_opened_by_name_or_path(csv, uci):
    assert open_table("wine").X.shape == (178, 13)
    assert open_table(csv("a,y\n1,x\n2,z\n"), target="y").name == "table.csv"
    with pytest.raises(
        DatasetError, match=r"'breastcancer' is neither a file nor a known table. Did you mean 'breast-c"
    ):
        open_table("breastcancer")
    with pytest.raises(DatasetError, match="The known names are wine, breast-cancer, digits, diabetes, australian"):
        open_table("qqqqqq")
    with pytest.raises(DataError, match="built-in table with the target 'class'"):
        open_table("wine", target="alcohol")
    sonar = uci("sonar")
    table = open_table("sonar")
    np.testing.assert_array_equal(table.X, sonar.X)
    assert set(table.y) == {"M", "R"}


def test_without_pyarrow_the_sentence_names_the_extra(csv):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from subswarm.datasets import load_table\n"
        "try: load_table(sys.argv[1], 'y')\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    path = csv("a,y\n1,2\n")
    said = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    assert said.startswith("MissingExtraError")
    assert "pip install 'subswarm[cli]'" in said


@pytest.mark.parametrize("word", ["a" * 400, "a\0b", "a\0b.csv", "~nobody-here/x.csv", "b" * 400 + ".csv"])
def test_a_name_that_no_file_can_have_is_a_clear_error(word):
    with pytest.raises(DatasetError, match=r"neither a file nor a known table|cannot be opened|there is no file"):
        open_table(word, target="y")
