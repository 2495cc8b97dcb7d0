"""Keys, seeds, study files: what a run is called decides what it finds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from subswarm.core.errors import SettingError
from subswarm.study import BUILT_IN, Contender, Only, Source, Study, built_in_study, read_study
from subswarm.study.paper import PAPER_ALGORITHMS


def a_study(**changes):
    return Study(
        **{
            "name": "small",
            "datasets": (Source("wine"), Source("wdbc")),
            "models": ("nb", "knn"),
            "algorithms": (Contender("random", "random"), Contender("2d-upso", "2d-upso")),
            "runs": 2,
            "evaluations": 60,
            **changes,
        }
    )


def by_name(study):
    return {str(run): run for run in study.plan()}


def test_the_grid_has_every_run_once():
    plan = a_study().plan()
    assert len(plan) == 2 * 2 * 2 * 2
    assert len({run.key for run in plan}) == len({run.seed for run in plan}) == len(plan)


def test_a_runs_seed_does_not_depend_on_what_else_is_in_the_grid():
    small, large = by_name(a_study()), by_name(a_study(runs=7, models=("knn", "tree", "nb"), outer=3))
    assert all(large[name] == run for name, run in small.items())


@pytest.mark.parametrize(
    "change", [{"evaluations": 61}, {"folds": 5}, {"repeats": 2}, {"seed": 1}, {"protocol": "published"}]
)
def test_a_run_under_other_conditions_has_another_key(change):
    ours, theirs = by_name(a_study()), by_name(a_study(**change))
    assert all(ours[name].key != theirs[name].key for name in ours)


def test_a_study_without_repeats_has_the_keys_it_always_had():
    run = a_study().plan()[0]
    assert (run.key, run.seed) == ("9e2a49fabec117ae20eaeacde590443c", 143665015827102919969383744223513862567)


def test_settings_are_part_of_the_key_and_the_label_is_not():
    def key(contender):
        return a_study(algorithms=(contender,)).plan()[0].key

    plain = key(Contender("2d-upso", "2d-upso"))
    assert key(Contender("mine", "2d-upso")) == plain
    assert key(Contender("2d-upso", "2d-upso", {"refresh_gap": 10})) != plain


def test_outer_folds_are_counted_through_where_they_are_drawn_several_times():
    once, thrice = by_name(a_study(outer=2)), by_name(a_study(outer=2, outer_repeats=3))
    assert {run.outer_fold for run in thrice.values()} == {None, 0, 1, 2, 3, 4, 5}
    assert all(thrice[name] == run for name, run in once.items())  # the searches done already keep their keys
    with pytest.raises(SettingError, match="no outer cross-validation to repeat"):
        a_study(outer_repeats=3)


def test_outer_folds_are_added_to_the_searches_that_see_all_rows():
    plan = a_study(outer=3).plan()
    assert len(plan) == 16 * 4
    assert {run.outer_fold for run in plan} == {None, 0, 1, 2}


def test_only_keeps_what_it_names_and_all_of_the_other_kinds():
    kept = Only(("wine", "random")).of(a_study())
    assert kept.names() == {"datasets": ["wine"], "models": ["nb", "knn"], "algorithms": ["random"]}
    with pytest.raises(SettingError, match=r"--only names 'wnie' \(did you mean 'wine'\?\)"):
        Only(("wnie",)).of(a_study())


def test_the_built_in_studies_are_the_papers_grid():
    for name in BUILT_IN:
        study = built_in_study(name)
        assert (len(study.datasets), len(study.models), study.runs, study.evaluations) == (16, 2, 40, 6000)
        assert study.names()["algorithms"] == list(PAPER_ALGORITHMS)
    assert built_in_study("paper").protocol == "sound"
    assert built_in_study("paper-as-published").protocol == "published"


def test_a_study_file_names_datasets_models_algorithms_and_little_more(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        """
        datasets = ["wine", { name = "own", table = "own.csv", target = "y", drop = ["id"] }]
        models = ["nb"]
        algorithms = ["random", { label = "slow", algorithm = "2d-upso", refresh_gap = 10 }]
        runs = 3
        evaluations = 90
        outer = 2
        """
    )
    study = read_study(file)
    assert (study.name, study.runs, study.evaluations, study.protocol, study.outer) == ("mine", 3, 90, "sound", 2)
    assert study.datasets[1] == Source("own", str(tmp_path / "own.csv"), "y", ("id",))
    assert study.contender("slow").make().refresh_gap == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs = 3", "needs a list of datasets"),
        ("datasets = ['wine'", "is not TOML"),
        ("datasets = ['wine']\nmodels = ['nb']\nalgorithms = ['random']\nrun = 3", r"'run' \(did you mean 'runs'"),
        ("datasets = ['wnie']\nmodels = ['nb']\nalgorithms = ['random']", r"'wnie' \(did you mean 'wine'"),
        ("datasets = ['wine']\nmodels = ['bn']\nalgorithms = ['random']", "no model 'bn'"),
        ("datasets = ['wine']\nmodels = ['nb']\nalgorithms = ['radnom']", "no algorithm 'radnom'"),
        ("datasets = ['wine', 'wine']\nmodels = ['nb']\nalgorithms = ['random']", "names 'wine' twice"),
        ("datasets = []\nmodels = ['nb']\nalgorithms = ['random']", "names no datasets"),
        ("datasets = [{name='a', table='a.csv'}]\nmodels = ['nb']\nalgorithms = ['random']", "name its target"),
        ("datasets = [{name='a', tabel='a'}]\nmodels = ['nb']\nalgorithms = ['random']", "did you mean 'table'"),
        ("datasets = ['digits']\nmodels = ['nb']\nalgorithms = ['random']\nprotocol = 'published'", "none of them"),
        ("datasets = ['wine']\nmodels = ['nb']\nalgorithms = [{algorithm='random', bach=3}]", "did you mean 'batch'"),
        ("datasets = ['wine']\nmodels = ['nb']\nalgorithms = ['random']\nruns = 0", "runs must be a whole number"),
        ("datasets = ['wine']\nmodels = ['nb']\nalgorithms = ['random']\nouter = 1", "at least 2 folds"),
    ],
)
def test_a_wrong_study_file_is_told_what_is_wrong(tmp_path, text, message):
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(SettingError, match=message):
        read_study(file)


def test_an_absent_study_file_is_a_clear_error(tmp_path):
    with pytest.raises(SettingError, match="cannot be read"):
        read_study(tmp_path / "absent.toml")


def test_a_table_imputed_as_a_whole_is_no_ground_for_held_out_errors():
    with pytest.raises(SettingError, match="rows held out would have a part in it"):
        replace(a_study(datasets=(Source("a", "a.csv", "y", impute=True),)), outer=3)
