"""CSV files in other encodings are read, or refused with the place and encodings to try."""

from __future__ import annotations

import gzip

import pytest

from subswarm.datasets import load_table, open_table
from subswarm.errors import DatasetError, SettingError

TEXT = "größe (€),b,y\n1,2,süß\n3,4,b\n"


@pytest.fixture
def csv(tmp_path):
    """``csv(content)``: the path of a CSV file with those bytes."""

    def write(content: bytes, name: str = "table.csv"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_the_encoding_of_a_byte_order_mark_is_used(csv, encoding):
    table = load_table(csv(TEXT.encode(encoding)), "y")
    assert table.feature_names == ("größe (€)", "b")
    assert table.y.tolist() == ["süß", "b"]
    says = (
        ()
        if encoding == "utf-8-sig"
        else (f"'table.csv' is read as {encoding.upper()}, according to its byte order mark.",)
    )
    assert table.notes == says


@pytest.mark.parametrize(
    "encoding", ["cp1252", "Windows-1252", "iso8859-15", "utf-16-le", "utf-16-be", "utf-16", "UTF8"]
)
@pytest.mark.parametrize("packed", [False, True])
def test_an_encoding_that_is_named_is_used(csv, encoding, packed):
    content = TEXT.encode(encoding)
    path = csv(gzip.compress(content), "table.csv.gz") if packed else csv(content)
    table = load_table(path, "y", encoding=encoding)
    assert table.feature_names == ("größe (€)", "b")
    assert table.y.tolist() == ["süß", "b"]
    assert open_table(path, target="y", encoding=encoding).notes == ()


def test_a_mark_and_its_own_encoding_agree(csv):
    for encoding, named in [("utf-8-sig", "utf-8"), ("utf-16", "utf-16"), ("utf-16", "utf-16-le")]:
        content = TEXT.encode(encoding)
        if named == "utf-16-le":
            content = b"\xff\xfe" + TEXT.encode(named)
        assert load_table(csv(content), "y", encoding=named).feature_names[0] == "größe (€)"
    with pytest.raises(DatasetError, match="starts with the byte order mark of UTF-8, which contradicts 'latin-1'"):
        load_table(csv(TEXT.encode("utf-8-sig")), "y", encoding="latin-1")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_bytes_that_are_not_utf8_are_placed_and_encodings_named(csv, mark):
    content = mark + "a,c,y\n1,Größe,2\n2,x,3\n".encode("cp1252")
    place = len(mark) + 10
    with pytest.raises(
        DatasetError,
        match=rf"^'table.csv' is not UTF-8: byte 0xF6 at offset {place} \(line 2\) .*set its encoding "
        r"\(encoding=..., --encoding\), such as 'cp1252' or 'latin-1', with which the text there is '1,Größe,2'.$",
    ):
        load_table(csv(content), "y", one_hot=True)
    assert "c=x" in load_table(csv(content[len(mark) :]), "y", one_hot=True, encoding="latin-1").feature_names


def test_the_place_is_right_far_into_a_file(csv):
    rows = b"1,\xc3\xb6\n" * 1_500_000  # longer than a chunk, with characters across the chunks' borders
    with pytest.raises(DatasetError, match=rf"byte 0xE9 at offset {len(rows) + 4} \(line 1500002\)"):
        load_table(csv(b"a,y\n" + rows + b"\xe9,1\n"), "y")


def test_a_character_that_is_cut_off_at_the_end_is_placed(csv):
    with pytest.raises(DatasetError, match=r"byte 0xC3 at offset 6 \(line 2\)"):
        load_table(csv(b"a,y\n1,\xc3"), "y")
    with pytest.raises(DatasetError, match=r"is not UTF-16: .*\(line 3\).* so it is damaged. Get a new copy"):
        load_table(csv("a,y\n1,x\n2,z\n".encode("utf-16")[:-3]), "y")


def test_bytes_that_the_named_encoding_lacks_are_placed(csv):
    with pytest.raises(DatasetError, match=r"is not CP1252: byte 0x81 at offset 6 \(line 2\).*set another encoding"):
        load_table(csv(b"a,y\n1,\x81\n"), "y", encoding="cp1252")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_recognized_and_asked_about(csv, encoding):
    with pytest.raises(DatasetError, match=rf"NUL byte in line 1 .*--encoding {encoding}"):
        load_table(csv(TEXT.encode(encoding)), "y")


@pytest.mark.parametrize("name", ["latin-99", "", "base64", "rot13", "idna", "unicode_escape", "undefined", "a\0b", 7])
def test_an_unknown_encoding_is_refused(csv, name):
    with pytest.raises(SettingError, match=r"there is no text encoding .*'utf-8', 'cp1252', 'latin-1' and 'utf-16'"):
        load_table(csv(b"a,y\n1,2\n"), "y", encoding=name)


def test_a_misspelt_encoding_gets_a_suggestion(csv):
    with pytest.raises(SettingError, match="Did you mean 'windows-1252'"):
        load_table(csv(b"a,y\n1,2\n"), "y", encoding="widnows-1252")


def test_an_encoding_is_for_csv_files_only(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    pyarrow.parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2], "y": [0, 1]}), tmp_path / "table.parquet")
    with pytest.raises(SettingError, match="is Parquet, whose text is UTF-8"):
        load_table(tmp_path / "table.parquet", "y", encoding="latin-1")
    for source in ("wine", "sonar", "openml:61"):
        with pytest.raises(SettingError, match="is for CSV files"):
            open_table(source, encoding="latin-1")
