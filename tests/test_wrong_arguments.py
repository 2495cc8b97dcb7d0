"""Searches reject arguments of a wrong type with an error of the package, before anything is evaluated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from subswarm import Budget, Search, search, search_together
from subswarm.algorithms import TwoDUPSO, get_algorithm, settings
from subswarm.errors import CheckpointError, FitnessError, SettingError
from subswarm.testing import check_algorithm

PLANTED = np.arange(6) % 2 == 0
ENDLESS: list = []
ENDLESS.append(ENDLESS)


def distance(masks):
    return (masks ^ PLANTED).mean(axis=1)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"algorithm": None}, "algorithm must be a registered name or an algorithm such as"),
        ({"algorithm": TwoDUPSO}, "algorithm must be a registered name or an algorithm such as"),
        ({"algorithm": "2d-upsi"}, "did you mean '2d-upso'"),
        ({"objective": 3}, "objective must be a function from masks to losses"),
        ({"objective": dict}, "objective must be a function from masks to losses"),
        ({"budget": 300}, "budget must be a Budget"),
        ({"budget": np.zeros(2)}, "budget must be a Budget"),
        ({"rng": ENDLESS}, "rng must be a numpy.random.Generator, a seed"),
        ({"rng": -1}, "rng must be a numpy.random.Generator, a seed"),
        ({"rng": 1.5}, "rng must be a numpy.random.Generator, a seed"),
        ({"rng": True}, "rng must be a numpy.random.Generator, a seed"),
        ({"callbacks": 7}, "callbacks must be a list of functions"),
        ({"callbacks": print}, "callbacks must be a list of functions"),
        ({"callbacks": [3]}, "each of callbacks must be a function"),
        ({"callbacks": [int]}, "each of callbacks must be a function"),
        ({"checkpoint": 2.0}, "checkpoint must be the path of a file"),
        ({"checkpoint": b"search.ckpt"}, "checkpoint must be the path of a file"),
        ({"checkpoint": "a\0b"}, "checkpoint must be the path of a file"),
        ({"checkpoint_seconds": "often"}, "checkpoint_seconds must be"),
        ({"record": np.zeros(3)}, "record must be True or False"),
        ({"n_features": 2.5}, "n_features must be a whole number"),
    ],
)
def test_a_search_rejects_arguments_of_a_wrong_type(wrong, sentence):
    good = {"algorithm": "random", "objective": distance, "budget": Budget(evaluations=30), "rng": 0, "n_features": 6}
    with pytest.raises(SettingError, match=sentence):
        search(**good | wrong)


@pytest.mark.parametrize("name", ["x" * 300, "\ud800"])
def test_a_checkpoint_that_cannot_be_a_file_name_is_named(tmp_path, name):
    with pytest.raises(CheckpointError, match=r"cannot (read|write) the checkpoint"):
        search("random", distance, Budget(evaluations=30), rng=0, n_features=6, checkpoint=tmp_path / name)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"algorithms": "random"}, "algorithms must be a list"),
        ({"algorithms": 3}, "algorithms must be a list"),
        ({"algorithms": ["random", 3]}, "algorithm must be a registered name"),
        ({"rngs": 3}, "rngs must be a list"),
        ({"rngs": [0]}, "got 2 algorithms and 1 rngs"),
        ({"rngs": [0, ENDLESS]}, "rng must be a numpy.random.Generator, a seed"),
        ({"objective": "nothing"}, "objective must be a function from masks to losses"),
        ({"budget": "long"}, "budget must be a Budget"),
    ],
)
def test_searches_in_lockstep_reject_arguments_of_a_wrong_type(wrong, sentence):
    good = {"algorithms": ["random", "2d-upso"], "objective": distance, "rngs": [0, 1], "n_features": 6}
    with pytest.raises(SettingError, match=sentence):
        search_together(**good | wrong)


@pytest.mark.parametrize("returned", [None, "a", 3.0, [0.5], 10**400, np.zeros((30, 2)), object()])
def test_an_objective_that_returns_no_losses_is_named(returned):
    with pytest.raises(FitnessError, match="the objective must return one number for each mask; got"):
        search("random", lambda masks: returned, Budget(evaluations=30), rng=0, n_features=6)
    with pytest.raises(FitnessError, match="the objective must return one number for each mask; got"):
        search_together(["random", "random"], lambda masks: returned, rngs=[0, 1], n_features=6)


@pytest.mark.parametrize("wrong", ["half", (1, 2), 1j, -0.1, 1.1, np.nan, Fraction(3, 2), [0.5]])
def test_telling_an_impossible_progress_is_rejected_and_changes_nothing(wrong):
    course = Search(TwoDUPSO(), 6, 0)
    with pytest.raises(SettingError, match="progress must be a finite number from 0 to 1"):
        course.tell(distance(course.ask()), wrong)
    assert course.evaluations == 0
    course.tell(distance(course.ask()), Fraction(1, 2))
    assert course.evaluations == 30


@pytest.mark.parametrize("fitness", [10**400, [10**400] * 30, ENDLESS, "a", None])
def test_telling_part_of_a_batch_what_is_no_loss_is_rejected(fitness):
    course = Search(TwoDUPSO(), 6, 0)
    with pytest.raises(FitnessError, match=r"tell(_part)?\(\)"):
        course.tell_part(fitness)
    assert not course.finished


@pytest.mark.parametrize("name", [[], {}, np.zeros(2), None, 3, ENDLESS])
def test_a_name_that_is_no_text_is_rejected(name):
    for function in (get_algorithm, settings):
        with pytest.raises(SettingError, match="the name of an algorithm must be text"):
            function(name)


@pytest.mark.parametrize("number", [np.longdouble(0.5), np.float32(0.5), Fraction(1, 2)])
def test_settings_may_be_numbers_of_any_kind(number):
    plain, other = (TwoDUPSO(inertia=kind, unification=kind, cognitive=kind) for kind in (0.5, number))
    assert plain == other
    one, two = (search(swarm, distance, Budget(evaluations=90), rng=0, n_features=6) for swarm in (plain, other))
    assert np.array_equal(one.history.spread, two.history.spread)
    assert one.settings == two.settings


def test_a_setting_too_large_for_machine_integers_is_taken_as_a_float():
    check_algorithm(TwoDUPSO(inertia=10**30))


@pytest.mark.parametrize("size", ["3", 2.0, None, [1, 2], np.zeros((2, 0)), True])
def test_the_size_of_a_subset_is_a_whole_number(size):
    front = search("random", distance, Budget(evaluations=30), rng=0, n_features=6).front
    with pytest.raises(SettingError, match="size must be a whole number"):
        front.subset_of_size(size)


@pytest.mark.parametrize(
    "rng",
    [[1, 2], (3,), np.array([4, 5]), np.random.SeedSequence(3), np.random.PCG64(1), 2**128, np.random.RandomState(1)],
)
def test_seeds_of_every_kind_that_numpy_takes_are_taken(rng):
    assert Search("random", 6, rng).ask().shape == (30, 6)
