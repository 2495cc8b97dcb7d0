"""Wrapper feature selection with two-dimensional learning particle swarms: which features, and how many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subswarm._version import __version__

if TYPE_CHECKING:
    from subswarm import algorithms, plot, testing
    from subswarm.algorithms import Search
    from subswarm.core.budget import Budget
    from subswarm.core.types import SearchResult
    from subswarm.drive import search, search_together
    from subswarm.evaluation import Objective, make_objective
    from subswarm.selector import SwarmSelector

__all__ = [
    "Budget",
    "Objective",
    "Search",
    "SearchResult",
    "SwarmSelector",
    "__version__",
    "algorithms",
    "make_objective",
    "plot",
    "search",
    "search_together",
    "testing",
]

_HOME = {
    "Budget": "subswarm.core.budget",
    "Objective": "subswarm.evaluation",
    "Search": "subswarm.algorithms",
    "SearchResult": "subswarm.core.types",
    "SwarmSelector": "subswarm.selector",
    "make_objective": "subswarm.evaluation",
    "search": "subswarm.drive",
    "search_together": "subswarm.drive",
}
_MODULES = ("algorithms", "plot", "testing")


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that ``import subswarm`` is quick."""
    from importlib import import_module

    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"subswarm.{name}")
    raise AttributeError(f"module 'subswarm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
