"""``python -m tests.fuzz``: run cases of one kind, or of all, and say what was wrong."""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .case import KINDS, Case
from .workers import CASE_SECONDS, Summary, answer_requests, progress_to, run_cases, run_one

DEFAULT_CASES = 1000


def main() -> int:
    asked = _arguments()
    if asked.worker:
        answer_requests(asked.what, asked.seed, asked.case_seconds, _runner(asked.what))
        return 0
    if asked.case is not None:
        return _one_case(asked)
    clean = True
    for what in KINDS if asked.what == "all" else (asked.what,):
        numbers = range(asked.first, asked.first + asked.cases)
        found = run_cases(
            what,
            asked.seed,
            numbers,
            processes=asked.processes,
            case_seconds=asked.case_seconds,
            seconds=asked.seconds,
            tell=progress_to(sys.stdout),
        )
        _show(what, asked.seed, found)
        clean = clean and found.is_clean
    return 0 if clean else 1


def _runner(what: str) -> Callable[[Any], Case]:
    run: Callable[[Any], Case] = import_module(f".{what}", __package__).run
    return run


def _one_case(asked: argparse.Namespace) -> int:
    """One case in this process, to look at it with a debugger."""
    report = run_one(asked.what, asked.seed, asked.case, _runner(asked.what))
    for kind, text in report.findings:
        print(f"{kind}: {text}")
    print(f"{report.compared} compared tables, {len(report.findings)} findings")
    return 1 if report.findings else 0


def _show(what: str, seed: int, found: Summary) -> None:
    """The findings by where they come from, most frequent first, and the summary."""
    parts = [line.split(": ") for line in found.lines]
    for (kind, cause), count in Counter((part[0], part[2]) for part in parts).most_common():
        print(f"{count} times {kind}: {cause}")
    print(f"{what}, seed {seed}: {found.sentence()}; {found.cases / max(found.seconds, 1e-9):.0f} cases a second")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--what", choices=[*KINDS, "all", "selftest"], default="all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=DEFAULT_CASES, help="cases of each kind")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--case", type=int, default=None, help="run this case alone, in this process")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--case-seconds", type=float, default=CASE_SECONDS, help="what one case may take")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no more cases after this time")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
