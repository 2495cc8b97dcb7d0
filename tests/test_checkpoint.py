"""Checkpoints: whose they are, what they hold, and that a damaged file ends in an error of ours, whatever is in it."""

from __future__ import annotations

import contextlib
import io
import json
import re
import warnings
import zipfile
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import accuracy_score, f1_score, fbeta_score, make_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from subswarm import Budget, SwarmSelector, make_objective, search
from subswarm._search.ask_tell import Search
from subswarm.algorithms import Algorithm, Race, State, TwoDElite, TwoDUPSO, get_algorithm, names, settings
from subswarm.errors import CheckpointError, DamagedCheckpointError, SettingError

WINE = load_wine(return_X_y=True)
N = 11
WEIGHT = 1.0 + np.arange(N) % 3


def missing(masks):
    """The weight of the features left out: monotone, as branch and bound needs it."""
    return (~masks @ WEIGHT) / WEIGHT.sum()


class ThreeParts:
    """A loss on three partitions."""

    n_features, n_partitions, computed = N, 3, 0

    def __call__(self, masks, partitions=None):
        return missing(masks) * (1 if partitions is None else 1 + 0.1 * np.asarray(partitions))


def small(name):
    """The algorithm of this name in a size that is quick to run."""
    known, wanted = settings(name), {"particles": 6, "population": 6, "ants": 6, "batch": 4}
    chosen = {setting: value for setting, value in wanted.items() if setting in known}
    if "scores" in known:
        chosen["scores"] = tuple(np.cos(np.arange(N)).tolist())
    return get_algorithm(name, max_features=8, **chosen)


CASES = {name: (small(name), missing) for name in names()} | {
    "race": (Race(small("2d-upso"), elite=4), ThreeParts()),
    "race of elites": (Race(small("2d-elite"), elite=4), ThreeParts()),
    "elites on partitions": (small("2d-elite"), ThreeParts()),
    "elite with a walk": (TwoDElite(particles=6, opening=0.8), missing),
}
BUDGET = Budget(evaluations=160)


def run(case, path, stop_at=None):
    algorithm, objective = CASES[case]
    steps: list[int] = []
    stop = lambda snapshot: steps.append(1) or len(steps) == stop_at  # noqa: E731
    return search(algorithm, objective, BUDGET, rng=5, n_features=N, checkpoint=path, callbacks=[stop])


def interrupt(case, path, stop_at):
    """Leave the checkpoint of a search that was stopped after so many steps."""
    path.unlink(missing_ok=True)
    with contextlib.suppress(SettingError):  # one that has not come within its limits yet has no answer, but goes on
        run(case, path, stop_at)


def read(path):
    with zipfile.ZipFile(path) as archive:
        values = json.loads(archive.read("values.json"))
        arrays = {
            name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name.endswith(".npy")
        }
    return arrays, values


def write(path, arrays, values, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("values.json", json.dumps(values))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def places(value, path=()):
    """The paths of all values in nested dictionaries and lists."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed_value(rng, value):
    odd = [None, True, -1, 0, 1, 7, 10**9, -(10**18), 10**30, 10**400, 0.5, float("nan"), float("inf"), -1e308, 1e308]
    odd += ["", "text", [], [1], {}, {"a": 1}, [[]]]
    if isinstance(value, int | float) and not isinstance(value, bool):
        odd += [value + 1, value - 1, -value, value * 2]
    return odd[rng.integers(len(odd))]


def changed_array(rng, array):
    """The array with another dtype, another shape or other entries."""
    kind = rng.integers(7)
    if array.dtype.kind not in "biuf":
        return array
    if kind == 0:
        dtypes = ["bool", "int8", "int32", "int64", "uint64", "float32", "float64", ">f8", ">i8", "complex128", "U3"]
        with np.errstate(all="ignore"):
            return np.nan_to_num(array.astype(np.float64)).astype(dtypes[rng.integers(len(dtypes))])
    if kind == 1:
        return array[: rng.integers(len(array) + 1)] if array.ndim else array[None]
    if kind == 2:
        return np.concatenate([array, array, array]) if array.ndim else np.array([array])
    if kind == 3:
        shapes = [array[None], array.ravel(), array.T, array[..., :-1], array.reshape(-1)[:0]]
        return shapes[rng.integers(len(shapes))]
    if kind == 4 and array.dtype == bool:
        return np.full_like(array, rng.random() < 0.5) if rng.random() < 0.5 else ~array
    array = array.copy()
    extremes = {
        "b": [True, False],
        "i": [-1, -2, 0, N, 10**6, np.iinfo(np.int64).max, np.iinfo(np.int64).min],
        "u": [0, 1, 255],
        "f": [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -1.0, 1e-320],
    }[array.dtype.kind]
    if array.size:
        rows = rng.random(array.shape) < rng.choice([0.1, 1.0])
        with np.errstate(all="ignore"):
            array[rows] = np.array(extremes[rng.integers(len(extremes))]).astype(array.dtype)
    return array


def mutated(rng, arrays, values):
    """The content of a checkpoint with one or two random changes."""
    arrays, values = dict(arrays), json.loads(json.dumps(values))
    for _ in range(rng.integers(1, 3)):
        if rng.random() < 0.6:
            name = str(rng.choice(list(arrays)))
            if rng.random() < 0.1:
                del arrays[name]
                break
            arrays[name] = changed_array(rng, arrays[name])
        else:
            changeable = {key: item for key, item in values.items() if key not in ("format", "settings")}
            everywhere = list(places(changeable))
            *way, last = everywhere[rng.integers(len(everywhere))]
            inside = values
            for key in way:
                inside = inside[key]
            if rng.random() < 0.2:
                del inside[last]
            else:
                inside[last] = changed_value(rng, inside[last])
    return arrays, values


def resumed(case, path):
    """What came of resuming: "done", or the error of ours."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers that are possible, but far from any real search
        try:
            run(case, path)
        except (CheckpointError, SettingError) as error:
            return error
    return "done"


def is_expected(outcome, path):
    if isinstance(outcome, SettingError):  # what is possible but not true may contradict the losses, or lead nowhere
        return re.search("never improves|before it had come to a subset", str(outcome)) is not None
    return outcome == "done" or str(path) in str(outcome)


MUTATIONS = 25
"""Of each case. Run more by hand after a change of states or of their checks."""


@pytest.fixture(autouse=True)
def _compiled():
    """Have the rules of swarms run compiled, as they do beside a fast engine: there a wrong index ends the process."""
    with contextlib.suppress(ImportError):
        import numba  # noqa: F401


@pytest.mark.parametrize("case", CASES)
def test_no_damaged_file_ends_in_anything_but_an_error_of_ours(tmp_path, case):
    path, rng = tmp_path / "search.ckpt", np.random.default_rng(sum(map(ord, case)))
    originals = []
    for stop_at in (1, 3, 6):
        interrupt(case, path, stop_at)
        originals.append(read(path))
    outcomes = []
    for number in range(MUTATIONS):
        write(path, *mutated(rng, *originals[number % len(originals)]))
        outcomes.append(resumed(case, path))
    assert all(is_expected(outcome, path) for outcome in outcomes)
    assert any(isinstance(outcome, DamagedCheckpointError) for outcome in outcomes)


@pytest.mark.parametrize("case", CASES)
def test_an_undamaged_file_is_gone_on_from_after_any_step(tmp_path, case):
    path = tmp_path / "search.ckpt"
    whole = run(case, None)
    for stop_at in range(1, 9):
        interrupt(case, path, stop_at)
        found = run(case, path)
        assert np.array_equal(found.best.mask, whole.best.mask)
        assert np.array_equal(found.history.best_fitness, whole.history.best_fitness)
        assert np.array_equal(found.front.masks, whole.front.masks)


def refused(path, sentence, case="2d-upso"):
    with pytest.raises(DamagedCheckpointError, match=sentence) as found:
        run(case, path)
    assert str(found.value).startswith(f"{path} is damaged (")
    assert str(found.value).endswith("; delete it to start again.")


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("state.velocity", lambda a: a[:, :, :3], r"state.velocity has dtype float64 and shape \(6, 2, 3\)"),
        ("state.velocity", lambda a: a.astype(np.float32), "state.velocity has dtype float32"),
        ("state.velocity", lambda a: a * np.nan, "state.velocity has entries that are not finite"),
        ("state.masks", lambda a: a[:3], "state.masks has dtype bool and shape"),
        ("state.masks", lambda a: a & False, "next subsets are not within the limits"),
        ("state.bests.masks", lambda a: a.view(np.uint8), "state.bests.masks has dtype uint8"),
        ("state.stagnation", lambda a: a - 10, "state.stagnation is not between 0"),
        ("best.mask", lambda a: a[:3], "best.mask"),
        ("front.masks", lambda a: a[::-1], "best subsets are not within the limits"),
        ("front.fitness", lambda a: a + 1, "not the best of those of each size"),
        ("history", lambda a: a[:-1], "history does not lead to the number of evaluations"),
        ("history", lambda a: a[:, :4], "history has dtype float64 and shape"),
    ],
)
def test_arrays_that_cannot_be_are_named(tmp_path, name, change, sentence):
    path = tmp_path / "search.ckpt"
    interrupt("2d-upso", path, 5)
    arrays, values = read(path)
    write(path, arrays | {name: change(arrays[name])}, values)
    refused(path, sentence)


@pytest.mark.parametrize(
    ("way", "value", "sentence"),
    [
        (["evaluations"], "30", "its evaluations is '30', expected a whole number"),
        (["evaluations"], True, "its evaluations is True"),
        (["evaluations"], 31, "history does not lead to the number of evaluations"),
        (["finished"], 0, "its finished is a int instead of a bool"),
        (["best_fitness"], float("nan"), "its best_fitness is nan"),
        (["improved_at"], 10**6, "its improved_at is 1000000"),
        (["evaluation_seconds"], -1, "its evaluation_seconds is -1"),
        (["state"], [], "its state is a list"),
        (["state", "bests", "leader"], 6, "state.bests.leader is not between 0 and 5"),
        (["state", "bests", "leader"], 0.0, "state.bests.leader is not a whole number"),
        (["state", "bests"], None, "state.bests is not a Bests"),
        (["state", "steps"], 10**30, "state.steps is out of range"),
        (["state", "memory"], {"a": 1}, "state.memory holds a dict"),
        (["generator"], None, "its generator is a NoneType"),
        (["generator", "bit_generator"], "RandomState", "its generator is 'RandomState'; the known ones are PCG64,"),
        (["generator", "state", "state"], -1, "its generator cannot be restored"),
        (["generator", "state", "state"], 2**200, "its generator cannot be restored"),
        (["n_features"], "11", "its n_features is '11'"),
        (["n_left_out"], -1, "its n_left_out is -1"),
        (["parts"], [], "its parts is a list"),
        (["settings"], None, "its settings is a NoneType"),
    ],
)
def test_values_that_cannot_be_are_named(tmp_path, way, value, sentence):
    path = tmp_path / "search.ckpt"
    interrupt("2d-upso", path, 5)
    arrays, values = read(path)
    inside = values
    for key in way[:-1]:
        inside = inside[key]
    inside[way[-1]] = value
    write(path, arrays, values)
    refused(path, sentence)


@pytest.mark.parametrize("step", [1, 8])
def test_a_search_that_is_said_to_leave_out_rows_is_another_one(tmp_path, step):
    path = tmp_path / "search.ckpt"
    interrupt("elites on partitions", path, step)
    arrays, values = read(path)
    write(path, arrays, values | {"n_left_out": 3})
    with pytest.raises(CheckpointError, match=r"differs: number of blocks of left-out rows \(3 there, 0 here\)"):
        run("elites on partitions", path)


@pytest.mark.parametrize(
    ("bits", "way", "place"),
    [
        (np.random.MT19937, ("state", "pos"), 10**9),
        (np.random.MT19937, ("state", "pos"), -1),
        (np.random.Philox, ("buffer_pos",), -(10**6)),
    ],
)
def test_a_generator_that_would_read_outside_its_buffer_is_refused(bits, way, place):
    arrays, values = Search(TwoDUPSO(), 5, np.random.Generator(bits(0))).saved()
    inside = values["generator"]
    for key in way[:-1]:
        inside = inside[key]
    inside[way[-1]] = place
    with pytest.raises(DamagedCheckpointError, match="reads at"):
        Search.restored(TwoDUPSO(), arrays, values)


def test_bytes_that_are_neither_true_nor_false_are_refused(tmp_path):
    """A sum over such a mask is more than the number of features, and compiled code would index with it."""
    path = tmp_path / "search.ckpt"
    interrupt("2d-upso", path, 5)
    arrays, values = read(path)
    impossible = np.full(arrays["state.bests.masks"].shape, 200, dtype=np.uint8).view(bool)
    write(path, arrays | {"state.bests.masks": impossible}, values)
    refused(path, "neither True nor False")


def test_compressed_and_oversized_entries_are_refused_before_they_are_unpacked(tmp_path):
    path = tmp_path / "search.ckpt"
    interrupt("2d-upso", path, 5)
    arrays, values = read(path)
    write(path, arrays | {"bomb": np.zeros(10**7)}, values, zipfile.ZIP_DEFLATED)
    refused(path, "compressed")
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    write(path, arrays, values)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("vast.npy", header.ljust(127) + b"\n")
    refused(path, r"vast.npy declares shape \(1000000000000,\) and has 0 bytes")


def test_a_file_with_two_entries_of_one_name_or_with_objects_is_refused(tmp_path):
    path = tmp_path / "search.ckpt"
    interrupt("2d-upso", path, 5)
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("values.json", "{}")
    refused(path, "two of the same name")
    interrupt("2d-upso", path, 5)
    arrays, values = read(path)
    write(path, arrays | {"objects": np.array([None])}, values)
    refused(path, "objects.npy has dtype object")


@pytest.mark.parametrize("text", ["[]", "7", '"x"', "{", "[" * 100_000])
def test_values_that_are_no_dictionary_are_refused(tmp_path, text):
    path = tmp_path / "search.ckpt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("values.json", text)
    refused(path, "values.json holds|not a checkpoint")


@pytest.mark.parametrize("values", [{"format": 1, "fingerprint": "x"}, {"format": 3}, {}])
def test_another_format_is_named(tmp_path, values):
    path = tmp_path / "search.ckpt"
    write(path, {}, values)
    with pytest.raises(CheckpointError, match=f"format {values.get('format')}; this version reads format 2"):
        run("2d-upso", path)


def test_a_folder_in_place_of_the_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="cannot read the checkpoint"):
        run("2d-upso", tmp_path)


def scaled_by(factor):
    return lambda X: X * factor


def keep_first(X, unused):
    return X


def objective(**changes):
    settings = {"estimator": GaussianNB(), "X": WINE[0], "y": WINE[1], "cv": 3} | changes
    return make_objective(**settings)


@pytest.mark.parametrize(
    ("parts", "one", "other"),
    [
        ("scoring", {"scoring": make_scorer(accuracy_score)}, {"scoring": make_scorer(f1_score, average="macro")}),
        (
            "scoring",
            {"scoring": make_scorer(fbeta_score, average="macro", beta=1)},
            {"scoring": make_scorer(fbeta_score, average="macro", beta=2)},
        ),
        ("scoring", {"scoring": "accuracy"}, {"scoring": "f1_macro"}),
        ("scoring", {"scoring": lambda e, X, y: 0.5}, {"scoring": lambda e, X, y: 0.6}),
        ("estimator", {}, {"estimator": GaussianNB(var_smoothing=1e-3)}),
        (
            "estimator",
            {"estimator": make_pipeline(FunctionTransformer(scaled_by(2)), GaussianNB())},
            {"estimator": make_pipeline(FunctionTransformer(scaled_by(3)), GaussianNB())},
        ),
        ("table", {}, {"X": WINE[0] + 1e-9}),
        ("target", {}, {"y": np.where(np.arange(178) == 177, 1, WINE[1]), "cv": objective().folds}),
        ("folds", {}, {"random_state": 1}),
        ("metadata", {}, {"params": {"sample_weight": np.ones(178)}}),
        ("table, scoring", {}, {"X": WINE[0] + 1, "scoring": "f1_macro"}),
    ],
)
def test_the_parts_that_differ_are_named(tmp_path, parts, one, other):
    path, budget, algorithm = tmp_path / "search.ckpt", Budget(evaluations=4), get_algorithm("random", batch=2)
    search(algorithm, objective(**one), budget, rng=0, checkpoint=path)
    search(algorithm, objective(**one), budget, rng=0, checkpoint=path)
    with pytest.raises(
        CheckpointError, match=rf"search.ckpt belongs to another search; what differs: {parts}\. Delete"
    ):
        search(algorithm, objective(**other), budget, rng=0, checkpoint=path)


def test_an_estimator_that_is_built_again_resumes_and_every_value_of_a_long_parameter_counts(tmp_path):
    """The repr of the first has an address, and that of the second leaves out most values."""

    def run_on(transformer):
        model = make_pipeline(transformer, GaussianNB())
        algorithm = get_algorithm("random", batch=2)
        search(algorithm, objective(estimator=model), Budget(evaluations=4), rng=0, checkpoint=path)

    path = tmp_path / "function.ckpt"
    run_on(FunctionTransformer(scaled_by(2)))
    run_on(FunctionTransformer(scaled_by(2)))
    path = tmp_path / "long.ckpt"
    run_on(FunctionTransformer(keep_first, kw_args={"unused": np.zeros(2000)}))
    changed = np.zeros(2000)
    changed[1000] = 1
    with pytest.raises(CheckpointError, match="differs: estimator"):
        run_on(FunctionTransformer(keep_first, kw_args={"unused": changed}))


def test_feature_groups_and_settings_that_differ_are_named(tmp_path):
    def fitted(**changes):
        settings = {"cv": 3, "max_evaluations": 60, "checkpoint": tmp_path / "x.ckpt", "algorithm": "2d-upso"} | changes
        return SwarmSelector(GaussianNB(), random_state=0, **settings).fit(*WINE)

    fitted(feature_groups=[[0, 1]])
    with pytest.raises(CheckpointError, match="differs: feature groups or preselected columns, setting feature_sizes"):
        fitted(feature_groups=[[1, 2]])
    with pytest.raises(CheckpointError, match=r"differs: setting max_features \(None there, 3 here\)\. "):
        fitted(feature_groups=[[0, 1]], max_features=3)
    with pytest.raises(CheckpointError, match=r"differs: algorithm \(TwoDUPSO there, RandomSearch here\)\. "):
        fitted(feature_groups=[[0, 1]], algorithm="random")


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("algorithm", ["2d-upso", "2d-elite", "sffs"])
def test_distinct_evaluations_are_counted_through_an_interruption(tmp_path, algorithm, repeats):
    path, budget = tmp_path / "search.ckpt", Budget(evaluations=1000)
    shared = make_objective(GaussianNB(), WINE[0][:, :6], WINE[1], cv=3, repeats=repeats)
    whole = search(algorithm, shared.fresh(), budget, rng=1)
    for stop_at in (100, 500):
        stop = lambda snapshot, stop_at=stop_at: snapshot.evaluations >= stop_at  # noqa: E731
        search(algorithm, shared.fresh(), budget, rng=1, checkpoint=path, callbacks=[stop])
    found = search(algorithm, shared.fresh(), budget, rng=1, checkpoint=path)
    again = search(algorithm, shared.fresh(), budget, rng=1, checkpoint=path)
    assert found.computed == again.computed == whole.computed < found.evaluations


def test_distinct_evaluations_are_counted_on_wide_tables_and_take_few_bytes(tmp_path):
    path, budget = tmp_path / "search.ckpt", Budget(evaluations=120)
    X = np.random.default_rng(0).normal(size=(30, 700))
    wide = make_objective(GaussianNB(), X, np.arange(30) % 2, cv=2)
    whole = search("2d-upso", wide.fresh(), budget, rng=1)
    search("2d-upso", wide.fresh(), budget, rng=1, checkpoint=path, callbacks=[lambda s: s.evaluations >= 60])
    assert read(path)[0]["evaluated"].shape == (60, 16)
    assert search("2d-upso", wide.fresh(), budget, rng=1, checkpoint=path).computed == whole.computed


@dataclass(frozen=True, eq=False)
class Diary(State):
    """A state of a user's own class, which says nothing about its layout."""

    masks: np.ndarray
    sizes: np.ndarray
    best: float | None = None


@dataclass(frozen=True, kw_only=True)
class Diarist(Algorithm):
    def begin(self, n_features, rng):
        return Diary(self.first_masks(5, n_features, rng), np.empty(0, dtype=np.intp))

    def step(self, state, fitness, progress, rng):
        sizes = np.append(state.sizes, state.masks.sum(axis=1))
        return Diary(self.first_masks(3, state.masks.shape[1], rng), sizes, float(fitness.min()))


def test_states_of_other_classes_may_grow_and_keep_their_dtypes(tmp_path):
    def found(path, stop_at=None):
        stop = lambda snapshot: snapshot.evaluations == stop_at  # noqa: E731
        budget = Budget(evaluations=50)
        return search(Diarist(), missing, budget, rng=0, n_features=N, checkpoint=path, callbacks=[stop])

    path = tmp_path / "search.ckpt"
    found(path, stop_at=20)
    arrays, values = read(path)
    assert np.array_equal(found(path).history.best_fitness, found(None).history.best_fitness)
    write(path, arrays | {"state.sizes": arrays["state.sizes"] * 0.5}, values)
    with pytest.raises(DamagedCheckpointError, match=r"state\.sizes has dtype float64"):
        found(path)


def test_a_file_too_large_to_be_a_checkpoint_is_not_read(tmp_path):
    path = tmp_path / "search.ckpt"
    with open(path, "wb") as file:
        file.truncate(2**32 + 1)  # takes no room on disk
    refused(path, "has 4294967297 bytes, and a checkpoint has at most 4294967296")
