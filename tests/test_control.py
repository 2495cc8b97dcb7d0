"""Parameter control: settings follow their success, and nothing changes without it."""

from __future__ import annotations

import numpy as np
import pytest

from subswarm import Budget, search
from subswarm._search.ask_tell import Search
from subswarm.algorithms import BinaryPSO, ChaoticPSO, TwoDCLPSO, TwoDGPSO, TwoDLPSO, TwoDUPSO
from subswarm.algorithms.particles import HISTORY, Control
from subswarm.errors import SettingError
from subswarm.testing import check_algorithm

KINDS = [TwoDGPSO, TwoDLPSO, TwoDUPSO, TwoDCLPSO, BinaryPSO, ChaoticPSO]


def distance(masks):
    return (masks ^ (np.arange(masks.shape[1]) % 3 == 0)).mean(axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_contract_holds_with_control(kind):
    check_algorithm(kind(adaptive=True))


def test_a_centre_becomes_the_mean_of_what_helped_weighted_by_how_much():
    control = Control(np.zeros((HISTORY, 2)), np.array([[1.0, 4.0], [2.0, 8.0], [3.0, 9.0]]), oldest=HISTORY - 1)
    after = control.after(np.array([True, True, False]), np.array([0.1, 0.3, -0.2]))
    assert after.centres[-1] == pytest.approx([1.75, 7.0])
    assert not after.centres[:-1].any()
    assert after.oldest == 0
    assert after.after(np.array([True, False, False]), np.array([0.5, 0, 0])).centres[0] == pytest.approx([1.0, 4.0])


def test_a_step_without_success_and_the_first_step_teach_nothing():
    control = Control.begin((0.7, 3.0), 3)
    assert control.after(np.zeros(3, dtype=bool), np.zeros(3)) is control
    assert control.after(np.ones(3, dtype=bool), np.full(3, np.inf)) is control


def test_settings_are_drawn_around_the_centres_and_within_their_ranges():
    names = ("inertia", "refresh_gap")
    drawn = Control.begin((0.7, 3.0), 5000).redrawn(names, np.random.default_rng(0)).drawn
    assert drawn[:, 0].mean() == pytest.approx(0.7, abs=0.01)
    assert drawn[:, 0].std() == pytest.approx(0.1, abs=0.01)
    assert drawn[:, 1].min() == 1.0
    edge = Control.begin((1.2, 20.0), 500).redrawn(names, np.random.default_rng(0)).drawn
    assert edge.max(axis=0).tolist() == [1.2, 20.0]


@pytest.mark.parametrize("kind", KINDS)
def test_control_learns_only_the_settings_it_is_given(kind):
    course = Search(kind(adaptive=True, adaptive_settings=(kind.controls[-1],)), 30, 0, evaluations=600)
    for _ in range(20):
        course.tell(distance(course.ask()))
    assert course.state.control.drawn.shape == (30, 1)
    assert len(np.unique(course.state.control.drawn)) > 20
    assert not np.allclose(course.state.control.centres, getattr(course.algorithm, kind.controls[-1]))


def test_a_controlled_setting_changes_the_search_and_none_does_not():
    def history(**settings):
        return search(TwoDUPSO(**settings), distance, Budget(evaluations=900), rng=0, n_features=30).history

    plain = history().best_fitness
    assert np.array_equal(history(adaptive=True, adaptive_settings=()).best_fitness, plain)
    assert np.array_equal(history(adaptive_settings=("social",)).best_fitness, plain)
    for name in TwoDUPSO.controls:
        assert not np.array_equal(history(adaptive=True, adaptive_settings=(name,)).spread, history().spread), name


def test_a_refresh_gap_that_is_off_stays_off():
    course = Search(TwoDUPSO(adaptive=True, refresh_gap=None), 30, 0)
    assert course.state.control.drawn.shape == (30, len(TwoDUPSO.controls) - 1)


@pytest.mark.parametrize(
    ("kind", "adaptive", "message"),
    [
        (TwoDGPSO, ("unification",), "each of adaptive_settings must be one of 'inertia', 'refresh_gap', 'cognitive'"),
        (ChaoticPSO, ("inertia",), "each of adaptive_settings must be one of 'cognitive', 'social'"),
        (BinaryPSO, "social", "adaptive_settings must be a list of settings; got 'social'"),
    ],
)
def test_wrong_names_are_refused(kind, adaptive, message):
    with pytest.raises(SettingError, match=message):
        kind(adaptive_settings=adaptive)
