"""What several commands share: checks of output files, writing them, and messages on standard error."""

from __future__ import annotations

import shlex
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from subswarm._files import write_whole
from subswarm.errors import SettingError, SubswarmWarning, TableError

__all__ = [
    "check_output",
    "check_report",
    "list_problems",
    "print_status",
    "warnings_as_notes",
    "write_bytes",
    "write_text",
]


def check_output(path: Path | None, *, option: str) -> None:
    """Raise SettingError, before a search rather than after it, if an output file cannot have this path."""
    if path is None:
        return
    try:
        exists, is_folder = path.resolve().parent.is_dir(), path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # a path that is too long, has a NUL character or loops
        raise SettingError(f"{option} got {str(path)!r}, which is not a usable path: {error}.") from error
    if not exists:
        raise SettingError(f"{option} got {path}, but the folder {path.parent} does not exist; create it first.")
    if is_folder:
        raise SettingError(f"{option} got {path}, which is a folder; give the path of a file in it.")


def check_report(report: Path | None, *, option: str = "--report") -> None:
    """Raise an error, before a search rather than after it, if a report cannot be written."""
    if report is None:
        return
    from subswarm.report.page import check_renderer

    check_renderer()
    check_output(report, option=option)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically; SettingError if that fails."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically; SettingError if that fails."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise SettingError(f"cannot write {path}: {error.strerror}.") from error


_OPTION_OF = {"header": "--no-header"}


def list_problems(error: TableError, arguments: Sequence[str]) -> str:
    """Return the problems of a table as a list, and the command that solves them if ``subswarm select`` was called."""
    count = len(error.problems)
    lines = [error.problems[0]] if count == 1 else [f"{error.name} has {count} problems:"]
    if count > 1:
        lines += [f"  {number}. {problem}" for number, problem in enumerate(error.problems, 1)]
    if error.remedies and arguments[:1] == ["select"]:
        lines += ["This command solves them:" if count > 1 else "This command works:", f"  {_solved(error, arguments)}"]
    return "\n".join(lines)


def _solved(error: TableError, arguments: Sequence[str]) -> str:
    """Return the command with the options that solve the problems of a table."""
    kept, added = list(arguments), []
    for name, value in error.remedies.items():
        option = _OPTION_OF.get(name, f"--{name.replace('_', '-')}")
        if isinstance(value, bool):
            added.append(option)
        elif isinstance(value, list):
            added += [part for each in dict.fromkeys(value) for part in (option, str(each))]
        else:
            kept = _without(kept, option)
            added += [option, str(value)]
    return shlex.join(["subswarm", *kept, *added])


def _without(arguments: Sequence[str], option: str) -> list[str]:
    """Return the arguments without an option and its value."""
    found, skip = [], False
    for argument in arguments:
        if not skip and argument != option and not argument.startswith(f"{option}="):
            found.append(argument)
        skip = argument == option
    return found


def print_status(sentence: str) -> None:
    """Print a line with the time of day on standard error."""
    typer.echo(f"{time.strftime('%H:%M:%S')} {sentence}", err=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print each warning once, as ``note: ...`` on standard error, without the line of code that raised it."""
    printed: set[str] = set()

    def print_note(message: Warning | str, *where: object, **more: object) -> None:
        text = str(message)
        if text not in printed:
            printed.add(text)
            typer.echo(f"note: {text}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", SubswarmWarning)
        warnings.showwarning = print_note
        yield
