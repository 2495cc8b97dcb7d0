"""The structure of the package: explicit contracts, of which no part is looked up by name, and documented layers."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import subswarm
from subswarm._search.run import SearchObjective
from subswarm.algorithms.base import Algorithm, State
from subswarm.engines.base import Engine
from subswarm.engines.metrics import BatchMetric

PACKAGE = Path(subswarm.__file__).parent
ADAPTER = PACKAGE / "_search" / "run.py"  # reads attributes of the user's own functions
CONTRACTS = (Algorithm, State, SearchObjective, Engine, BatchMetric)
MEMBERS = {name for contract in CONTRACTS for name in dir(contract) if not name.startswith("_")} - {"name", "score"}
"""A pandas Series has a ``name``, too, and an estimator of scikit-learn a ``score``."""


def looked_up(code):
    """The names that a module looks up with ``getattr`` and ``hasattr``, and the line of each."""
    return [
        (node.lineno, node.args[1].value)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and isinstance(node.args[1], ast.Constant)
    ]


def untyped(code):
    """The parameters that are an algorithm, an objective, a state or an engine by name and ``Any`` by type."""
    return [
        node.arg
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.arg)
        and node.arg in ("algorithm", "objective", "state", "engine")
        and isinstance(node.annotation, ast.Name)
        and node.annotation.id == "Any"
    ]


def test_the_checks_find_what_they_look_for():
    assert looked_up("hasattr(algorithm, 'bind')\nx.fit(getattr(y, 'name'))") == [(1, "bind"), (2, "name")]
    assert untyped("def f(algorithm: Any, objective: Objective) -> Any: ...") == ["algorithm"]
    assert {"bind", "step", "finalists", "losses_of", "is_usable_for"} <= MEMBERS


def defined_twice(code):
    """The constants, functions and classes that a module defines more than once."""
    names = []
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [
                part.id
                for target in targets
                for part in ast.walk(target)
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            ]
    return sorted({name for name in names if names.count(name) > 1})


def test_no_module_defines_a_name_twice():
    assert defined_twice("A = 1\nB, A = 2, 3\ndef f(): ...\nf.x = 1") == ["A"]
    found = {
        module.relative_to(PACKAGE).as_posix(): names
        for module in sorted(PACKAGE.rglob("*.py"))
        if (names := defined_twice(module.read_text(encoding="utf-8")))
    }
    assert found == {}


def test_no_hook_is_looked_up_by_name():
    found = []
    for module in sorted(PACKAGE.rglob("*.py")):
        code = module.read_text(encoding="utf-8")
        place = module.relative_to(PACKAGE).as_posix()
        found += [(place, name, "Any") for name in untyped(code)]
        if module != ADAPTER:
            found += [(place, name, line) for line, name in looked_up(code) if name in MEMBERS]
    assert found == []


def test_the_guide_for_contributors_names_every_layer():
    root = Path(__file__).parent.parent
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    checked = {part.strip().removeprefix("subswarm.") for layer in layers for part in layer.split("|")} - {"__main__"}
    table = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Layout")[1].split("##")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(checked)
