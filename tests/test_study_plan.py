"""Keys and seeds of runs, and study files."""

from __future__ import annotations

import json
import random
import tomllib
from copy import deepcopy
from dataclasses import fields, replace
from pathlib import Path

import pytest

from subswarm.errors import SettingError
from subswarm.study import BUILT_IN, Contender, Only, Source, Study, built_in_study, read_study
from subswarm.study.paper.settings import PAPER_ALGORITHMS


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


def test_keys_of_a_study_without_repeats_do_not_change():
    run = a_study().plan()[0]
    assert (run.key, run.seed) == ("9e2a49fabec117ae20eaeacde590443c", 143665015827102919969383744223513862567)


def test_settings_are_part_of_the_key_and_the_label_is_not():
    def key(contender):
        return a_study(algorithms=(contender,)).plan()[0].key

    plain = key(Contender("2d-upso", "2d-upso"))
    assert key(Contender("mine", "2d-upso")) == plain
    assert key(Contender("2d-upso", "2d-upso", {"refresh_gap": 10})) != plain


def test_outer_folds_of_several_repeats_are_numbered_consecutively():
    once, thrice = by_name(a_study(outer=2)), by_name(a_study(outer=2, outer_repeats=3))
    assert {run.outer_fold for run in thrice.values()} == {None, 0, 1, 2, 3, 4, 5}
    assert all(thrice[name] == run for name, run in once.items())  # the searches done already keep their keys
    with pytest.raises(SettingError, match="no outer cross-validation to repeat"):
        a_study(outer_repeats=3)


def test_outer_folds_are_added_to_the_searches_that_see_all_rows():
    plan = a_study(outer=3).plan()
    assert len(plan) == 16 * 4
    assert {run.outer_fold for run in plan} == {None, 0, 1, 2}


def test_only_keeps_what_it_names_and_all_of_other_kinds():
    kept = Only(("wine", "random")).of(a_study())
    assert kept.names() == {"datasets": ["wine"], "models": ["nb", "knn"], "algorithms": ["random"]}
    with pytest.raises(SettingError, match=r"--only 'wnie' is not .*Did you mean 'wine'\?"):
        Only(("wnie",)).of(a_study())


def test_the_built_in_studies_are_the_papers_grid():
    for name in BUILT_IN:
        study = built_in_study(name)
        assert (len(study.datasets), len(study.models), study.runs, study.evaluations) == (16, 2, 40, 6000)
        assert study.names()["algorithms"] == list(PAPER_ALGORITHMS)
    assert built_in_study("paper").protocol == "sound"
    assert built_in_study("paper-as-published").protocol == "published"


def test_a_study_file_is_read(tmp_path):
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
        ("datasets = ['wine']\nmodels = ['nb']\nalgorithms = ['random']\nrun = 3", r"'run'\. Did you mean 'runs'"),
        ("datasets = ['wnie']\nmodels = ['nb']\nalgorithms = ['random']", r"'wnie'\. Did you mean 'wine'"),
        ("datasets = ['wine']\nmodels = ['bn']\nalgorithms = ['random']", "no model 'bn'"),
        ("datasets = ['wine']\nmodels = ['nb']\nalgorithms = ['radnom']", "no algorithm 'radnom'"),
        ("datasets = ['wine', 'wine']\nmodels = ['nb']\nalgorithms = ['random']", "contains 'wine' twice"),
        ("datasets = []\nmodels = ['nb']\nalgorithms = ['random']", "has no datasets"),
        ("datasets = [{name='a', table='a.csv'}]\nmodels = ['nb']\nalgorithms = ['random']", "name its target"),
        ("datasets = [{name='a', tabel='a'}]\nmodels = ['nb']\nalgorithms = ['random']", "Did you mean 'table'"),
        (
            "datasets = ['digits']\nmodels = ['nb']\nalgorithms = ['random']\nprotocol = 'published'",
            "only for the data sets of the paper",
        ),
        (
            "datasets = ['wine']\nmodels = ['nb']\nalgorithms = [{algorithm='random', bach=3}]",
            "(?i)did you mean 'batch'",
        ),
        ("datasets = ['wine']\nmodels = ['nb']\nalgorithms = ['random']\nruns = 0", "runs must be a whole number"),
        ("datasets = ['wine']\nmodels = ['nb']\nalgorithms = ['random']\nouter = 1", "at least 2 folds"),
    ],
)
def test_the_error_of_a_study_file_names_the_cause(tmp_path, text, message):
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(SettingError, match=message):
        read_study(file)


def test_an_absent_study_file_is_a_clear_error(tmp_path):
    with pytest.raises(SettingError, match="cannot be read"):
        read_study(tmp_path / "absent.toml")


def a_file(tmp_path, **changes):
    """A study file whose keys have these values, given as TOML; None leaves one out."""
    values = {"datasets": '["wine"]', "models": '["nb"]', "algorithms": '["random"]', **changes}
    file = tmp_path / "wrong.toml"
    file.write_text("".join(f"{key} = {value}\n" for key, value in values.items() if value is not None))
    return file


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", "3", "name: expected a name in quotes"),
        ("name", '""', "name: expected a name on one line"),
        ("name", r'"a\u0000b"', "name: expected a name on one line"),
        ("datasets", '"wine"', "list of datasets; got 'wine'"),
        ("datasets", "[3]", "datasets, entry 1: .* got 3"),
        ("datasets", '[["wine"]]', r"datasets, entry 1: .* got \['wine'\]"),
        ("datasets", "[{ name = 3 }]", "datasets, entry 1, name: expected a name in quotes"),
        (
            "datasets",
            '[{ name = "a", table = 3, target = "y" }]',
            "datasets, entry 1, table: expected a name in quotes",
        ),
        (
            "datasets",
            '[{ name = "a", table = "a.csv", target = 3 }]',
            "datasets, entry 1, target: expected a name in quotes",
        ),
        (
            "datasets",
            '[{ name = "a", table = "a.csv", target = "y", drop = "id" }]',
            "drop: expected a list of column names",
        ),
        ("datasets", '[{ name = "a", table = "a.csv", target = "y", impute = 1 }]', "impute: expected true or false"),
        ("datasets", '["wnie"]', "datasets: there is no data set 'wnie'"),
        ("models", "[true]", "models, entry 1: expected a name in quotes; got True"),
        ("models", '["bn"]', "models: there is no model 'bn'"),
        ("models", "{ nb = 1 }", "list of models; got {'nb': 1}"),
        ("algorithms", "[1.5]", "algorithms, entry 1: .* got 1.5"),
        (
            "algorithms",
            '["random", { algorithm = ["random"] }]',
            "algorithms, entry 2, algorithm: expected a name in quotes",
        ),
        (
            "algorithms",
            '[{ algorithm = "random", label = 3 }]',
            "algorithms, entry 1, label: expected a name in quotes",
        ),
        ("algorithms", '[{ algorithm = "random", batch = "many" }]', "algorithms, entry 1: batch must be"),
        ("algorithms", '[{ algorithm = "2d-upso", particles = { a = 1 } }]', "algorithms, entry 1: particles must"),
        (
            "algorithms",
            '[{ algorithm = "random", batch = nan }]',
            "algorithms, entry 1, batch: expected a number; got nan",
        ),
        ("algorithms", '[{ algorithm = "random", batch = 1979-05-27 }]', "algorithms, entry 1, batch: .* a date"),
        ("runs", "true", "runs must be a whole number .* got True"),
        ("runs", '"3"', "runs must be a whole number .* got '3'"),
        ("runs", "1e9", "runs must be a whole number"),
        ("runs", "100000000000", "runs must be a whole number from 1 to"),
        ("runs", "99999999999999999999", "runs: the number has more than the 64 bits"),
        ("runs", "0x" + "f" * 9000, "runs: the number has more than the 64 bits"),
        ("runs", "9" * 9000, "is not TOML"),
        ("evaluations", "-1", "evaluations must be a whole number"),
        ("folds", "[10]", "folds must be a whole number"),
        ("seed", "4294967295", "seed must be a whole number"),
        ("outer", "9000000", "the study has 360000040 runs in total"),
        ("protocol", "1", "protocol must be one of"),
        ("x", "[" * 5000, "is not TOML"),
    ],
)
def test_the_error_of_a_value_names_the_file_and_the_key(tmp_path, key, value, message):
    file = a_file(tmp_path, **{key: value})
    with pytest.raises(SettingError, match=message) as caught:
        read_study(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "needs a list of datasets; add datasets"),
        (b'name = "\xff"', "not UTF-8"),
        (b"\x00\x01", "is not TOML"),
    ],
)
def test_a_file_that_is_not_a_study_is_refused(tmp_path, content, message):
    file = tmp_path / "odd.toml"
    file.write_bytes(content)
    with pytest.raises(SettingError, match=message) as caught:
        read_study(file)
    assert str(file) in str(caught.value)


def test_a_folder_is_refused_as_a_study_file(tmp_path):
    with pytest.raises(SettingError, match=f"{tmp_path} cannot be read: Is a directory"):
        read_study(tmp_path)


def test_a_byte_order_mark_is_ignored(tmp_path):
    file = a_file(tmp_path)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read_study(file).names()["datasets"] == ["wine"]


SHIPPED = sorted((Path(__file__).parent.parent / "docs" / "results" / "studies").glob("*.toml"))

ODD_VALUES = [
    *(0, -1, 3, True, 2**63, 10**30, 1.5, -0.0, float("nan"), float("inf"), "", "x", "wine", "nb", "a\nb", "\x00"),
    *([], [[]], [1], ["x"], ["wine", "wine"], [["wine"]], [{}], {}, {"a": 1}, {"name": "x"}, {"algorithm": "random"}),
]


def as_toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {as_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return repr(value)


def places(value, path=()):
    """The path of every value inside a value."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def mutate(content, chance):
    """Put an odd value somewhere, or take something away, or add a key."""
    path = chance.choice([path for path in places(content) if path])
    inside = content
    for key in path[:-1]:
        inside = inside[key]
    if chance.random() < 0.15:
        del inside[path[-1]]
    elif isinstance(inside, dict) and chance.random() < 0.15:
        inside[chance.choice(["x", "", "a\nb", "nmae"])] = deepcopy(chance.choice(ODD_VALUES))
    else:
        inside[path[-1]] = deepcopy(chance.choice(ODD_VALUES))


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda file: file.stem)
@pytest.mark.parametrize("seed", range(3))
def test_a_shipped_study_with_odd_values_is_read_or_refused_with_an_error(tmp_path, shipped, seed):
    chance = random.Random(f"{shipped.stem} {seed}")
    file = tmp_path / "odd.toml"
    for _ in range(60):
        content = tomllib.loads(shipped.read_text(encoding="utf-8"))
        for _ in range(chance.choice([1, 1, 3])):
            mutate(content, chance)
        file.write_text("".join(f"{json.dumps(key)} = {as_toml(value)}\n" for key, value in content.items()))
        is_read_or_refused(file)


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_study_with_changed_bytes_is_read_or_refused_with_an_error(tmp_path, shipped):
    chance = random.Random(shipped.stem)
    file = tmp_path / "odd.toml"
    for _ in range(60):
        content = bytearray(shipped.read_bytes())
        for _ in range(chance.choice([1, 3, 10])):
            content[chance.randrange(len(content))] = chance.randrange(256)
        file.write_bytes(content[: chance.choice([len(content), chance.randrange(len(content))])])
        is_read_or_refused(file)


def is_read_or_refused(file):
    """Read the file; where it is refused, then in one line that names the file and a key, or says it is no TOML."""
    refused = ""
    try:
        study = read_study(file)
    except SettingError as error:
        refused = str(error)
    if not refused:
        assert replace(study, runs=1, outer=0, outer_repeats=1).plan()
        return
    assert str(file) in refused
    assert "\n" not in refused
    assert any(word in refused for word in [*(field.name for field in fields(Study)), "a study", "TOML", "UTF-8"])


def test_every_shipped_study_is_read():
    assert len(SHIPPED) >= 6
    for file in SHIPPED:
        assert read_study(file).name == file.stem


def test_a_table_imputed_as_a_whole_cannot_have_outer_folds():
    with pytest.raises(SettingError, match="test rows of an outer fold would influence its training rows"):
        replace(a_study(datasets=(Source("a", "a.csv", "y", impute=True),)), outer=3)


@pytest.mark.parametrize(
    "text",
    [
        "x" + ".a" * 3000 + " = 1",
        "x = " + "[" * 60 + "]" * 60,
        "x = " + "{a = " * 60 + "1" + "}" * 60,
    ],
    ids=["dotted keys", "lists", "tables"],
)
def test_a_deeply_nested_value_is_refused_in_one_line(tmp_path, text):
    file = tmp_path / "deep.toml"
    file.write_text(f"datasets = ['wine']\nmodels = ['nb']\nalgorithms = [{{ algorithm = 'random', {text} }}]\n")
    with pytest.raises(SettingError, match="nested") as caught:
        read_study(file)
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(("name", "message"), [("a\0b.toml", "NUL character"), ("n" * 5000, "cannot be read")])
def test_a_path_that_no_file_can_have_is_refused(tmp_path, name, message):
    with pytest.raises(SettingError, match=message):
        read_study(tmp_path / name)
