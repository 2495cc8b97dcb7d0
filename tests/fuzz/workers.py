"""Cases in worker processes, so that a crash or a hang is one finding and the rest goes on."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import math
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from .case import Case, rng_of

__all__ = ["Summary", "answer_requests", "run_cases"]

CHUNK = 50
"""Cases that a worker is asked for at a time."""
TOLD_EVERY = 1000
"""Cases between two lines about how far it is."""
CASE_SECONDS = 60
"""What one case may take; the first one of a worker also compiles."""
START_SECONDS = 240
OPTIONAL = ("polars", "pyarrow", "matplotlib", "typer")
"""Cases that need one of these packages are left out, and counted, where it is not installed."""
MEMORY = 12 << 30
"""Address space of a worker: a setting of 10**10 particles must not take the machine down."""


@dataclass(eq=False)
class Summary:
    """What all cases came to."""

    cases: int = 0
    compared: int = 0
    seconds: float = 0.0
    lacking: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not self.counts

    def note(self, what: str, seed: int, number: int, kind: str, text: str) -> None:
        self.counts[kind] += 1
        self.lines.append(f"{kind}: --what {what} --seed {seed} --case {number}: {text}")

    def sentence(self) -> str:
        crashes = self.counts["crash"] + self.counts["timeout"]
        left_out = "".join(f", {count} left out without {name}" for name, count in sorted(self.lacking.items()))
        return (
            f"{self.cases} cases, {self.compared} compared tables, {self.counts['difference']} differences, "
            f"{self.counts['exception']} raw exceptions, {crashes} crashes{left_out}"
        )


def run_cases(
    what: str,
    seed: int,
    numbers: range,
    *,
    processes: int = 2,
    case_seconds: float = CASE_SECONDS,
    seconds: float = math.inf,
    tell: Callable[[str], None] = print,
) -> Summary:
    """Run the cases of one kind, or as many as are begun in time; each finding is told as one line when it is found."""
    summary, lock = Summary(), threading.Lock()
    chunks: queue.SimpleQueue[range] = queue.SimpleQueue()
    for start in range(numbers.start, numbers.stop, CHUNK):
        chunks.put(range(start, min(start + CHUNK, numbers.stop)))
    began = time.monotonic()

    def note(number: int, report: dict[str, Any]) -> None:
        with lock:
            if report.get("lacks"):
                summary.lacking[report["lacks"]] += 1
                return
            summary.cases += 1
            summary.compared += report.get("compared", 0)
            for kind, text in report["findings"]:
                summary.note(what, seed, number, kind, text)
                tell(summary.lines[-1])
            if summary.cases % TOLD_EVERY == 0:
                tell(f"{what}, seed {seed}, so far: {summary.sentence()}")

    with ThreadPoolExecutor(max(1, min(processes, chunks.qsize()))) as pool:
        served = [
            pool.submit(_serve, what, seed, chunks, note, case_seconds, began + seconds)
            for _ in range(max(1, min(processes, chunks.qsize())))
        ]
    for each in served:
        each.result()
    summary.seconds = time.monotonic() - began
    return summary


def answer_requests(what: str, seed: int, case_seconds: float, run: Callable[[Any], Case]) -> None:
    """The worker's side: for each line ``start stop`` on standard input, one line of JSON for each case."""
    faulthandler.enable()
    _limit_memory()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what is printed by a case is not an answer
    answers.write("ready\n")
    for request in sys.stdin:
        start, stop = map(int, request.split())
        for number in range(start, stop):
            faulthandler.dump_traceback_later(case_seconds, exit=True)
            report = run_one(what, seed, number, run)
            faulthandler.cancel_dump_traceback_later()
            answer = {"compared": report.compared, "findings": report.findings, "lacks": report.lacks}
            answers.write(json.dumps(answer) + "\n")


def run_one(what: str, seed: int, number: int, run: Callable[[Any], Case]) -> Case:
    """One case in this process; an error that it did not expect itself is a finding too."""
    said = open(os.devnull, "w")  # noqa: SIM115  (closed below, after the streams are restored)
    with said, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return run(rng_of(what, seed, number))
        except BaseException as error:
            if isinstance(error, ModuleNotFoundError) and error.name in OPTIONAL:
                return Case(lacks=error.name)  # not in a call of ours: the case itself needs the package
            report = Case()
            report.judge(error, "not expected by the case")
            return report


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


@dataclass(eq=False)
class _Worker:
    """A worker process, its folder, and what it says when it dies."""

    process: subprocess.Popen[bytes]
    errors: Any

    def lines(self, seconds: float) -> Iterator[bytes | None]:
        """The lines it writes; None, and then nothing more, where it ends or keeps silent for too long."""
        assert self.process.stdout is not None
        buffer = b""
        while True:
            while b"\n" in buffer:
                line, buffer = buffer.split(b"\n", 1)
                yield line
            ready, _, _ = select.select([self.process.stdout], [], [], seconds)
            piece = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not piece:
                self.process.kill()
                self.process.wait()
                yield None
                return
            buffer += piece

    def ask(self, numbers: range) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{numbers.start} {numbers.stop}\n".encode())
            self.process.stdin.flush()

    def errors_written(self) -> str:
        self.errors.seek(0)
        return str(self.errors.read().decode("utf-8", errors="replace"))

    def last_words(self) -> tuple[str, str]:
        """Why it died, and where: a crash, or a case that took too long."""
        text = self.errors_written()
        places = [line.strip() for line in text.splitlines() if line.strip().startswith("File ")]
        ours = next((place for place in places if "subswarm" in place), places[0] if places else "")
        place = ours.replace('File "', "").split("/src/")[-1]
        about = [line.removeprefix("about: ") for line in text.splitlines() if line.startswith("about: ")]
        words = about[-1] if about else "nothing was said"
        if "Timeout (" in text:
            return "timeout", f"took too long at {place}: {words}"
        code = self.process.returncode
        reason = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        return "crash", f"the worker ended with {reason} at {place}: {words}"


@contextlib.contextmanager
def _started(what: str, seed: int, case_seconds: float) -> Iterator[_Worker]:
    package = __package__ or "fuzz"
    root = Path(__file__).parents[package.count(".") + 1]
    paths = [str(root), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    settings = {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "NO_COLOR": "1",
    }
    command = [sys.executable, "-m", package, "--what", what, "--seed", str(seed)]
    command += ["--case-seconds", str(case_seconds), "--worker"]
    with tempfile.TemporaryDirectory(prefix="subswarm-fuzz-") as folder, tempfile.TemporaryFile() as errors:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        with subprocess.Popen(command, env={**os.environ, **settings}, cwd=folder, **pipes) as process:
            try:
                yield _Worker(process, errors)
            finally:
                process.kill()


def _serve(
    what: str,
    seed: int,
    chunks: queue.SimpleQueue[range],
    note: Callable[[int, dict[str, Any]], None],
    case_seconds: float,
    deadline: float,
) -> None:
    """Have workers do chunks until none is left or time is over; a worker that dies is replaced, its case noted."""
    waiting: list[range] = []
    while True:
        with _started(what, seed, case_seconds) as worker:
            lines = worker.lines(START_SECONDS)
            if next(lines) is None:
                raise RuntimeError(f"a worker could not be started:\n{worker.errors_written()}")
            while True:
                chunk = waiting.pop() if waiting else _next(chunks)
                if chunk is None or time.monotonic() > deadline:
                    return
                worker.ask(chunk)
                done = _report(worker, lines, chunk, note)
                if done < len(chunk):
                    kind, text = worker.last_words()
                    note(chunk[done], {"findings": [(kind, text)]})
                    if done + 1 < len(chunk):
                        waiting.append(chunk[done + 1 :])
                    break


def _report(
    worker: _Worker, lines: Iterator[bytes | None], chunk: range, note: Callable[[int, dict[str, Any]], None]
) -> int:
    """Note the reports on a chunk's cases; how many there were."""
    for done, number in enumerate(chunk):
        line = next(lines)
        if line is None:
            return done
        note(number, json.loads(line))
    return len(chunk)


def _next(chunks: queue.SimpleQueue[range]) -> range | None:
    try:
        return chunks.get_nowait()
    except queue.Empty:
        return None


def progress_to(stream: TextIO) -> Callable[[str], None]:
    """Tells a line at once."""

    def tell(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return tell
