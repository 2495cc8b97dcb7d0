"""The time that numba compiles is known, announced once, and part of no estimate."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.naive_bayes import GaussianNB

from subswarm import SwarmSelector, _compilation
from subswarm import selector as selector_module

numba = pytest.importorskip("numba")


def compile_something():
    """Compile a new function, which calls another one, so that compilations are nested."""

    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x) * 2

    return outer(np.arange(3.0))


def test_compile_time_is_summed_once_for_nested_functions():
    _compilation.watch_compiler()
    _compilation.watch_compiler()  # a second listener would count twice
    before, started = _compilation.compile_seconds(), time.perf_counter()
    compile_something()
    taken = time.perf_counter() - started
    assert 0 < _compilation.compile_seconds() - before <= taken


def test_a_compilation_is_announced_once_and_only_if_wanted(capsys):
    _compilation.watch_compiler()
    with _compilation.announced(True):
        compile_something()
        compile_something()
    assert capsys.readouterr().err == _compilation.NOTE + "\n"
    with _compilation.announced(False):
        compile_something()
    compile_something()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("verbose", "note"), [(1, _compilation.NOTE + "\n"), (0, "")])
def test_a_search_announces_compilations_and_leaves_them_out_of_estimates(monkeypatch, capsys, verbose, note):
    _compilation.watch_compiler()
    original = selector_module.search

    def search(*args, **kwargs):
        found = original(*args, **kwargs)
        started = time.perf_counter()
        compile_something()
        seconds = found.evaluation_seconds + time.perf_counter() - started
        object.__setattr__(found, "evaluation_seconds", seconds)  # as if an engine had compiled it
        return found

    monkeypatch.setattr(selector_module, "search", search)
    monkeypatch.setattr(selector_module, "prepare_kernels", lambda *search, announce: None)
    settings = {"cv": 3, "repeats": 1, "max_evaluations": 40, "random_state": 0, "verbose": verbose}
    fitted = SwarmSelector(GaussianNB(), **settings).fit(*load_wine(return_X_y=True))
    result = fitted.result_
    assert 0 <= fitted._facts.search_seconds < result.algorithm_seconds + result.evaluation_seconds
    assert capsys.readouterr().err == note


def test_the_expected_time_leaves_out_what_was_compiled(monkeypatch, capsys):
    from types import SimpleNamespace

    from subswarm._search import callbacks

    compiled = [5.0]
    monkeypatch.setattr(callbacks, "compile_seconds", lambda: compiled[0])
    notice = callbacks.TimeNotice(1000, None)
    compiled[0] = 205.0
    notice(SimpleNamespace(seconds=201.0, evaluations=10))
    notice(SimpleNamespace(seconds=202.0, evaluations=20))
    assert capsys.readouterr().err == "the search takes about 2 min\n"  # 2 s so far, 0.1 s for each evaluation
