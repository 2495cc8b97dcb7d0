"""A study ends with the same content, whatever interrupts it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from limits import SECONDS
from subswarm.datasets import impute_nearest, load_dataset, sound_folds
from subswarm.errors import StoreError
from subswarm.study import Contender, Source, Store, Study, read_study, run_study
from subswarm.study.problem import ProblemSpec, build_problem

ROOT = Path(__file__).parent.parent

MANY_SHORT_RUNS = """
datasets = ["wine"]
models = ["nb"]
algorithms = ["random", { algorithm = "2d-upso", particles = 3 }]
runs = 100
evaluations = 4
folds = 2
"""

LONGER_RUNS = """
datasets = ["wine"]
models = ["nb"]
algorithms = ["random", "2d-upso"]
runs = 12
evaluations = 12000
"""

A_CHILD_KILLED_AT_RANDOM = """
import os, random, signal, sys, time
from dataclasses import replace
from subswarm.study import read_study, run_study

study, store, seed = read_study(sys.argv[1]), sys.argv[2], int(sys.argv[3])
run_study(replace(study, runs=1), store + ".first")  # so that the children have compiled kernels, and begin at once
chance = random.Random(seed)
kills = 0
while True:
    child = os.fork()
    if child == 0:
        try:
            run_study(study, store)
        except BaseException as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    time.sleep(chance.uniform(0.0, 0.03 * 1.05**kills))  # longer and longer, so that it ends on a slow machine too
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status):
        print(kills)
        sys.exit(os.WEXITSTATUS(status))
    kills += 1
"""


def a_study(**changes):
    return Study(
        **{
            "name": "small",
            "datasets": (Source("wine"),),
            "models": ("nb",),
            "algorithms": (Contender("random", "random"), Contender("small", "2d-upso", {"particles": 5})),
            "runs": 2,
            "evaluations": 10,
            "folds": 2,
            **changes,
        }
    )


def digest(path):
    with Store.reading(path) as store:
        return store.content_digest()


def in_a_process(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen([sys.executable, *arguments], env=environment, **options)


def test_runs_in_lockstep_give_the_same_results_as_one_by_one(tmp_path):
    from subswarm.study import runner
    from subswarm.study.backends.joblib import local_outcomes

    study = a_study(datasets=(Source("wine"), Source("wdbc")), runs=3, evaluations=60)
    alone, together = (
        {
            outcome.planned.key: outcome.content
            for outcome in local_outcomes(
                [runner.task_for(study, run, None) for run in study.plan()], 1, lockstep=lockstep
            )
        }
        for lockstep in (False, True)
    )
    assert alone == together
    assert len(alone) == 12


def test_a_run_that_fails_in_lockstep_fails_alone(tmp_path, monkeypatch):
    from subswarm.study import runner, worker
    from subswarm.study.backends.joblib import local_outcomes

    study = a_study(runs=3)
    tasks = [runner.task_for(study, run, None) for run in study.plan()]
    doomed = tasks[2].planned.seed
    search = worker.search

    def sometimes(algorithm, objective, budget, *, rng):
        if rng.bit_generator.state == np.random.default_rng(doomed).bit_generator.state:
            raise RuntimeError("no luck")
        return search(algorithm, objective, budget, rng=rng)

    def never(*_, **__):
        raise RuntimeError("no luck")

    monkeypatch.setattr(worker, "search", sometimes)
    monkeypatch.setattr(worker, "search_together", never)
    outcomes = list(local_outcomes(tasks, 1, lockstep=True))
    assert [outcome.failure is not None for outcome in outcomes] == [False, False, True, False, False, False]


def test_a_study_runs_its_grid_and_stores_complete_records(tmp_path):
    summary = run_study(a_study(), tmp_path / "a.db")
    assert (summary.asked, summary.ran, summary.failed) == (4, 4, 0)
    with Store.reading(tmp_path / "a.db") as store:
        rows, facts = store.rows(), store.problems()["wine", "nb", None]
    assert [str(row.planned) for row in rows] == [str(run) for run in a_study().plan()]
    for row in rows:
        content = row.content
        assert content.loss == pytest.approx(np.mean(content.fold_losses))
        assert content.evaluations == 10
        assert content.curve[-1] == (10, content.loss, content.cardinality)
        assert [step[1] for step in content.curve] == sorted((step[1] for step in content.curve), reverse=True)
        assert row.timing.algorithm_seconds > 0
        assert row.timing.evaluation_seconds > 0
        assert {"subswarm", "numpy", "scikit-learn"} <= set(row.timing.versions)
        assert content.settings["min_features"] == 1
    assert (facts.n_rows, facts.n_features, facts.n_classes) == (178, 13, 3)


def test_a_stored_loss_is_scikit_learns_own_for_the_stored_columns(tmp_path):
    from sklearn.model_selection import cross_val_score
    from sklearn.naive_bayes import GaussianNB

    run_study(a_study(), tmp_path / "a.db")
    wine = load_dataset("wine")
    with Store.reading(tmp_path / "a.db") as store:
        for row in store.rows():
            columns = list(row.content.features)
            scores = cross_val_score(GaussianNB(), wine.X[:, columns], wine.y, cv=sound_folds(wine.y, 2))
            assert row.content.fold_losses == pytest.approx(1 - scores)


def test_content_does_not_depend_on_jobs_or_on_what_ran_first(tmp_path):
    study = a_study(models=("nb", "normal-cdf-nb"), outer=2)
    run_study(study, tmp_path / "one.db")
    run_study(study, tmp_path / "two.db", jobs=2)
    run_study(a_study(models=("normal-cdf-nb",), runs=1), tmp_path / "parts.db")
    run_study(a_study(models=("nb",), algorithms=study.algorithms[1:]), tmp_path / "parts.db")
    run_study(study, tmp_path / "parts.db")
    assert digest(tmp_path / "one.db") == digest(tmp_path / "two.db") == digest(tmp_path / "parts.db")


def test_a_second_call_runs_only_what_is_missing(tmp_path):
    run_study(a_study(runs=1), tmp_path / "a.db")
    summary = run_study(a_study(runs=3), tmp_path / "a.db")
    assert (summary.asked, summary.already_done, summary.ran) == (6, 2, 4)
    assert run_study(a_study(runs=3), tmp_path / "a.db").ran == 0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_kill_9_at_random_moments_many_times_changes_nothing(tmp_path, seed):
    file = tmp_path / "short.toml"
    file.write_text(MANY_SHORT_RUNS)
    run_study(read_study(file), tmp_path / "unbroken.db")
    process = in_a_process(
        "-c", A_CHILD_KILLED_AT_RANDOM, str(file), str(tmp_path / "broken.db"), str(seed), stdout=subprocess.PIPE
    )
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert int(said) >= 10
    assert digest(tmp_path / "broken.db") == digest(tmp_path / "unbroken.db")


@pytest.mark.slow
def test_kill_9_of_the_command_with_two_workers_loses_no_finished_run(tmp_path):
    file = tmp_path / "longer.toml"
    file.write_text(LONGER_RUNS)
    run_study(read_study(file), tmp_path / "unbroken.db")
    store = tmp_path / "broken.db"
    command = ["-m", "subswarm", "study", "run", str(file), "--store", str(store), "--jobs", "2", "--quiet"]
    chance = random.Random(1)
    done = 0
    for _ in range(2):
        process = in_a_process(*command)
        wait_for_runs(store, done + 1, process)
        time.sleep(chance.uniform(0, 0.2))
        process.kill()
        process.wait()
        with Store.reading(store) as opened:
            assert len(opened.done()) >= done
            done = len(opened.done())
    assert in_a_process(*command, stdout=subprocess.DEVNULL).wait(timeout=SECONDS) == 0
    assert digest(store) == digest(tmp_path / "unbroken.db")


@pytest.mark.slow
def test_ctrl_c_ends_cleanly_and_the_same_command_resumes(tmp_path):
    file = tmp_path / "long.toml"
    file.write_text(LONGER_RUNS.replace("12000", "100000"))  # not over before the signal comes, on a busy machine
    store = tmp_path / "a.db"
    command = ["-m", "subswarm", "study", "run", str(file), "--store", str(store), "--jobs", "2"]
    process = in_a_process(*command, stderr=subprocess.PIPE)
    wait_for_runs(store, 1, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert b"The same command resumes the study" in said
    assert b"Traceback" not in said
    with Store.reading(store) as opened:
        assert 1 <= len(opened.done()) < 24
        assert not opened.failures()


@pytest.mark.slow
def test_a_killed_worker_is_a_clear_error_and_no_finished_run_is_lost(tmp_path):
    psutil = pytest.importorskip("psutil")
    file = tmp_path / "long.toml"
    file.write_text(LONGER_RUNS)
    store = tmp_path / "a.db"
    command = ["-m", "subswarm", "study", "run", str(file), "--store", str(store), "--jobs", "2", "--quiet"]
    process = in_a_process(*command, stderr=subprocess.PIPE)
    wait_for_runs(store, 1, process)
    workers = [each for each in psutil.Process(process.pid).children() if "popen_loky" in " ".join(each.cmdline())]
    workers[0].kill()
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert b"a worker process was killed" in said
    with Store.reading(store) as opened:
        assert opened.done()
        assert not opened.failures()


def workers_of(process):
    """Every process that a study has started, at any depth, that is alive now."""
    psutil = pytest.importorskip("psutil")
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def is_a_worker(process):
    psutil = pytest.importorskip("psutil")
    try:
        return "popen_loky" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def still_alive(processes, seconds=60):
    """Those of the processes that do not end by themselves; a busy machine may need many seconds to import numpy."""
    psutil = pytest.importorskip("psutil")
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]


def spawned(process, store):
    """The moment both workers are there, which then import for a second or two."""
    return sum(map(is_a_worker, workers_of(process))) == 2


def landed(process, store):
    """The moment a run has landed: both workers are in the middle of the next ones, or between two."""
    try:
        with Store.reading(store) as opened:
            return bool(opened.done())
    except OSError:
        return False


@pytest.mark.parametrize("moment", [spawned, landed])
@pytest.mark.slow
def test_kill_9_leaves_no_process_behind(tmp_path, moment):
    file, store = tmp_path / "longer.toml", tmp_path / "a.db"
    file.write_text(LONGER_RUNS)
    command = ["-m", "subswarm", "study", "run", str(file), "--store", str(store), "--jobs", "2", "--quiet"]
    process = in_a_process(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not moment(process, store):
        assert process.poll() is None, "the study ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGSTOP)  # so that it starts none while they are counted
    started = workers_of(process)
    assert any(map(is_a_worker, started)), "there is no worker to leave behind"
    process.kill()
    process.wait()
    assert not still_alive(started)


@pytest.mark.slow
def test_kill_9_ends_workers_that_never_had_a_task(tmp_path):
    code = """
import sys, time
from subswarm.study import read_study, runner
from subswarm.study.backends.joblib import local_outcomes

study = read_study(sys.argv[1])
tasks = [runner.task_for(study, run) for run in study.plan()[:2]]
list(local_outcomes(tasks, 4))  # two workers more than there are tasks
print("idle", flush=True)
time.sleep(600)
"""
    file = tmp_path / "short.toml"
    file.write_text(MANY_SHORT_RUNS)
    process = in_a_process("-c", code, str(file), stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"idle\n"
    started = workers_of(process)
    assert sum(map(is_a_worker, started)) == 4
    process.kill()
    process.wait()
    process.stdout.close()  # and not communicate(): the workers have inherited the other end
    assert not still_alive(started)


def wait_for_runs(store, count, process, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, "the study ended before it could be disturbed"
        if store.exists():
            try:
                with Store.reading(store) as opened:
                    if len(opened.done()) >= count:
                        return
            except OSError:
                pass  # it is being made
        time.sleep(0.02)
    raise AssertionError(f"{count} runs did not land in {seconds} s")


def test_a_failed_run_is_recorded_with_its_error_and_retried_on_request(tmp_path):
    table = tmp_path / "own.csv"
    study = a_study(datasets=(Source("own", str(table), "y"), Source("wine")), runs=1)
    summary = run_study(study, tmp_path / "a.db")
    assert (summary.ran, summary.failed) == (4, 2)
    with Store.reading(tmp_path / "a.db") as store:
        assert len(store.done()) == 2
        assert all("own.csv" in failure.error for failure in store.failures().values())
        assert all("Traceback" in failure.trace for failure in store.failures().values())
    rows = "\n".join(f"{i % 2},{i % 2 + i / 100},{i % 3}" for i in range(40))
    table.write_text(f"y,a,b\n{rows}\n")
    assert run_study(study, tmp_path / "a.db").ran == 0
    assert run_study(study, tmp_path / "a.db", retry_failed=True).failed == 0
    with Store.reading(tmp_path / "a.db") as store:
        assert not store.failures()
        assert len(store.done()) == 4


def test_the_memo_of_one_run_is_not_used_by_the_next(tmp_path):
    run_study(a_study(runs=3, evaluations=30), tmp_path / "a.db")
    with Store.reading(tmp_path / "a.db") as store:
        counts = [row.content.computed for row in store.rows() if row.planned.algorithm == "random"]
    assert min(counts) > 20


def test_outer_test_rows_do_not_influence_the_search_or_imputation(uci):
    uci("arrhythmia")
    spec = ProblemSpec(Source("arrhythmia"), "nb", "sound", folds=2, outer=(1, 3), seed=0, data_dir=None)
    problem = build_problem(spec)
    data = load_dataset("arrhythmia", impute=False)
    rows, held_out = sound_folds(data.y, 3, seed=1)[1]
    np.testing.assert_array_equal(problem.train[0], impute_nearest(data.X[rows]))
    np.testing.assert_array_equal(problem.test[0], impute_nearest(data.X[held_out], donors=data.X[rows]))
    changed = data.X.copy()
    changed[held_out] = 1e6
    np.testing.assert_array_equal(problem.train[0], impute_nearest(changed[rows]))
    assert problem.objective.n_features == 279
    assert len(problem.train[1]) + len(problem.test[1]) == 452


def test_on_noise_the_inner_error_is_low_and_the_nested_error_is_one_half(tmp_path):
    rng = np.random.default_rng(5)
    table = np.column_stack([np.arange(80) % 2, rng.normal(size=(80, 40))])
    header = ",".join(["y", *(f"x{j}" for j in range(40))])
    np.savetxt(tmp_path / "noise.csv", table, delimiter=",", header=header, comments="")
    source = Source("noise", str(tmp_path / "noise.csv"), "y")
    study = a_study(datasets=(source,), runs=1, evaluations=200, folds=5, outer=4)
    run_study(study, tmp_path / "a.db", jobs=2)
    with Store.reading(tmp_path / "a.db") as store:
        outer = [row.content for row in store.rows() if row.planned.outer_fold is not None]
        facts = store.problems()["noise", "nb", 0]
    assert np.mean([content.loss for content in outer]) < 0.4
    assert 0.4 < np.mean([content.held_out for content in outer]) < 0.6
    assert facts.held_out_all is not None


def test_too_few_rows_for_ten_inner_folds_get_as_many_as_the_largest_class_allows(uci):
    uci("lung-cancer")
    spec = ProblemSpec(Source("lung-cancer"), "nb", "sound", folds=10, outer=(0, 5), seed=0, data_dir=None)
    assert len(build_problem(spec).objective.folds) == 8


def test_every_outer_repeat_leaves_out_every_row_once_in_another_order():
    def held_out(fold):
        spec = ProblemSpec(Source("wine"), "nb", "sound", folds=2, outer=(fold, 3), seed=0, data_dir=None)
        return build_problem(spec).test

    rows = load_dataset("wine").X
    folds = [held_out(fold) for fold in range(6)]
    for repetition in (folds[:3], folds[3:]):
        found = np.concatenate([X for X, _ in repetition])
        assert sorted(row.tobytes() for row in found) == sorted(row.tobytes() for row in rows)
    assert {row.tobytes() for row in folds[0][0]} != {row.tobytes() for row in folds[3][0]}


def test_random_models_are_seeded():
    from subswarm._models import make_model
    from subswarm._seeding import set_random_states

    assert set_random_states(make_model("forest"), 7).random_state == 7
    assert set_random_states(make_model("svm"), 7).get_params()["svc__random_state"] == 7


def test_progress_is_reported_before_the_first_run_and_after_each(tmp_path):
    seen = []
    run_study(a_study(), tmp_path / "a.db", progress=seen.append)
    assert [each.done for each in seen] == [0, 1, 2, 3, 4]
    assert seen[0].seconds_left is None
    assert seen[1].seconds_left > 0
    assert seen[-1].seconds_left == 0


def test_a_study_can_score_on_repeated_folds(tmp_path):
    study = a_study(repeats=3, evaluations=20)
    run_study(study, tmp_path / "repeated.db")
    with Store.reading(tmp_path / "repeated.db") as store:
        assert store.info().repeats == 3
        rows = store.rows()
    assert all(len(row.content.fold_losses) == 6 for row in rows)
    assert all(18 <= row.content.evaluations <= 20 for row in rows)
    with pytest.raises(StoreError, match="repeats is 3 there and 1 here"):
        run_study(a_study(evaluations=20), tmp_path / "repeated.db")


def test_the_first_repeat_has_the_folds_of_a_study_without_repeats():
    spec = ProblemSpec(Source("wine"), "nb", "sound", 5, None, 0, None)
    plain, repeated = build_problem(spec).objective, build_problem(replace(spec, repeats=2)).objective
    assert (plain.n_partitions, repeated.n_partitions) == (1, 2)
    for (_, ours), (_, theirs) in zip(plain.folds, repeated.folds[:5], strict=True):
        assert np.array_equal(ours, theirs)
    assert not np.array_equal(repeated.folds[0][1], repeated.folds[5][1])
