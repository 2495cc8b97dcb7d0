"""The contract of an engine: kept by every engine here, and violations are found."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from subswarm.engines.naive_bayes.engine import GaussianNBEngine
from subswarm.engines.neighbors.engine import KNeighborsEngine
from subswarm.engines.normal_cdf.engine import NormalCDFBayesEngine
from subswarm.engines.normal_cdf.model import NormalCDFBayes
from subswarm.engines.reference import EstimatorEngine
from subswarm.testing import check_engine

X, y = load_wine(return_X_y=True)
X = X + np.random.default_rng(0).normal(size=X.shape) * X.std(axis=0) * 1e-3  # no ties among distances


@pytest.mark.parametrize("scoring", [None, "f1_macro"])
@pytest.mark.parametrize(
    ("engine", "model"),
    [
        (GaussianNBEngine, GaussianNB()),
        (KNeighborsEngine, KNeighborsClassifier(3)),
        (NormalCDFBayesEngine, NormalCDFBayes()),
        (EstimatorEngine, GaussianNB()),
    ],
)
def test_every_engine_keeps_the_contract(engine, model, scoring):
    check_engine(engine, model, X, y, cv=3, scoring=scoring)


class Rounded(EstimatorEngine):
    def fold_losses(self, masks):
        return np.round(super().fold_losses(masks), 3)


class Relative(EstimatorEngine):
    def fold_losses(self, masks):
        losses = super().fold_losses(masks)
        return losses if len(masks) > 1 else losses + 1


class Greedy(EstimatorEngine):
    def fold_losses(self, masks):
        losses = super().fold_losses(masks)
        masks[:] = True
        return losses


class Short(EstimatorEngine):
    def fold_losses(self, masks):
        return super().fold_losses(masks)[:, :1]


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [
        (Rounded, "losses differ from scikit-learn's"),
        (Relative, "losses depend on the batch"),
        (Greedy, "changed the masks"),
        (Short, "losses have shape"),
        (KNeighborsEngine, "is_usable_for"),
    ],
)
def test_an_engine_that_breaks_the_contract_is_found(engine, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_engine(engine, GaussianNB(), X, y, cv=3)
