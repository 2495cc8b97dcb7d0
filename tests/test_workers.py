"""Fits in worker processes and on a cluster: the same results, the table sent once, and no more threads than cores."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from clusters import cluster, wait_for_two_workers
from limits import SECONDS
from subswarm import SwarmSelector
from subswarm.engines.reference import try_scores
from subswarm.engines.workers import Workers, with_threads
from subswarm.objective.foldwise import foldwise
from subswarm.objective.objective import make_objective

__all__ = ["cluster"]

MASKS = np.random.default_rng(0).random((12, 6)) < 0.5
MASKS[:, 0] = True


@pytest.fixture(scope="module")
def data():
    return make_classification(200, 6, random_state=0)


def where_the_table_is(estimator, data, number):
    """Return the kind of memory that a worker has the table in, the column's sum, and the size of what it was sent."""
    table = data.X if data.frame is None else data.frame.to_numpy()
    base = table
    while isinstance(base.base, np.ndarray):
        base = base.base
    return isinstance(table, np.memmap) or isinstance(base, np.memmap), float(table[:, number].sum()), data.folds


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_worker_processes_map_the_table_from_one_file(data, kind):
    X, y = data
    objective = make_objective(DecisionTreeClassifier(), pd.DataFrame(X) if kind == "frame" else X, y, cv=3)
    workers = Workers(objective.estimator, objective.data, 2)
    for _ in range(2):
        found = workers.run(where_the_table_is, [(0,), (1,), (2,)])
        assert [mapped for mapped, _, _ in found] == [True] * 3
        np.testing.assert_allclose([total for _, total, _ in found], X.sum(axis=0)[:3])
        for (train, test), sent in zip(objective.folds, found[0][2], strict=True):
            np.testing.assert_array_equal(sent.train, train)
            np.testing.assert_array_equal(sent.test, test)


def test_what_is_sent_with_each_fit_does_not_grow_with_the_table(data):
    from subswarm.engines.workers import _without_table

    sizes = []
    for rows in (100, 10_000):
        X = np.zeros((rows, 6))
        objective = make_objective(DecisionTreeClassifier(), X, np.arange(rows) % 2, cv=3)
        sizes.append(len(pickle.dumps(_without_table(objective.data))))
    assert sizes[0] == sizes[1] < 10_000


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_losses_do_not_depend_on_the_workers(data, backend):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    expected = make_objective(DecisionTreeClassifier(random_state=0), frame, y, cv=3, n_jobs=1)(MASKS)
    with joblib.parallel_config(backend):
        objective = make_objective(DecisionTreeClassifier(random_state=0), frame, y, cv=3, n_jobs=2)
        np.testing.assert_array_equal(objective(MASKS), expected)
        folds = foldwise(objective, n_jobs=2)
        np.testing.assert_array_equal(folds(MASKS), expected)


class ThreadReporter(ClassifierMixin, BaseEstimator):
    """A model whose score is its number of threads."""

    def __init__(self, n_jobs=-1):
        self.n_jobs = n_jobs

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def score(self, X, y):
        return float(self.n_jobs)


def test_model_threads_times_workers_are_no_more_than_the_cores(data):
    X, y = data
    cores = joblib.cpu_count()
    with joblib.parallel_config("threading"):
        for n_jobs in (2, 64):
            objective = make_objective(ThreadReporter(), X, y, cv=2, n_jobs=n_jobs)
            threads = 1 - objective(MASKS)
            assert (threads == max(1, cores // min(n_jobs, len(MASKS)))).all()
    alone = 1 - make_objective(ThreadReporter(), X, y, cv=2, n_jobs=1)(MASKS)
    assert (alone == -1).all()


def test_threads_that_were_chosen_are_kept_and_defaults_that_mean_all_cores_are_limited():
    chosen = make_pipeline(StandardScaler(), RandomForestClassifier(n_jobs=3))
    assert with_threads(chosen, 1) is chosen
    default = RandomForestClassifier()  # one thread
    assert with_threads(default, 1) is default
    lightgbm = pytest.importorskip("lightgbm")
    limited = with_threads(make_pipeline(StandardScaler(), lightgbm.LGBMClassifier()), 2)
    assert limited[-1].n_jobs == 2
    assert with_threads(lightgbm.LGBMClassifier(n_jobs=4), 2).n_jobs == 4
    catboost = pytest.importorskip("catboost")
    assert with_threads(catboost.CatBoostClassifier(cat_features=["a"]), 2).get_params()["thread_count"] == 2


@pytest.mark.slow
def test_a_search_on_a_cluster_survives_a_killed_worker_with_the_same_result(cluster, data):
    distributed = pytest.importorskip("distributed", reason="a Dask cluster needs the extra 'dask'")
    address, workers = cluster
    wait_for_two_workers(address)
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    steps = []

    def kill_one_on_the_way(snapshot):
        steps.append(snapshot.evaluations)
        if len(steps) == 2:
            workers[0].kill()

    def select(**settings):
        model = DecisionTreeClassifier(random_state=0)
        selector = SwarmSelector(model, "2d-upso", max_evaluations=200, cv=3, random_state=0, **settings)
        return selector.fit(frame, y)

    with distributed.Client(address, set_as_default=False) as client, joblib.parallel_config("dask", client=client):
        there = select(callbacks=[kill_one_on_the_way])
        ran = sum(client.run(lambda: 1).values())
        objective = make_objective(DecisionTreeClassifier(random_state=0), frame, y, cv=3)
        fits = Workers(objective.estimator, objective.data, None)
        first = fits.run(try_scores, [(mask,) for mask in MASKS])
        sent = fits._sent
        assert fits.run(try_scores, [(MASKS[0],)])[0].tolist() == first[0].tolist()
        assert fits._sent is sent  # the table is not sent again
        sent[1].cancel()  # as if it was lost with the workers that had it
        again = fits.run(try_scores, [(mask,) for mask in MASKS])
        assert fits._sent is not sent
        np.testing.assert_array_equal(again, first)
    assert workers[0].wait(timeout=SECONDS) != 0
    assert workers[1].poll() is None
    assert ran == 1
    assert len(steps) > 3
    here = select(n_jobs=1)
    np.testing.assert_array_equal(there.support_, here.support_)
    np.testing.assert_array_equal(there.fold_scores_, here.fold_scores_)
    np.testing.assert_array_equal(there.history_.best_fitness, here.history_.best_fitness)
