"""Archives are unpacked only if their declared sizes and names are plausible."""

from __future__ import annotations

import io
import struct
import sys
import zipfile

import pytest

from mutations import workbook
from subswarm.datasets._archive import LARGEST_TOTAL, open_archive, read_member
from subswarm.datasets._parse import parse_workbook
from subswarm.errors import DatasetError, MissingExtraError


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as writing:
        for name, content in members.items():
            writing.writestr(name, content)
    return packed.getvalue()


def declaring(content: bytes, size: int) -> bytes:
    """The archive of one member, whose declared size is another one, in both places where it stands."""
    changed = bytearray(content)
    directory = content.rindex(b"PK\x01\x02")
    changed[22:26] = changed[directory + 24 : directory + 28] = struct.pack("<I", size)
    return bytes(changed)


def read(content: bytes, member: str = "a.data") -> bytes:
    with open_archive(content, "all.zip") as opened:
        return read_member(opened, member, "all.zip")


def test_a_member_is_read():
    assert read(archive({"a.data": b"1,2\n" * 1000, "docs/names.txt": b"x"})) == b"1,2\n" * 1000
    assert read(archive({"a.data": b"1,2\n"}, zipfile.ZIP_STORED)) == b"1,2\n"


def test_a_bomb_is_refused_before_it_is_unpacked():
    bomb = archive({"a.data": bytes(50_000_000)})
    with pytest.raises(DatasetError, match=r"all.zip has \d+ bytes and declares 50000000 .* more than 200 times"):
        read(bomb)


def test_a_total_beyond_the_limit_is_refused_before_it_is_unpacked():
    large = declaring(archive({"a.data": b"x" * 100}), LARGEST_TOTAL + 1)
    with pytest.raises(
        DatasetError, match=rf"declares {LARGEST_TOTAL + 1} bytes when unpacked; the limit is {LARGEST_TOTAL}"
    ):
        read(large)


@pytest.mark.parametrize("declared", [10, 3999, 4001, 900_000])
def test_a_member_that_is_longer_or_shorter_than_declared_is_refused(declared):
    with pytest.raises(DatasetError, match=r"all.zip (declares|is not a zip archive, or a damaged one)"):
        read(declaring(archive({"a.data": b"1,2\n" * 1000}), declared))


@pytest.mark.parametrize("name", ["../a", "x/../../a", "/etc/a", "C:/a", "C:\\a", "..\\a", "\\a"])
def test_a_name_that_leads_outside_is_refused(name):
    with pytest.raises(DatasetError, match="that points outside the archive; it is not unpacked"):
        read(archive({"a.data": b"1", name: b"2"}))


def test_other_methods_absent_members_and_no_archives_are_refused():
    with pytest.raises(DatasetError, match="encrypted, or not compressed by deflate"):
        read(archive({"a.data": b"1"}, zipfile.ZIP_BZIP2))
    with pytest.raises(DatasetError, match=r"all.zip has no member 'a.data'; it has 'b.data'."):
        read(archive({"b.data": b"1"}))
    for content in (b"", b"no archive", archive({"a.data": b"1"})[:-5]):
        with pytest.raises(DatasetError, match=r"all.zip is not a zip archive, or a damaged one"):
            read(content)


def test_a_workbook_is_read_or_refused():
    assert parse_workbook(workbook(), ["Data"]) == [["size", "kind"], ["2.5", "0"], ["3.5", "1"], ["4.5", "0"]]
    with pytest.raises(DatasetError, match=r"has no sheet 'Other'; it has .'Data'"):
        parse_workbook(workbook(), ["Other"])
    with pytest.raises(DatasetError, match=r"the workbook is damaged"):
        parse_workbook(archive({"a.data": b"1"}), ["Data"])
    with pytest.raises(DatasetError, match=r"the workbook has .* no data set is compressed that much"):
        parse_workbook(archive({"xl/workbook.xml": b"0" * 10**7}), ["Data"])
    with zipfile.ZipFile(io.BytesIO(workbook())) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    for old, new in ((b'r="B2"', b'r="ZZZZZZ2"'), (b't="n"><v>1</v>', b't="s"><v>77</v>'), (b"</row>", b"")):
        with pytest.raises(DatasetError, match="the workbook is damaged"):
            parse_workbook(archive(parts | {sheet: parts[sheet].replace(old, new)}), ["Data"])


def test_a_workbook_without_openpyxl_names_the_extra(monkeypatch):
    content = workbook()
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"needs openpyxl.*pip install 'subswarm\[data\]'"):
        parse_workbook(content, ["Data"])
