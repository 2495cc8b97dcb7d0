"""The ``subswarm`` command, also as ``python -m subswarm``."""

from __future__ import annotations

import sys
from typing import TextIO


def main() -> None:
    """Run the command line. Errors of this package are printed with exit status 2, warnings as one line."""
    try:
        import typer
    except ImportError:
        sys.exit("the command line needs typer, which is not installed; pip install 'subswarm[cli]'")
    import os
    import warnings

    from subswarm.cli import app
    from subswarm.cli.common import list_problems
    from subswarm.errors import SubswarmError, SubswarmWarning, TableError

    show_plainly, printed = warnings.showwarning, set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, SubswarmWarning):
            show_plainly(message, category, filename, lineno, file, line)
        elif str(message) not in printed:  # a command may raise the same warning more than once
            printed.add(str(message))
            typer.secho(f"warning: {message}", fg=typer.colors.YELLOW, err=True)

    warnings.showwarning = show
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.append(os.getcwd())  # algorithms and models of the user's own are imported from here
    try:
        app()
    except SubswarmError as error:
        text = list_problems(error, sys.argv[1:]) if isinstance(error, TableError) else str(error)
        typer.secho(f"error: {text}", fg=typer.colors.RED, err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
