"""Files that were valid once: seeded random damage to the bytes of small tables."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Iterator

__all__ = ["mutations", "seed_files", "workbook"]

TEXT = (
    'size (m),"colour, shade",day,flag,kind\n'
    '1.5,red,2024-01-02,true,a\n2e1,"blue ""navy""",2024-01-03,false,b\n'
    '-3,größer,?,true,a\n,"two\nlines",2024-01-05,false,b\n7,red,2024-01-06,true,a\n'
)
_SPECIAL = [
    b"\0",
    b"\xff",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b'"',
    b"\n",
    b"\r",
    b",",
    b";",
    b"\t",
    b"nan",
    b"inf",
    b"1e999",
    b"?",
]


def seed_files() -> dict[str, bytes]:
    """Valid tables by file name, in every format that is read; each has the target "kind"."""
    import pyarrow
    import pyarrow.parquet

    columns = {
        "size": [1.5, 2.0, None, 4.0, 7.5],
        "count": [1, 2, 3, 4, 5],
        "colour": ["red", "blue", "größer", None, "red"],
        "flag": [True, False, True, False, None],
        "kind": ["a", "b", "a", "b", "a"],
    }
    files = {
        "plain.csv": TEXT.encode(),
        "marked.csv": TEXT.encode("utf-8-sig"),
        "wide.csv": TEXT.encode("utf-16"),
        "tabs.tsv": TEXT.replace(",", "\t").encode(),
        "packed.csv.gz": gzip.compress(TEXT.encode(), mtime=0),
    }
    for compression in ("none", "snappy", "gzip"):
        sink = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(columns), sink, compression=compression)
        files[f"{compression}.parquet"] = sink.getvalue()
    return files


def workbook() -> bytes:
    """A workbook of one sheet, "Data", with a header and three rows."""
    from openpyxl import Workbook

    book = Workbook()
    book.active.title = "Data"
    for row in (("size", "kind"), (2.5, 0), (3.5, 1), (4.5, 0)):
        book.active.append(row)
    packed = io.BytesIO()
    book.save(packed)
    return packed.getvalue()


def mutations(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """``count`` damaged copies: bytes changed, put in, taken out, repeated, or the end cut off."""
    draw = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(content)
        for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
            _damage(damaged, draw)
        yield bytes(damaged)


def _damage(content: bytearray, draw: random.Random) -> None:
    place = draw.randrange(len(content) + 1)
    length = draw.choice((1, 1, 2, 8, 64))
    match draw.randrange(6):
        case 0 if place < len(content):
            content[place] = draw.randrange(256)
        case 1 if place < len(content):
            content[place] ^= 1 << draw.randrange(8)
        case 2:
            content[place:place] = draw.choice(_SPECIAL)
        case 3:
            del content[place : place + length]
        case 4:
            content[place:place] = content[place : place + length] * draw.choice((1, 3))
        case _:
            if draw.random() < 0.3:
                del content[place:]
