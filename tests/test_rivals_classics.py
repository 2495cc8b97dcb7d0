"""Stepwise searches, branch and bound and tabu: their rules, and their agreement with other packages."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from mlxtend.feature_selection import SequentialFeatureSelector as MlxtendSelector
from sklearn.datasets import load_wine, make_regression
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from subswarm import Budget, make_objective, search
from subswarm._search.ask_tell import Search
from subswarm.algorithms import SBFS, SBS, SFFS, SFS, BranchAndBound, PlusLMinusR, TabuSearch, get_algorithm
from subswarm.algorithms.masks import SubsetRules
from subswarm.algorithms.tabu import Trail, chosen_neighbour, neighbours
from subswarm.errors import SettingError


def table(seed, n_features=9):
    """A regression whose columns stand in for each other, so that greedy steps are worth taking back."""
    rng = np.random.default_rng(seed)
    X, y = make_regression(80, n_features, n_informative=6, noise=20.0, random_state=seed)
    X[:, 1:] += 0.9 * X[:, :-1] * rng.random(n_features - 1)
    return X, y


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kind", "direction"), [(SFS, "forward"), (SBS, "backward")])
def test_stepwise_searches_agree_with_scikit_learn_subset_for_subset(kind, direction, seed):
    X, y = table(seed)
    folds = list(KFold(5, shuffle=True, random_state=seed).split(X))
    scoring = "neg_mean_squared_error"
    objective = make_objective(LinearRegression(), X, y, cv=folds, scoring=scoring)
    for size in (1, 2, 4, 7, 8):
        theirs = SequentialFeatureSelector(
            LinearRegression(), n_features_to_select=size, direction=direction, scoring=scoring, cv=folds
        ).fit(X, y)
        ours = search(kind(min_features=size, max_features=size), objective, rng=0).best
        assert ours.features.tolist() == np.flatnonzero(theirs.get_support()).tolist()


def test_forward_selection_of_a_classifier_agrees_with_scikit_learn():
    X, y = load_wine(return_X_y=True)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=1).split(X, y))
    objective = make_objective(GaussianNB(), X, y, cv=folds)
    theirs = SequentialFeatureSelector(GaussianNB(), n_features_to_select=4, cv=folds).fit(X, y)
    ours = search(SFS(min_features=4, max_features=4), objective, rng=0).best
    assert ours.features.tolist() == np.flatnonzero(theirs.get_support()).tolist()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("algorithm", "forward", "floating"),
    [
        (SFS(), True, False),
        (SBS(), False, False),
        (SFFS(must_beat_current=True), True, True),
        (SBFS(must_beat_current=True), False, True),
    ],
)
def test_stepwise_and_floating_searches_agree_with_mlxtend_subset_for_subset(algorithm, forward, floating, seed):
    X, y = table(seed)
    folds = list(KFold(5, shuffle=True, random_state=seed).split(X))
    scoring = "neg_mean_squared_error"
    theirs = MlxtendSelector(
        LinearRegression(),
        k_features=X.shape[1] if forward else 1,
        forward=forward,
        floating=floating,
        scoring=scoring,
        cv=folds,
    ).fit(X, y)
    objective = make_objective(LinearRegression(), X, y, cv=folds, scoring=scoring)
    ours = {}
    for features, _ in sorted(walked(algorithm, objective, X.shape[1]), key=lambda place: -place[1]):
        ours[len(features)] = features  # the best of each size comes last
    assert ours == {size: sorted(subset["feature_idx"]) for size, subset in theirs.subsets_.items()}


def walked(algorithm, loss, n_features):
    """Where the walk stood, one after the other, with the loss there."""
    course, places = Search(algorithm, n_features, 0), []
    while not course.finished:
        masks, before = course.ask(), course.state
        fitness = loss(masks)
        best = int(np.argmin(fitness))
        if algorithm.accepts(before, int(masks[best].sum()), float(fitness[best])):
            places.append((np.flatnonzero(masks[best]).tolist(), float(fitness[best])))
        course.tell(fitness)
        if not course.finished:
            assert np.flatnonzero(course.state.current).tolist() == places[-1][0]
    return places


def lookup(values, n_features, default=9.0):
    """A loss given by a table of subsets."""

    def loss(masks):
        return np.array([values.get("".join(map(str, np.flatnonzero(mask))), default) for mask in masks])

    return loss, n_features


def visited(algorithm, loss, n_features):
    return ["".join(map(str, features)) for features, _ in walked(algorithm, loss, n_features)]


def test_floating_search_takes_back_a_step_that_a_better_pair_has_made_needless():
    # 0 is best alone, 01 the best pair with it, 012 the best with that; but 12 is better than 01
    values = {"0": 0.5, "1": 0.6, "2": 0.7, "01": 0.4, "02": 0.45, "012": 0.3, "12": 0.2}
    loss, n = lookup(values, 3)
    assert visited(SFFS(), loss, n) == ["0", "01", "012", "12", "012"]
    assert search(SFFS(), loss, rng=0, n_features=n).best.features.tolist() == [1, 2]
    assert search(SFS(min_features=2, max_features=2), loss, rng=0, n_features=n).best.features.tolist() == [0, 1]


def test_a_step_back_need_only_beat_the_best_of_its_own_size_unless_told_otherwise():
    # dropping 0 from 012 gives 12: better than the pair met before (0.4), worse than the three (0.3)
    values = {"0": 0.5, "1": 0.6, "2": 0.7, "01": 0.4, "02": 0.45, "012": 0.3, "12": 0.35}
    loss, n = lookup(values, 3)
    assert "12" in visited(SFFS(), loss, n)
    assert "12" not in visited(SFFS(must_beat_current=True), loss, n)


def test_backward_floating_search_mirrors_it():
    # 0, 1 and 2 go one by one; then 0 comes back, since 034 beats the three met before, 234
    values = {"01234": 0.5, "1234": 0.4, "234": 0.35, "34": 0.3, "034": 0.1, "03": 0.05, "3": 0.2}
    loss, n = lookup(values, 5, default=0.8)
    assert visited(SBFS(), loss, n) == ["01234", "1234", "234", "34", "034", "03", "3"]


def test_plus_two_minus_one_goes_two_forward_and_one_back():
    weight = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    places = visited(PlusLMinusR(max_features=4), lambda masks: 15 - masks @ weight, 5)
    assert places == ["0", "01", "0", "01", "012", "01", "012", "0123"]


def test_minus_two_plus_one_starts_from_everything():
    weight = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    places = visited(PlusLMinusR(plus=1, minus=2, min_features=2), lambda masks: 15 - masks @ weight, 5)
    assert places == ["01234", "0123", "012", "0123", "012", "01"]


def test_forward_search_stops_at_its_limit_and_the_best_of_all_sizes_wins():
    target = np.arange(8) < 3
    result = search(SFS(max_features=5), lambda masks: (masks ^ target).mean(axis=1), rng=0, n_features=8)
    assert result.best.features.tolist() == [0, 1, 2]
    assert result.stop_reason == "finished"
    assert result.evaluations == 8 + 7 + 6 + 5 + 4
    assert result.front.cardinality.tolist() == [1, 2, 3, 4, 5]


def test_backward_search_evaluates_everything_first():
    result = search(SBS(min_features=3), lambda masks: masks.mean(axis=1), rng=0, n_features=5)
    assert result.evaluations == 1 + 5 + 4
    assert result.best.features.tolist() == [2, 3, 4]  # of equals the one of lowest index goes


def test_fixed_features_are_the_start_of_a_forward_search_and_the_end_of_a_backward_one():
    weight = np.array([1.0, 2.0, 3.0, 4.0])
    assert visited(SFS(fixed_features=(0,), max_features=2), lambda masks: -(masks @ weight), 4) == ["0", "03"]
    assert visited(SBS(fixed_features=(0,)), lambda masks: 10 + masks @ weight, 4)[-1] == "0"


def test_plus_as_much_as_minus_is_refused():
    with pytest.raises(SettingError, match="makes no progress"):
        PlusLMinusR(plus=2, minus=2)


def sum_of_squares(seed, n_features, rows=60):
    """A monotone criterion: the residual sum of squares of a regression on the selected columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, n_features))
    X[:, 1:] += 0.8 * X[:, :-1]
    y = X @ rng.standard_normal(n_features) + rng.standard_normal(rows)

    def loss(masks):
        return np.array(
            [np.square(y - X[:, mask] @ np.linalg.lstsq(X[:, mask], y, rcond=None)[0]).sum() for mask in masks]
        )

    return loss


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 3, 6])
def test_branch_and_bound_finds_the_optimum_with_fewer_evaluations_than_there_are_subsets(seed, size):
    n_features = 10
    loss = sum_of_squares(seed, n_features)
    everything = [list(subset) for subset in combinations(range(n_features), size)]
    masks = np.zeros((len(everything), n_features), dtype=bool)
    for row, subset in enumerate(everything):
        masks[row, subset] = True
    best = everything[int(np.argmin(loss(masks)))]
    result = search(
        BranchAndBound(max_features=size), loss, Budget(evaluations=None, target=-1.0), n_features=n_features
    )
    assert result.best.features.tolist() == best
    assert result.stop_reason == "finished"
    if size == 6:
        assert result.evaluations < len(everything)


def test_branch_and_bound_keeps_fixed_features_and_whole_groups():
    loss = sum_of_squares(5, 7)
    algorithm = BranchAndBound(max_features=5, min_features=2, fixed_features=(2,), feature_sizes=(1, 2, 1, 3, 1, 2, 1))
    result = search(algorithm, loss, n_features=7)
    rules = algorithm.rules(7)
    legal = [
        mask for mask in (np.arange(128)[:, None] >> np.arange(7) & 1).astype(bool) if rules.is_legal(mask[None])[0]
    ]
    assert result.best.fitness == pytest.approx(loss(np.array(legal)).min())


def test_branch_and_bound_refuses_a_criterion_that_is_not_monotone():
    with pytest.raises(
        SettingError, match=r"never improves when a feature is dropped.* lowered the loss from 0.6 to 0.4"
    ):
        search(BranchAndBound(max_features=2), lambda masks: masks.sum(axis=1) / 5 - 0.4, n_features=5)


def test_branch_and_bound_without_a_limit_answers_with_everything():
    result = search(BranchAndBound(), lambda masks: masks.mean(axis=1), n_features=5)
    assert (result.best.cardinality, result.evaluations) == (5, 1)


def trail(current, tabu_until, best, steps, rules=None):
    current = np.array([character == "1" for character in current])
    masks = neighbours(current, rules or SubsetRules.of(len(current)), np.random.default_rng(0))
    return Trail(masks, current, np.array(tabu_until), best, steps)


def test_tabu_takes_the_best_neighbour_that_is_not_tabu():
    at = trail("110", [-1, 5, -1], best=0.1, steps=4)
    assert at.masks.astype(int).tolist() == [[0, 1, 0], [1, 0, 0], [1, 1, 1]]
    assert chosen_neighbour(at, np.array([0.4, 0.2, 0.3])) == 2
    assert chosen_neighbour(trail("110", [-1, 5, -1], best=0.1, steps=6), np.array([0.4, 0.2, 0.3])) == 1


def test_a_tabu_flip_that_beats_all_before_is_allowed():
    assert chosen_neighbour(trail("110", [-1, 5, -1], best=0.25, steps=4), np.array([0.4, 0.2, 0.3])) == 1


def test_where_all_is_tabu_the_flip_that_is_free_the_soonest_is_made():
    assert chosen_neighbour(trail("110", [9, 7, 8], best=0.1, steps=4), np.array([0.2, 0.4, 0.3])) == 1


def test_a_flipped_feature_stays_for_as_many_steps_as_the_tenure():
    course = Search(TabuSearch(tenure=3, initial_subsets=((0, 1),)), 6, 0)
    flips = []
    for _ in range(12):
        before = course.state.current
        course.tell(np.linspace(0.5, 0.6, len(course.ask())))
        flips += np.flatnonzero(before ^ course.state.current).tolist()
    for place, feature in enumerate(flips):
        assert feature not in flips[place + 1 : place + 4]


def test_tabu_with_exactly_k_features_swaps():
    rules = SubsetRules.of(6, min_features=2, max_features=2)
    current = np.arange(6) < 2
    masks = neighbours(current, rules, np.random.default_rng(0))
    assert (masks.sum(axis=1) == 2).all()
    assert ((masks ^ current).sum(axis=1) == 2).all()


def test_tabu_may_try_only_a_sample_of_its_neighbours():
    course = Search(get_algorithm("tabu", sample=5), 50, 0)
    course.tell([0.5])
    assert len(course.ask()) == 5
