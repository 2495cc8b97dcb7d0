"""``python -m subswarm``, and the ``subswarm`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; our own errors become one sentence and exit status 2."""
    try:
        import typer
    except ImportError:
        sys.exit("the command line needs typer, which is not installed; pip install 'subswarm[cli]'")
    from subswarm.cli import app
    from subswarm.core.errors import SubswarmError

    try:
        app()
    except SubswarmError as error:
        typer.secho(f"error: {error}", fg=typer.colors.RED, err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
