"""The loop: budgets, callbacks, interruption, checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subswarm import Budget, search
from subswarm.algorithms import TwoDUPSO
from subswarm.errors import CheckpointError, SettingError

PLANTED = np.arange(15) % 4 == 0


def distance(masks):
    return (masks ^ PLANTED).mean(axis=1)


def course(result):
    """All of a result that does not depend on the clock."""
    history = result.history
    return (
        result.best.mask.tolist(),
        result.best.fitness,
        result.evaluations,
        history.evaluations.tolist(),
        history.best_fitness.tolist(),
        history.best_cardinality.tolist(),
        history.spread.tolist(),
        result.front.masks.tolist(),
        result.front.fitness.tolist(),
    )


def test_a_default_search_asks_exactly_6000_evaluations():
    result = search("2d-upso", distance, rng=0, n_features=15)
    assert result.evaluations == 6000
    assert result.stop_reason == "evaluations"
    assert len(result.history) == 200


@pytest.mark.parametrize("evaluations", [1, 29, 30, 31, 100])
def test_a_batch_that_does_not_fit_is_evaluated_in_part(evaluations):
    counted = []
    result = search(
        "2d-upso",
        lambda m: (counted.append(len(m)), distance(m))[1],
        Budget(evaluations=evaluations),
        rng=0,
        n_features=15,
    )
    assert result.evaluations == sum(counted) == evaluations


def test_the_best_fitness_never_worsens():
    best = search("2d-upso", distance, Budget(evaluations=900), rng=1, n_features=15).history.best_fitness
    assert (np.diff(best) <= 0).all()


def test_a_search_stops_at_its_target():
    result = search("2d-upso", distance, Budget(target=0.2), rng=0, n_features=15)
    assert result.stop_reason == "target"
    assert result.best.fitness <= 0.2
    assert result.evaluations < 6000


def test_a_search_stops_when_patience_is_spent():
    result = search("2d-upso", lambda m: np.ones(len(m)), Budget(patience=90), rng=0, n_features=15)
    assert result.stop_reason == "patience"
    assert result.evaluations == 120


def test_a_search_stops_when_its_seconds_are_spent():
    result = search("2d-upso", lambda m: (time.sleep(0.02), distance(m))[1], Budget(seconds=0.1), rng=0, n_features=15)
    assert result.stop_reason == "seconds"
    assert 0.1 <= result.history.seconds[-1] < 5


def test_a_callback_sees_every_step_and_may_stop():
    seen = []
    result = search(
        "2d-upso", distance, rng=0, n_features=15, callbacks=[seen.append, lambda snapshot: snapshot.evaluations >= 90]
    )
    assert result.stop_reason == "callback"
    assert [snapshot.evaluations for snapshot in seen] == [30, 60, 90]
    assert seen[0].masks.shape == (30, 15)
    assert np.array_equal(seen[0].fitness, distance(seen[0].masks))
    assert seen[-1].progress == 90 / 6000


def test_a_finished_algorithm_stops_the_search():
    from dataclasses import dataclass

    from subswarm.algorithms import Algorithm
    from subswarm.algorithms.random_search import Batch

    @dataclass(frozen=True, kw_only=True)
    class Once(Algorithm):
        def begin(self, n_features, rng):
            return Batch(np.eye(n_features, dtype=bool))

        def step(self, state, fitness, progress, rng):
            return None

    result = search(Once(), distance, rng=0, n_features=15)
    assert (result.stop_reason, result.evaluations, result.algorithm) == ("finished", 15, "Once")


def test_time_in_the_algorithm_and_in_evaluation_are_told_apart():
    result = search(
        "2d-upso", lambda m: (time.sleep(0.01), distance(m))[1], Budget(evaluations=300), rng=0, n_features=15
    )
    assert result.evaluation_seconds >= 0.1
    assert 0 < result.algorithm_seconds < result.evaluation_seconds


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_search_with_the_best_so_far():
    calls = []

    def interrupted(masks):
        calls.append(len(masks))
        if len(calls) == 4:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        return distance(masks)

    result = search("2d-upso", interrupted, rng=0, n_features=15)
    assert result.stop_reason == "interrupted"
    assert result.evaluations == 90
    stop = lambda snapshot: snapshot.evaluations >= 90  # noqa: E731
    assert course(result) == course(search("2d-upso", distance, rng=0, n_features=15, callbacks=[stop]))


def test_ctrl_c_before_anything_was_found_is_not_swallowed():
    def interrupted(masks):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search("2d-upso", interrupted, rng=0, n_features=15)


@given(first=st.integers(1, 20), seed=st.integers(0, 50))
@settings(max_examples=15, deadline=None)
def test_a_search_interrupted_anywhere_continues_bit_for_bit(tmp_path_factory, first, seed):
    path = tmp_path_factory.mktemp("checkpoint") / "search.ckpt"
    whole = search("2d-clpso", distance, Budget(evaluations=615), rng=seed, n_features=15)
    stop = lambda snapshot: snapshot.evaluations >= 30 * first  # noqa: E731
    search("2d-clpso", distance, Budget(evaluations=615), rng=seed, n_features=15, checkpoint=path, callbacks=[stop])
    resumed = search("2d-clpso", distance, Budget(evaluations=615), rng=None, n_features=15, checkpoint=path)
    assert course(resumed) == course(whole)


KILLED = """
import sys, time
import numpy as np
from subswarm import Budget, search
planted = np.arange(15) % 4 == 0
def slow(masks):
    time.sleep(0.01)
    return (masks ^ planted).mean(axis=1)
search("2d-upso", slow, Budget(evaluations=3000), rng=7, n_features=15, checkpoint=sys.argv[1], checkpoint_seconds=0)
"""


def test_a_search_killed_without_warning_is_resumed_bit_for_bit(tmp_path):
    path = tmp_path / "search.ckpt"
    whole = search("2d-upso", distance, Budget(evaluations=3000), rng=7, n_features=15)
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)])
        deadline = time.monotonic() + 240
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.15)
        process.kill()
        process.wait()
    resumed = search("2d-upso", distance, Budget(evaluations=3000), rng=7, n_features=15, checkpoint=path)
    assert course(resumed) == course(whole)


def test_a_checkpoint_holds_no_pickle_and_leaves_no_temporary_file(tmp_path):
    path = tmp_path / "search.ckpt"
    search("2d-upso", distance, Budget(evaluations=90), rng=0, n_features=15, checkpoint=path)
    assert os.listdir(tmp_path) == ["search.ckpt"]
    with zipfile.ZipFile(path) as archive:
        assert {Path(name).suffix for name in archive.namelist()} == {".npy", ".json"}


def test_a_finished_search_is_read_back_from_its_checkpoint(tmp_path):
    path = tmp_path / "search.ckpt"
    first = search("2d-upso", distance, Budget(evaluations=90), rng=0, n_features=15, checkpoint=path)

    def never(masks):
        raise AssertionError("nothing is left to evaluate")

    again = search("2d-upso", never, Budget(evaluations=90), rng=0, n_features=15, checkpoint=path)
    assert course(again) == course(first)


def test_a_checkpoint_of_another_problem_is_refused(tmp_path):
    path = tmp_path / "search.ckpt"
    search("2d-upso", distance, Budget(evaluations=90), rng=0, n_features=15, checkpoint=path)
    with pytest.raises(CheckpointError, match=r"what differs: setting particles \(30 there, 9 here\)\. Delete"):
        search(TwoDUPSO(particles=9), distance, Budget(evaluations=90), rng=0, n_features=15, checkpoint=path)
    with pytest.raises(CheckpointError, match=r"differs: number of features \(15 there, 14 here\)\. "):
        search("2d-upso", distance, Budget(evaluations=90), rng=0, n_features=14, checkpoint=path)

    class Other:
        n_features = 15

        def __call__(self, masks):
            return distance(masks)

        def fingerprint(self):
            return "other data"

    with pytest.raises(CheckpointError, match=r"what differs: objective\."):
        search("2d-upso", Other(), Budget(evaluations=90), rng=0, checkpoint=path)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04 cut off"])
def test_a_damaged_checkpoint_is_named_as_such(tmp_path, content):
    path = tmp_path / "search.ckpt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        search("2d-upso", distance, Budget(evaluations=90), rng=0, n_features=15, checkpoint=path)


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="cannot write the checkpoint"):
        search("2d-upso", distance, Budget(evaluations=90), rng=0, n_features=15, checkpoint=tmp_path / "no" / "x.ckpt")


@pytest.mark.parametrize(
    "bad",
    [
        {"evaluations": 0},
        {"evaluations": -5},
        {"evaluations": 1.5},
        {"seconds": -1},
        {"patience": 0},
        {"target": np.nan},
    ],
)
def test_bad_budgets_are_refused_when_built(bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        Budget(**bad)


def test_a_budget_needs_a_limit():
    with pytest.raises(SettingError, match="at least one limit"):
        Budget(evaluations=None)


def test_a_plain_function_needs_the_number_of_features():
    with pytest.raises(SettingError, match="pass n_features"):
        search("2d-upso", distance, rng=0)


def test_global_random_state_is_never_touched():
    import random

    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    search("2d-upso", distance, Budget(evaluations=90), rng=None, n_features=15)
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]
