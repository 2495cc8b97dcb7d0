"""Without numba the engines give the same losses."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
if "hide" in sys.argv:
    sys.modules["numba"] = None
import numpy as np
from sklearn.datasets import load_wine
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from subswarm.engines.normal_cdf.model import NormalCDFBayes
from subswarm.objective.objective import make_objective

X, y = load_wine(return_X_y=True)
masks = np.random.default_rng(0).random((12, 13)) < 0.4
masks[:, 0] |= ~masks.any(axis=1)
for model in (
    GaussianNB(),
    NormalCDFBayes(),
    KNeighborsClassifier(),
    KNeighborsClassifier(3, weights="distance", p=1),
    make_pipeline(StandardScaler(), KNeighborsClassifier()),
    make_pipeline(MinMaxScaler(), GaussianNB()),
):
    objective = make_objective(model, np.round(X, 1), y, cv=4, engine="fast")
    print(objective.engine, [float(loss).hex() for loss in objective(masks)])
print("numba" in sys.modules and sys.modules["numba"] is not None)
"""


def run(*arguments: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_without_numba_the_answers_are_the_same():
    *answers, numba_was_there = run()
    *others, numba_was_hidden = run("hide")
    assert (numba_was_there, numba_was_hidden) == ("True", "False")
    assert answers == others
