"""Wrapper feature selection with two-dimensional learning particle swarms: which features, and how many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subswarm._version import __version__

if TYPE_CHECKING:
    from subswarm import algorithms, datasets, errors, plot, testing
    from subswarm._permutation import PermutationTest
    from subswarm._search.ask_tell import Search
    from subswarm._search.front import FrontTable
    from subswarm._search.loop import search, search_together
    from subswarm._search.result import (
        History,
        Recording,
        SearchResult,
        Snapshot,
        Stability,
        one_standard_error,
        stability,
    )
    from subswarm._search.run import Budget
    from subswarm._types import Front, Subset
    from subswarm.engines.normal_cdf.model import NormalCDFBayes
    from subswarm.nested import HeldOut, NestedFront, held_out
    from subswarm.objective.findings import Finding
    from subswarm.objective.objective import Objective, make_objective
    from subswarm.selector import SwarmSelector

__all__ = [
    "Budget",
    "Finding",
    "Front",
    "FrontTable",
    "HeldOut",
    "History",
    "NestedFront",
    "NormalCDFBayes",
    "Objective",
    "PermutationTest",
    "Recording",
    "Search",
    "SearchResult",
    "Snapshot",
    "Stability",
    "Subset",
    "SwarmSelector",
    "__version__",
    "algorithms",
    "datasets",
    "errors",
    "held_out",
    "make_objective",
    "one_standard_error",
    "plot",
    "search",
    "search_together",
    "stability",
    "testing",
]

_HOME = {
    "Budget": "_search.run",
    "Finding": "objective.findings",
    "Front": "_types",
    "FrontTable": "_search.front",
    "HeldOut": "nested",
    "History": "_search.result",
    "NestedFront": "nested",
    "NormalCDFBayes": "engines.normal_cdf.model",
    "Objective": "objective.objective",
    "PermutationTest": "_permutation",
    "Recording": "_search.result",
    "Search": "_search.ask_tell",
    "SearchResult": "_search.result",
    "Snapshot": "_search.result",
    "Stability": "_search.result",
    "Subset": "_types",
    "SwarmSelector": "selector",
    "held_out": "nested",
    "make_objective": "objective.objective",
    "one_standard_error": "_search.result",
    "search": "_search.loop",
    "search_together": "_search.loop",
    "stability": "_search.result",
}
"""The module of each public object."""
_MODULES = ("algorithms", "datasets", "errors", "plot", "testing")
"""The public modules."""


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``import subswarm`` is fast."""
    from importlib import import_module

    if name in _HOME:
        return getattr(import_module(f"subswarm.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"subswarm.{name}")
    raise AttributeError(f"module 'subswarm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
