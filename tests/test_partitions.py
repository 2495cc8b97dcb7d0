"""Repeated cross-validation: each partition has an engine and a memo of its own, and costs one evaluation."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from partitioned import Partitioned
from subswarm import Budget, Search, make_objective, search, search_together
from subswarm.algorithms import Race, RandomSearch, TwoDUPSO
from subswarm.errors import CheckpointError, DataError, SettingError, SubswarmWarning
from subswarm.objective import objective as engines_of_partitions

WINE = load_wine(return_X_y=True)

MODELS = {
    "naive Bayes": (GaussianNB(), "gaussian_nb"),
    "neighbours": (KNeighborsClassifier(), "knn"),
    "standardised neighbours": (make_pipeline(StandardScaler(), KNeighborsClassifier()), "knn"),
    "standardised naive Bayes": (make_pipeline(StandardScaler(), GaussianNB()), "gaussian_nb"),
    "any estimator": (make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)), "estimator"),
}


def some_masks(n=13, count=5, seed=0):
    masks = np.random.default_rng(seed).random((count, n)) < 0.5
    masks[:, 0] |= ~masks.any(axis=1)
    return masks


@pytest.fixture(scope="module")
def repeated():
    return make_objective(GaussianNB(), *WINE, cv=4, repeats=3)


@pytest.mark.parametrize("name", MODELS)
def test_losses_are_those_of_cross_val_score_on_repeated_folds_in_its_order(name):
    model, engine = MODELS[name]
    X, y = WINE
    cv = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=7)
    objective = make_objective(model, X, y, cv=cv)
    assert objective.n_partitions == 3
    assert objective.engine == engine
    masks = some_masks()
    for mask, losses in zip(masks, objective.fold_losses(masks), strict=True):
        assert np.array_equal(losses, 1 - cross_val_score(model, X[:, mask], y, cv=cv))
    assert np.array_equal(objective(masks), objective.fold_losses(masks).mean(axis=1))


def test_torch_scores_repeated_folds_the_same():
    pytest.importorskip("torch")
    for model in (GaussianNB(), KNeighborsClassifier()):
        masks = some_masks()
        ours = make_objective(model, *WINE, cv=4, repeats=2, engine="torch")
        assert np.array_equal(ours.fold_losses(masks), make_objective(model, *WINE, cv=4, repeats=2).fold_losses(masks))


def test_a_regressor_has_repeated_plain_folds():
    X, y = load_diabetes(return_X_y=True)
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=5)
    for model in (LinearRegression(), KNeighborsRegressor()):
        losses = make_objective(model, X, y, cv=3, repeats=2, random_state=5).fold_losses(np.ones(10, bool))[0]
        assert np.allclose(losses, 1 - cross_val_score(model, X, y, cv=cv), rtol=1e-10, atol=0)
        assert np.array_equal(make_objective(model, X, y, cv=cv).fold_losses(np.ones(10, bool))[0], losses)


def test_repeats_are_scikit_learns_repeated_folds_and_the_first_partition_is_the_only_one_of_a_single_repeat():
    X, y = WINE
    objective = make_objective(GaussianNB(), X, y, cv=4, repeats=3, random_state=11)
    expected = list(RepeatedStratifiedKFold(n_splits=4, n_repeats=3, random_state=11).split(X, y))
    alone = list(StratifiedKFold(4, shuffle=True, random_state=11).split(X, y))
    assert len(objective.folds) == 12
    for (train, test), (train_, test_) in zip(objective.folds, expected, strict=True):
        assert np.array_equal(train, train_)
        assert np.array_equal(test, test_)
    for (_, test), (_, test_) in zip(objective.folds[:4], alone, strict=True):
        assert np.array_equal(test, test_)
    masks = some_masks()
    single = make_objective(GaussianNB(), X, y, cv=4, random_state=11)
    assert np.array_equal(objective(masks, np.zeros(5, int)), single(masks))


def test_the_first_plain_partition_is_the_only_one_of_a_single_repeat():
    X, y = load_diabetes(return_X_y=True)
    objective = make_objective(LinearRegression(), X, y, cv=4, repeats=3, random_state=2)
    for (_, test), (_, test_) in zip(objective.folds[:4], KFold(4, shuffle=True, random_state=2).split(X), strict=True):
        assert np.array_equal(test, test_)


def test_a_mask_may_be_scored_on_one_partition(repeated):
    objective = repeated.fresh()
    masks = some_masks()
    every = objective.fold_losses(masks).reshape(5, 3, 4)
    chosen = np.array([2, 0, 1, 1, 2])
    assert np.array_equal(objective.fold_losses(masks, chosen), every[np.arange(5), chosen])
    assert np.array_equal(objective(masks, chosen), every[np.arange(5), chosen].mean(axis=1))


def test_each_partition_scored_is_one_evaluation(repeated):
    objective = repeated.fresh()
    masks = some_masks()
    objective(masks, [0, 0, 1, 1, 2])
    assert (objective.asked, objective.computed) == (5, 5)
    objective(masks, [0, 0, 1, 1, 2])
    assert (objective.asked, objective.computed) == (10, 5)
    objective(masks)
    assert (objective.asked, objective.computed) == (25, 15)
    objective.losses_of(masks[0])
    assert (objective.asked, objective.computed) == (25, 15)


def test_a_list_of_splits_is_taken_as_partitions_one_after_the_other(repeated):
    listed = make_objective(GaussianNB(), *WINE, cv=repeated.folds, repeats=3)
    assert listed.n_partitions == 3
    assert listed.fingerprint() == repeated.fingerprint()
    assert make_objective(GaussianNB(), *WINE, cv=repeated.folds).fingerprint() != repeated.fingerprint()


def test_engines_are_made_when_their_partition_is_first_scored(monkeypatch):
    made = []
    real = engines_of_partitions.engine_for
    monkeypatch.setattr(
        engines_of_partitions,
        "engine_for",
        lambda estimator, data, **how: (made.append(1), real(estimator, data, **how))[1],
    )
    objective = make_objective(GaussianNB(), *WINE, cv=3, repeats=5)
    assert len(made) == 1
    objective(some_masks(), [0, 0, 3, 3, 3])
    assert len(made) == 2
    objective.fresh()(some_masks())
    assert len(made) == 5


def test_one_failing_subset_is_no_reason_to_give_up_however_many_partitions_there_are():
    class Fussy(LogisticRegression):
        def fit(self, X, y):
            if X.shape[1] > 3:
                raise RuntimeError("too many")
            return super().fit(X, y)

    objective = make_objective(Fussy(), *WINE, cv=3, repeats=4)
    with pytest.warns(SubswarmWarning, match="too many") as caught:
        assert objective(np.ones((1, 13), bool)).tolist() == [1.0]
    assert len(caught) == 1
    with pytest.raises(RuntimeError, match="too many"):
        objective(np.arange(13)[None] < 12)


@pytest.mark.parametrize(
    ("partitions", "sentence"),
    [
        ([0, 1], "one for each of the 5 masks"),
        ([0.5] * 5, "whole numbers"),
        ([0, 1, 2, 3, 0], "from 0 to 2"),
        ([-1] * 5, "from 0 to 2"),
    ],
)
def test_unusable_partitions_are_refused(repeated, partitions, sentence):
    with pytest.raises(DataError, match=sentence):
        repeated(some_masks(), partitions)


@pytest.mark.parametrize(
    ("cv", "repeats", "sentence"),
    [
        (KFold(3), 2, "number of folds"),
        ([(np.arange(100), np.arange(100, 178))] * 3, 2, "cannot be divided into repeats=2"),
        (3, 0, "at least 1"),
        (3, 1.5, "whole number"),
    ],
)
def test_unusable_repeats_are_refused(cv, repeats, sentence):
    with pytest.raises(SettingError, match=sentence):
        make_objective(GaussianNB(), *WINE, cv=cv, repeats=repeats)


def test_a_search_that_knows_nothing_of_partitions_pays_for_all_of_them(repeated):
    objective = repeated.fresh()
    result = search(TwoDUPSO(particles=10), objective, Budget(evaluations=95), rng=0)
    assert result.evaluations == objective.asked == 93  # three subsets fit no more
    assert result.stop_reason == "evaluations"
    assert result.history.evaluations.tolist() == [30, 60, 90, 93]
    assert result.best.fitness == objective(result.best.mask)[0]
    assert result.fold_losses.shape == (12,)


def test_a_budget_that_covers_no_subset_is_refused(repeated):
    with pytest.raises(SettingError, match="costs 3 evaluations"):
        search("2d-upso", repeated, Budget(evaluations=2), rng=0)


def test_racing_searches_side_by_side_go_the_way_each_would_have_gone_alone(repeated):
    algorithms, seeds = [Race(RandomSearch()), "2d-upso", Race(TwoDUPSO(particles=9), elite=5), "sfs"], [1, 2, 3, 4]
    budget = Budget(evaluations=400)
    together = search_together(algorithms, repeated.fresh(), budget, rngs=seeds)
    for algorithm, seed, ours in zip(algorithms, seeds, together, strict=True):
        alone = search(algorithm, repeated.fresh(), budget, rng=seed)
        assert np.array_equal(ours.best.mask, alone.best.mask)
        assert (ours.best.fitness, ours.evaluations, ours.computed) == (
            alone.best.fitness,
            alone.evaluations,
            alone.computed,
        )
        assert (ours.stop_reason, ours.settings) == (alone.stop_reason, alone.settings)
        assert np.array_equal(ours.history.best_fitness, alone.history.best_fitness)
        assert np.array_equal(ours.history.evaluations, alone.history.evaluations)
        assert np.array_equal(ours.front.masks, alone.front.masks)
        assert np.array_equal(ours.fold_losses, alone.fold_losses)


@pytest.mark.parametrize("algorithm", [Race(TwoDUPSO(particles=7), elite=9), TwoDUPSO(particles=7)])
def test_an_interrupted_search_on_repeats_continues_bit_for_bit(repeated, tmp_path, algorithm):
    budget = Budget(evaluations=300)
    whole = search(algorithm, repeated.fresh(), budget, rng=3)
    stop = lambda snapshot: snapshot.evaluations >= 120  # noqa: E731
    file = tmp_path / "search.ckpt"
    search(algorithm, repeated.fresh(), budget, rng=3, checkpoint=file, callbacks=[stop])
    resumed = search(algorithm, repeated.fresh(), budget, rng=3, checkpoint=file)
    assert np.array_equal(resumed.best.mask, whole.best.mask)
    assert resumed.best.fitness == whole.best.fitness
    assert np.array_equal(resumed.history.evaluations, whole.history.evaluations)
    assert np.array_equal(resumed.history.best_fitness, whole.history.best_fitness)
    assert np.array_equal(resumed.front.masks, whole.front.masks)
    with pytest.raises(CheckpointError, match=r"what differs: folds, number of partitions \(3 there, 1 here\)"):
        search(algorithm, make_objective(GaussianNB(), *WINE, cv=repeated.folds), budget, rng=3, checkpoint=file)


def test_by_ask_and_tell_partitions_are_named_beside_the_masks():
    racing = Race(TwoDUPSO(particles=6))
    by_hand = Search(racing, 9, rng=0, n_partitions=4)
    objective = Partitioned()
    while by_hand.evaluations < 48:
        by_hand.tell(objective(by_hand.ask(), by_hand.partitions))
        arrays, values = by_hand.saved()
        by_hand = Search.restored(racing, arrays, json.loads(json.dumps(values)))
    assert by_hand.evaluations == 48  # two batches of six, each on the first partition and then on three others
    assert by_hand.cost == 1
    driven = search(racing, Partitioned(), Budget(evaluations=48), rng=0)
    assert np.array_equal(by_hand.best.mask, driven.best.mask)
    plain = Search(TwoDUPSO(), 9, rng=0, n_partitions=4)
    assert plain.partitions is None
    assert plain.cost == 4


@pytest.mark.parametrize("n_partitions", [5, 8])
def test_a_partition_that_does_not_exist_is_refused(n_partitions):
    with pytest.raises(SettingError, match="from 0 to 3"):
        search(Race(RandomSearch(), n_partitions=n_partitions), Partitioned(), Budget(evaluations=60), rng=0)
