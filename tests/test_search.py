"""Ask and tell: properties that hold for every algorithm and every problem."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subswarm._search.ask_tell import Search
from subswarm.algorithms import RandomSearch, TwoDUPSO, get_algorithm, name_of, names
from subswarm.algorithms import settings as settings_of_name
from subswarm.algorithms.masks import SubsetRules, spread
from subswarm.errors import CheckpointError, FitnessError, SettingError
from subswarm.testing import check_algorithm


@st.composite
def problems(draw):
    """A number of features, and limits, fixed features and group sizes that allow some subset."""
    n = draw(st.integers(1, 12))
    sizes = draw(st.none() | st.tuples(*[st.integers(1, 3)] * n))
    fixed = tuple(sorted(draw(st.sets(st.integers(0, n - 1), max_size=3))))
    columns = n if sizes is None else sum(sizes)
    low = draw(st.integers(1, columns))
    high = draw(st.none() | st.integers(low, columns))
    limits = {"min_features": low, "max_features": high, "fixed_features": fixed, "feature_sizes": sizes}
    try:
        SubsetRules.of(n, **limits)
    except SettingError:
        limits = {"fixed_features": fixed, "feature_sizes": sizes}
    return n, limits


@given(problem=problems(), name=st.sampled_from(names()), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=120, deadline=None)
def test_masks_stay_legal_and_saving_anywhere_changes_nothing(problem, name, seed):
    n, limits = problem
    scores = {"scores": tuple(np.cos(np.arange(n)).tolist())} if "scores" in settings_of_name(name) else {}
    check_algorithm(get_algorithm(name, **limits, **scores), n_features=n, steps=6, seed=seed)


@given(
    masks=st.integers(1, 8).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=6)
    ),
    low=st.integers(1, 8),
    high=st.integers(1, 8),
    seed=st.integers(0, 99),
)
@settings(deadline=None)
def test_the_nearest_legal_subset_changes_no_more_than_it_must(masks, low, high, seed):
    masks = np.array(masks)
    n = masks.shape[1]
    low = min(low, n)
    rules = SubsetRules.of(n, min_features=low, max_features=max(low, high))
    legal = rules.legalize(masks, np.random.default_rng(seed))
    assert rules.is_legal(legal).all()
    sizes = masks.sum(axis=1)
    assert np.array_equal((legal != masks).sum(axis=1), np.abs(np.clip(sizes, rules.lower, rules.upper) - sizes))


def test_preferred_features_come_first_and_leave_last():
    rules = SubsetRules.of(5, min_features=2, max_features=3)
    wish = np.array([[5.0, 4, 3, 2, 1]])
    assert np.flatnonzero(rules.legalize(np.ones((1, 5), bool), np.random.default_rng(0), wish)).tolist() == [0, 1, 2]
    assert np.flatnonzero(rules.legalize(np.zeros((1, 5), bool), np.random.default_rng(0), wish)).tolist() == [0, 1]


def test_uneven_groups_that_no_greedy_choice_fits_are_still_filled():
    rules = SubsetRules.of(3, min_features=4, max_features=4, feature_sizes=(3, 2, 2))
    legal = rules.legalize(np.array([[True, False, False]]), np.random.default_rng(0))
    assert rules.columns(legal).tolist() == [4]


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"min_features": 7}, "only 6"),
        ({"fixed_features": (0, 1, 2), "max_features": 2}, "more than max_features=2"),
        ({"fixed_features": (6,)}, "names feature 6"),
        ({"feature_sizes": (2,) * 6, "min_features": 3, "max_features": 3}, "whole feature groups"),
        ({"feature_sizes": (1, 2)}, "one entry for each"),
        ({"initial_subsets": ((0, 9),)}, "names feature 9"),
        ({"initial_subsets": ((0,),) * 31}, "gives 31 subsets"),
    ],
)
def test_limits_that_no_subset_can_obey_are_refused(limits, sentence):
    with pytest.raises(SettingError, match=sentence):
        Search(TwoDUPSO(**limits), 6, 0)


def test_a_search_starts_from_the_initial_subsets():
    masks = Search(TwoDUPSO(initial_subsets=((1, 3), (0,))), 5, 0).ask()
    assert np.flatnonzero(masks[0]).tolist() == [1, 3]
    assert np.flatnonzero(masks[1]).tolist() == [0]


def test_asking_gives_a_copy():
    search = Search(TwoDUPSO(), 5, 0)
    search.ask()[:] = False
    assert search.ask().any(axis=1).all()


def test_the_best_is_the_first_of_equals():
    search = Search(RandomSearch(batch=3), 5, 0)
    masks = search.ask()
    search.tell([0.5, 0.2, 0.2])
    assert np.array_equal(search.best.mask, masks[1])
    search.tell([0.2, 0.2, 0.2])
    assert np.array_equal(search.best.mask, masks[1])


def test_the_front_keeps_the_best_of_each_size():
    search = Search(RandomSearch(), 6, 0)
    seen: dict[int, float] = {}
    for step in range(8):
        masks = search.ask()
        fitness = np.random.default_rng(step).random(30)
        for size, value in zip(masks.sum(axis=1).tolist(), fitness.tolist(), strict=True):
            seen[size] = min(value, seen.get(size, np.inf))
        search.tell(fitness)
    front = search.front
    assert dict(zip(front.cardinality.tolist(), front.fitness.tolist(), strict=True)) == seen
    assert front.subset_of_size(2).cardinality == 2
    with pytest.raises(KeyError, match="no subset of size 7"):
        front.subset_of_size(7)


@pytest.mark.parametrize(
    ("fitness", "sentence"),
    [
        (np.zeros(29), r"got fitness of shape \(29,\); ask\(\) gave 30 masks, so the shape must be \(30,\)"),
        (np.zeros((30, 1)), r"shape \(30, 1\)"),
        ([0.0] * 29 + [np.nan], "mask 29"),
        ([np.inf] + [0.0] * 29, "inf for mask 0"),
        (["a"] * 30, "expected a finite number for each mask"),
        ([10**400] * 30, "expected a finite number for each mask"),
    ],
)
def test_telling_what_is_no_loss_is_rejected_and_changes_nothing(fitness, sentence):
    search = Search(TwoDUPSO(), 5, 0)
    before = search.ask()
    with pytest.raises(FitnessError, match=sentence):
        search.tell(fitness)
    assert np.array_equal(search.ask(), before)
    assert search.evaluations == 0


def test_there_is_no_best_before_anything_was_told():
    with pytest.raises(SettingError, match="no best subset before the first tell"):
        _ = Search(TwoDUPSO(), 5, 0).best


def test_a_search_cannot_be_restored_with_other_settings():
    arrays, values = Search(TwoDUPSO(), 5, 0).saved()
    with pytest.raises(CheckpointError, match="settings"):
        Search.restored(TwoDUPSO(particles=20), arrays, json.loads(json.dumps(values)))
    with pytest.raises(CheckpointError, match="algorithm"):
        Search.restored(RandomSearch(), arrays, values)


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM])
def test_any_numpy_generator_can_be_saved(bits):
    search = Search(TwoDUPSO(), 6, np.random.Generator(bits(3)))
    search.tell(np.linspace(0, 1, 30))
    arrays, values = search.saved()
    again = Search.restored(TwoDUPSO(), arrays, json.loads(json.dumps(values)))
    for _ in range(3):
        assert np.array_equal(search.ask(), again.ask())
        search.tell(np.linspace(0, 1, 30))
        again.tell(np.linspace(0, 1, 30))


def test_spread_is_the_mean_distance_between_two_masks():
    masks = np.random.default_rng(0).random((7, 9)) < 0.4
    distances = [(masks[i] ^ masks[j]).mean() for i in range(7) for j in range(i)]
    assert spread(masks) == pytest.approx(np.mean(distances))
    assert spread(masks[:1]) == 0


def test_random_search_draws_every_size_equally_often():
    masks = RandomSearch(batch=6000).begin(6, np.random.default_rng(0)).masks
    assert np.allclose(np.bincount(masks.sum(axis=1))[1:] / 6000, 1 / 6, atol=0.02)


def test_bernoulli_random_search_draws_half_the_features():
    masks = RandomSearch(batch=2000, sizes="bernoulli").begin(40, np.random.default_rng(0)).masks
    assert masks.mean() == pytest.approx(0.5, abs=0.01)


def test_the_registry_knows_names_settings_and_near_misses():
    assert {"2d-gpso", "2d-lpso", "2d-clpso", "2d-upso", "random"} <= set(names())
    assert get_algorithm("2d-upso", particles=5).particles == 5
    assert name_of(TwoDUPSO()) == "2d-upso"
    assert settings_of_name("2d-upso")["refresh_gap"] == 3
    with pytest.raises(SettingError, match="did you mean '2d-upso'"):
        get_algorithm("2d-upsu")
    with pytest.raises(SettingError, match="did you mean 'particles'"):
        get_algorithm("2d-upso", particle=5)


@pytest.mark.parametrize("n_features", [0, -1, 2.5])
def test_the_number_of_features_must_be_a_positive_whole_number(n_features):
    with pytest.raises(SettingError, match="n_features"):
        Search(TwoDUPSO(), n_features, 0)
