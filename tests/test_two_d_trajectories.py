"""The 2-D swarms go the way they always went: published tables rest on every mask and every draw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from subswarm._search.ask_tell import Search
from subswarm.algorithms import get_algorithm
from subswarm.algorithms.two_d import learning
from subswarm.algorithms.two_d import numpy as learning_numpy
from trajectories import digest_of

TRAJECTORIES = [
    ("2d-upso", 5, {}, "4c09aee91d264346"),
    ("2d-upso", 30, {}, "491480bc7336f0e5"),
    ("2d-upso", 590, {}, "cc86c3e63a29b199"),
    ("2d-gpso", 30, {}, "795db0f4fdbebbe2"),
    ("2d-lpso", 30, {}, "cdf95cbfc4fef00a"),
    ("2d-clpso", 30, {}, "d3dcf721c0feb07d"),
    ("2d-upso", 30, {"whole_exemplar": True}, "def8fea68f492514"),
    ("2d-upso", 30, {"draws": "row"}, "137898679ac1ee8d"),
    ("2d-upso", 30, {"draws": "entry"}, "a03beece9184258a"),
    ("2d-upso", 30, {"cardinality_rule": "greedy"}, "63d74277228610b2"),
    ("2d-upso", 30, {"cardinality_rule": "raw-roulette"}, "fb3fb7c84bb7503f"),
    ("2d-upso", 30, {"parsimonious": True}, "d52f512b2bc79745"),
    ("2d-upso", 30, {"stagnation_rule": "consecutive"}, "d683823c221d673b"),
    ("2d-upso", 30, {"min_features": 3, "max_features": 8, "fixed_features": (4,)}, "de9291407924b620"),
    ("2d-upso", 30, {"feature_likelihoods": (0.25, 0.5, 1.0) * 10}, "5e613fa4cf3910aa"),
]


@pytest.fixture(params=["numpy", "compiled"])
def rules(request, monkeypatch):
    module = learning_numpy
    if request.param == "compiled":
        module = pytest.importorskip("subswarm.algorithms.two_d.numba")
    monkeypatch.setattr(learning, "_kernels", lambda: module)


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(("name", "n", "settings", "digest"), TRAJECTORIES)
def test_every_mask_asked_is_the_one_that_was_asked_before(name, n, settings, digest):
    search = Search(replace(get_algorithm(name), **settings), n, rng=3, evaluations=1500)
    assert digest_of(search, n) == digest
