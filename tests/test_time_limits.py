"""A search keeps its time limit, announces long times, and Ctrl-C in any phase keeps what there is."""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from subswarm import Budget, SwarmSelector, nested, search
from subswarm import selector as selector_module
from subswarm._search import loop, plan
from subswarm._search.callbacks import TimeNotice
from subswarm.errors import SubswarmWarning

PLANTED = np.arange(15) < 4
WINE = load_wine(return_X_y=True)


class Clock:
    """An objective whose evaluations take the time that ``seconds_of(mask)`` says, on a clock of its own."""

    def __init__(self, monkeypatch, seconds_of, engine="function", fails_at=None):
        self.now, self.seconds_of, self.engine, self.fails_at = 0.0, seconds_of, engine, fails_at
        self.told, self.n_features = [], 15
        monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def __call__(self, masks):
        if self.fails_at is not None and len(self.told) >= self.fails_at:
            raise KeyboardInterrupt
        self.now += sum(self.seconds_of(mask) for mask in masks)
        self.told += [mask.copy() for mask in masks]
        return (masks ^ PLANTED).mean(axis=1)


@pytest.mark.parametrize("algorithm", ["2d-elite", "2d-upso", "ga", "sffs", "random"])
@pytest.mark.parametrize("limit", [3.0, 50.0, 100.0])
def test_the_limit_is_kept_within_one_evaluation(monkeypatch, algorithm, limit):
    clock = Clock(monkeypatch, lambda mask: 0.5 + mask.mean())
    result = search(algorithm, clock, Budget(seconds=limit), rng=0)
    assert result.stop_reason in ("seconds", "finished")
    assert clock.now <= limit + max(1.5, limit / 10)
    if result.stop_reason == "seconds":
        assert clock.now >= limit
    assert result.evaluations == len(clock.told)


def test_evaluations_of_very_different_times_keep_the_limit_too(monkeypatch):
    for seed in range(5):
        clock = Clock(monkeypatch, lambda mask: 0.5 if mask.sum() < 8 else 2.0)
        search("2d-elite", clock, Budget(seconds=60), rng=seed)
        assert 60 <= clock.now <= 66


def test_a_limit_that_is_not_reached_changes_nothing(monkeypatch):
    budget = {"evaluations": 400}
    plain = Clock(monkeypatch, lambda mask: 0.0)
    ours = search("2d-elite", plain, Budget(**budget), rng=3)
    limited = Clock(monkeypatch, lambda mask: 0.5)
    other = search("2d-elite", limited, Budget(**budget, seconds=1000), rng=3)
    assert np.array_equal(plain.told, limited.told)
    assert other.history.best_fitness.tolist() == ours.history.best_fitness.tolist()
    slow = Clock(monkeypatch, lambda mask: 3.0, engine="estimator")
    search("2d-elite", slow, Budget(**budget), rng=3)
    assert np.array_equal(plain.told, slow.told)


def test_the_masks_of_a_cut_search_are_those_of_the_whole_one(monkeypatch):
    whole = Clock(monkeypatch, lambda mask: 0.0)
    search("2d-upso", whole, Budget(evaluations=300), rng=1)
    cut = Clock(monkeypatch, lambda mask: 1.0)
    search("2d-upso", cut, Budget(evaluations=300, seconds=70), rng=1)
    assert 65 <= len(cut.told) <= 72
    assert np.array_equal(cut.told, whole.told[: len(cut.told)])


def test_a_checkpoint_keeps_the_state_before_a_cut_batch(monkeypatch, tmp_path):
    whole = search("2d-upso", Clock(monkeypatch, lambda mask: 0.0), Budget(evaluations=300), rng=1)
    path, rounds = tmp_path / "x.ckpt", 0
    while True:
        clock = Clock(monkeypatch, lambda mask: 1.0)
        result = search("2d-upso", clock, Budget(evaluations=300, seconds=100.0 * (rounds + 1)), rng=1, checkpoint=path)
        rounds += 1
        if result.stop_reason == "evaluations":
            break
        assert rounds < 5
    assert rounds > 1
    assert result.best.mask.tolist() == whole.best.mask.tolist()
    assert result.history.best_fitness.tolist() == whole.history.best_fitness.tolist()


def test_ctrl_c_in_the_first_batch_of_a_slow_model_keeps_what_was_scored(monkeypatch):
    clock = Clock(monkeypatch, lambda mask: 2.0, engine="estimator", fails_at=7)
    result = search("2d-elite", clock, rng=0)
    assert result.stop_reason == "interrupted"
    assert result.evaluations == len(clock.told) >= 7
    assert result.best.fitness == min((np.array(clock.told) ^ PLANTED).mean(axis=1))


def test_a_long_search_is_announced_once(capsys):
    def at(evaluations, seconds):
        return SimpleNamespace(evaluations=evaluations, seconds=seconds)

    def announced(total, limit, *steps):
        notice = TimeNotice(total, limit)
        for step in steps:
            notice(at(*step))
        return capsys.readouterr().err

    assert announced(6000, None, (30, 40.0), (60, 43.0), (90, 44.0)) == "the search takes about 11 min\n"
    assert announced(6000, None, (30, 40.0), (60, 40.1), (90, 44.0)) == ""
    assert announced(6000, 20.0, (30, 40.0), (60, 43.0)) == ""
    assert announced(None, None, (30, 40.0), (60, 43.0)) == ""


def test_a_search_scored_by_scikit_learn_is_announced_before_it_starts(monkeypatch, capsys):
    clock = iter(np.arange(0, 10_000, 0.6).tolist())
    monkeypatch.setattr(plan, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    settings = {
        "cv": 3,
        "repeats": 1,
        "max_evaluations": 300,
        "random_state": 0,
        "engine": "estimator",
        "algorithm": "2d-elite",
    }
    stop = {"callbacks": [lambda snapshot: True]}
    SwarmSelector(GaussianNB(), **settings, **stop, verbose=1).fit(*WINE)
    assert capsys.readouterr().err == "the search takes about 3 min\n"
    SwarmSelector(GaussianNB(), **settings, **stop, verbose=0).fit(*WINE)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("limit", "alone"), [(0.3, True), (1000, False)])
@pytest.mark.parametrize("algorithm", ["auto", "2d-elite"])
def test_a_short_search_does_not_wait_for_workers_to_start(monkeypatch, algorithm, limit, alone):
    from subswarm.engines import workers

    started = []
    monkeypatch.setattr(workers, "Parallel", lambda n_jobs: lambda calls: started.append(n_jobs) or 1 / 0)
    model = DecisionTreeClassifier(random_state=0)
    selector = SwarmSelector(model, algorithm, cv=3, max_seconds=limit, max_fits=300, n_jobs=2, random_state=0)
    with nullcontext() if alone else pytest.raises(ZeroDivisionError):
        selector.fit(*WINE)
    assert started == ([] if alone else [2])


@pytest.fixture
def interrupted_scorer():
    """A scorer that is interrupted after this many calls, as if by Ctrl-C."""

    def make(calls):
        left = [calls]

        def accuracy(model, X, y):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return float((model.predict(X) == y).mean())

        return accuracy

    return make


def test_ctrl_c_in_a_nested_fold_keeps_the_finished_search(interrupted_scorer):
    settings = {"cv": 2, "repeats": 1, "choose": "best", "max_evaluations": 30, "random_state": 0, "verbose": 0}
    whole = SwarmSelector(GaussianNB(), scoring=interrupted_scorer(0), **settings).fit(*WINE)
    calls = 2 * (whole.result_.computed + 2)  # the search, and the scores of selected and of all columns
    ours = SwarmSelector(GaussianNB(), held_out=2, scoring=interrupted_scorer(calls + 5), **settings)
    with pytest.warns(SubswarmWarning, match="nested cross-validation was interrupted; the search itself is complete"):
        ours.fit(*WINE)
    assert ours.held_out_ is None
    assert ours.result_.stop_reason == "evaluations"
    assert ours.support_.tolist() == whole.support_.tolist()
    with pytest.raises(KeyboardInterrupt):
        nested.held_out(SwarmSelector(GaussianNB(), scoring=interrupted_scorer(40), **settings), *WINE, folds=2)


def test_ctrl_c_while_the_candidates_are_compared_selects_the_best(interrupted_scorer):
    settings = {"cv": 2, "repeats": 1, "max_evaluations": 30, "random_state": 0}
    best = SwarmSelector(GaussianNB(), scoring=interrupted_scorer(0), choose="best", **settings).fit(*WINE)
    calls = 2 * best.result_.computed
    ours = SwarmSelector(GaussianNB(), scoring=interrupted_scorer(calls + 3), **settings).fit(*WINE)
    assert ours.support_.tolist() == best.support_.tolist()
    assert ours.best_score_ == best.best_score_


def test_ctrl_c_after_the_search_never_loses_it(interrupted_scorer, tmp_path):
    settings = {
        "scoring": {"own": interrupted_scorer(0), "other": interrupted_scorer(0)},
        "record": True,
        "choose": "best",
        "cv": 2,
        "repeats": 1,
        "max_evaluations": 12,
        "random_state": 0,
        "callbacks": [lambda snapshot: steps.append(Counted.fits)],
    }
    steps = []

    class Counted(GaussianNB):
        fits = 0
        stop_at = -1

        def fit(self, X, y):
            Counted.fits += 1
            if Counted.fits == Counted.stop_at:
                raise KeyboardInterrupt
            return super().fit(X, y)

    whole = SwarmSelector(Counted(), **settings).fit(*WINE)
    in_search, in_all = steps[-1], Counted.fits
    assert in_all > in_search + 8
    for stop_at in range(in_search + 1, in_all + 1):
        Counted.fits, Counted.stop_at = 0, stop_at
        ours = SwarmSelector(Counted(), **settings).fit(*WINE)
        assert ours.support_.tolist() == whole.support_.tolist()
        assert ours.best_score_ == whole.best_score_
        assert ours.predict(WINE[0]).shape == (178,)
        assert ours.report(tmp_path / "page.html").exists()


def test_a_second_ctrl_c_ends_at_once(capsys):
    calls = []

    def accuracy(model, X, y):
        calls.append(1)
        if len(calls) in (30, 31):
            raise KeyboardInterrupt
        return float((model.predict(X) == y).mean())

    settings = {"cv": 2, "repeats": 1, "choose": "best", "max_evaluations": 300, "random_state": 0}
    with pytest.raises(KeyboardInterrupt):
        SwarmSelector(GaussianNB(), scoring=accuracy, verbose=1, **settings).fit(*WINE)
    assert len(calls) == 31
    assert selector_module.INTERRUPTED in capsys.readouterr().err


def test_the_command_line_prints_and_writes_after_ctrl_c(monkeypatch, capsys, tmp_path):
    from subswarm.__main__ import main
    from subswarm.report import record

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(selector_module, "run_outer_folds", interrupt)
    monkeypatch.setattr(record, "_fit_again", interrupt)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    out = tmp_path / "x.json"
    options = ["--model", "nb", "--evaluations", "40", "--cv", "3", "--repeats", "1", "--held-out", "2", "--seeds", "2"]
    monkeypatch.setattr(sys, "argv", ["subswarm", "select", "wine", *options, "--out", str(out)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    shown = capsys.readouterr()
    assert "selected" in shown.out
    assert out.exists()
    assert "nested cross-validation was interrupted" in shown.err
    assert "interrupted: the other searches are left out" in shown.err
