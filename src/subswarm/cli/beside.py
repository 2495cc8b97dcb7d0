"""What ``subswarm select`` measures beside the selection: rows never seen, other seeds, other algorithms."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from subswarm.core.errors import MissingExtraError, SettingError

__all__ = ["check_report", "measure_held_out", "with_other_algorithms", "with_other_seeds"]


def check_report(report: Path | None, *, option: str = "--report") -> None:
    """Refuse a report that could not be written, before the search rather than after it."""
    if report is None:
        return
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "a report needs jinja2, which is not installed; pip install 'subswarm[report]'"
        ) from error
    if not report.resolve().parent.is_dir():
        raise SettingError(f"{option} names {report}, but the folder {report.parent} does not exist; make it first.")


def measure_held_out(selector: Any, X: Any, y: Any, folds: int, *, jobs: int, seed: int, seconds: float) -> Any:
    """The held-out figure, its cost said beforehand; ``seconds`` is what one search took."""
    from subswarm.held_out import cost_sentence, held_out

    _say(cost_sentence(folds, jobs, seconds))
    return held_out(selector, X, y, folds=folds, n_jobs=jobs, random_state=seed)


def with_other_seeds(selector: Any, X: Any, y: Any, count: int, *, seed: int, seconds: float) -> dict[int, Any]:
    """The same selection with the next ``count`` seeds, each with its own folds."""
    if count:
        _say(f"other seeds: {_searches(count)}, about {_words(count * seconds)}")
    return {seed + k: _again(selector, X, y, random_state=seed + k) for k in range(1, count + 1)}


def with_other_algorithms(selector: Any, X: Any, y: Any, names: list[str], *, seconds: float) -> dict[str, Any]:
    """The same selection by other algorithms with their published settings, on the same folds.

    Where these are several partitions, those that do not share their evaluations among them race.
    """
    from subswarm.algorithms import get_algorithm

    if names:
        _say(f"other algorithms: {_searches(len(names))}, about {_words(len(names) * seconds)}")
    partitions = selector.result_.n_partitions
    found = {}
    for name in names:
        algorithm = get_algorithm(name)
        race = partitions > 1 and not hasattr(algorithm, "n_partitions")
        repeats = partitions if isinstance(selector.cv, int) else 1
        found[name] = _again(selector, X, y, algorithm=algorithm, repeats=repeats, race=race)
    return found


def _again(selector: Any, X: Any, y: Any, **changes: Any) -> Any:
    from sklearn.base import clone

    return clone(selector).set_params(checkpoint=None, verbose=0, record=False, **changes).fit(X, y)


def _searches(count: int) -> str:
    return "1 more search" if count == 1 else f"{count} more searches"


def _say(sentence: str) -> None:
    typer.echo(f"{time.strftime('%H:%M:%S')} {sentence}", err=True)


def _words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
