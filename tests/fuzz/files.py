"""Damaged files: checkpoints, stores, tables and study files give an answer or one of our own errors, nothing else."""

from __future__ import annotations

import functools
import gzip
import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from subswarm import Budget, algorithms, search
from subswarm._types import Limits
from subswarm.datasets import load_table
from subswarm.datasets._load import load_dataset
from subswarm.report.study_page import study_page
from subswarm.study import Contender, Source, Store, Study, read_study
from subswarm.study.records import Failure, Outcome, ProblemFacts, RunContent, RunTiming
from subswarm.study.status import read_status
from subswarm.study.tables import TABLES, study_tables

from .case import Case, announce, pick, short
from .dialects import read_back

__all__ = ["run"]

_FEATURES = 6
_ALGORITHMS = tuple(
    name for name in algorithms.names() if algorithms.REGISTRY[name].__base__.__name__ != "RankingSearch"
)
_VARIANTS: dict[str, Any] = {
    **{name: name for name in _ALGORITHMS},
    "2d-upso, adaptive": algorithms.TwoDUPSO(adaptive=True),
    "bpso, adaptive": algorithms.get_algorithm("bpso", adaptive=True),
    "2d-pareto with costs": algorithms.get_algorithm("2d-pareto").with_costs((1.0, 0.0, 2.5, 1.0, 1.0, 9.0)),
    "nsga2 with costs": algorithms.get_algorithm("nsga2").with_costs((1.0, 0.0, 2.5, 1.0, 1.0, 9.0)),
    "2d-elite, cross-fitted": "2d-elite",
    "2d-elite, cross-fitted to its end": "2d-elite",
    "race": algorithms.Race(algorithms.get_algorithm("ga")),
}
"""Searches that a checkpoint may hold."""
_JSON: tuple[Any, ...] = (
    None, True, 0, 1, -1, 2, 7, 10**30, -(10**30), 1.5, 1e308, float("nan"), float("inf"), "", "x", "PCG64", "MT19937",
    "default_rng", "Generator", "seed", [], [1], [[1]], ["x"], {}, {"a": 1}, {"dtype": "float64", "items": ["x"]},
    {"dtype": "O", "items": [1]}, {"dtype": "nothing", "items": []}, "é\x00",
)  # fmt: skip
_CELLS: tuple[Any, ...] = (
    None, 0, -1, 1, 2**62, 1.5, float("inf"), -1e308, "", "x", "[]", "[1]", "{}", "[[]]", "[[1,2,3]]", "[null]", "null",
    '"x"', "NaN", "[NaN]", b"\xff\x00", "é", '{"protocol":1}', "9" * 400, "[" * 3000,
)  # fmt: skip


def run(rng: np.random.Generator) -> Case:
    """One damaged file, read."""
    case = Case()
    shares = np.array([share for share, _ in _ENTRIES], dtype=float)
    entry = _ENTRIES[int(rng.choice(len(_ENTRIES), p=shares / shares.sum()))][1]
    with tempfile.TemporaryDirectory(prefix="case-") as folder:
        entry(rng, case, Path(folder))
    return case


def _call(case: Case, words: str, function: Callable[[], Any]) -> None:
    announce(words)
    try:
        function()
    except BaseException as error:
        case.judge(error, words)


def _damaged(rng: np.random.Generator, content: bytes) -> tuple[bytes, str]:
    """The bytes with something wrong, and what it is."""
    data = bytearray(content)
    kind = pick(rng, ("flip", "flip", "cut", "zeros", "insert", "remove", "swap", "double", "empty", "front"))
    place = int(rng.integers(max(1, len(data))))
    match kind:
        case "flip":
            for place in rng.integers(0, max(1, len(data)), size=int(rng.integers(1, 9))):
                if data:
                    data[int(place)] ^= 1 << int(rng.integers(8))
        case "cut":
            del data[place:]
        case "zeros":
            stop = min(len(data), place + int(rng.integers(1, 600)))
            data[place:stop] = bytes(stop - place)
        case "insert":
            data[place:place] = rng.bytes(int(rng.integers(1, 40)))
        case "remove":
            del data[place : place + int(rng.integers(1, 60))]
        case "swap":
            other = int(rng.integers(max(1, len(data))))
            data[place : place + 16], data[other : other + 16] = data[other : other + 16], data[place : place + 16]
        case "double":
            data += data[place:]
        case "empty":
            data.clear()
        case "front":
            del data[: place // 4]
    return bytes(data), kind


# ---------------------------------------------------------------------------------------------------- checkpoints


def _objective(masks: Any) -> Any:
    return (masks ^ (np.arange(masks.shape[1]) % 2 == 0)).mean(axis=1) + masks @ np.linspace(0.0, 0.1, masks.shape[1])


class _Partitioned:
    """An objective on three partitions, so that what a search keeps of them is in the file too."""

    n_features, n_partitions = _FEATURES, 3

    def __call__(self, masks: Any, partitions: Any = None) -> Any:
        return _objective(masks) * (1 if partitions is None else 1 + 0.1 * np.asarray(partitions))


class _CrossFitted(_Partitioned):
    """The same with rows that each partition leaves out, and rankings that guide the search."""

    n_left_out, n_rows, limits, computed, engine = 3, 40, Limits(), None, "function"

    def losses_of(self, mask: Any, /) -> Any:
        return None

    def fingerprint_parts(self) -> dict[str, str]:
        return {}

    def ranking(self, name: str, partition: int | None = None, /) -> Any:
        return np.arange(_FEATURES, dtype=float) * (-1 if name == "relieff" else 1)


@functools.cache
def _checkpoint(name: str, partitioned: bool) -> bytes:
    """A real checkpoint of a search that has more to do."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "search.ckpt"
        _search(name, partitioned, path, steps=11 if name.endswith("end") else 2)
        return path.read_bytes()


def _search(name: str, partitioned: bool, path: Path, *, steps: int = 3) -> Any:
    """A search of a few steps, or a few more steps of the one that the file holds."""
    done = iter(range(1, 1_000_000))
    scored_by: Any = _CrossFitted() if "cross-fitted" in name else _Partitioned() if partitioned else _objective
    return search(
        _VARIANTS[name],
        scored_by,
        Budget(evaluations=1000),
        rng=1,
        n_features=_FEATURES,
        checkpoint=path,
        checkpoint_seconds=0,
        callbacks=[lambda snapshot: next(done) >= steps],
    )


def _checkpoints(rng: np.random.Generator, case: Case, folder: Path) -> None:
    name = pick(rng, list(_VARIANTS))
    partitioned = name == "race" or bool(rng.random() < 0.2)
    content = _checkpoint(name, partitioned)
    if rng.random() < 0.25:
        content, words = _damaged(rng, content)
    else:
        content, words = _edited_checkpoint(rng, content)
    path = folder / "search.ckpt"
    path.write_bytes(content)
    _call(case, f"checkpoint of {name}: {words}", lambda: _search(name, partitioned, path))


def _edited_checkpoint(rng: np.random.Generator, content: bytes) -> tuple[bytes, str]:
    """A sound archive in which a value or an array is not what it was."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in members if name.endswith(".npy")]
    kind = pick(rng, ("value", "value", "array", "array", "array", "drop", "garbage", "text"))
    if kind == "value":
        values = json.loads(members["values.json"])
        words = _edit_json(rng, values)
        members["values.json"] = json.dumps(values).encode()
    elif kind == "array":
        name = pick(rng, arrays)
        array, change = _edited_array(rng, np.load(io.BytesIO(members[name]), allow_pickle=False))
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=True)
        members[name], words = buffer.getvalue(), f"{name} {change}"
    else:
        name = pick(rng, list(members))
        words = f"{name} {kind}"
        if kind == "drop":
            del members[name]
        elif kind == "garbage":
            members[name] = _damaged(rng, members[name])[0]
        else:
            members[name] = pick(rng, (b"", b"null", b"[]", b'"x"', b"{}", b"[" * 100_000, b"\xff\xfe", b"1e999"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", pick(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return packed.getvalue(), words


def _edit_json(rng: np.random.Generator, values: Any) -> str:
    """Change one value, at any depth; says which."""
    path = ""
    while True:
        key = pick(rng, list(values)) if isinstance(values, dict) else int(rng.integers(len(values)))
        path += f".{key}"
        inner = values[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.7:
            values = inner
            continue
        if isinstance(values, dict) and rng.random() < 0.2:
            del values[key]
            return f"{path[1:]} removed"
        values[key] = pick(rng, _JSON)
        return f"{path[1:]} set to {short(values[key], 40)}"


def _edited_array(rng: np.random.Generator, array: Any) -> tuple[Any, str]:
    kind = pick(rng, ("dtype", "shape", "values", "values", "fill", "shorter", "longer", "empty", "flat"))
    match kind:
        case "dtype":
            other = pick(rng, ("float64", "int64", "bool", "uint8", "complex128", "U5", "M8[s]", "O", "float16", ">f8"))
            return array.astype(other), f"as {other}"
        case "shape":
            return array[None], "with one more dimension"
        case "values" if array.size:
            changed = array.copy()
            place = tuple(int(rng.integers(size)) for size in array.shape)
            value = pick(rng, (0, 1, -1, 7, 100, 2**31, -(2**31), 2**62))
            if array.dtype.kind == "f":
                value = pick(rng, (np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0, 5e-324))
            changed[place] = np.array(value).astype(array.dtype)
            return changed, f"{place} set to {value}"
        case "fill":
            value = pick(rng, (0, 1, -1, 100, 2**40))
            with np.errstate(all="ignore"):
                return np.full(array.shape, np.array(value).astype(array.dtype)), f"all {value}"
        case "shorter":
            return (array[:-1], "one row shorter") if array.ndim else (array, "as it is")
        case "longer":
            return (np.concatenate([array, array]), "twice as long") if array.ndim else (array, "as it is")
        case "empty":
            return array.reshape(-1)[:0], "empty"
    return array.reshape(-1), "flat"


# --------------------------------------------------------------------------------------------------------- stores

_STUDY = Study(
    name="small",
    datasets=(Source("wine"),),
    models=("nb",),
    algorithms=(Contender("random", "random"), Contender("2d-upso", "2d-upso")),
    runs=2,
    evaluations=5,
    folds=2,
    outer=2,
)


@functools.cache
def _store() -> bytes:
    """A store with most of its runs done, one of them failed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        timing = RunTiming(0.1, 0.2, "estimator", "a machine", {"numpy": "1"})
        with Store.writing(path) as store:
            store.adopt(_STUDY)
            for place, planned in enumerate(_STUDY.plan()):
                held_out = None if planned.outer_fold is None else 0.2
                facts = ProblemFacts(178, 13, 3, "digest", 0.03, 0.3, held_out)
                loss = 0.1 + planned.run / 100
                content = RunContent(
                    loss, (loss, loss), (0, 2), ((5, loss, 2),), 5, 5, "evaluations", held_out, {"batch": 30}
                )
                if place == 3:
                    store.record(Outcome(planned, None, None, None, Failure("it failed", "trace")))
                elif place != 5:
                    store.record(Outcome(planned, content, timing, facts))
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        return path.read_bytes()


def _stores(rng: np.random.Generator, case: Case, folder: Path) -> None:
    path = folder / "a.db"
    if rng.random() < 0.4:
        content, words = _damaged(rng, _store())
        path.write_bytes(content)
    else:
        path.write_bytes(_store())
        words = _edit_store(rng, path)
    reader = pick(rng, list(_READERS))
    _call(case, f"store, {words}, read by {reader}", lambda: _READERS[reader](path))


def _edit_store(rng: np.random.Generator, path: Path) -> str:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = pick(rng, tables)
        if rng.random() < 0.1:
            statement = pick(rng, (f"DROP TABLE {table}", f"DELETE FROM {table}", f"ALTER TABLE {table} ADD more"))
            connection.execute(statement)
            return statement
        column = pick(rng, [row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
        value = pick(rng, _CELLS)
        where = pick(rng, ("", f"WHERE rowid = {int(rng.integers(1, 9))}"))
        connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? {where}", (value,))
        return f"{table}.{column} set to {short(value, 40)} {where}"
    except sqlite3.Error as error:
        return f"left as it is ({error})"
    finally:
        connection.close()


def _read_all(path: Path) -> None:
    with Store.reading(path) as store:
        store.info(), store.planned(), store.done(), store.failures(), store.seconds(), store.jobs()
        store.problems(), store.rows(), store.content_digest()


def _write_to(path: Path) -> None:
    with Store.writing(path) as store:
        store.adopt(_STUDY)


_READERS: dict[str, Callable[[Path], Any]] = {
    "Store.reading": _read_all,
    "Store.writing": _write_to,
    "read_status": lambda path: (read_status(path).as_text(), json.dumps(read_status(path).as_json())),
    **{f"the table {what}": functools.partial(study_tables, what=what) for what in TABLES},
    "study_page": study_page,
}

# --------------------------------------------------------------------------------------------------------- tables

_ROWS = [["size", "größe", "colour", "flag", "when", "kind"]] + [
    [f"{i * 0.5}", f"{i % 4}", ("red", "blue", "")[i % 3], ("true", "false")[i % 2], f"2020-01-{i + 1:02}", "ab"[i % 2]]
    for i in range(20)
]
_ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "cp037", "shift_jis")
_COLUMNS = ("kind", "size", "colour", "größe", "when", "flag", "nothing", "column 1", "")
_OPTIONS: dict[str, tuple[Any, ...]] = {
    "dates": (True, True, "yes"),
    "missing": (("red",), ("0", "x"), "red", 3, (None,), ("",)),
    "max_categories": (1, 2, 3, 0, -1, 10**30, 1.5, "x"),
    "skip_unlabelled": (True, True, 1),
    "positive": ("a", "0", "red", 0, 1.0, True, "", ("a",)),
    "id": (("when",), ("size", "flag"), "when", (1,), ("kind",)),
    "groups": _COLUMNS,
    "time": _COLUMNS,
    "weights": _COLUMNS,
    "header": (False, False, 0),
    "encoding": ("cp1252", "latin-1", "utf-16", "utf-8", "utf-7", "idna", "rot13", "x", "", 3),
}
"""Arguments of `load_table`, right and wrong."""
_ODD_CELLS = (
    "",
    '"',
    '""',
    "'",
    "\x00",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "9" * 400,
    "\n",
    "\r",
    "a,b",
    "é",
    "\ud800",
    "?",
    "1.234,5",
    "1,234.5 €",
    "5%",
    "31.1.2024",
    "1/31/2024 25:00",
    "0000-00-00",
    "99999-01-01",
    "٣",
    "²",
    "--5",
    "- 5",
    "1e5%",
    "$",
    "1 234",
)


def _tables(rng: np.random.Generator, case: Case, folder: Path) -> None:
    rows = [list(row) for row in _ROWS]
    words = _edit_rows(rng, rows) if rng.random() < 0.6 else "as it is"
    kind = pick(rng, ("csv", "csv", "tsv", "csv.gz", "parquet", "txt"))
    if kind == "parquet":
        content, said = _damaged(rng, _parquet(int(rng.integers(4)))) if rng.random() < 0.8 else (_parquet(0), "sound")
        words = f"parquet, {said}"
    else:
        separator = pick(rng, (",", ";", "\t", "|", " "))
        end = pick(rng, ("\n", "\n", "\r\n", "\r", "\n\n"))
        encoding = pick(rng, _ENCODINGS)
        content = (end.join(separator.join(row) for row in rows) + end).encode(encoding, errors="replace")
        words = f"{words}, {kind}, {separator!r}, {end!r}, {encoding}"
        if kind == "csv.gz":
            content = gzip.compress(content, 1) if rng.random() < 0.8 else content
        if rng.random() < 0.5:
            content, said = _damaged(rng, content)
            words = f"{words}, {said}"
    path = folder / f"table.{kind}"
    path.write_bytes(content)
    target = pick(rng, ("kind", "kind", "size", "colour", "größe", "when", "nothing", None, ""))
    drop = pick(rng, ((), ("when",), ("when", "colour"), ("nothing",)))
    options: dict[str, Any] = {"impute": bool(rng.random() < 0.5), "one_hot": bool(rng.random() < 0.5)}
    for name in rng.permutation(list(_OPTIONS))[: int(rng.integers(0, 4))]:
        options[str(name)] = pick(rng, _OPTIONS[str(name)])
    words = f"{words}; target {target!r}, drop {drop}, {options}"
    _call(case, words, lambda: load_table(path, target, drop=drop, **options))


def _edit_rows(rng: np.random.Generator, rows: list[list[str]]) -> str:
    for _ in range(int(rng.integers(1, 4))):
        row = pick(rng, rows)
        match pick(rng, ("cell", "cell", "cell", "shorter", "longer", "no rows", "same names", "many")):
            case "cell" if row:
                row[int(rng.integers(len(row)))] = pick(rng, _ODD_CELLS)
            case "shorter" if row:
                row.pop()
            case "longer":
                row.append("1")
            case "no rows":
                del rows[1 + int(rng.integers(2)) :]
            case "same names":
                rows[0] = ["a"] * len(rows[0])
            case "many":
                for place, each in enumerate(rows):
                    each.append(f"value {place}")
    return "edited"


@functools.cache
def _parquet(number: int) -> bytes:
    """A Parquet file with columns of many types."""
    import datetime

    import pyarrow
    from pyarrow import parquet

    frame = {
        "size": pyarrow.array(np.linspace(0, 1, 20)),
        "kind": pyarrow.array(["a", "b"] * 10),
        "größe": pyarrow.array([1, None] * 10, pyarrow.int16()),
        "colour": pyarrow.array(["red", "blue"] * 10).dictionary_encode(),
        "flag": pyarrow.array([True, None] * 10),
    }
    if number % 2:
        frame["when"] = pyarrow.array([datetime.date(2020, 1, 1)] * 20)
        frame["list"] = pyarrow.array([[1, 2]] * 20)
    if number >= 2:
        frame["binary"] = pyarrow.array([b"\xff"] * 20)
        frame["none"] = pyarrow.nulls(20)
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(frame), buffer, compression=("snappy", "none", "zstd", "gzip")[number])
    return buffer.getvalue()


def _uci(rng: np.random.Generator, case: Case, folder: Path) -> None:
    """A file of the catalogue that is not what its checksum says."""
    from subswarm.datasets import describe

    name = pick(rng, ("zoo", "wine", "sonar", "lsvt", "arrhythmia"))
    for file in describe(name).files:
        content = pick(rng, (b"", b"1,2,3\n", rng.bytes(200), b"PK\x03\x04" + rng.bytes(60)))
        packed = rng.random() < 0.5
        (folder / f"{file.name}{'.gz' if packed else ''}").write_bytes(
            gzip.compress(content) if packed and rng.random() < 0.5 else content
        )
    _call(case, f"damaged files of {name}", lambda: load_dataset(name, data_dir=folder, download=False))


# --------------------------------------------------------------------------------------------------- study files

_TOML = """name = "mine"
datasets = ["wine", { name = "own", table = "own.csv", target = "y", drop = ["a"], impute = true }]
models = ["nb", "knn"]
algorithms = ["random", { label = "slow", algorithm = "2d-upso", refresh_gap = 9 }, { algorithm = "bpso", race = true }]
runs = 2
evaluations = 30
protocol = "sound"
folds = 3
repeats = 2
outer = 2
outer_repeats = 1
seed = 0
"""
_TOML_VALUES = (
    "0", "-1", "1.5", "nan", "inf", '""', '"x"', "[]", "[1]", "{}", "true", "1979-05-27", "[[]]", '["nb"]', "{ a = 1 }",
    '[{ name = 1 }]', '[{ algorithm = "random", batch = "x" }]', '[{ algorithm = 5 }]', '[{ name = "a", drop = 3 }]',
    '[{ name = "a", table = 3, target = "y" }]', '[{ name = "a", table = "x", target = 3 }]', "99999999999999999999999",
    '[{ name = ["a"] }]', '[{ algorithm = "random", label = ["a"] }]', '[{ algorithm = "random", batch = [1] }]',
    '[{ algorithm = "2d-upso", particles = 1e400 }]', '["openml:x"]', '["random", "random"]', "[" * 2000,
)  # fmt: skip


def _study_files(rng: np.random.Generator, case: Case, folder: Path) -> None:
    text, words = _TOML, "as it is"
    for _ in range(int(rng.integers(1, 3))):
        lines = text.splitlines()
        place = int(rng.integers(len(lines)))
        name = lines[place].split(" = ")[0]
        value = pick(rng, _TOML_VALUES)
        lines[place] = pick(rng, (f"{name} = {value}", f"{name} = {value}", "", f"x{name} = {value}", lines[place] * 2))
        text, words = "\n".join(lines), f"{short(lines[place], 70)}; {words}"
    content = text.encode(pick(rng, ("utf-8", "utf-8", "utf-8", "utf-16", "utf-8-sig", "latin-1")), errors="replace")
    if rng.random() < 0.3:
        content, said = _damaged(rng, content)
        words = f"{words}, {said}"
    path = folder / "mine.toml"
    path.write_bytes(content)
    if rng.random() < 0.15:
        _study_command(case, path, words)
    else:
        _call(case, f"study file: {words}", lambda: _planned(path))


def _planned(path: Path) -> None:
    study = read_study(path)
    if study.runs * study.outer_folds < 10_000:
        study.plan()
    hash(study)


def _study_command(case: Case, path: Path, words: str) -> None:
    """The command line on the file; `--only` names nothing there is, so that nothing is run."""
    from typer.testing import CliRunner

    from subswarm.cli import app

    arguments = ["study", "run", str(path), "--only", "nothing like it", "--jobs", "1", "--quiet"]
    outcome = CliRunner().invoke(app, arguments)
    error = outcome.exception
    if error is not None and not (isinstance(error, SystemExit) and error.code in (1, 2)):
        case.judge(error, f"study run: {words}")


def _not_files(rng: np.random.Generator, case: Case, folder: Path) -> None:
    """A folder, a device or nothing at all where a file is wanted."""
    path = pick(
        rng, (folder, folder / "none", folder / "a" / "b", Path("/dev/null"), folder / ("x" * 300), Path("\x00"))
    )
    reader: dict[str, Callable[[], Any]] = {
        "checkpoint": lambda: _search("random", False, path),
        "store": lambda: _read_all(path),
        "status": lambda: read_status(path),
        "writing": lambda: _write_to(path),
        "table": lambda: load_table(path, "y"),
        "table.csv": lambda: load_table(path / "x.csv", "y"),
        "study": lambda: read_study(path),
        "data_dir": lambda: load_dataset("zoo", data_dir=path, download=False),
    }
    name = pick(rng, list(reader))
    _call(case, f"{name} at {short(path.name)} of {short(str(path.parent), 12)}", reader[name])


_ENTRIES: tuple[tuple[float, Callable[[np.random.Generator, Case, Path], None]], ...] = (
    (5, _checkpoints),
    (4, _stores),
    (5, _tables),
    (2, read_back),
    (0.3, _uci),
    (3, _study_files),
    (0.5, _not_files),
)
