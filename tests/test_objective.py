"""The objective: folds, losses, the memo, failures."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from subswarm import SwarmSelector, make_objective
from subswarm.errors import DataError, ScoringError, SettingError, SubswarmWarning

WINE = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def some_masks(n, count=6, seed=0):
    masks = np.random.default_rng(seed).random((count, n)) < 0.5
    masks[:, 0] |= ~masks.any(axis=1)
    return masks


class Fussy(ClassifierMixin, BaseEstimator):
    """Fails when it is given more than ``most`` columns."""

    def __init__(self, most=3):
        self.most = most

    def fit(self, X, y):
        if X.shape[1] > self.most:
            raise RuntimeError(f"{X.shape[1]} columns are too many for me")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_losses_are_one_minus_the_scores_of_cross_val_score():
    X, y = WINE
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    objective = make_objective(model, X, y, engine="estimator")
    masks = some_masks(13)
    for mask, losses in zip(masks, objective.fold_losses(masks), strict=True):
        assert np.array_equal(losses, 1 - cross_val_score(model, X[:, mask], y, cv=folds))
    assert np.array_equal(objective(masks), objective.fold_losses(masks).mean(axis=1))


@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "neg_mean_absolute_error"])
def test_negated_scores_lose_their_sign(scoring):
    X, y = DIABETES
    objective = make_objective(LinearRegression(), X, y, scoring=scoring)
    mask = some_masks(10, 1)[0]
    folds = KFold(10, shuffle=True, random_state=0)
    expected = -cross_val_score(LinearRegression(), X[:, mask], y, cv=folds, scoring=scoring)
    assert np.allclose(objective.fold_losses(mask)[0], expected, rtol=1e-10, atol=0)


def test_a_regressor_is_scored_by_r2_by_default():
    X, y = DIABETES
    objective = make_objective(LinearRegression(), X, y, cv=5)
    full = np.ones(10, bool)
    expected = 1 - cross_val_score(LinearRegression(), X, y, cv=KFold(5, shuffle=True, random_state=0), scoring="r2")
    assert np.allclose(objective.fold_losses(full)[0], expected, rtol=1e-10, atol=0)


def test_any_scorer_can_be_used():
    X, y = DIABETES
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    objective = make_objective(LinearRegression(), X, y, cv=3, scoring=scorer)
    assert (objective(some_masks(10)) > 1).all()
    X, y = WINE
    for name in ("balanced_accuracy", "f1_macro", "roc_auc_ovr", "neg_log_loss", "matthews_corrcoef"):
        assert (make_objective(GaussianNB(), X, y, cv=3, scoring=name)(some_masks(13)) >= 0).all()


def test_a_score_above_one_is_a_loss_below_zero():
    X, y = WINE
    objective = make_objective(GaussianNB(), X, y, cv=3, scoring=lambda estimator, X, y: 5.0)
    losses = objective(some_masks(13))
    assert np.array_equal(losses, np.full(len(losses), -4.0))
    assert objective.scoring.score(-4.0) == 5.0


def test_infinite_scores_for_every_subset_are_an_error():
    X, y = WINE
    objective = make_objective(GaussianNB(), X, y, cv=3, scoring=lambda estimator, X, y: -np.inf)
    with pytest.raises(ValueError, match="not finite"):
        objective(some_masks(13))


@pytest.mark.parametrize("score", [1e308, -1e308, 1e300])
def test_scores_whose_mean_would_be_infinite_are_an_error(score):
    """They are finite, but their sum over the folds is not, and the loss of a failed subset must be the worst."""
    objective = make_objective(GaussianNB(), *WINE, cv=2, scoring=lambda estimator, X, y: score)
    with pytest.warns(SubswarmWarning, match=r"gave scores that are not below 1e\+300 in size"):
        assert objective(some_masks(13, 1)) == 1e300
    with pytest.raises(ScoringError, match=r"gave scores that are not below 1e\+300 in size"):
        objective(some_masks(13, 2, seed=1))


@pytest.mark.parametrize("engine", ["fast", "estimator"])
def test_a_fast_engine_accepts_the_scores_that_scikit_learns_engine_does(engine):
    X, y = DIABETES
    objective = make_objective(
        LinearRegression(), X, y * 1e151, cv=3, scoring="neg_mean_squared_error", engine=engine, random_state=0
    )
    with pytest.warns(SubswarmWarning, match="not below"):
        assert objective(some_masks(X.shape[1], 1)) == 1e300


@pytest.mark.parametrize(
    "scoring", ["no-such-score", 3, [], ["accuracy", 3], ["f1", "f1"], {}, {1: "f1"}, {"a": ["f1"]}, ["accuracy", "f7"]]
)
def test_unusable_scorers_are_refused(scoring):
    with pytest.raises(ScoringError):
        make_objective(GaussianNB(), *WINE, scoring=scoring)


def test_subsets_seen_before_are_counted_but_not_computed_again():
    objective = make_objective(GaussianNB(), *WINE, cv=3)
    masks = some_masks(13)
    first = objective(masks)
    again = objective(np.vstack([masks, masks]))
    assert np.array_equal(np.concatenate([first, first]), again)
    assert objective.asked == 18
    assert objective.computed == len(np.unique(masks, axis=0))


def test_an_integer_cv_means_shuffled_stratified_folds_from_the_random_state():
    X, y = WINE
    objective = make_objective(GaussianNB(), X, y, cv=4, random_state=9)
    expected = StratifiedKFold(4, shuffle=True, random_state=9).split(X, y)
    for (train, test), (train_, test_) in zip(objective.folds, expected, strict=True):
        assert np.array_equal(train, train_)
        assert np.array_equal(test, test_)


def test_splitters_lists_of_splits_and_groups_are_used_as_they_are():
    X, y = WINE
    groups = np.arange(len(y)) % 6
    objective = make_objective(GaussianNB(), X, y, cv=GroupKFold(3), groups=groups)
    for train, test in objective.folds:
        assert not set(groups[train]) & set(groups[test])
    one = [(np.arange(0, 178, 2), np.arange(1, 178, 2))]
    assert make_objective(GaussianNB(), X, y, cv=one).fold_losses(np.ones(13, bool)).shape == (1, 1)


def test_random_splitters_are_drawn_once():
    objective = make_objective(GaussianNB(), *WINE, cv=StratifiedKFold(3, shuffle=True))
    assert np.array_equal(objective.folds[0][0], objective.folds[0][0])
    mask = np.ones((1, 13), bool)
    assert np.array_equal(objective.fold_losses(mask)[0], 1 - objective.fold_scores(mask))


def test_an_empty_subset_scores_the_worst_loss_with_one_warning():
    objective = make_objective(GaussianNB(), *WINE, cv=3)
    with pytest.warns(SubswarmWarning, match="empty") as caught:
        assert objective(np.zeros((1, 13), bool)).tolist() == [1.0]
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert objective(np.zeros((2, 13), bool)).tolist() == [1.0, 1.0]


def test_a_subset_on_which_the_estimator_fails_scores_the_worst_loss_with_one_warning():
    objective = make_objective(Fussy(), *WINE, cv=3)
    masks = np.array([[True] * 2 + [False] * 11, [True] * 13, [True] * 12 + [False]])
    with pytest.warns(SubswarmWarning, match="too many for me") as caught:
        losses = objective(masks)
    assert len(caught) == 1
    assert losses[1:].tolist() == [1.0, 1.0]
    assert losses[0] < 1
    assert objective.failed == 2


def test_an_unbounded_loss_fails_with_a_finite_worst():
    class FussyRegressor(LinearRegression):
        def fit(self, X, y):
            if X.shape[1] > 3:
                raise RuntimeError("too many")
            return super().fit(X, y)

    objective = make_objective(FussyRegressor(), *DIABETES, cv=3, scoring="neg_mean_squared_error")
    with pytest.warns(SubswarmWarning):
        losses = objective(np.array([[True] * 2 + [False] * 8, [True] * 10]))
    assert np.isfinite(losses).all()
    assert losses[1] > losses[0]


def test_if_every_subset_fails_the_estimators_own_error_is_raised():
    objective = make_objective(Fussy(most=0), *WINE, cv=3)
    with pytest.raises(RuntimeError, match="too many for me"):
        objective(some_masks(13))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_losses_are_the_same_for_any_number_of_jobs_and_any_backend(backend):
    masks = some_masks(13)
    alone = make_objective(DecisionTreeClassifier(random_state=0), *WINE, cv=3)(masks)
    with parallel_config(backend=backend):
        together = make_objective(DecisionTreeClassifier(random_state=0), *WINE, cv=3, n_jobs=2)(masks)
    assert np.array_equal(alone, together)


def test_sample_weights_reach_the_estimator():
    X, y = WINE
    weights = np.where(y == 0, 1e-9, 1.0)
    plain = make_objective(GaussianNB(), X, y, cv=3)
    weighted = make_objective(GaussianNB(), X, y, cv=3, params={"sample_weight": weights})
    mask = np.arange(13) < 2
    assert weighted(mask)[0] != plain(mask)[0]


def test_a_class_with_fewer_members_than_folds_goes_on_with_one_warning():
    X, y = load_iris(return_X_y=True)
    keep = np.r_[0:100, 100:104]
    with pytest.warns(UserWarning, match="least populated class") as caught:
        objective = make_objective(GaussianNB(), X[keep], y[keep])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objective(some_masks(4))


def test_engines_can_be_forced():
    assert make_objective(LogisticRegression(), *WINE, engine="estimator").engine == "estimator"
    with pytest.raises(SettingError, match="no exact fast path"):
        make_objective(DecisionTreeClassifier(), *WINE, engine="fast")
    with pytest.raises(SettingError, match="engine must be one of"):
        make_objective(GaussianNB(), *WINE, engine="quick")
    with pytest.raises(SettingError, match="device"):
        make_objective(GaussianNB(), *WINE, device="abacus")


def test_a_fingerprint_tells_problems_apart():
    X, y = WINE
    base = make_objective(GaussianNB(), X, y)
    assert base.fingerprint() == make_objective(GaussianNB(), X.copy(), y).fingerprint()
    others = [
        make_objective(GaussianNB(var_smoothing=1e-3), X, y),
        make_objective(GaussianNB(), X + 1e-12, y),
        make_objective(GaussianNB(), X, y, random_state=1),
        make_objective(GaussianNB(), X, y, scoring="f1_macro"),
        make_objective(GaussianNB(), X, y, params={"sample_weight": np.ones(178)}),
    ]
    assert len({base.fingerprint(), *(other.fingerprint() for other in others)}) == 6


@pytest.mark.parametrize(
    ("masks", "sentence"),
    [
        (np.ones((2, 5), bool), r"shape \(P, 13\)"),
        ([[0, 1, 2] * 4 + [0]], "True/False"),
        (np.ones((1, 1, 13), bool), "shape"),
        ([[True], [True, False]], "masks must be an array of shape"),
    ],
)
def test_masks_of_the_wrong_shape_or_kind_are_refused(masks, sentence):
    with pytest.raises(DataError, match=sentence):
        make_objective(GaussianNB(), *WINE)(masks)


@pytest.mark.parametrize(
    ("cv", "sentence"),
    [
        (1, "at least 2 folds"),
        (500, "at least 500 rows"),
        (100, "the largest has 71"),
        ([], "no folds"),
        (True, "cv must be"),
    ],
)
def test_unusable_folds_are_refused(cv, sentence):
    with pytest.raises(DataError, match=sentence):
        make_objective(GaussianNB(), *WINE, cv=cv)


@pytest.mark.parametrize("partitions", [[[0], [0, 0]], [0.5, 0.5], [0, 0, 0], None, "ab"], ids=repr)
def test_partitions_that_are_not_one_number_for_each_mask_are_refused(partitions):
    objective = make_objective(GaussianNB(), *WINE, cv=3, repeats=2)
    masks = np.ones((2, 13), bool)
    if partitions is None:
        assert objective.fold_losses(masks).shape == (2, 6)
        return
    with pytest.raises(DataError, match="partitions must be whole numbers, one for each of the 2 masks; got"):
        objective.fold_losses(masks, partitions)


def test_one_subset_is_expected_where_one_is_scored():
    objective = make_objective(GaussianNB(), *WINE, cv=3)
    for method in (objective.losses_of, objective.fold_scores):
        for masks in (np.ones((2, 13), bool), np.ones((0, 13), bool)):
            with pytest.raises(DataError, match="expected one mask"):
                method(masks)
    with pytest.raises(DataError, match="mask selects no feature"):
        objective.fold_scores(np.zeros(13, bool))


def test_an_estimator_without_tags_or_that_cannot_be_cloned_is_refused_in_one_sentence():
    class Untagged:
        def fit(self, X, y):
            return self

    class Changing(GaussianNB):
        def __init__(self, var_smoothing=1e-9):
            self.var_smoothing = [var_smoothing]

    with pytest.raises((DataError, ScoringError), match=r"cannot (read the tags of|be used with)"):
        make_objective(Untagged(), *WINE)
    with pytest.raises(DataError, match="estimator cannot be cloned by scikit-learn"):
        make_objective(Changing(), *WINE)


@pytest.mark.parametrize(
    ("score", "sentence"),
    [(float("nan"), "gave scores that are not finite"), (10**400, "gave scores that are not numbers")],
    ids=["nan", "huge"],
)
def test_scores_that_cannot_be_used_are_a_scoring_error(score, sentence):
    objective = make_objective(DecisionTreeClassifier(), *WINE, cv=3, scoring=lambda model, X, y: score)
    with pytest.raises(ScoringError, match=sentence):
        objective(some_masks(13))


def test_any_amount_of_memory_may_be_allowed():
    masks = some_masks(13)
    expected = make_objective(GaussianNB(), *WINE)(masks)
    assert np.array_equal(make_objective(GaussianNB(), *WINE, max_bytes=2**63 - 1)(masks), expected)
    with pytest.raises(SettingError, match="max_bytes must be a whole number"):
        make_objective(GaussianNB(), *WINE, max_bytes=2**63)


def test_a_lazy_frame_is_refused_in_one_sentence():
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match=r"X is a LazyFrame, which is not computed yet; use X.collect\(\)"):
        make_objective(GaussianNB(), polars.DataFrame(WINE[0]).lazy(), WINE[1])


@pytest.mark.parametrize("setting", [{"weights": np.ones(2)}, {"p": np.ones(2)}, {"weights": np.empty((2, 0))}])
def test_settings_of_a_model_that_are_arrays_are_refused_by_scikit_learn_itself(setting):
    objective = make_objective(KNeighborsClassifier(**setting), *load_wine(return_X_y=True), cv=3)
    assert objective.engine == "estimator"
    with pytest.raises(SettingError, match=f"'{next(iter(setting))}' parameter of the estimator"):
        objective(np.eye(13, dtype=bool))


def test_numbers_of_few_bits_do_not_overflow():
    wine = load_wine(return_X_y=True)
    assert make_objective(GaussianNB(), *wine, cv=3, repeats=np.int8(2)).n_partitions == 2
    selector = SwarmSelector(GaussianNB(), max_evaluations=np.int8(100), cv=3, random_state=0, verbose=0).fit(*wine)
    assert selector.result_.n_partitions == 1


def test_failures_of_a_batch_that_raised_do_not_count_against_later_ones():
    class FailsOnEven(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            if X.shape[1] % 2 == 0:
                raise ValueError("even")
            return super().fit(X, y)

    objective = make_objective(FailsOnEven(), *load_wine(return_X_y=True), cv=3, engine="estimator")
    pairs, others = np.zeros((2, 13), dtype=bool), np.zeros((4, 13), dtype=bool)
    pairs[0, :2] = pairs[1, 1:3] = True
    others[0, :3] = others[1, :5] = others[2, :4] = others[3, :6] = True
    with pytest.raises(ValueError, match="even"):
        objective(pairs)
    with pytest.warns(SubswarmWarning, match="a subset failed"):
        losses = objective(others)
    assert (losses[:2] < 0.5).all()
    assert (losses[2:] == 1.0).all()


def test_a_parameter_that_scikit_learn_refuses_is_named_as_one_of_the_estimator():
    objective = make_objective(GaussianNB(var_smoothing="much"), *load_wine(return_X_y=True), cv=3, engine="estimator")
    with pytest.raises(SettingError, match=r"'var_smoothing' parameter of the estimator must be"):
        objective(np.eye(13, dtype=bool))
