"""SwarmSelector: the scikit-learn interface, its settings and its results."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from subswarm import SwarmSelector, make_objective
from subswarm._search.result import one_standard_error
from subswarm.algorithms import TwoDGPSO, TwoDUPSO
from subswarm.errors import CheckpointError, DataError, DataTypeError, ScoringError, SettingError, SubswarmWarning
from subswarm.objective.constraints import make_space

WINE = load_wine(return_X_y=True)
FRAME, TARGET = load_wine(return_X_y=True, as_frame=True)


def selector(estimator=None, **settings):
    settings = {"max_evaluations": 120, "random_state": 0, "cv": 3, **settings}
    return SwarmSelector(GaussianNB() if estimator is None else estimator, **settings)


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log")  # GaussianNB, if a class has no weight
@parametrize_with_checks(
    [
        SwarmSelector(GaussianNB(), max_evaluations=40, cv=3, random_state=0),
        SwarmSelector(LogisticRegression(), "2d-clpso", max_evaluations=15, cv=2),
        SwarmSelector(DecisionTreeRegressor(max_depth=3), "random", max_evaluations=15, cv=2, choose="one-se"),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_the_reported_score_is_what_cross_val_score_gives_for_the_selected_columns():
    X, y = WINE
    folds = StratifiedKFold(10, shuffle=True, random_state=4)
    for model in (GaussianNB(), make_pipeline(StandardScaler(), KNeighborsClassifier())):
        fitted = SwarmSelector(model, max_evaluations=90, random_state=4).fit(X, y)
        scores = cross_val_score(model, X[:, fitted.support_], y, cv=folds)
        assert np.array_equal(fitted.fold_scores_, scores)
        assert fitted.best_score_ == scores.mean()
        assert fitted.baseline_score_ == cross_val_score(model, X, y, cv=folds).mean()


def test_fitted_attributes():
    fitted = selector(choose="best").fit(*WINE)
    assert fitted.support_.shape == (13,)
    assert fitted.n_features_ == fitted.support_.sum() == fitted.transform(WINE[0]).shape[1]
    assert fitted.result_.evaluations == 120
    assert len(fitted.history_) == 4
    assert fitted.result_.algorithm == "2d-elite"
    assert fitted.result_.fold_losses.shape == (3,)
    assert fitted.subset_of_size(fitted.n_features_).fitness == fitted.result_.best.fitness
    with pytest.raises(NotFittedError):
        selector().transform(WINE[0])


def test_it_beats_all_features_when_some_are_noise():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=150)
    X = np.column_stack([y + 0.4 * rng.standard_normal(150), rng.standard_normal((150, 14))])
    fitted = selector(KNeighborsClassifier(), max_evaluations=600).fit(X, y)
    assert fitted.support_[0]
    assert fitted.best_score_ > fitted.baseline_score_


def test_it_works_in_a_pipeline_a_grid_search_and_cross_validation():
    X, y = WINE
    pipeline = make_pipeline(StandardScaler(), selector(max_evaluations=40), GaussianNB())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    grid = GridSearchCV(
        pipeline, {"swarmselector__max_features": [1, 4], "swarmselector__estimator__var_smoothing": [1e-9]}, cv=2
    )
    grid.fit(X, y)
    assert grid.best_estimator_["swarmselector"].n_features_ <= 4


def test_a_clone_has_the_same_parameters_and_no_fitted_state():
    original = selector(algorithm=TwoDGPSO(particles=5), fixed_features=[1], callbacks=[print]).fit
    original = selector(algorithm=TwoDGPSO(particles=5), fixed_features=[1])
    copy = clone(original.fit(*WINE))
    assert copy.get_params(deep=False)["algorithm"] == TwoDGPSO(particles=5)
    assert not hasattr(copy, "support_")


@pytest.mark.parametrize(
    "table", [FRAME, pl.from_pandas(FRAME) if False else None, FRAME.to_numpy(), FRAME.to_numpy().tolist()]
)
def test_every_kind_of_table_gives_the_same_result(table):
    table = pl.DataFrame({name: FRAME[name].to_numpy() for name in FRAME.columns}) if table is None else table
    fitted = selector().fit(table, TARGET)
    assert np.array_equal(fitted.support_, selector().fit(*WINE).support_)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_names_and_output_containers(container):
    frame = FRAME if container == "pandas" else pl.DataFrame({name: FRAME[name].to_numpy() for name in FRAME.columns})
    fitted = selector().set_output(transform=container).fit(frame, TARGET)
    out = fitted.transform(frame)
    assert list(out.columns) == list(fitted.get_feature_names_out()) == list(FRAME.columns[fitted.support_])
    assert isinstance(out, pd.DataFrame if container == "pandas" else pl.DataFrame)


def test_frames_with_integer_and_boolean_columns_are_tables_of_numbers():
    frame = FRAME.assign(flag=FRAME["ash"] > 2.3, count=FRAME["magnesium"].astype(int))
    assert selector().fit(frame, TARGET).n_features_in_ == 15


def test_text_labels_are_targets_like_any_other():
    labels = np.array(["barolo", "grignolino", "barbera"])[WINE[1]]
    assert selector().fit(WINE[0], labels).best_score_ > 0.8
    assert selector().fit(FRAME, pd.Series(labels, dtype=object)).best_score_ > 0.8


@pytest.mark.parametrize(("low", "high"), [(1, 2), (5, 6), (13, 13), (4, None)])
def test_limits_hold_for_every_subset_the_search_proposes(low, high):
    seen = []
    fitted = selector(min_features=low, max_features=high, callbacks=[lambda s: seen.append(s.masks.sum(axis=1))])
    fitted.fit(*WINE)
    sizes = np.concatenate(seen)
    assert sizes.min() >= low
    assert sizes.max() <= (high or 13)


def test_fixed_features_are_always_kept_by_index_or_name():
    fitted = selector(fixed_features=["ash", "hue"], max_features=3).fit(FRAME, TARGET)
    assert {"ash", "hue"} <= set(fitted.get_feature_names_out())
    assert fitted.result_.front.masks[:, [2, 10]].all()
    assert selector(fixed_features=[2, -3], max_features=2).fit(*WINE).support_.nonzero()[0].tolist() == [2, 10]


def test_groups_of_columns_are_selected_together():
    groups = [[0, 5, 7], ["hue", "ash"]]
    fitted = selector(feature_groups=groups, max_features=4, choose="one-se").fit(FRAME, TARGET)
    masks = fitted.result_.front.masks
    for group in ([0, 5, 7], [2, 10]):
        assert (masks[:, group].all(axis=1) | ~masks[:, group].any(axis=1)).all()
    assert fitted.support_.sum() <= 4
    assert masks.sum(axis=1).max() <= 4


def test_a_search_starts_from_initial_subsets():
    first = []
    mask = np.zeros(13, bool)
    mask[6] = True
    selector(
        initial_subsets=[["ash", "hue"], [0, 1], mask], callbacks=[lambda s: first.append(s.masks[:3].copy())]
    ).fit(FRAME, TARGET)
    assert [row.nonzero()[0].tolist() for row in first[0]] == [[2, 10], [0, 1], [6]]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"fixed_features": ["no such"]}, "not in the table"),
        ({"fixed_features": [13]}, "has 13 columns"),
        ({"fixed_features": [1.5]}, "indices or names"),
        ({"fixed_features": "ash"}, "list of column"),
        ({"feature_groups": [[0, 1], [1, 2]]}, "twice"),
        ({"feature_groups": [[0, 0]]}, "twice"),
        ({"feature_groups": [[]]}, "empty group"),
        ({"initial_subsets": [[99]]}, "has 13 columns"),
        ({"initial_subsets": "ash"}, "list of subsets"),
        ({"min_features": 14}, "only 13"),
        ({"min_features": 0}, "min_features"),
        ({"max_features": -2}, "max_features"),
        ({"max_features": 2.5}, "max_features"),
        ({"min_features": 3, "max_features": 2}, "more than max_features"),
        ({"algorithm": "2d-upsi"}, "did you mean"),
        ({"algorithm": TwoDUPSO}, "algorithm must be"),
        ({"choose": "tiniest"}, "choose"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "zero"}, "random_state"),
        ({"max_evaluations": -1}, "evaluations"),
        ({"max_seconds": -1}, "seconds"),
        ({"patience": 0}, "patience"),
        ({"verbose": -1}, "verbose"),
        ({"engine": "warp"}, "engine"),
    ],
)
def test_bad_settings_raise_a_clear_error(settings, sentence):
    with pytest.raises(SettingError, match=sentence):
        selector(**settings).fit(FRAME, TARGET)


def test_the_best_subset_of_each_size_is_available():
    fitted = selector().fit(*WINE)
    for size, loss in zip(fitted.result_.front.cardinality, fitted.result_.front.fitness, strict=True):
        subset = fitted.subset_of_size(size)
        assert (subset.cardinality, subset.fitness) == (size, loss)
        scores = cross_val_score(GaussianNB(), WINE[0][:, subset.mask], WINE[1], cv=fitted.folds_)
        assert loss == (1 - scores).mean()
    with pytest.raises(KeyError, match="no subset of size 99 was seen"):
        fitted.subset_of_size(99)
    with pytest.raises(NotFittedError):
        selector().subset_of_size(2)


def test_one_standard_error_selects_the_fewest_features_close_to_the_best():
    best = selector(max_evaluations=600, choose="best").fit(*WINE)
    lean = selector(max_evaluations=600, choose="one-se").fit(*WINE)
    losses = best.result_.fold_losses
    limit = best.result_.best.fitness + losses.std(ddof=1) / np.sqrt(len(losses))
    front = best.result_.front
    assert lean.n_features_ == front.cardinality[front.fitness <= limit].min()
    assert one_standard_error(best.result_).cardinality == lean.n_features_ <= best.n_features_


def test_missing_values_are_allowed_when_the_estimator_allows_them():
    X, y = WINE
    X = X.copy()
    X[::7, 3] = np.nan
    with pytest.raises(DataError, match=r"NaN.*column 3"):
        selector().fit(X, y)
    for model in (HistGradientBoostingClassifier(max_iter=3), make_pipeline(SimpleImputer(), GaussianNB())):
        fitted = selector(model, max_evaluations=5, cv=2).fit(X, y)
        assert fitted.transform(X).shape[1] == fitted.n_features_


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), RandomForestClassifier(n_estimators=3), GaussianNB()])
def test_one_random_state_gives_one_result_for_any_number_of_jobs(model):
    results = [selector(model, n_jobs=jobs, max_evaluations=60, cv=2).fit(*WINE) for jobs in (1, 2, None)]
    for other in results[1:]:
        assert np.array_equal(results[0].support_, other.support_)
        assert np.array_equal(results[0].fold_scores_, other.fold_scores_)
        assert np.array_equal(results[0].history_.best_fitness, other.history_.best_fitness)


@pytest.mark.parametrize("random_state", [None, 3, np.random.RandomState(3)])
def test_global_random_state_is_never_touched(random_state):
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    selector(DecisionTreeClassifier(), max_evaluations=40, random_state=random_state).fit(*WINE)
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]


def test_groups_reach_the_splitter():
    groups = np.arange(178) % 5
    fitted = selector(cv=GroupKFold(5)).fit(*WINE, groups=groups)
    for train, test in fitted.folds_:
        assert not set(groups[train]) & set(groups[test])


def test_sample_weights_reach_the_estimator():
    weights = np.where(WINE[1] == 0, 1e-9, 1.0)
    plain, weighted = selector().fit(*WINE), selector().fit(*WINE, sample_weight=weights)
    assert plain.baseline_score_ != weighted.baseline_score_


def test_metadata_is_routed_to_the_objects_that_requested_it():
    groups, weights = np.arange(178) % 5, np.where(WINE[1] == 0, 1e-9, 1.0)
    with config_context(enable_metadata_routing=True):
        model = GaussianNB().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        routed = selector(model, cv=GroupKFold(5)).fit(*WINE, groups=groups, sample_weight=weights)
        assert not set(groups[routed.folds_[0][0]]) & set(groups[routed.folds_[0][1]])
        ignored = clone(model).set_fit_request(sample_weight=False)
        unweighted = selector(ignored, cv=GroupKFold(5)).fit(*WINE, groups=groups)
        assert routed.baseline_score_ != unweighted.baseline_score_
        pipeline = make_pipeline(StandardScaler(), selector(model, cv=GroupKFold(5)), clone(model))
        pipeline[0].set_fit_request(sample_weight=False)
        pipeline.fit(*WINE, groups=groups, sample_weight=weights)


def test_a_callback_may_stop_the_search():
    fitted = selector(callbacks=[lambda snapshot: True]).fit(*WINE)
    assert fitted.result_.stop_reason == "callback"
    assert fitted.result_.evaluations == 30


def test_a_checkpoint_is_resumed_and_belongs_to_one_problem(tmp_path):
    path = tmp_path / "wine.ckpt"
    whole = selector(max_evaluations=300).fit(*WINE)
    selector(max_evaluations=300, checkpoint=path, callbacks=[lambda s: s.evaluations >= 90]).fit(*WINE)
    resumed = selector(max_evaluations=300, checkpoint=path).fit(*WINE)
    assert np.array_equal(resumed.support_, whole.support_)
    assert np.array_equal(resumed.history_.best_fitness, whole.history_.best_fitness)
    with pytest.raises(CheckpointError, match=r"what differs: table\."):
        selector(max_evaluations=300, checkpoint=path).fit(WINE[0] + 1, WINE[1])


def test_progress_is_shown_in_a_terminal_and_not_in_a_log(capsys, monkeypatch):
    selector(verbose=1).fit(*WINE)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TTY_INTERACTIVE", "1")
    selector(verbose=1).fit(*WINE)
    shown = capsys.readouterr().err
    assert "120/120" in shown
    assert "accuracy 0.9" in shown
    selector(verbose=0).fit(*WINE)
    assert capsys.readouterr() == ("", "")


def test_a_baseline_on_which_the_estimator_fails_is_not_a_number():
    class Narrow(GaussianNB):
        def fit(self, X, y):
            if X.shape[1] > 8:
                raise RuntimeError("too wide")
            return super().fit(X, y)

    with pytest.warns(SubswarmWarning, match="too wide"):
        fitted = selector(Narrow()).fit(*WINE)
    assert np.isnan(fitted.baseline_score_)
    assert fitted.n_features_ <= 8


def test_regression_is_scored_by_r2_and_other_losses():
    X, y = load_diabetes(return_X_y=True)
    fitted = selector(LinearRegression()).fit(X, y)
    assert 0.3 < fitted.baseline_score_ <= fitted.best_score_ < 1
    negated = selector(LinearRegression(), scoring="neg_mean_absolute_error").fit(X, y)
    assert negated.baseline_score_ <= negated.best_score_ < 0


def test_several_targets_are_allowed_where_the_estimator_allows_them():
    X, y = load_diabetes(return_X_y=True)
    assert selector(LinearRegression(), max_evaluations=30).fit(X, np.column_stack([y, -y])).best_score_ > 0.3


class TestBadTables:
    X, y = load_breast_cancer(return_X_y=True)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (lambda X, y: (np.where(X[3, 4] == X, np.nan, X), y), r"NaN.*columns? 4"),
            (lambda X, y: (np.where(X[3, 4] == X, np.inf, X), y), r"inf.*columns? 4"),
            (lambda X, y: (X, np.zeros(len(y))), "only one class"),
            (lambda X, y: (X[:, :0], y), r"0 feature\(s\)"),
            (lambda X, y: (X[:0], y[:0]), "n_samples=0"),
            (lambda X, y: (X[:1], y[:1]), "n_samples=1"),
            (lambda X, y: (X, y[:-1]), "569 rows and y has 568"),
            (lambda X, y: (X[:, 0], y), r"Reshape your data"),
            (lambda X, y: (X.astype(complex), y), "Complex data not supported"),
            (lambda X, y: (X, None), "requires y"),
            (lambda X, y: (X, np.where(y == 1, np.nan, y)), "y has missing"),
            (lambda X, y: (X, X[:, 0]), "continuous"),
            (lambda X, y: (pd.DataFrame(X).assign(colour="red"), y), "text in column 'colour'"),
            (lambda X, y: (np.array([["a", "b"]] * len(y)), y), "text in columns 0, 1"),
            (lambda X, y: (X, np.array([None if v else "a" for v in y], dtype=object)), "y has missing"),
            (lambda X, y: ("table.csv", y), "table of shape"),
        ],
    )
    def test_a_bad_table_gets_a_clear_sentence(self, change, sentence):
        with pytest.raises(DataError, match=sentence):
            selector().fit(*change(self.X, self.y))

    def test_a_sparse_table_is_refused_with_a_remedy(self):
        from scipy.sparse import csr_array

        with pytest.raises(DataError, match=r"sparse.*toarray"):
            selector().fit(csr_array(self.X), self.y)

    def test_one_column_is_a_table_too(self):
        assert selector().fit(self.X[:, :1], self.y).support_.tolist() == [True]

    def test_something_that_is_no_estimator_is_refused(self):
        with pytest.raises((DataError, TypeError), match="estimator"):
            selector(GaussianNB).fit(self.X, self.y)


def test_a_space_maps_features_to_columns():
    space = make_space(5, feature_groups=[[4, 1]], fixed_features=[1], initial_subsets=[[4, 0]])
    assert space.owner.tolist() == [0, 1, 2, 3, 1]
    assert (space.n_features, space.sizes, space.fixed, space.initial) == (4, (1, 2, 1, 1), (1,), ((0, 1),))
    assert space.columns(np.array([[False, True, False, False]])).tolist() == [[False, True, False, False, True]]


@pytest.mark.parametrize("size", [np.array([1, 2]), "2", None, 2.0, -1, True, [3]])
def test_the_size_of_a_subset_must_be_a_whole_number(size):
    selector = SwarmSelector(GaussianNB(), "random", cv=2, max_evaluations=8, random_state=0, verbose=0)
    selector.fit(*load_wine(return_X_y=True))
    with pytest.raises(SettingError, match="size must be a whole number of at least 0"):
        selector.subset_of_size(size)


class Untagged:
    """An estimator that does not derive from scikit-learn's base class."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_an_estimator_without_tags_is_refused():
    X, y = load_wine(return_X_y=True)
    with pytest.raises((DataError, ScoringError), match=r"must derive from sklearn|cannot be used with"):
        make_objective(Untagged(), X, y, cv=2)
    with pytest.raises((DataError, ScoringError), match=r"must derive from sklearn|cannot be used with"):
        SwarmSelector(Untagged(), max_evaluations=8, verbose=0).fit(X, y)


def test_column_names_of_mixed_types_are_refused():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X.columns = ["a", 1, 2.5, *X.columns[3:]]
    with pytest.raises(DataTypeError, match="string names"):
        SwarmSelector(GaussianNB(), max_evaluations=8, verbose=0).fit(X, y)


def test_the_first_of_several_scorers_is_optimised_and_all_are_reported():
    X, y = load_breast_cancer(return_X_y=True)
    settings = {"max_evaluations": 60, "random_state": 0, "verbose": 0}
    alone = SwarmSelector(GaussianNB(), scoring="roc_auc", **settings).fit(X, y)
    names = ["roc_auc", "f1", "neg_log_loss"]
    for several in (names, {name.upper(): name for name in names}):
        selector = SwarmSelector(GaussianNB(), scoring=several, **settings).fit(X, y)
        assert np.array_equal(selector.support_, alone.support_)
        assert (
            list(selector.scores_) == list(selector.front_scores_) == list(selector.baseline_scores_) == list(several)
        )
        for name, key in zip(names, several, strict=True):
            expected = [
                cross_val_score(GaussianNB(), X[:, mask], y, cv=selector.folds_, scoring=name).mean()
                for mask in (selector.support_, np.ones(30, dtype=bool), selector.result_.front.masks[0])
            ]
            found = selector.scores_[key], selector.baseline_scores_[key], selector.front_scores_[key][0]
            assert np.allclose(found, expected, rtol=1e-12)
            assert selector.front_scores_[key].shape == selector.result_.front.fitness.shape


def test_a_profit_is_maximised_by_every_kind_of_swarm():
    def profit(model, X, y):
        return 100.0 * float((model.predict(X) == y).sum()) - 300.0

    X, y = load_wine(return_X_y=True)
    for algorithm in ("2d-upso", "2d-clpso", "2d-elite", "ga"):
        selector = SwarmSelector(
            GaussianNB(), algorithm, scoring=profit, max_evaluations=150, random_state=0, choose="best", repeats=1
        ).fit(X, y)
        assert selector.best_score_ > selector.baseline_score_ > 1000.0
        assert np.isclose(selector.result_.best.fitness, 1.0 - selector.best_score_)
