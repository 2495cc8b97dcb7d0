"""The search for expensive models: fold racing, importances from the fits that score, and the guided search."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from subswarm import Budget, SwarmSelector, make_objective, search
from subswarm._search.choice import choose_subset, found_something
from subswarm._search.front import make_front
from subswarm._search.plan import PlanLimits, plan_search
from subswarm._search.result import middle_not_worse, smallest_not_worse
from subswarm.algorithms import Race, TwoDElite, TwoDGuided
from subswarm.algorithms.base import Finalists
from subswarm.algorithms.fold_candidates import FoldCandidates
from subswarm.algorithms.guided import _smoothed
from subswarm.engines.importances import _prediction_changes, importances_of, score_fold
from subswarm.errors import SettingError
from subswarm.objective.foldwise import foldwise
from subswarm.objective.objective import Objective

WINE = load_wine(return_X_y=True)
TREE = DecisionTreeClassifier(random_state=0)
FOREST = RandomForestClassifier(8, random_state=0)


def planted(n_rows=240, n_columns=24, n_useful=4, seed=0):
    """A table whose first columns tell the class, and the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n_rows)
    X = rng.standard_normal((n_rows, n_columns))
    X[:, :n_useful] += 1.3 * y[:, None]
    return X, y


def foldwise_objective(model, table=WINE, **settings):
    settings = {"cv": 4, "engine": "estimator", **settings}
    n_jobs = settings.pop("n_jobs", None)
    return foldwise(make_objective(model, *table, **settings), n_jobs)


# The race


def race_of(losses, noise=0.01, slack=0.0, caution=1.0, first=0):
    """Race candidates with these losses against one whose losses are 0.2 in every fold."""
    losses = np.asarray(losses, dtype=np.float64)
    candidates = np.eye(len(losses), dtype=bool)
    race = FoldCandidates.begin(candidates, np.full(losses.shape, 0.2), np.full(len(losses), slack), first)
    while not race.is_over:
        race = race.told(losses[race.running, race.fold], noise, caution)
    return race


def test_a_candidate_that_is_clearly_behind_is_given_up_and_the_others_are_scored_on_every_fold():
    race = race_of([[0.4, 0.4, 0.4, 0.4], [0.1, 0.1, 0.1, 0.1], [0.201, 0.199, 0.2, 0.2]])
    assert race.known.sum(axis=1).tolist() == [1, 4, 4]
    assert race.complete.tolist() == [False, True, True]


def test_a_candidate_given_up_never_looks_better_than_what_it_had_to_beat():
    rng = np.random.default_rng(0)
    for _ in range(30):
        race = race_of(0.2 + 0.05 * rng.standard_normal((6, 5)), first=int(rng.integers(5)))
        told = race.pessimistic_losses()
        assert (told[~race.complete] >= 0.2).all()
        assert np.array_equal(told[race.complete], race.losses[race.complete].mean(axis=1))


def test_slack_keeps_a_smaller_subset_in_the_race():
    losses = [[0.22, 0.22, 0.22, 0.22]]
    assert not race_of(losses).complete[0]
    assert race_of(losses, slack=0.03).complete[0]


def test_races_start_with_different_folds():
    assert [race_of([[0.4] * 3], first=first).known[0].argmax() for first in range(3)] == [0, 1, 2]


# Importances


@pytest.mark.parametrize("model", [TREE, FOREST, make_pipeline(StandardScaler(), LogisticRegression())])
def test_losses_and_importances_are_those_of_models_fitted_by_hand(model):
    objective = foldwise_objective(model)
    mask = np.arange(13) % 3 == 0
    losses = objective.fold_losses(mask[None])[0]
    X, y = WINE[0][:, mask], WINE[1]
    assert np.array_equal(losses, 1 - cross_val_score(model, X, y, cv=objective.folds))
    assert np.array_equal(objective.fold_scores(mask), cross_val_score(model, X, y, cv=objective.folds))
    for fold, (train, _) in enumerate(objective.folds):
        expected = importances_of(clone(model).fit(X[train], y[train]), int(mask.sum()))
        found = objective.importances(mask[None], np.array([fold]))[0]
        assert found[mask] == pytest.approx(expected / expected.sum())
        assert not found[~mask].any()
    assert objective.computed == objective.asked == 4


def test_one_evaluation_is_one_fit_and_fits_are_remembered():
    objective = foldwise_objective(Counting())
    Counting.fits = 0
    masks = np.eye(13, dtype=bool)[:3]
    objective(masks, np.array([0, 1, 0]))
    assert (Counting.fits, objective.computed) == (3, 3)
    objective(masks, np.array([0, 1, 0]))
    assert (Counting.fits, objective.computed, objective.asked) == (3, 3, 6)
    objective(masks[:1])
    assert Counting.fits == 6


class Counting(DecisionTreeClassifier):
    """A tree that counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None, check_input=True):
        type(self).fits += 1
        return super().fit(X, y, sample_weight, check_input)


def test_a_model_without_importances_gets_them_from_the_changes_of_its_predictions():
    table = planted()
    for model in (HistGradientBoostingClassifier(max_iter=5), KNeighborsClassifier()):
        objective = foldwise_objective(model, table)
        every = np.ones((1, 24), dtype=bool)
        with threadpool_limits(1):
            objective(every)
        importances = objective.importances(every)[0]
        assert sorted(np.argsort(-importances)[:4]) == [0, 1, 2, 3]
        assert objective.offers_importances == isinstance(model, HistGradientBoostingClassifier)


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "sparse"])
def test_the_changes_of_predictions_are_the_same_for_tables_of_any_kind(kind):
    X, y = planted(90, 6, 2)
    X = np.round(X, 1)
    model = KNeighborsClassifier(algorithm="brute").fit(X, np.array(["no", "yes"])[y])
    table = {
        "array": lambda: X,
        "pandas": lambda: pd.DataFrame(X, columns=list("abcdef")).set_index(np.arange(90) + 7),
        "polars": lambda: pytest.importorskip("polars").DataFrame(X, schema=list("abcdef")),
        "sparse": lambda: sparse.csr_matrix(X),
    }[kind]()
    expected = np.zeros(6)
    usual = model.predict_proba(X)
    for column in range(6):
        changed = X.copy()
        changed[:, column] = np.roll(X[:, column], -45)
        expected[column] = np.abs(model.predict_proba(changed) - usual).mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the model was fitted without names
        assert _prediction_changes(model, table, 6) == pytest.approx(expected)


def test_categories_of_a_frame_reach_histogram_gradient_boosting_and_its_importances():
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=160)
    told = np.where(rng.random(160) < 0.1, 1 - y, y)
    X = pd.DataFrame({f"noise {number}": rng.standard_normal(160) for number in range(5)})
    X["town"] = pd.Categorical(np.array(["Rome", "Oslo"])[told])
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype")
    with threadpool_limits(1):
        fitted = SwarmSelector(model, cv=2, max_fits=24, random_state=0).fit(X, y)
    assert fitted.result_.algorithm == "2d-guided"
    assert "town" in fitted.get_feature_names_out()
    assert fitted.n_features_ <= 2


class Stubborn(ClassifierMixin, BaseEstimator):
    """A classifier that fails on few columns."""

    def fit(self, X, y):
        if X.shape[1] < 3:
            raise ValueError("too few columns")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_a_subset_that_fails_scores_the_worst_loss_and_has_no_importances():
    objective = foldwise_objective(Stubborn())
    objective(np.ones((1, 13), dtype=bool))
    few = np.arange(13) < 2
    with pytest.warns(UserWarning, match="too few columns"):
        assert objective(few[None])[0] == objective.scoring.worst
    assert not objective.importances(few[None]).any()
    data = objective.data.partition(0)
    assert isinstance(score_fold(objective.estimator, data, few).scores, ValueError)


class NeedsColumns(RandomForestClassifier):
    """A forest that fails on fewer than four columns."""

    def fit(self, X, y, sample_weight=None):
        if X.shape[1] < 4:
            raise ValueError("too few columns")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "accuracy"])
def test_a_model_that_fails_on_few_columns_gets_more(scoring):
    model = NeedsColumns(5, random_state=0)
    with pytest.warns(UserWarning, match="too few columns"):
        fitted = SwarmSelector(model, cv=3, max_fits=90, scoring=scoring, random_state=0, n_jobs=1).fit(*WINE)
    assert fitted.n_features_ >= 4
    assert np.isfinite(fitted.honest_score_)
    assert (np.abs(fitted.result_.finalists.fitness) < 10).all()


# The guided search


def test_the_path_in_single_steps_is_that_of_rfecv():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :12]
    model = LogisticRegression(C=0.1)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    rfecv = RFECV(model, cv=folds, scoring="neg_log_loss").fit(X, y)
    objective = foldwise_objective(model, (X, y), cv=folds, scoring="neg_log_loss")
    result = search(TwoDGuided(ratio=0.99, path_share=1.0, smoothing=0.0), objective, Budget(evaluations=12 * 4), rng=0)
    assert result.front.cardinality.tolist() == list(range(1, 13))
    assert -result.front.fitness == pytest.approx(rfecv.cv_results_["mean_test_score"])


def test_the_curve_is_smoothed_over_neighbouring_sizes_and_a_line_stays_a_line():
    x = np.log(np.arange(1.0, 31.0))
    rng = np.random.default_rng(0)
    line = np.column_stack([0.1 + 0.02 * x, 0.5 - 0.1 * x])
    assert _smoothed(x, line, 0.2) == pytest.approx(line)
    noisy = 0.3 + 0.05 * rng.standard_normal((30, 4))
    assert _smoothed(x, noisy, 0.2)[8:].std() < 0.6 * noisy[8:].std()
    assert np.array_equal(_smoothed(x, noisy, 0.0), noisy)
    far = np.array([0.0, 10.0, 20.0])
    assert np.array_equal(_smoothed(far, noisy[:3], 0.2), noisy[:3])  # points without neighbours stay as they are


def test_of_sizes_that_the_folds_cannot_tell_apart_the_middle_one_is_selected():
    """A curve of a small table: two columns are the best by chance, and all larger sizes are about as good."""
    rng = np.random.default_rng(3)
    sizes = np.array([1, 2, 3, 4, 5, 7, 10, 14, 20, 30])
    losses = 0.02 + 0.004 * rng.standard_normal((len(sizes), 5))
    losses[0] += 0.1
    losses[1] += 0.0185 - losses[1].mean()
    losses[2:] += 0.0205 - losses[2:].mean(axis=1, keepdims=True)
    masks = np.arange(30) < sizes[:, None]
    assert sizes[smallest_not_worse(masks, losses[:, None], 0.25)] == 2
    assert 4 <= sizes[middle_not_worse(masks, losses, 1.0, 0.5)] <= 10
    for share, bounds in ((0.0, (1, 1)), (1.0, (30, 30)), (0.3, (2, 5))):
        assert bounds[0] <= sizes[middle_not_worse(masks, losses, 1.0, share)] <= bounds[1]
    order = rng.permutation(len(sizes))
    chosen = middle_not_worse(masks[order], losses[order], 1.0, 0.5)
    assert order[chosen] == middle_not_worse(masks, losses, 1.0, 0.5)


def test_a_small_table_on_which_two_columns_are_the_best_by_chance_keeps_more():
    """The smallest size within a quarter of a standard error was two, with an AUC of .964 instead of .990."""
    lightgbm = pytest.importorskip("lightgbm")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=215, stratify=y)
    model = lightgbm.LGBMClassifier(n_estimators=20, random_state=215, n_jobs=1, verbose=-1)
    fitted = SwarmSelector(model, cv=5, scoring="roc_auc", max_fits=140, random_state=215, n_jobs=1).fit(X, y)
    assert fitted.n_features_ >= 4
    model.fit(X.loc[:, fitted.support_], y)
    assert roc_auc_score(y_new, model.predict_proba(X_new.loc[:, fitted.support_])[:, 1]) > 0.98


def test_a_size_that_is_clearly_the_best_is_selected():
    sizes = np.array([2, 4, 8, 16])
    losses = np.array([[0.3], [0.1], [0.2], [0.25]]) + 0.01 * np.random.default_rng(0).standard_normal((4, 5))
    masks = np.arange(16) < sizes[:, None]
    assert sizes[middle_not_worse(masks, losses, 1.0, 0.5)] == 4
    twice = np.concatenate([masks, np.roll(masks[1:2], 3)]), np.concatenate([losses, losses[1:2] - 0.01])
    assert middle_not_worse(*twice, 1.0, 0.5) == 4  # of two subsets of this size the better one
    assert middle_not_worse(masks[:1], losses[:1], 1.0, 0.5) == 0
    assert middle_not_worse(masks, losses[:, :1], 1.0, 0.5) == 1  # one fold tells nothing about noise


@pytest.mark.parametrize("settings", [{}, {"fixed_features": (9,), "max_features": 6, "min_features": 2}])
def test_all_folds_drop_the_columns_of_the_lowest_mean_importance_on_the_joint_path(settings):
    states = []
    objective = foldwise_objective(FOREST, planted(160, 20, 3))
    algorithm = TwoDGuided(**settings)
    result = search(
        algorithm, objective, Budget(evaluations=200), rng=0, callbacks=[lambda now: states.append(now.state)]
    )
    joint = states[-1].joint
    sizes = joint.masks.sum(axis=1)
    assert len(sizes) >= 4
    assert (np.diff(sizes) < 0).all()
    for mask, importances, following in zip(joint.masks, joint.importances, joint.masks[1:], strict=False):
        mean = np.mean([objective.importances(mask[None], np.array([fold]))[0] for fold in range(4)], axis=0)
        assert importances == pytest.approx(mean)
        assert not (following & ~mask).any()
        dropped = mask & ~following
        kept = following & ~np.isin(np.arange(20), settings.get("fixed_features", ()))
        assert mean[dropped].max() <= mean[kept].min()
    for mask, losses in zip(joint.masks, joint.losses, strict=True):
        assert objective.losses_of(mask) == pytest.approx(losses)
        assert (result.finalists.masks == mask).all(axis=1).any()
    if settings:
        assert joint.masks[:, 9].all()
        assert sizes.max() <= 6
        assert sizes.min() >= 2


def test_the_losses_of_the_joint_path_count_only_by_their_differences():
    """All folds chose its columns, so that the losses in the folds are at the level of the paths, which chose alone."""
    states = []
    algorithm, objective = TwoDGuided(smoothing=0.0), foldwise_objective(FOREST, planted(160, 20, 3))
    search(algorithm, objective, Budget(evaluations=200), rng=0, callbacks=[lambda now: states.append(now.state)])
    state = states[-1]
    found, joint = algorithm.finalists(state), state.joint
    rows = [int(np.flatnonzero((found.masks == mask).all(axis=1))[0]) for mask in joint.masks]
    order = np.argsort(state.sizes)
    expected = [
        np.interp(np.log(joint.masks.sum(axis=1)), np.log(state.sizes[order]), state.path[order, fold])
        for fold in range(4)
    ]
    assert found.paired[rows].mean(axis=0) == pytest.approx(np.mean(expected, axis=1))
    assert found.left_out[rows] == pytest.approx(np.transpose(expected))
    assert joint.losses.mean(axis=0) != pytest.approx(np.mean(expected, axis=1))


def test_it_finds_the_useful_columns_of_a_made_up_table_with_few_fits():
    X, y = planted(seed=3)
    fitted = SwarmSelector(FOREST, cv=4, max_fits=200, random_state=0, n_jobs=1).fit(X, y)
    assert fitted.result_.algorithm == "2d-guided"
    assert fitted.support_[:4].sum() >= 3
    assert fitted.support_[4:].sum() <= 6  # of 20
    assert fitted.result_.evaluations <= 200
    assert abs(fitted.honest_score_ - cross_val_score(FOREST, *planted(2000, seed=3), cv=4).mean()) < 0.1


@pytest.mark.parametrize("settings", [{}, {"feature_groups": [[0, 1, 5], [2, 7]], "fixed_features": [9]}])
def test_the_result_is_the_same_for_any_number_of_workers(settings):
    table = planted(120, 12, 3)
    one, two = (
        SwarmSelector(TREE, cv=3, max_fits=60, random_state=1, n_jobs=jobs, **settings).fit(*table) for jobs in (1, 2)
    )
    assert np.array_equal(one.support_, two.support_)
    assert np.array_equal(one.result_.history.best_fitness, two.result_.history.best_fitness)
    assert (one.result_.evaluations, one.result_.computed) == (two.result_.evaluations, two.result_.computed)
    if settings:
        assert one.support_[9]
        assert one.support_[[0, 1, 5]].all() or not one.support_[[0, 1, 5]].any()


def test_a_search_guided_by_importances_is_resumed_bit_for_bit(tmp_path):
    algorithm, budget = TwoDGuided(patience=None), Budget(evaluations=110)
    whole = search(algorithm, foldwise_objective(TREE), budget, rng=2)
    for stop_at in (3, 20):
        steps = []
        path = tmp_path / f"{stop_at}.npz"
        stop = lambda snapshot, steps=steps, at=stop_at: steps.append(1) or len(steps) == at  # noqa: E731
        search(algorithm, foldwise_objective(TREE), budget, rng=2, checkpoint=path, callbacks=[stop])
        resumed = search(algorithm, foldwise_objective(TREE), budget, rng=2, checkpoint=path)
        assert np.array_equal(resumed.best.mask, whole.best.mask)
        assert np.array_equal(resumed.finalists.paired, whole.finalists.paired)
        assert resumed.evaluations == whole.evaluations


def test_initial_subsets_join_the_refinement():
    asked = []
    wanted = np.isin(np.arange(13), (2, 5, 7))
    note = lambda snapshot: asked.extend(mask.tobytes() for mask in snapshot.masks)  # noqa: E731
    algorithm = TwoDGuided(initial_subsets=((2, 5, 7),))
    search(algorithm, foldwise_objective(TREE), Budget(evaluations=150), rng=0, callbacks=[note])
    assert asked.count(wanted.tobytes()) == 4


def test_limits_are_kept_and_the_path_starts_with_all_columns():
    fitted = SwarmSelector(TREE, cv=3, max_fits=120, max_features=4, min_features=2, random_state=0).fit(*WINE)
    assert 2 <= fitted.n_features_ <= 4
    assert fitted.result_.front.cardinality.max() <= 4


def test_the_curve_of_the_path_gives_front_and_scores_without_further_fits():
    Counting.fits = 0
    fitted = SwarmSelector(Counting(), cv=3, max_fits=100, random_state=0, n_jobs=1).fit(*WINE)
    assert Counting.fits <= 100 + 2 * 3 + 1  # the selected and all columns in each fold, and the final fit
    assert np.isfinite(fitted.front_.standard_error).all()
    assert fitted.result_.n_partitions == 1
    assert np.array_equal(
        fitted.fold_scores_, cross_val_score(fitted.estimator_, WINE[0][:, fitted.support_], WINE[1], cv=fitted.folds_)
    )


def test_noise_alone_leaves_few_columns():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((120, 15)), rng.integers(2, size=120)
    assert SwarmSelector(FOREST, cv=3, max_fits=100, random_state=0).fit(X, y).n_features_ <= 3


@pytest.mark.parametrize("central", [None, 0.5])
def test_if_nothing_is_found_columns_that_are_clearly_better_than_fewer_are_kept(central):
    objective = foldwise_objective(TREE)
    result = search(TwoDGuided(), objective, Budget(evaluations=60), rng=0)
    masks = np.arange(13) < np.array([[5], [1]])
    left_out = np.array([[0.55, 0.65, 0.5, 0.7], [0.6, 0.6, 0.6, 0.65]])  # no better than the most frequent class
    for gain, size in ((0.1, 5), (0.0, 1)):
        paired = np.array([[0.5, 0.51, 0.49, 0.5], [0.52 + gain, 0.49 + gain, 0.51 + gain, 0.5 + gain]])
        found = Finalists(masks, paired.mean(axis=1), paired, left_out, noise_width=0.25, central=central)
        judged = replace(result, finalists=found)
        assert not found_something(judged, objective)
        assert choose_subset(judged, objective, "smallest", make_front(judged, objective))[0].cardinality == size


# Plans and budgets


@pytest.mark.parametrize(
    ("model", "algorithm"),
    [
        (TREE, "2d-guided"),
        (GaussianNB(), "2d-elite"),
        (KNeighborsClassifier(metric="cosine"), "2d-elite"),
    ],
)
def test_auto_is_the_guided_search_for_models_with_importances_and_no_fast_engine(model, algorithm):
    fitted = SwarmSelector(model, cv=3, max_evaluations=20, random_state=0).fit(*WINE)
    assert fitted.result_.algorithm == algorithm


def test_algorithms_by_name_are_left_as_they_are():
    named = SwarmSelector(TREE, "2d-upso", cv=3, max_evaluations=30, random_state=0).fit(*WINE)
    plain = search("2d-upso", make_objective(TREE, *WINE, cv=3), Budget(evaluations=30), rng=np.random.default_rng(0))
    assert np.array_equal(named.result_.best.mask, plain.best.mask)
    assert named.result_.evaluations == 30
    raced = SwarmSelector(TREE, cv=3, repeats=2, race=True, max_evaluations=30, random_state=0).fit(*WINE)
    assert raced.result_.algorithm == "2d-elite (race)"


@pytest.mark.parametrize(
    ("limits", "evaluations", "fits"),
    [
        (PlanLimits(), 6000, 30000),
        (PlanLimits(evaluations=50), 50, 250),
        (PlanLimits(fits=42), 8, 42),
        (PlanLimits(evaluations=50, fits=42), 8, 42),
        (PlanLimits(evaluations=None, seconds=3.0), None, None),
    ],
)
def test_a_fast_engine_gets_the_budget_that_was_set_or_6000_evaluations(limits, evaluations, fits):
    plan = plan_search(make_objective(GaussianNB(), *WINE, cv=5), "auto", limits)
    assert isinstance(plan.algorithm, TwoDElite)
    assert (plan.budget.evaluations, plan.fits) == (evaluations, fits)
    assert not plan.notice


def test_a_budget_of_fits_is_one_of_evaluations_if_folds_are_scored_one_by_one():
    objective = make_objective(TREE, *WINE, cv=5)
    assert plan_search(objective, "auto", PlanLimits(fits=42)).budget.evaluations == 42
    assert plan_search(objective, "auto", PlanLimits(evaluations=8)).budget.evaluations == 40
    assert plan_search(objective, "2d-upso", PlanLimits(fits=42)).budget.evaluations == 8


class Slow(DecisionTreeClassifier):
    """A tree that takes a tenth of a second to fit."""

    def fit(self, X, y, sample_weight=None, check_input=True):
        import time

        time.sleep(0.1)
        return super().fit(X, y, sample_weight, check_input)


def test_auto_measures_a_fit_says_what_it_takes_and_ends_in_minutes():
    plan = plan_search(make_objective(Slow(), *WINE, cv=5), "auto", PlanLimits())
    assert isinstance(plan.algorithm, TwoDGuided)
    assert 30 <= plan.fits <= 1800  # at most 180 seconds
    assert "a fit of all columns takes" in plan.notice
    assert f"at most {plan.fits} fits on 5 folds" in plan.notice
    assert plan_search(make_objective(Slow(), *WINE, cv=5), "auto", PlanLimits(seconds=20.0)).fits <= 200
    fewest = plan_search(make_objective(Slow(), *WINE, cv=5), "auto", PlanLimits(seconds=0.1)).fits
    assert fewest == 6 * 5


def test_the_measured_fits_are_part_of_the_search():
    plan = plan_search(make_objective(Counting(), *WINE, cv=5), "auto", PlanLimits())
    Counting.fits = 0
    plan.objective(np.ones((1, 13), dtype=bool))
    assert Counting.fits == 3


def test_a_resumed_search_keeps_the_budget_that_was_chosen_first(tmp_path):
    path = tmp_path / "search.npz"
    objective = make_objective(Slow(), *WINE, cv=5)
    search(
        TwoDGuided(), foldwise(objective), Budget(evaluations=77), rng=0, checkpoint=path, callbacks=[lambda _: True]
    )
    plan = plan_search(objective, "auto", PlanLimits(), checkpoint=path)
    assert plan.budget.evaluations == plan.fits == 77
    assert plan_search(objective, "auto", PlanLimits(fits=50), checkpoint=path).fits == 50


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_fits": 2, "cv": 3}, "max_fits=2 is less than one evaluation, which takes 3 fits"),
        ({"max_fits": 0}, "max_fits"),
        ({"max_fits": 1.5}, "max_fits"),
        ({"max_evaluations": "fast"}, "max_evaluations"),
        ({"max_evaluations": None}, "at least one of max_evaluations, max_fits, max_seconds and patience"),
    ],
)
def test_a_wrong_budget_is_an_error_that_names_it(settings, sentence):
    with pytest.raises(SettingError, match=sentence):
        SwarmSelector(TREE, **settings).fit(*WINE)


def test_a_long_search_is_announced_before_it_starts(capsys):
    SwarmSelector(Slow(), cv=3, max_fits=1000, verbose=1, callbacks=[lambda _: True]).fit(*WINE)
    assert "the search makes at most 1000 fits on 3 folds" in capsys.readouterr().err


def test_nested_cross_validation_has_the_budget_of_the_search_itself():
    fitted = SwarmSelector(TREE, cv=3, max_fits=40, random_state=0, held_out=2, n_jobs=1).fit(*WINE)
    assert fitted.held_out_.scores.shape == (2,)
    assert fitted._chosen_limits == {"max_evaluations": 13, "max_fits": 40}


def test_a_race_of_repeats_runs_the_guided_search_on_single_repeats():
    objective = make_objective(TREE, *WINE, cv=3, repeats=3)
    result = search(Race(TwoDGuided()), objective, Budget(evaluations=80), rng=0)
    assert result.evaluations <= 80


class Noting(Objective):
    """An objective that notes how many subsets it is asked for at once."""

    def __call__(self, masks, partitions=None):
        self.asked_at_once.append(len(masks))
        return super().__call__(masks, partitions)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_worker_gets_a_subset_however_slow_the_fits_are(n_jobs):
    objective = make_objective(TREE, *WINE, cv=2, n_jobs=n_jobs)
    objective.__class__, objective.asked_at_once = Noting, []
    assert objective.at_once == n_jobs
    search("2d-upso", objective, Budget(seconds=1e-9), rng=0)
    assert objective.asked_at_once == [n_jobs]
    assert make_objective(GaussianNB(), *WINE, n_jobs=n_jobs).at_once == 1
