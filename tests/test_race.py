"""A race scores new subsets on one repeat and only the elite on all repeats, for any inner algorithm."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

from partitioned import Partitioned
from subswarm import Budget, Search, SwarmSelector, make_objective, search
from subswarm.algorithms import (
    SBS,
    SFFS,
    SFS,
    Algorithm,
    AnovaF,
    BranchAndBound,
    GeneticAlgorithm,
    Problem,
    Race,
    RandomSearch,
    State,
    TwoDElite,
    TwoDUPSO,
    get_algorithm,
    name_of,
    names,
)
from subswarm.cli import app
from subswarm.errors import CheckpointError, SettingError, StoreError
from subswarm.study import Contender, Source, Store, Study, read_study, run_study
from subswarm.testing import check_algorithm

WINE = load_wine(return_X_y=True)
INNER = {
    "random": RandomSearch(),
    "2d-upso": TwoDUPSO(),
    "2d-elite": TwoDElite(),
    "ga": GeneticAlgorithm(),
    "sfs": SFS(),
    "sbs within limits": SBS(max_features=4),
    "sffs within limits": SFFS(min_features=3, max_features=5),
    "branch and bound": BranchAndBound(),
    "a filter": AnovaF(scores=tuple(np.sin(np.arange(12)).tolist())),
    "fixed features": TwoDUPSO(fixed_features=(1, 7), max_features=6),
    "groups": TwoDElite(feature_sizes=(3, 1, 2, 4, 1, 2, 1, 1, 1, 5, 1, 1), max_features=6),
}


@dataclass(frozen=True)
class Listed(State):
    masks: np.ndarray
    told: tuple = ()


@dataclass(frozen=True)
class Listing(Algorithm):
    """Asks for the first few features, of these sizes, batch by batch, and notes the fitness it is told."""

    batches: tuple = ()

    def begin(self, n_features, rng):
        return Listed(self._masks(0, n_features))

    def step(self, state, fitness, progress, rng):
        told = (*state.told, tuple(fitness.tolist()))
        if len(told) == len(self.batches):
            return None
        return Listed(self._masks(len(told), state.masks.shape[1]), told)

    def _masks(self, number, n_features):
        return np.arange(n_features) < np.array(self.batches[number])[:, None]


@pytest.fixture(scope="module")
def repeated():
    return make_objective(GaussianNB(), *WINE, cv=4, repeats=3)


def raced(*batches, elite, evaluations=1000):
    objective = Partitioned()
    return objective, search(Race(Listing(batches), elite=elite), objective, Budget(evaluations=evaluations), rng=0)


def sizes_asked(objective):
    return [list(zip(m.sum(axis=1).tolist(), p.tolist(), strict=True)) for m, p in objective.calls]


def means(*sizes):
    return Partitioned()(np.arange(9) < np.array(sizes)[:, None])


@pytest.mark.parametrize("elite", [3, 60])
@pytest.mark.parametrize("name", INNER)
def test_a_race_keeps_the_contract_whatever_is_inside(name, elite):
    check_algorithm(Race(INNER[name], elite=elite))


def test_new_subsets_are_scored_on_the_first_partition_and_the_best_of_them_on_the_others():
    objective, result = raced((1, 2), (9, 3, 4), (1, 5), elite=2)
    assert sizes_asked(objective) == [
        [(1, 0), (2, 0)],
        [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)],  # all of them, while the elite has room
        [(9, 0), (3, 0), (4, 0)],
        [(4, 1), (4, 2), (4, 3)],  # the others do worse on the first partition than the elite does on all
        [(1, 0), (5, 0)],
    ]
    assert result.evaluations == sum(len(masks) for masks, _ in objective.calls) == 16
    assert result.history.evaluations.tolist() == [2, 8, 11, 14, 16]
    assert result.stop_reason == "finished"
    assert result.settings["n_partitions"] == 4


def test_the_inner_algorithm_is_told_the_mean_where_it_is_known_and_else_the_loss_on_the_first_partition():
    course = Search(Race(Listing(((1, 2), (9, 3, 4), (1, 9))), elite=2), 9, rng=0, n_partitions=4)
    while not course.finished:
        told = course.state.inner.told
        course.tell(Partitioned.loss(course.ask(), course.partitions))
    first = Partitioned.loss(np.arange(9) < np.array([9, 3])[:, None], 0)
    assert np.allclose(told[0], means(1, 2), rtol=0, atol=1e-15)
    assert np.allclose(told[1], [*first, *means(4)], rtol=0, atol=1e-15)


def test_a_subset_of_the_elite_is_not_scored_on_the_others_again_and_one_asked_twice_only_once():
    objective, _ = raced((4, 4, 1), (1, 4), elite=5)
    assert sizes_asked(objective) == [
        [(4, 0), (4, 0), (1, 0)],
        [(1, 1), (1, 2), (1, 3), (4, 1), (4, 2), (4, 3)],
        [(1, 0), (4, 0)],
    ]


def test_of_one_batch_no_more_go_on_than_the_elite_may_hold():
    objective, result = raced((9, 8, 7, 6, 5, 4, 3, 2, 1), elite=2)
    assert sizes_asked(objective)[1] == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert result.front.masks.sum(axis=1).tolist() == [1, 2]


def test_what_is_not_yet_an_answer_passes_on_the_first_partition_alone():
    objective = Partitioned()
    result = search(Race(SBS(max_features=3)), objective, Budget(evaluations=500), rng=0)
    assert all(masks.sum(axis=1).max() <= 3 for masks, partitions in objective.calls if partitions.any())
    assert result.best.cardinality <= 3
    assert np.isclose(result.best.fitness, objective(result.best.mask[None])[0], rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", INNER)
def test_with_one_partition_it_is_the_inner_algorithm_mask_by_mask_and_draw_by_draw(name):
    plain, race = (Search(algorithm, 12, rng=5, evaluations=600) for algorithm in (INNER[name], Race(INNER[name])))
    weight = np.cos(np.arange(12))
    while not plain.finished and plain.evaluations < 600:
        masks = plain.ask()
        assert np.array_equal(masks, race.ask())
        for course in (plain, race):
            course.tell(3 - masks @ weight)
    assert (plain.finished, plain.evaluations) == (race.finished, race.evaluations)
    assert plain.best.fitness == race.best.fitness
    assert np.array_equal(plain.best.mask, race.best.mask)
    assert np.array_equal(plain.front.masks, race.front.masks)
    assert plain.saved()[1]["generator"] == race.saved()[1]["generator"]


@pytest.mark.parametrize("inner", [TwoDUPSO(), TwoDElite(), SFFS()])
def test_the_answers_are_the_best_known_on_all_partitions_with_the_objectives_own_means(repeated, inner):
    objective = repeated.fresh()
    course = Search(Race(inner, elite=8), 13, rng=0, n_partitions=3)
    while course.evaluations < 500 and not course.finished:
        course.tell(objective(course.ask(), course.partitions))
    masks, fitness, *_ = course.algorithm.finalists(course.state)
    assert len(masks) == len(np.unique(masks, axis=0)) == 8
    assert np.allclose(fitness, objective(masks), rtol=0, atol=1e-15)
    assert np.array_equal(np.lexsort((masks.sum(axis=1), fitness)), np.arange(8))
    assert np.array_equal(course.best.mask, masks[0])
    assert np.isin(course.front.fitness, fitness).all()


def test_a_race_looks_at_more_subsets_for_the_same_evaluations_and_finds_better_ones(repeated):
    budget = Budget(evaluations=300)
    pairs = [
        (
            search(TwoDUPSO(), repeated.fresh(), budget, rng=seed),
            search(Race(TwoDUPSO(), elite=10), repeated.fresh(), budget, rng=seed),
        )
        for seed in range(5)
    ]
    assert all(race.evaluations == plain.evaluations == 300 for plain, race in pairs)
    assert np.mean([race.best.fitness for _, race in pairs]) < np.mean([plain.best.fitness for plain, _ in pairs])


def test_a_race_ends_when_the_inner_algorithm_does_and_nothing_on_its_way_is_lost(repeated):
    for inner in (AnovaF(scores=tuple(range(13)), min_features=3), SFS(max_features=4)):
        objective = repeated.fresh()
        result = search(Race(inner), objective, rng=0)
        assert result.stop_reason == "finished"
        assert np.isclose(result.best.fitness, objective(result.best.mask)[0], rtol=0, atol=1e-15)
        course = Search(Race(inner), 13, rng=0, n_partitions=3)
        while not course.finished:
            course.tell(objective(course.ask(), course.partitions))
        arrays, values = course.saved()
        again = Search.restored(Race(inner), arrays, json.loads(json.dumps(values)))
        assert again.finished
        assert np.array_equal(again.best.mask, result.best.mask)


@pytest.mark.parametrize("evaluations", range(3, 9))
def test_a_budget_that_ends_inside_a_batch_is_spent_and_what_it_completed_counts(evaluations):
    objective, result = raced((2, 1), (1,), elite=5, evaluations=evaluations)
    assert result.evaluations == sum(len(masks) for masks, _ in objective.calls) == evaluations
    assert result.stop_reason == "evaluations"
    assert result.best.cardinality == 1
    complete = (evaluations - 2) // 3
    assert result.front.masks.sum(axis=1).tolist() == ([1, 2], [1], [1, 2])[complete]
    expected = means(1)[0] if complete else Partitioned.loss(result.best.mask[None], 0)[0]
    assert np.isclose(result.best.fitness, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("inner", [TwoDUPSO(particles=7), TwoDElite(particles=7), GeneticAlgorithm(population=8)])
def test_a_race_interrupted_in_either_half_continues_bit_for_bit(repeated, tmp_path, inner):
    race, budget = Race(inner, elite=6), Budget(evaluations=200)
    whole = search(race, repeated.fresh(), budget, rng=3)
    for steps in (3, 4, 5, 6):
        file, seen = tmp_path / f"{steps}.ckpt", []
        stop = lambda snapshot, seen=seen, steps=steps: seen.append(1) or len(seen) >= steps  # noqa: E731
        search(race, repeated.fresh(), budget, rng=3, checkpoint=file, callbacks=[stop])
        resumed = search(race, repeated.fresh(), budget, rng=3, checkpoint=file)
        assert np.array_equal(resumed.best.mask, whole.best.mask)
        assert resumed.best.fitness == whole.best.fitness
        assert np.array_equal(resumed.history.evaluations, whole.history.evaluations)
        assert np.array_equal(resumed.history.best_fitness, whole.history.best_fitness)
        assert np.array_equal(resumed.front.masks, whole.front.masks)
    with pytest.raises(CheckpointError, match="another search"):
        search(Race(inner, elite=7), repeated.fresh(), budget, rng=3, checkpoint=file)


def test_the_inner_algorithm_sees_one_partition():
    assert Race(TwoDElite()).algorithm.n_partitions == 1
    with pytest.raises(SettingError, match=r"leave n_partitions at None\. Inside a race it is always 1"):
        Race(TwoDElite(n_partitions=4))


@pytest.mark.parametrize("wrong", ["2d-upso", TwoDUPSO, None])
def test_only_an_algorithm_can_race(wrong):
    with pytest.raises(SettingError, match="a race runs an algorithm such as"):
        Race(wrong)


def test_a_race_is_no_name_of_its_own_and_has_its_inner_ones():
    assert not any("race" in name for name in names())
    assert name_of(Race(get_algorithm("bpso"))) == "bpso (race)"


def test_a_recorded_race_shows_what_the_inner_swarm_holds_likely():
    result = search(Race(TwoDUPSO()), Partitioned(), Budget(evaluations=200), rng=0, record=True)
    assert result.recording.likelihood.shape == (len(result.history), 9)


def test_a_filter_gets_its_scores_inside_a_race():
    problem = Problem(13, ranking=make_objective(GaussianNB(), *WINE).ranking)
    assert len(Race(AnovaF()).bind(problem).algorithm.scores) == 13


def selector(**changes):
    settings = {"cv": 3, "repeats": 3, "race": True, "max_evaluations": 200, "random_state": 0, "verbose": 0}
    return SwarmSelector(GaussianNB(), **settings | changes)


@pytest.mark.parametrize("algorithm", ["2d-elite", "2d-upso", "anova-f", "sffs", Race(TwoDUPSO(), elite=12)])
def test_the_selector_races_within_its_limits(algorithm):
    limits = {"max_features": 6, "fixed_features": [2], "feature_groups": [[0, 5]]}
    fitted = selector(algorithm=algorithm, choose="best", **limits).fit(*WINE)
    assert fitted.support_[2]
    assert fitted.support_[0] == fitted.support_[5]
    assert fitted.n_features_ <= 6
    assert fitted.result_.algorithm.endswith(" (race)")
    assert fitted.result_.settings["algorithm"]["max_features"] == 6
    assert np.isclose(1 - fitted.best_score_, fitted.result_.best.fitness, rtol=0, atol=1e-15)


def test_a_race_of_its_own_making_keeps_its_settings_in_the_selector():
    fitted = selector(algorithm=Race(TwoDUPSO(), elite=12)).fit(*WINE)
    assert (fitted.result_.settings["elite"], fitted.result_.settings["algorithm"]["type"]) == (12, "TwoDUPSO")


def test_a_repeated_splitter_is_raced_on_too():
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1)
    assert selector(cv=cv, repeats=1).fit(*WINE).result_.settings["n_partitions"] == 2


def test_a_race_on_one_partition_is_refused_by_the_selector():
    with pytest.raises(
        SettingError, match="needs a repeated cross-validation, and this one has 1 repeat; set repeats=4"
    ):
        selector(repeats=1).fit(*WINE)


def test_the_command_line_races(tmp_path):
    out = tmp_path / "raced.json"
    quick = ["select", "wine", "--model", "nb", "--cv", "3", "--evaluations", "120", "--quiet", "--jobs", "1"]
    assert CliRunner().invoke(app, [*quick, "--repeats", "2", "--race", "--out", str(out)]).exit_code == 0
    found = json.loads(out.read_text())
    assert (found["algorithm"], found["evaluations"]) == ("2d-elite (race)", 120)
    refused = CliRunner().invoke(app, [*quick, "--race"])
    assert isinstance(refused.exception, SettingError)
    assert "--repeats 4" in str(refused.exception)


def a_study(*contenders, **changes):
    shared = {"name": "raced", "datasets": (Source("wine"),), "models": ("nb",), "runs": 2, "evaluations": 100}
    return Study(algorithms=contenders, **shared | {"folds": 3, "repeats": 2} | changes)


def test_in_a_study_file_an_algorithm_may_race(tmp_path):
    file = tmp_path / "raced.toml"
    file.write_text(
        'datasets = ["wine"]\nmodels = ["nb"]\nruns = 1\nevaluations = 100\nfolds = 3\nrepeats = 2\n'
        'algorithms = ["bpso", { algorithm = "bpso", race = true }, '
        '{ label = "mine", algorithm = "2d-upso", particles = 10, race = true }]\n'
    )
    study = read_study(file)
    assert study.names()["algorithms"] == ["bpso", "bpso (race)", "mine"]
    run_study(study, tmp_path / "raced.db")
    with Store.reading(tmp_path / "raced.db") as store:
        found = {row.planned.algorithm: row.content for row in store.rows()}
    assert found["mine"].settings["algorithm"]["particles"] == 10
    assert found["mine"].evaluations == found["bpso (race)"].evaluations == 100
    assert np.isclose(found["mine"].loss, np.mean(found["mine"].fold_losses), rtol=0, atol=1e-15)
    file.write_text(file.read_text().replace("race = true", 'race = "yes"'))
    with pytest.raises(SettingError, match="race of the algorithm 'bpso': expected true or false; got 'yes'"):
        read_study(file)


def test_that_it_races_is_part_of_a_runs_key_and_of_nothing_else():
    plain, race = (Contender("bpso", "bpso", {"particles": 20}, race) for race in (False, True))
    ours, theirs = a_study(plain).plan()[0], a_study(race).plan()[0]
    assert (ours.key, ours.seed) != (theirs.key, theirs.seed)
    assert ours.key == a_study(replace(race, race=False)).plan()[0].key
    assert len({plain, race}) == 2


def test_a_store_knows_a_race_from_the_algorithm_alone(tmp_path):
    run_study(a_study(Contender("bpso", "bpso")), tmp_path / "a.db")
    with pytest.raises(StoreError, match="use another label"):
        run_study(a_study(Contender("bpso", "bpso", race=True)), tmp_path / "a.db")


def test_a_race_on_one_partition_is_refused_by_a_study():
    with pytest.raises(SettingError, match="'quick' has race = true, which needs several repeats of cross-validation"):
        a_study(Contender("quick", "bpso", race=True), repeats=1)
