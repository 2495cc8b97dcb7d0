"""A first search on a machine does not wait for the compiler, and gives the same result."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("numba")

SCRIPT = """
import sys
from sklearn.datasets import load_diabetes, load_wine
from subswarm import SwarmSelector, _compilation
from subswarm._models import make_model

name, _, scoring = sys.argv[1].partition(":")
numbers = name == "ridge"
_compilation.watch_compiler()
aside = []
selector = SwarmSelector(
    make_model(name, "regression" if numbers else "classification"),
    scoring=scoring or None,
    max_evaluations=300,
    random_state=0,
    callbacks=[lambda _: aside.append(_compilation.is_compiling_aside())],
)
selector.fit(*(load_diabetes if numbers else load_wine)(return_X_y=True))
print(selector.best_score_.hex(), selector.support_.tolist(), [round(x, 9) for x in selector.history_.best_fitness])
print(aside[0], _compilation.compile_seconds() > 0)
process = _compilation._PROCESS
if process is not None:
    if "wait" in sys.argv:
        process.wait()
        print(process.returncode)
    else:
        process.kill()
        process.wait()
    print(_compilation.is_compiling_aside())
"""


def run(folder, *arguments):
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    if folder is not None:
        environment["NUMBA_CACHE_DIR"] = str(folder)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("task", ["knn:roc_auc_ovr", "logistic", "ridge"])
def test_with_an_empty_cache_the_search_starts_at_once_and_gives_the_same_result(tmp_path, task):
    found, compiling, after_kill = run(tmp_path, task)
    assert (compiling, after_kill) == ("True False", "False")
    expected, *_ = run(None, task)
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("task", ["nb", "ridge"])
def test_the_other_process_compiles_all_that_the_search_needs(tmp_path, task):
    found, compiling, status, after = run(tmp_path, task, "wait")
    assert (compiling, status, after) == ("True False", "0", "False")
    again, compiling = run(tmp_path, task)
    assert (again, compiling) == (found, "False False")


@pytest.mark.parametrize(
    ("model", "task", "scoring", "kernels"),
    [
        ("nb", "classification", None, {"classify", "count_correct"}),
        ("nb", "classification", "f1_macro", {"classify", "count_labels"}),
        ("nb", "classification", "neg_log_loss", {"log_likelihoods", "sum_folds"}),
        ("knn", "classification", "roc_auc_ovr", {"neighbors", "rank_scores"}),
        ("knn", "regression", None, {"neighbors", "sum_folds"}),
        ("logistic", "classification", None, {"fit_logistic", "evaluate", "judge"}),
        ("ridge", "regression", "r2", {"solve", "evaluate", "sum_folds"}),
        ("lda", "classification", None, {"solve", "judge"}),
        ("qda", "classification", None, {"fit_quadratic", "judge"}),
        ("nearest-centroid", "classification", None, {"add_terms", "judge"}),
        ("tree", "classification", None, set()),
    ],
)
def test_the_kernels_that_a_search_needs_are_compiled_by_another_process(monkeypatch, model, task, scoring, kernels):
    from sklearn.datasets import load_diabetes, load_wine

    from subswarm._compilation import compiled_or_none
    from subswarm._models import make_model
    from subswarm._search import plan
    from subswarm.algorithms import get_algorithm
    from subswarm.objective.objective import make_objective

    started, missing = [], False
    monkeypatch.setattr(plan, "is_cached", lambda kernel: not missing)
    monkeypatch.setattr(plan, "compile_aside", lambda kernels, work, announce: started.append(work))
    X, y = (load_diabetes if task == "regression" else load_wine)(return_X_y=True)
    objective = make_objective(make_model(model, task), X, y, cv=3, scoring=scoring)
    needed = plan.needed_kernels(objective)
    assert kernels <= {name for _, name in needed}
    assert all(hasattr(compiled_or_none(f"subswarm.engines.{module}"), name) for module, name in needed)
    plan.prepare_kernels(objective, get_algorithm("2d-elite"), announce=False)
    assert started == []
    missing = True
    plan.prepare_kernels(objective, get_algorithm("2d-elite"), announce=False)
    assert len(started) == bool(kernels)


@pytest.mark.parametrize("model", ["knn", "ridge", "logistic", "lda", "qda", "nearest-centroid"])
def test_while_another_process_compiles_no_thread_of_this_one_does(monkeypatch, tmp_path, model):
    """Kernels are chosen in the thread that calls `fit`, which is the one that may use those of NumPy."""
    from sklearn.datasets import load_diabetes, load_wine

    from subswarm import _compilation
    from subswarm._models import make_model
    from subswarm.engines.linear import predictions
    from subswarm.objective.objective import make_objective

    loaded = []
    monkeypatch.setattr(_compilation, "compiled_or_none", lambda module: loaded.append(module))
    monkeypatch.setattr(predictions, "_WORTH_THREADS", 0)
    marker = tmp_path / "compiling"
    marker.touch()
    monkeypatch.setenv(_compilation._MARKER, str(marker))
    monkeypatch.setattr(_compilation, "_MAY_COMPILE", True)
    numbers = model in ("knn", "ridge")
    X, y = (load_diabetes if numbers else load_wine)(return_X_y=True)
    with _compilation.may_compile_aside():
        objective = make_objective(
            make_model(model, "regression" if numbers else "classification"), X, y, cv=3, n_jobs=2, engine="fast"
        )
        losses = objective(np.random.default_rng(0).random((24, X.shape[1])) < 0.6)
    assert np.isfinite(losses).all()
    assert loaded == []
    marker.unlink()
    assert not _compilation.is_compiling_aside()


def test_a_second_search_with_other_kernels_does_not_compile_either(monkeypatch):
    from subswarm import _compilation

    started = []

    class Process:
        def __init__(self, arguments, stdin, **more):
            self.stdin, self.returncode, self.marker = io.BytesIO(), None, arguments[-1]
            started.append(self)

        def poll(self):
            return self.returncode

    for name, value in (
        ("_MAY_COMPILE", False),
        ("_OWNER", 0),
        ("_PROCESS", None),
        ("_WAITING", []),
        ("_ASKED", set()),
    ):
        monkeypatch.setattr(_compilation, name, value)
    monkeypatch.setattr(_compilation.subprocess, "Popen", Process)
    monkeypatch.setattr(_compilation.atexit, "register", lambda *work: None)
    monkeypatch.delenv(_compilation._MARKER, raising=False)
    for kernels in ("naive Bayes", "logistic", "logistic"):
        _compilation.compile_aside(kernels, b"work", announce=False)
    assert len(started) == 1
    assert _compilation.is_compiling_aside()
    started[0].returncode = 0
    assert _compilation.is_compiling_aside()
    assert len(started) == 2
    started[1].returncode = 1  # killed, so that its file was left
    assert not _compilation.is_compiling_aside()
    assert not any(os.path.exists(process.marker) for process in started)
    assert _compilation._MARKER not in os.environ
    _compilation.compile_aside("logistic", b"work", announce=False)
    assert len(started) == 2
