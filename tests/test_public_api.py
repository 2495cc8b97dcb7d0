"""The public names: all are on the API page, nothing else is, and the documentation uses no others."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import subswarm
from subswarm.algorithms import REGISTRY

ROOT = Path(__file__).parent.parent
MODULES = (
    "subswarm",
    "subswarm.algorithms",
    "subswarm.datasets",
    "subswarm.plot",
    "subswarm.errors",
    "subswarm.testing",
)
PUBLIC = {
    f"{module}.{name}"
    for module in MODULES
    for name in import_module(module).__all__
    if not isinstance(getattr(import_module(module), name), ModuleType) and name != "__version__"
}
PAGES = [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)]


def listed_on_the_api_page():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    return re.findall(r"^\.\. auto(?:class|function|data|exception):: (\S+)$", text, flags=re.MULTILINE)


def test_the_api_page_lists_every_public_object_once_and_nothing_else():
    listed = listed_on_the_api_page()
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) == PUBLIC


def test_all_algorithms_are_public_and_on_the_api_page():
    assert len(REGISTRY) == 28
    assert {f"subswarm.algorithms.{kind.__name__}" for kind in REGISTRY.values()} <= set(listed_on_the_api_page())


def test_every_public_object_has_a_docstring_that_starts_with_a_sentence():
    for name in sorted(PUBLIC):
        module, _, attribute = name.rpartition(".")
        value = getattr(import_module(module), attribute)
        if callable(value):
            assert (value.__doc__ or "").strip().split("\n")[0], name


def test_public_modules_are_attributes_of_the_package():
    code = "import subswarm; print(subswarm.datasets.names()[0], subswarm.errors.DataError.__name__, subswarm.held_out)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stdout.startswith("wine DataError <function held_out"), process.stderr
    assert set(dir(subswarm)) == set(subswarm.__all__)


def test_a_name_that_is_not_public_is_no_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = subswarm.nothing


def test_private_packages_export_nothing():
    for package in ("bench", "engines", "objective", "report"):
        assert not hasattr(import_module(f"subswarm.{package}"), "__all__"), package


def names_used_in(block):
    """Full names of what a Python block imports from this package."""
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "subswarm":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "subswarm")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_in_the_documentation_imports_public_names_only(page):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    used = {name for block in blocks for name in names_used_in(block)}
    assert used <= PUBLIC | set(MODULES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_documentation_mentions_public_names_only(page):
    mentioned = set(re.findall(r"\bsubswarm(?:\.\w+)+", page.read_text(encoding="utf-8")))
    parents = {name.rpartition(".")[0] for name in PUBLIC} | set(MODULES)
    assert {name for name in mentioned if name not in PUBLIC | parents} == set()
