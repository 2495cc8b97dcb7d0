"""2D-Elite: an elite that recombines, learns which moves help, and islands that agree on a subset."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

from subswarm import Budget, Search, make_objective, search
from subswarm._types import FloatArray, Masks
from subswarm.algorithms import TwoDElite
from subswarm.algorithms.elite.cross_fit import _best
from subswarm.algorithms.elite.state import ADD, REMOVE, Moves, nested_by_agreement


def distance_to(planted: Masks):
    def distance(masks: Masks) -> FloatArray:
        return np.asarray((masks ^ planted).mean(axis=1))

    return distance


@pytest.mark.parametrize("seed", range(10))
def test_a_planted_subset_of_forty_features_is_found(seed: int) -> None:
    planted = np.random.default_rng(seed).random(40) < 0.2
    result = search("2d-elite", distance_to(planted), Budget(target=0.0), rng=seed, n_features=40)
    assert result.stop_reason == "target"


def test_first_sizes_are_log_uniform() -> None:
    sizes = TwoDElite(particles=4000).begin(100, np.random.default_rng(0)).masks.sum(axis=1)
    assert np.mean(sizes <= 9) == pytest.approx(np.log(10) / np.log(101), abs=0.03)
    assert sizes.min() == 1
    assert sizes.max() > 90


def test_hardly_a_subset_is_asked_twice_while_there_are_others() -> None:
    search_ = Search(TwoDElite(opening=0.0), 16, rng=1)
    asked = [row.tobytes() for row in np.unique(search_.ask(), axis=0)]  # the first, random ones may repeat themselves
    for _ in range(40):
        search_.tell(distance_to(np.arange(16) < 4)(search_.ask()))
        asked += [row.tobytes() for row in search_.ask()]
    assert len(set(asked)) > 0.97 * len(asked)


def test_all_subsets_of_three_features_are_asked_and_the_search_goes_on() -> None:
    result = search("2d-elite", lambda masks: masks.mean(axis=1), Budget(evaluations=300), rng=0, n_features=3)
    assert result.best.cardinality == 1
    assert result.evaluations == 300


def test_of_equally_good_subsets_the_smaller_is_kept() -> None:
    result = search("2d-elite", lambda masks: 1.0 - masks[:, 0], Budget(evaluations=600), rng=0, n_features=15)
    assert result.best.features.tolist() == [0]


def test_moves_that_helped_are_likelier_and_old_ones_fade() -> None:
    nothing = Moves(np.zeros((1, 2, 3)), np.zeros((1, 2, 3)))
    before = np.array([[[0, 0, 1], [0, 0, 1], [0, 0, 1]]], dtype=bool)
    children = np.array([[[1, 0, 0], [1, 0, 1], [0, 1, 1]]], dtype=bool)
    learnt = nothing.after(before, children, np.array([[True, False, False]]), memory=0.5)
    assert learnt.tried.tolist() == [[[2, 1, 0], [0, 0, 1]]]
    assert learnt.helped.tolist() == [[[1, 0, 0], [0, 0, 1]]]
    likelihood = learnt.likelihood(caution=3.0)[0]  # the mean of all additions is 1 in 3, of all removals 1 in 1
    assert likelihood[ADD] == pytest.approx([(1 + 1) / (2 + 3), 1 / (1 + 3), 1 / 3])
    assert likelihood[REMOVE] == pytest.approx([1.0, 1.0, 1.0])
    later = learnt.after(children, children, np.zeros((1, 3), dtype=bool), memory=0.5)
    assert later.tried.tolist() == [[[1, 0.5, 0], [0, 0, 0.5]]]


def test_each_island_learns_separately() -> None:
    before, children = np.zeros((2, 1, 3), dtype=bool), np.eye(3, dtype=bool)[:2, None]
    learnt = Moves.unknown(2, 3).after(before, children, np.ones((2, 1), dtype=bool), memory=1.0)
    assert learnt.likelihood(5.0)[:, ADD].argmax(axis=1).tolist() == [0, 1]


def test_more_is_removed_where_removals_help() -> None:
    shrinking = Moves(np.ones((1, 2, 4)), np.array([[[0.25, 0, 0, 0], [0.25, 0.25, 0.25, 0]]]))
    assert shrinking.direction()[0] == pytest.approx([0.5, 1.5])


def test_a_stagnant_particle_starts_again_but_the_best_never_does() -> None:
    settings = TwoDElite(particles=4, refresh_gap=2)
    rng = np.random.default_rng(0)
    state = settings.begin(40, rng)
    fitness = np.array([0.4, 0.1, 0.3, 0.2])
    state = settings.step(state, fitness, 0.1, rng)
    best = state.elite[1].copy()
    for _ in range(2):
        state = settings.step(state, np.full(4, 0.9), 0.1, rng)
    assert np.isinf(state.fitness).tolist() == [True, False, True, True]
    assert np.array_equal(state.elite[1], best)
    assert np.array_equal(state.masks[[0, 2, 3]], state.elite[[0, 2, 3]])


def test_it_starts_from_the_initial_subsets_and_says_where_there_are_too_many() -> None:
    first = TwoDElite(initial_subsets=((1, 2), (5,))).begin(8, np.random.default_rng(0)).masks
    assert [np.flatnonzero(row).tolist() for row in first[:2]] == [[1, 2], [5]]
    with pytest.raises(ValueError, match="the first batch holds 2"):
        TwoDElite(particles=2, initial_subsets=((0,), (1,), (2,))).begin(8, np.random.default_rng(0))


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="recombination"):
        TwoDElite(recombination=1.5)
    with pytest.raises(ValueError, match="particles"):
        TwoDElite(particles=0)


def test_the_ranking_by_votes_is_nested_and_ends_at_twice_the_mean_size() -> None:
    subsets = np.zeros((3, 10), dtype=bool)
    subsets[0, [3, 5]] = subsets[1, [3, 7]] = subsets[2, [3, 5]] = True
    nested, votes = nested_by_agreement(subsets, 10)
    assert votes[[3, 5, 7, 0]] == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert [np.flatnonzero(row).tolist() for row in nested] == [[3], [3, 5], [3, 5, 7], [0, 3, 5, 7]]


def walks(search_: Search, landscape) -> list[int]:
    """The sizes of the batches that are the walk's, from the first on."""
    sizes = []
    while True:
        search_.tell(landscape(search_.ask()))
        if not search_.state.walking:
            return sizes
        sizes.append(len(search_.ask()))


def test_the_walk_takes_its_share_of_the_budget_and_what_it_finds_is_kept() -> None:
    search_ = Search(TwoDElite(opening=0.1), 18, rng=0, evaluations=2000)
    planted = np.arange(18) < 12
    batches = walks(search_, distance_to(planted))
    assert batches[:4] == [18, 17, 1, 16]  # one feature, a second, a step back that does not help, a third
    assert 200 - 18 < 30 + sum(batches) <= 200
    assert search_.front.subset_of_size(5).features.tolist() == [0, 1, 2, 3, 4]
    assert search_.best.fitness <= search_.front.subset_of_size(5).fitness


def test_the_swarm_hardly_goes_where_the_walk_has_been() -> None:
    search_ = Search(TwoDElite(), 34, rng=0, evaluations=6000)
    asked = []
    for _ in range(60):
        asked.append((search_.state.walking, {row.tobytes() for row in search_.ask()}))
        search_.tell(distance_to(np.arange(34) < 5)(search_.ask()))
    walked = set().union(*(batch for walking, batch in asked if walking))
    swarmed = set().union(*(batch for walking, batch in asked[1:] if not walking))
    assert len(walked) > 100
    assert len(walked & swarmed) < 0.02 * len(swarmed)


@pytest.mark.parametrize(
    ("settings", "search_settings"),
    [
        ({"opening": 0.0}, {}),
        ({"min_features": 2}, {}),
        ({}, {"evaluations": None}),
        ({}, {"n_partitions": 2}),
        ({}, {"evaluations": 300}),  # the first step alone would be more than its share
        ({}, {"evaluations": 4600}),  # 30 * 31 / 2 is more than its share: it would break off half-way
    ],
)
def test_there_is_no_walk_where_it_does_not_fit(settings, search_settings) -> None:
    landscape = distance_to(np.arange(30) < 5)
    assert walks(Search(TwoDElite(), 30, rng=0, evaluations=4650), landscape)  # and there would be one
    assert walks(Search(TwoDElite(**settings), 30, rng=0, **search_settings), landscape) == []


def test_a_walk_to_a_few_features_fits_sooner() -> None:
    search_ = Search(TwoDElite(max_features=5), 60, rng=0, evaluations=6000)
    assert sum(walks(search_, distance_to(np.arange(60) < 5))) > 60 + 59 + 58 + 57 + 56


def test_a_walk_that_meets_its_end_is_over() -> None:
    search_ = Search(TwoDElite(opening=1.0), 4, rng=0, evaluations=6000)
    assert sum(walks(search_, distance_to(np.arange(4) < 2))) < 30
    search_.tell(distance_to(np.arange(4) < 2)(search_.ask()))
    assert not search_.state.walking


def test_the_answer_is_the_largest_agreed_subset_that_is_not_much_worse() -> None:
    settings = TwoDElite(n_partitions=2, tolerance=0.1)
    agreed = np.tri(4, dtype=bool)
    state = replace(
        settings.begin(4, np.random.default_rng(0)), agreed=agreed, agreed_fitness=np.array([0.5, 0.2, 0.22, 0.3])
    )
    masks, fitness, *_ = settings.finalists(state)
    assert masks[0].sum() == 3
    assert fitness[0] == 0.22
    assert sorted(fitness) == [0.2, 0.22, 0.3, 0.5]


class Partitioned:
    """A landscape with a planted subset, and partitions that each favour one more feature by chance."""

    n_features = 12
    n_partitions = 3

    def __init__(self) -> None:
        self.batches: list[tuple[int, set[int]]] = []

    def __call__(self, masks: Masks, partitions: np.ndarray | None = None) -> FloatArray:
        loss = (masks[:, :8] ^ (np.arange(8) < 3)).sum(axis=1) / 10
        by_luck = -0.05 * masks[:, 8 : 8 + self.n_partitions].astype(float) + 0.03
        self.batches.append((len(masks), set() if partitions is None else set(partitions.tolist())))
        luck = by_luck.mean(axis=1) if partitions is None else by_luck[np.arange(len(masks)), partitions]
        return np.asarray(1 + loss + luck + 0.03 * masks[:, 8:].sum(axis=1))


def test_islands_vote_out_what_only_one_repeat_favours() -> None:
    objective = Partitioned()
    result = search(TwoDElite(particles=10), objective, Budget(evaluations=1500), rng=0)
    assert result.best.features.tolist() == [0, 1, 2]
    assert result.best.fitness == pytest.approx(objective(result.best.mask[None])[0])


def test_children_are_scored_on_the_repeat_of_their_island_and_agreed_subsets_on_all() -> None:
    objective = Partitioned()
    result = search(TwoDElite(particles=10, agreement_sizes=5), objective, Budget(evaluations=330), rng=0)
    sizes, named = zip(*objective.batches, strict=True)
    whole = [place for place, partitions in enumerate(named) if not partitions]
    assert len(whole) == 1
    assert sizes[whole[0]] <= 5
    assert all(partitions == {0, 1, 2} for place, partitions in enumerate(named) if place < whole[0])
    assert 330 - 30 < result.evaluations <= 330


def test_before_they_agree_the_best_of_any_island_is_selected() -> None:
    result = search(TwoDElite(particles=10), Partitioned(), Budget(evaluations=30), rng=0)
    assert np.isfinite(result.best.fitness)


def test_repeated_folds_give_the_loss_over_all_partitions() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    objective = make_objective(GaussianNB(), X, y, cv=5, repeats=3)
    result = search(TwoDElite(particles=10), objective, Budget(evaluations=600), rng=0)
    assert result.best.fitness == pytest.approx(objective.losses_of(result.best.mask).mean(), abs=1e-15)
    assert result.n_partitions == 3
    again = search(TwoDElite(particles=10), objective.fresh(), Budget(evaluations=600), rng=0)
    assert np.array_equal(again.best.mask, result.best.mask)


def test_limits_hold_for_what_the_islands_agree_on() -> None:
    settings = replace(TwoDElite(particles=10), max_features=2, fixed_features=(5,))
    result = search(settings, Partitioned(), Budget(evaluations=600), rng=0)
    assert result.best.cardinality <= 2
    assert 5 in result.best.features


def test_the_best_features_of_a_ranking_are_those_of_a_stable_sort() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.integers(0, 6, 40) / 2.0  # many ties
        assert _best(scores, 12).tolist() == np.argsort(-scores, kind="stable")[:12].tolist()
