"""What several commands share: checks of output files, writing them, and messages on standard error."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from subswarm._files import write_whole
from subswarm.errors import SettingError, SubswarmWarning

__all__ = ["check_output", "check_report", "print_status", "warnings_as_notes", "write_text"]


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
    """Write a file atomically; SettingError if that fails."""
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise SettingError(f"cannot write {path}: {error.strerror}.") from error


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
