"""A race on the folds gives up subsets that are behind, for any inner algorithm, and never makes them look better."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from partitioned import Partitioned
from subswarm import Budget, Search, SwarmSelector, make_objective, search
from subswarm.algorithms import (
    SBS,
    SFFS,
    SFS,
    Algorithm,
    FoldwiseRace,
    GeneticAlgorithm,
    RandomSearch,
    State,
    TwoDElite,
    TwoDUPSO,
    get_algorithm,
    name_of,
)
from subswarm.cli import app
from subswarm.errors import SettingError
from subswarm.objective.foldwise import foldwise
from subswarm.testing import check_algorithm

WINE = load_wine(return_X_y=True)
TREE = DecisionTreeClassifier(random_state=0)
INNER = {
    "random": RandomSearch(),
    "2d-upso": TwoDUPSO(),
    "2d-elite": TwoDElite(),
    "ga": GeneticAlgorithm(),
    "sfs": SFS(),
    "sbs within limits": SBS(max_features=4),
    "sffs within limits": SFFS(min_features=3, max_features=5),
    "bpso": get_algorithm("bpso"),
    "boolean-pso": get_algorithm("boolean-pso"),
    "erfs": get_algorithm("erfs"),
    "fixed features": TwoDUPSO(fixed_features=(1, 7), max_features=6),
    "groups": TwoDElite(feature_sizes=(3, 1, 2, 4, 1, 2, 1, 1, 1, 5, 1, 1), max_features=6),
}


@dataclass(frozen=True)
class Told(State):
    masks: np.ndarray
    to_beat: np.ndarray
    told: tuple = ()


@dataclass(frozen=True)
class Rivalry(Algorithm):
    """Asks for subsets of these sizes, batch by batch; each must beat the subset of the size given for its batch."""

    batches: tuple = ()
    sizes_to_beat: tuple = ()

    def begin(self, n_features, rng):
        return self._state(0, n_features, ())

    def step(self, state, fitness, progress, rng):
        told = (*state.told, tuple(fitness.tolist()))
        return None if len(told) == len(self.batches) else self._state(len(told), state.masks.shape[1], told)

    def rivals(self, state):
        return state.to_beat

    def _state(self, number, n, told):
        sizes = np.array(self.batches[number])[:, None]
        return Told(np.arange(n) < sizes, np.tile(np.arange(n) < self.sizes_to_beat[number], (len(sizes), 1)), told)


def course_of(algorithm, **settings):
    """Run a race on four folds; return the sizes and folds of each batch, and the last inner state."""
    run = Search(FoldwiseRace(algorithm, **settings), 9, rng=0, n_partitions=4)
    asked, state = [], run.state
    while not run.finished:
        state = run.state
        asked.append(list(zip(run.ask().sum(axis=1).tolist(), run.partitions.tolist(), strict=True)))
        run.tell(Partitioned.loss(run.ask(), run.partitions))
    return asked, state, run


@pytest.mark.parametrize("name", INNER)
def test_a_race_on_folds_keeps_the_contract_whatever_is_inside(name):
    check_algorithm(FoldwiseRace(INNER[name]))


def test_a_subset_behind_what_it_must_beat_is_not_scored_on_the_other_folds():
    # Of the first batch the subset of 4 is best, and the noise is measured; 9 and 5 are far behind it.
    asked, _, run = course_of(Rivalry(batches=((3, 4, 7), (9, 4, 5), (6,)), sizes_to_beat=(1, 4, 4)))
    assert asked[:4] == [[(3, fold), (4, fold), (7, fold)] for fold in range(4)]
    assert asked[4] == [(9, 1), (4, 1), (5, 1)]  # the second race begins with the second fold
    assert asked[5:8] == [[(4, 2)], [(4, 3)], [(4, 0)]]
    assert run.finalists.masks.sum(axis=1).tolist()[0] == 4


def test_the_inner_algorithm_is_never_told_that_a_subset_given_up_is_better_than_what_it_had_to_beat():
    _, last, _ = course_of(Rivalry(batches=((3, 4, 7), (9, 4, 5), (6,)), sizes_to_beat=(1, 4, 4)))
    exact = Partitioned()(np.arange(9) < np.array([[9], [4], [5]]))
    told = np.array(last.inner.told[1])
    assert told[1] == pytest.approx(exact[1])
    assert (told[[0, 2]] > exact[1]).all()


def test_a_subset_whose_rival_is_unknown_and_every_subset_of_a_genetic_algorithm_is_scored_on_all_folds():
    asked, _, _ = course_of(Rivalry(batches=((3, 4), (9, 1), (5,)), sizes_to_beat=(1, 7, 4)))
    assert [len(batch) for batch in asked[:8]] == [2] * 8
    run = Search(FoldwiseRace(GeneticAlgorithm(population=6)), 9, rng=0, n_partitions=3)
    for _ in range(9):
        assert len(run.ask()) == 6
        run.tell(Partitioned.loss(run.ask(), run.partitions))


@pytest.mark.parametrize("algorithm", [TwoDElite(particles=8), TwoDUPSO(particles=8), SFS()])
def test_more_subsets_are_scored_with_the_same_fits_and_the_best_has_its_loss_of_all_folds(algorithm):
    objective = foldwise(make_objective(TREE, *WINE, cv=5, engine="estimator"))
    tried = set()
    note = lambda snapshot: tried.update(mask.tobytes() for mask in snapshot.masks)  # noqa: E731
    result = search(FoldwiseRace(algorithm), objective, Budget(evaluations=300), rng=0, callbacks=[note])
    assert len(tried) > 300 / 5
    assert result.best.fitness == pytest.approx(objective(result.best.mask[None])[0])


def test_with_one_fold_it_is_its_inner_algorithm():
    plain, race = (
        Search(algorithm, 12, rng=5, evaluations=600) for algorithm in (TwoDElite(), FoldwiseRace(TwoDElite()))
    )
    for _ in range(8):
        assert np.array_equal(plain.ask(), race.ask())
        loss = plain.ask().mean(axis=1) ** 2
        plain.tell(loss)
        race.tell(loss)


@pytest.mark.parametrize("algorithm", ["auto", "2d-upso"])
def test_the_selector_races_on_folds_and_the_result_does_not_depend_on_the_workers(algorithm):
    one, two = (
        SwarmSelector(TREE, algorithm, cv=3, race="folds", max_fits=90, random_state=0, n_jobs=jobs).fit(*WINE)
        for jobs in (1, 2)
    )
    assert one.result_.algorithm == ("2d-elite" if algorithm == "auto" else algorithm) + " (race on folds)"
    assert one.result_.evaluations <= 90
    assert np.array_equal(one.support_, two.support_)
    assert name_of(FoldwiseRace(TwoDElite())) == "2d-elite (race on folds)"


def test_the_guided_search_races_by_itself_and_another_word_is_an_error():
    fitted = SwarmSelector(TREE, "2d-guided", cv=3, race="folds", max_fits=60, random_state=0).fit(*WINE)
    assert fitted.result_.algorithm == "2d-guided"
    with pytest.raises(SettingError, match=r"race must be True, False or .folds."):
        SwarmSelector(TREE, race="rows").fit(*WINE)
    result = CliRunner().invoke(app, ["select", "wine", "--race", "--fold-race", "--repeats", "2"])
    assert result.exit_code != 0
    assert "two kinds of races" in str(result.exception)
