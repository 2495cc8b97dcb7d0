"""Reading text files as UTF-8, with errors that name the place of undecodable bytes."""

from __future__ import annotations

import codecs
import encodings.aliases
import gzip
import zlib
from pathlib import Path

from subswarm._checks import suggest
from subswarm.errors import DatasetError, SettingError

__all__ = ["UndecodableError", "check_encoding", "line_of", "read_utf8"]

_BYTE_ORDER_MARKS = {  # UTF-32 before UTF-16, whose mark is the start of the former
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_OTHER_FORMATS = {
    b"PK\x03\x04": "a ZIP archive or an Excel workbook: save the table as CSV, or name a workbook .xlsx",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save the table as CSV",
    b"\x1f\x8b": "compressed with gzip: its name must end in .gz",
    b"PAR1": "a Parquet file: its name must end in .parquet",
}
# Text encodings of Python that are not used for files.
_NOT_OF_FILES = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
_CHUNK = 1 << 22
_SHOWN = 12


class UndecodableError(DatasetError):
    """A file has bytes that are not text in the encoding it is read with."""


def check_encoding(encoding: str) -> str:
    """Return Python's name of an encoding; SettingError if it is not an encoding of text files.

    Examples
    --------
    >>> check_encoding("Latin1"), check_encoding("windows-1252")
    ('iso8859-1', 'cp1252')
    """
    try:
        name = codecs.lookup(encoding).name
        b"a".decode(name, errors="replace")
        if name.replace("_", "-") not in _NOT_OF_FILES:
            return name
    except (LookupError, TypeError, ValueError):
        pass
    known = sorted({each.replace("_", "-") for each in (*encodings.aliases.aliases, "cp1252", "latin-1", "utf-8")})
    raise SettingError(
        f"there is no text encoding {encoding!r}.{suggest(encoding, known)} Common ones are 'utf-8', 'cp1252', "
        "'latin-1' and 'utf-16'."
    )


def read_utf8(file: Path, encoding: str | None) -> tuple[bytes, str | None]:
    """Return the content of a text file as UTF-8 (decompressed if its name ends in .gz), and a note on how it was read.

    The encoding is ``encoding``, or that of the byte order mark, or UTF-8. Other encodings are not guessed: nearly
    every file can be read as Latin-1, and wrong names would go unnoticed.
    """
    content = _unpacked(file)
    marked = next((codec for mark, codec in _BYTE_ORDER_MARKS.items() if content.startswith(mark)), None)
    codec = _codec(file, encoding, marked)
    _check_not_another_format(file, content)
    if codec in ("utf-8", "utf-8-sig"):
        _check_no_nul(file, content, asked=encoding is not None)
        _check_utf8(file, content, asked=encoding is not None)
        return content.removeprefix(codecs.BOM_UTF8), None
    content = _recoded(file, content, codec, asked=encoding is not None)
    _check_no_nul(file, content, asked=encoding is not None)
    return content, None if encoding else f"{file.name!r} is read as {codec.upper()}, according to its byte order mark."


def line_of(content: bytes, offset: int) -> int:
    """Return the line, counted from 1, of the byte at ``offset``."""
    return max(content.count(end, 0, offset) for end in (b"\n", b"\r")) + 1


def _unpacked(file: Path) -> bytes:
    content = file.read_bytes()
    if not file.name.lower().endswith(".gz") or not content:
        return content
    try:
        return gzip.decompress(content)
    except gzip.BadGzipFile as error:
        if content.startswith(b"\x1f\x8b"):
            raise DatasetError(f"{file.name!r} holds damaged gzip data ({error}); get a new copy.") from error
        raise DatasetError(
            f"{file.name!r} is not compressed with gzip, although it ends in .gz; rename it, or get a new copy."
        ) from error
    except EOFError as error:
        raise DatasetError(
            f"{file.name!r} is truncated: its gzip data ({len(content)} bytes) have no end; get a new copy."
        ) from error
    except zlib.error as error:
        raise DatasetError(f"{file.name!r} holds damaged gzip data ({error}); get a new copy.") from error


def _codec(file: Path, encoding: str | None, marked: str | None) -> str:
    """Return the codec to decode with; DatasetError if the byte order mark contradicts ``encoding``."""
    if encoding is None:
        return marked or "utf-8"
    codec = check_encoding(encoding)
    family = (marked or codec).removesuffix("-sig")
    if not codec.startswith(family):
        raise DatasetError(
            f"{file.name!r} starts with the byte order mark of {family.upper()}, which contradicts {encoding!r}; leave "
            "the encoding out (encoding=..., --encoding)."
        )
    return marked or codec


def _check_utf8(file: Path, content: bytes, *, asked: bool) -> None:
    if content.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(content), _CHUNK):
        chunk = content[start : start + _CHUNK]
        if chunk.isascii() and not decoder.getstate()[0]:  # no bytes left over from the previous chunk
            continue
        try:
            decoder.decode(chunk, final=start + _CHUNK >= len(content))
        except UnicodeDecodeError as error:  # its object starts with the bytes left over from the previous chunk
            offset = start - (len(error.object) - len(chunk)) + error.start
            raise _undecodable(file, content, offset, "utf-8", asked=asked) from error


def _recoded(file: Path, content: bytes, codec: str, *, asked: bool) -> bytes:
    try:
        return content.decode(codec).removeprefix("\ufeff").encode("utf-8")
    except UnicodeDecodeError as error:
        raise _undecodable(file, content, error.start, codec, asked=asked) from error
    except UnicodeError as error:
        raise DatasetError(f"{file.name!r} cannot be read as {codec}: {error}.") from error


def _undecodable(file: Path, content: bytes, offset: int, codec: str, *, asked: bool) -> DatasetError:
    """Make the error that names the first undecodable byte, and encodings to try."""
    before = content[:offset].decode(codec, errors="ignore").encode("utf-8", errors="ignore")
    place = f"byte 0x{content[offset]:02X} at offset {offset} (line {line_of(before, len(before))}) is not valid there"
    if not asked and codec != "utf-8":
        advice = "it has that byte order mark, so it is damaged. Get a new copy"
    else:
        verb = "set another encoding" if asked else "set its encoding"
        advice = f"{verb} (encoding=..., --encoding), {_trial(content, offset)}"
    return UndecodableError(f"{file.name!r} is not {codec.upper()}: {place}; {advice}.")


def _trial(content: bytes, offset: int) -> str:
    """Name encodings to try, with the text at that place."""
    before = content[max(0, offset - _SHOWN) : offset].splitlines()[-1:]
    after = content[offset : offset + _SHOWN].splitlines()[:1]
    try:
        shown = b"".join(before + after).decode("cp1252")
    except UnicodeDecodeError:
        return "such as 'latin-1' or 'cp1250'"
    return f"such as 'cp1252' or 'latin-1', with which the text there is {shown!r}"


def _check_no_nul(file: Path, content: bytes, *, asked: bool) -> None:
    offset = content.find(b"\0")
    if offset < 0:
        return
    likely = "utf-16-be" if offset % 2 == 0 else "utf-16-le"  # by the place of the zero byte of ASCII letters
    advice = (
        "Is the encoding right?"
        if asked
        else f"If it is UTF-16, set the encoding (encoding={likely!r}, --encoding {likely})."
    )
    raise DatasetError(
        f"{file.name!r} is not plain text: there is a NUL byte in line {line_of(content, offset)} (offset {offset}). "
        f"{advice} Otherwise save the table as CSV again."
    )


def _check_not_another_format(file: Path, content: bytes) -> None:
    """Raise DatasetError for binary formats. Text may start with "PAR1", but has no control characters there."""
    for mark, other in _OTHER_FORMATS.items():
        if content.startswith(mark) and any(byte < 9 or 13 < byte < 32 for byte in content[:64]):
            raise DatasetError(f"{file.name!r} is not a CSV file but {other}.")
