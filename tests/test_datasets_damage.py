"""A damaged file, or one of another format, is refused with an error that names it."""

from __future__ import annotations

import gzip
import io
import os
import random

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from subswarm.datasets import impute_nearest, load_table, open_table
from subswarm.errors import DataError, DatasetError

ROWS = b"a,y\n" + b"1,2\n3,4\n" * 50
PACKED = gzip.compress(ROWS, mtime=0)


def words_only(value: object) -> str:
    """The name of a case: its words, not its bytes."""
    return value[:40] if isinstance(value, str) else ""


def parquet() -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"a": list(range(100)), "y": [0.5] * 100}), sink)
    return sink.getvalue()


@pytest.fixture
def file(tmp_path):
    """``file(content, name)``: the path of a file with those bytes."""

    def write(content: bytes, name: str = "table.csv"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (PACKED[:-12], "is truncated: its gzip data"),
        (PACKED[:5], "is truncated: its gzip data"),
        (PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:], "holds damaged gzip data .CRC check failed"),
        (PACKED[:12] + b"\xff" + PACKED[13:], "holds damaged gzip data"),
        (PACKED + b"more", "holds damaged gzip data .Not a gzipped file"),
        (ROWS, "is not compressed with gzip, although it ends in .gz; rename it"),
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
    ],
    ids=words_only,
)
def test_damaged_gzip_data_are_refused(file, content, words):
    with pytest.raises((DataError, DatasetError), match=rf"^'table.csv.gz' {words}"):
        load_table(file(content, "table.csv.gz"), "y")


def test_gzip_data_in_parts_or_padded_with_zeros_are_read(file):
    content = gzip.compress(ROWS[:40]) + gzip.compress(ROWS[40:]) + b"\0" * 100
    assert load_table(file(content, "table.csv.gz"), "y").X.shape == (100, 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a Parquet file: it starts with b''"),
        (b"hello, world, hello", "is not a Parquet file: it starts with b'hell'"),
        (parquet()[:-100], "is truncated: a Parquet file ends with b'PAR1'"),
        (b"PAR1PAR1", "is truncated"),
        (b"PAR1" + bytes(50) + b"PAR1", "is a damaged Parquet file .*; get a new copy"),
        (parquet()[:-8] + b"\xff\xff\xff\x7fPAR1", "is a damaged Parquet file"),
        (parquet()[:4] + bytes(200) + parquet()[204:], "is a damaged Parquet file"),
    ],
    ids=words_only,
)
def test_damaged_parquet_files_are_refused(file, content, words):
    with pytest.raises(DatasetError, match=rf"^'table.parquet' {words}") as caught:
        load_table(file(content, "table.parquet"), "y")
    assert "\n" not in str(caught.value)


def test_a_page_whose_checksum_is_wrong_is_refused(file):
    sink = io.BytesIO()
    values = np.random.default_rng(0).normal(size=1000)
    pyarrow.parquet.write_table(
        pyarrow.table({"a": values, "y": values}),
        sink,
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
    )
    content = bytearray(sink.getvalue())
    content[2000] ^= 1
    with pytest.raises(DatasetError, match=r"is a damaged Parquet file .*\(.*[Cc][Rr][Cc].*\)"):
        load_table(file(bytes(content), "table.parquet"), "y")


def test_parquet_text_that_is_not_utf8_is_refused_by_column(file):
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"a": ["grosse", "x"], "y": [0, 1]}), sink, compression="none")
    content = sink.getvalue().replace(b"grosse", b"gr\xf6\xdfe!")
    with pytest.raises(DataError, match=r"^table.parquet has text that is not UTF-8 in column 'a'"):
        load_table(file(content, "table.parquet"), "y")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04\x14\0\x06\0", "a ZIP archive or an Excel workbook: save the table as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook"),
        (PACKED, "compressed with gzip: its name must end in .gz"),
        (parquet(), "a Parquet file: its name must end in .parquet"),
    ],
    ids=words_only,
)
def test_another_format_under_the_name_of_csv_is_recognized(file, content, words):
    with pytest.raises(DatasetError, match=rf"^'table.csv' is not a CSV file but {words}"):
        load_table(file(content), "y")


def test_a_text_may_begin_like_another_format(file):
    assert load_table(file(b"PAR1\ty\n1\t2\n3\t4\n"), "y").feature_names == ("PAR1",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,y\n1,2\n3\n", "line 3 has 1 cell and the header 2 cells.$"),
        (b"a,y\n\n1,2\n3,4,5\n", "line 4 has 3 cells and the header 2 cells.$"),
        (b'a,y\n"two\nlines",2\n3,4,5\n', "line 4 has 3 cells and the header 2 cells.$"),
        (b'a,y\n1,2\n"3,4\n5,6\n', r"line 3 has 1 cell and the header 2 cells \(is a quotation mark not closed\?\).$"),
        (b'a,"y\n1,2\n3,4\n', "a quotation mark is not closed.$"),
        (
            b"a,y\n" + b"1,2\n" * 500_000 + b"1\n" + b"1,2\n" * 500_000,
            "line 500002 has 1 cell and the header 2 cells.$",
        ),
    ],
    ids=words_only,
)
def test_a_row_that_does_not_fit_is_named_by_its_line(file, content, words):
    with pytest.raises(DatasetError, match=rf"^'table.csv' cannot be read as a table: {words}"):
        load_table(file(content), "y")


def test_nul_bytes_are_reported_with_their_line(file):
    with pytest.raises(
        DatasetError, match=r"^'table.csv' is not plain text: there is a NUL byte in line 3 \(offset 9\)"
    ):
        load_table(file(b"a,y\n1,2\n3\0,4\n"), "y")


def test_an_empty_first_line_and_a_header_without_a_line_end_are_refused(file):
    with pytest.raises(DataError, match="starts with an empty line; the first line must have the column names"):
        load_table(file(b"\na,y\n1,2\n"), "y")
    with pytest.raises(DataError, match="column names but no rows"):
        load_table(file(b"a,y"), "y")


def test_lines_longer_than_a_block_of_the_parser_are_read(file):
    cells = [f"{k:0100}" for k in range(12_000)]
    wide = ",".join(cells).encode() + b",y\n" + b"".join(b"1.5," * len(cells) + b"%d\n" % row for row in range(3))
    table = load_table(file(wide), "y")
    assert table.X.shape == (3, 12_000)
    assert table.feature_names == tuple(cells)
    long = b"a,c,y\n1," + b"x" * 3_000_000 + b",0\n" + b"2,y,1\n" * 2
    assert load_table(file(long), "y", drop=["c"]).X.tolist() == [[1], [2], [2]]


@pytest.mark.parametrize("end", [b"\r", b"\r\n", b"\n"])
def test_every_kind_of_line_end_is_read_without_a_header_too(file, end):
    rows = end.join([b"1,2;5,a", b"2,3;5,b", b"4,4;5,a", b""])
    table = load_table(file(rows), "column 3", header=False, drop=["column 2"])
    assert table.X.tolist() == [[1], [2], [4]]
    with pytest.raises(DatasetError, match="line 1 is not a row of cells"):
        load_table(file(b'1,"' + b"x" * 200_000 + b'",a' + end), "column 1", header=False)


def test_line_ends_and_quotes_in_names_and_cells_are_read(file):
    table = load_table(file(b'"a\nb";"c ""d""";y\n1;2;"two\nlines"\n3;4;""""\n'), "y")
    assert table.feature_names == ("a\nb", 'c "d"')
    assert table.y.tolist() == ["two\nlines", '"']


def test_numbers_beyond_a_float_are_refused_and_large_ones_read(file):
    with pytest.raises(DataError, match="numbers too large for a float, in column 'a'"):
        load_table(file(f"a,y\n{10**400},2\n1,3\n".encode()), "y")
    with pytest.raises(DataError, match=r"target 'y' of table.csv has .*numbers too large for a float"):
        load_table(file(f"a,y\n2,{10**400}\n1,3\n".encode()), "y")
    assert load_table(file(f"a,y\n{10**30},2\n1,3\n".encode()), "y").X.tolist() == [[1e30], [1]]


def test_the_cell_that_makes_text_of_numbers_is_named(file):
    with pytest.raises(
        DataError, match=r"text in column 'a'. 'a' is text because of '12,5' in row 3. Features must be numbers"
    ):
        load_table(file(b'a,y\n1,1\n2,3\n"12,5",2\n'), "y")


def test_distances_that_overflow_are_refused_instead_of_imputed(file):
    with pytest.raises(
        DataError, match=r"in table.csv, .*distances between rows overflow with numbers as large as 1e\+308. Rescale"
    ):
        load_table(file(b"a,b,y\n1e200,1,1\n-1e300,,2\n1e308,2,3\n"), "y", impute=True)
    assert impute_nearest(np.array([[1e150, 1.0], [1e149, np.nan]])).tolist() == [[1e150, 1.0], [1e149, 1.0]]


def test_a_path_that_is_no_file_is_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for folder in (tmp_path, tmp_path / "folder.csv"):
        with pytest.raises(DatasetError, match="is a directory; name a CSV or Parquet file in it"):
            open_table(folder, target="y")
    with pytest.raises(DatasetError, match=r"(cannot be opened: |there is no file).*; check the path"):
        load_table("x" * 5000 + ".csv", "y")
    with pytest.raises(DatasetError, match=r"cannot be opened: .*home directory; check the path"):
        load_table("~no-such-user-here/table.csv", "y")
    with pytest.raises(DatasetError, match=r"there is no file|cannot be opened"):
        load_table("a\0b.csv", "y")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_file_that_may_not_be_read_is_refused(file, name):
    path = file(ROWS, name)
    path.chmod(0)
    with pytest.raises(DatasetError, match=rf"^'{name}' cannot be read as a table: Permission denied.$"):
        load_table(path, "y")
    path.parent.chmod(0)
    try:
        with pytest.raises(
            DatasetError, match=r"(cannot be opened: Permission denied|there is no file .*); check the path"
        ):
            load_table(path, "y")
    finally:
        path.parent.chmod(0o700)


@pytest.mark.skipif(os.name == "nt", reason="names of files are text there")
def test_a_name_that_is_no_text_is_read(tmp_path):
    path = os.fsencode(tmp_path) + b"/gr\xf6\xdfe.csv"
    try:
        with open(path, "wb") as stream:
            stream.write(ROWS)
    except OSError:
        pytest.skip("the file system takes only names that are text")
    assert load_table(os.fsdecode(path), "y").X.shape == (100, 1)


def test_random_bytes_are_refused(file):
    draw = random.Random(0)
    for name in ("table.csv", "table.csv.gz", "table.parquet"):
        with pytest.raises(DatasetError, match=rf"^'{name}' "):
            load_table(file(draw.randbytes(1000), name), "y")
