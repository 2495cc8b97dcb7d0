"""One table written in many ways: separators, decimal commas, encodings and signs change nothing of what is read."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from subswarm.datasets import load_table

from .case import Case, announce, pick, short

__all__ = ["read_back"]

_FLAGS = (("no", "yes"), ("N", "Y"), ("false", "true"), ("Off", "On"))


@dataclass(frozen=True, eq=False)
class _Written:
    """A file's content, the arguments that it needs, and the numbers that it holds."""

    name: str
    content: bytes
    options: dict[str, Any]
    names: tuple[str, ...]
    X: Any
    y: list[str]
    words: str


def read_back(rng: np.random.Generator, case: Case, folder: Path) -> None:
    """Read a table in a random dialect, sometimes with the command line, and compare it with what was written."""
    written = _write(rng)
    announce(written.words)
    path = folder / written.name
    path.write_bytes(written.content)
    try:
        table = load_table(path, "kind", **written.options)
    except BaseException as error:
        case.judge(error, written.words)
        case.differs("a sound table is refused", f"{short(str(error), 300)} | {written.words}")
        return
    if not _is_same(table, written.names, written.X, written.y):
        found = f"{table.feature_names}, {short(table.X[:2].tolist(), 150)}, {short(list(table.y[:4]))}"
        text = f"read {found} for {written.names}, {short(written.X[:2].tolist(), 150)}, {written.y[:4]}"
        case.differs("a table is read as another", f"{text} | {written.words}")
    elif rng.random() < 0.05:
        _select(case, written, path, folder / pick(rng, ("small.csv", "small.parquet")))


def _is_same(table: Any, names: Any, X: Any, y: Any) -> bool:
    return tuple(table.feature_names) == tuple(names) and np.array_equal(table.X, X) and list(map(str, table.y)) == y


def _select(case: Case, written: _Written, path: Path, small: Path) -> None:
    """Select columns with the command line, and read the table that it writes."""
    from typer.testing import CliRunner

    from subswarm.cli import app

    arguments = ["select", str(path), "--target", "kind", "--model", "nb", "--algorithm", "random", "--cv", "2"]
    arguments += ["--evaluations", "4", "--jobs", "1", "--quiet", "--write", str(small)]
    arguments += ["--encoding", written.options["encoding"]] if "encoding" in written.options else []
    arguments += [part for text in written.options.get("missing", ()) for part in ("--missing", text)]
    arguments += ["--skip-unlabelled"] if written.options.get("skip_unlabelled") else []
    outcome = CliRunner().invoke(app, arguments)
    if outcome.exit_code != 0:
        if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
            case.judge(outcome.exception, f"subswarm select: {written.words}")
        case.differs("select ends with an error", f"{short(outcome.output, 300)} | {written.words}")
        return
    options = {name: value for name, value in written.options.items() if name != "encoding"}
    again = load_table(small, "kind", **options)
    places = [written.names.index(name) for name in again.feature_names]
    if not _is_same(again, again.feature_names, written.X[:, places], written.y):
        text = f"{again.feature_names}, {short(again.X[:2].tolist(), 150)}"
        case.differs("--write gives another table", f"{text} in {small.name} | {written.words}")


def _write(rng: np.random.Generator) -> _Written:
    rows = int(rng.integers(8, 25))
    delimiter = pick(rng, (",", ";", "\t"))
    comma = delimiter != "," and bool(rng.random() < 0.5)
    quoted = bool(rng.random() < 0.3)
    encoding, options = pick(
        rng, (("utf-8", False), ("utf-8-sig", False), ("utf-16", False), ("cp1252", True), ("latin-1", True))
    )
    given: dict[str, Any] = {"encoding": encoding} if options else {}
    columns: dict[str, list[str]] = {}
    values: list[Any] = []
    for number in range(int(rng.integers(2, 5))):
        found, texts = _numbers(rng, rows, comma)
        columns[f"{pick(rng, ('size', 'größe', 'x y', 'a/b'))} {number}"] = texts
        values.append(found)
    if rng.random() < 0.5:
        bits = rng.permutation(np.arange(rows) % 2)
        names = pick(rng, _FLAGS)
        columns["flag"] = [names[bit] for bit in bits]
        values.append(bits.astype(float))
    y = [("left", "right")[row % 2] for row in range(rows)]
    columns["kind"] = list(y)
    X = np.column_stack(values)
    if rng.random() < 0.3:
        gap = pick(rng, ("", "?", "NA", "keine"))
        given |= {"skip_unlabelled": True} | ({"missing": ["keine"]} if gap == "keine" else {})
        gone = int(rng.integers(rows))
        columns["kind"][gone] = gap
        X, y = np.delete(X, gone, axis=0), y[:gone] + y[gone + 1 :]
    order = rng.permutation(list(columns))
    table = [list(order), *zip(*(columns[name] for name in order), strict=True)]
    end = pick(rng, ("\n", "\r\n"))
    lines = [delimiter.join(_cell(text, delimiter, quoted) for text in row) for row in table]
    content = (end.join(lines) + pick(rng, ("", end))).encode(encoding)
    packed = bool(rng.random() < 0.2)
    features = [name for name in order if name != "kind"]
    places = [[*columns].index(name) for name in features]
    words = f"{delimiter!r}, decimal {'comma' if comma else 'point'}, {encoding}, {given}, {short(content, 400)}"
    return _Written(
        "table.csv.gz" if packed else "table.csv",
        gzip.compress(content, 1) if packed else content,
        given,
        tuple(map(str, features)),
        X[:, places],
        y,
        words,
    )


def _cell(text: str, delimiter: str, quoted: bool) -> str:
    return f'"{text}"' if quoted or delimiter in text else text


def _numbers(rng: np.random.Generator, rows: int, comma: bool) -> tuple[Any, list[str]]:
    """Numbers, and how they are written: with one style for the whole column."""
    digits, size = int(rng.integers(1, 4)), pick(rng, (1.0, 100.0, 1e4, 1e7))
    values = np.round(rng.normal(size=rows) * size, digits)
    grouping = pick(rng, ("", "", " ", "'", "." if comma else ","))
    before, after = pick(rng, (("", ""), ("", ""), ("$", ""), ("£ ", ""), ("", " ¥"), ("", "%"), (" ", " ")))
    texts = []
    for value in values:
        text = f"{abs(value):,.{digits}f}".replace(",", "_").replace(".", "," if comma else ".")
        sign = "-" if value < 0 else pick(rng, ("", "", "+"))
        texts.append(f"{sign}{before}{text.replace('_', grouping)}{after}")
    return values, texts
