"""A first search on a machine does not wait for the compiler, and gives the same result."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba")

SCRIPT = """
import sys
from sklearn.datasets import load_wine
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from subswarm import SwarmSelector, _compilation
from subswarm._search.plan import _NEEDED
from subswarm._compilation import compiled_or_none

model = {"nb": GaussianNB(), "knn": KNeighborsClassifier()}[sys.argv[1]]
aside = []
selector = SwarmSelector(
    model, max_evaluations=600, random_state=0, callbacks=[lambda _: aside.append(_compilation.is_compiling_aside())]
)
selector.fit(*load_wine(return_X_y=True))
print(selector.best_score_.hex(), selector.support_.tolist(), selector.history_.best_fitness.tolist())
print(aside[0])
process = _compilation._PROCESS
if process is not None:
    if "wait" in sys.argv:
        process.wait()
        needed = [(module, name) for part in _NEEDED.values() for module, names in part.items() for name in names]
        print(all(
            _compilation.is_cached(getattr(compiled_or_none("subswarm.engines." + module), name))
            for module, name in needed if "neighbors" not in module
        ), process.returncode)
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
def test_with_an_empty_cache_the_search_starts_at_once_and_gives_the_same_result(tmp_path):
    found, aside, after_kill = run(tmp_path, "knn")
    assert (aside, after_kill) == ("True", "False")
    expected, _, *_ = run(None, "knn")
    assert found == expected


@pytest.mark.slow
def test_the_other_process_fills_the_cache(tmp_path):
    found, aside, cached, after = run(tmp_path, "nb", "wait")
    assert (aside, cached, after) == ("True", "True 0", "False")
    again, not_aside = run(tmp_path, "nb")
    assert (again, not_aside) == (found, "False")


def test_small_searches_and_other_engines_start_no_process(monkeypatch):
    from sklearn.datasets import load_wine
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    from subswarm import _compilation
    from subswarm._search import plan
    from subswarm.objective.objective import make_objective

    monkeypatch.setattr(plan, "is_cached", lambda kernel: False)
    started = []
    monkeypatch.setattr(plan, "compile_aside", lambda work, announce: started.append(work))
    X, y = load_wine(return_X_y=True)
    for model, scoring, evaluations in (
        (GaussianNB(), None, 100),
        (GaussianNB(), "neg_log_loss", 6000),
        (DecisionTreeClassifier(), None, 6000),
    ):
        objective = make_objective(model, X, y, cv=3, scoring=scoring)
        plan.prepare_kernels(objective, "2d-elite", evaluations, announce=False)
    assert started == []
    plan.prepare_kernels(make_objective(GaussianNB(), X, y, cv=3), "2d-elite", None, announce=False)
    assert len(started) == 1
    assert not _compilation.use_numpy()
