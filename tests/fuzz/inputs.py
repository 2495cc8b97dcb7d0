"""Hostile values for every public name: a plain answer, or one of our own errors, and nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB

import subswarm
from subswarm import Budget, Search, SwarmSelector, algorithms, make_objective, plot, search, search_together
from subswarm.nested import held_out
from subswarm.testing import check_algorithm

from . import hostile
from .case import Case, announce, pick, short

__all__ = ["run"]

_VALIDATION = ("sklearn/utils/validation.py", "sklearn/base.py", "sklearn/feature_selection/_base.py")
"""Where scikit-learn itself refuses what ``transform`` and the like are given, as its estimator checks demand."""
_CROSS_VALIDATION = ("sklearn/model_selection/_validation.py",)
"""An error that comes through here is the estimator's own, about data that we passed on as they came."""
_METRICS = ("sklearn/metrics/_classification.py", "sklearn/utils/_unique.py", "sklearn/utils/multiclass.py")
"""Where scikit-learn refuses the targets that ``score`` is given."""
_OF_TABLES = ("transform", "inverse_transform", "predict", "predict_proba")
SMALL_CSV = "a,b,c,y\n" + "".join(f"{i % 5},{i * 7 % 11},{i * i % 13},{'uv'[i % 2]}\n" for i in range(16))


def run(rng: np.random.Generator) -> Case:
    """One call with something hostile in it."""
    case = Case()
    shares = np.array([share for share, _ in _ENTRIES], dtype=float)
    entry = _ENTRIES[int(rng.choice(len(_ENTRIES), p=shares / shares.sum()))][1]
    with tempfile.TemporaryDirectory(prefix="case-") as folder, contextlib.chdir(folder):
        entry(rng, case)
    return case


def _call(case: Case, words: str, function: Callable[[], Any], **judged: Any) -> Any:
    """What the function returns, or None after its error was judged."""
    announce(words)
    try:
        return function()
    except BaseException as error:
        if isinstance(error, MemoryError):
            return None  # the machine's own answer to a size that is out of its reach
        case.judge(error, words, **judged)
        return None


def _stopping() -> Callable[[Any], bool]:
    """A callback that ends a search after three steps, whatever its budget."""
    steps = iter(range(1_000_000))
    return lambda snapshot: next(steps) >= 2


def _named(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={short(value)}" for name, value in settings.items())


def _distance(masks: Any) -> Any:
    return (masks ^ (np.arange(masks.shape[1]) % 2 == 0)).mean(axis=1)


def _table() -> tuple[Any, Any]:
    return np.random.default_rng(0).normal(size=(12, 4)), np.arange(12) % 2


@functools.cache
def _fitted() -> Any:
    return SwarmSelector(GaussianNB(), "random", cv=2, max_evaluations=8, random_state=0, verbose=0).fit(*_table())


@functools.cache
def _result() -> Any:
    return search("2d-upso", _distance, Budget(evaluations=60), rng=0, n_features=5, record=True)


@functools.cache
def _objective() -> Any:
    return make_objective(GaussianNB(), *_table(), cv=2, repeats=2)


_SELECTOR: dict[str, hostile.Maker] = {
    "estimator": hostile.any_estimator,
    "algorithm": lambda rng: pick(rng, (hostile.any_value, lambda r: pick(r, algorithms.names())))(rng),
    "cv": hostile.any_cv,
    "repeats": hostile.any_value,
    "race": hostile.any_value,
    "scoring": hostile.any_scoring,
    "max_evaluations": hostile.any_value,
    "max_seconds": hostile.any_value,
    "patience": hostile.any_value,
    "min_features": hostile.any_value,
    "max_features": hostile.any_value,
    "fixed_features": hostile.any_value,
    "feature_groups": lambda rng: pick(rng, (hostile.any_value(rng), [hostile.any_value(rng)])),
    "initial_subsets": lambda rng: pick(rng, (hostile.any_value(rng), [hostile.any_value(rng)])),
    "preselect": lambda rng: pick(rng, (hostile.any_value(rng), ("mrmr", hostile.any_value(rng)), ("anova-f", 2))),
    "choose": lambda rng: pick(rng, (hostile.any_value(rng), "smallest", "best", "one-se", "knee", "budget")),
    "max_cost": hostile.any_value,
    "feature_costs": lambda rng: pick(rng, (hostile.any_value(rng), [1, 2, 0, 0.5], [hostile.any_value(rng)] * 4)),
    "held_out": hostile.any_value,
    "engine": lambda rng: pick(rng, (hostile.any_value(rng), "fast", "estimator")),
    "n_jobs": hostile.any_value,
    "device": hostile.any_value,
    "random_state": hostile.any_value,
    "verbose": hostile.any_value,
    "callbacks": lambda rng: pick(rng, (hostile.any_value(rng), [hostile.any_value(rng)], [hostile.raising])),
    "checkpoint": hostile.any_value,
    "record": hostile.any_value,
    "max_rows": hostile.any_value,
}
_COSTS = ("repeats", "n_jobs")
"""What is asked for is what it costs: a million repeats, or as many processes as there are stars."""


def _affordable(name: str, value: Any) -> Any:
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return 1 if name in _COSTS and is_number and int(value) > (3 if name == "repeats" else 1) else value


def _selector(rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """A selector with one or two hostile settings; its searches end after three steps."""
    names = rng.permutation(list(_SELECTOR))[: int(rng.integers(0, 3))]
    changed = {str(name): _affordable(str(name), _SELECTOR[str(name)](rng)) for name in names}
    settings = {
        "estimator": GaussianNB(),
        "algorithm": pick(rng, ("random", "2d-upso", "2d-elite", "sfs", "bpso", "2d-pareto", "nsga2")),
        "cv": 2,
        "max_evaluations": 8,
        "verbose": 0,
        "random_state": 0,
        "callbacks": [_stopping()],
    }
    return SwarmSelector(**{**settings, **changed}), changed


def _fit(rng: np.random.Generator, case: Case) -> None:
    selector, changed = _selector(rng)
    X, y = _table()
    words = _named(changed)
    if rng.random() < 0.5 or not changed:
        X = hostile.any_table(rng) if rng.random() < 0.7 else X
        y = hostile.any_target(rng) if rng.random() < 0.6 else y
        words = f"{words}; X {short(X)}, y {short(y)}"
    extra = {name: hostile.any_weights(rng) for name in ("groups", "sample_weight", "other") if rng.random() < 0.1}
    words = f"SwarmSelector({words}).fit(**{_named(extra)})"
    has_own_estimator = "estimator" in changed
    fitted = _call(
        case,
        words,
        lambda: selector.fit(X, y, **extra),
        through=_CROSS_VALIDATION,
        anything_through=has_own_estimator or "scoring" in changed or bool(extra),
    )
    if fitted is None:
        return
    if not (fitted.support_.dtype == bool and fitted.support_.any()):
        case.differs("no column is selected", words)
    front = fitted.front_
    if not ((np.diff(front.cost) > 0).all() and (np.diff(front.loss) < 0).all()):
        case.differs("a subset of the front is beaten by another", f"{front.cost}, {front.loss} | {words}")


def _use_fitted(rng: np.random.Generator, case: Case) -> None:
    selector = _fitted() if rng.random() < 0.9 else SwarmSelector(GaussianNB())
    name = pick(rng, (*_OF_TABLES, "get_feature_names_out", "get_support", "subset_of_size", "score", "within"))
    value = hostile.any_table(rng) if name in _OF_TABLES else hostile.any_value(rng)
    words = f"{name}({short(value)})"
    if name == "score":
        X, y = (hostile.any_table(rng), _table()[1]) if rng.random() < 0.5 else (_table()[0], hostile.any_target(rng))
        words = f"score({short(X)}, {short(y)})"
        _call(case, words, lambda: selector.score(X, y), plain=_METRICS, through=(*_METRICS, *_VALIDATION))
        return
    if name == "within":
        _call(case, f"front_.{words}", lambda: _fitted().front_.within(value))
        return
    if name == "subset_of_size":
        try:
            selector.subset_of_size(value)
        except KeyError:
            return  # documented: no subset of that size was seen
        except BaseException as error:
            case.judge(error, words)
        return
    _call(case, words, lambda: getattr(selector, name)(value), plain=_VALIDATION, through=_VALIDATION)


def _set_params(rng: np.random.Generator, case: Case) -> None:
    selector, changed = _selector(rng)
    name = pick(rng, (*_SELECTOR, "nothing", "estimator__var_smoothing"))
    value = hostile.any_value(rng)
    words = f"SwarmSelector({_named(changed)}): repr, set_params({name}={short(value)}), tags"

    def look() -> None:
        repr(selector)
        selector.set_params(**{name: value})

    _call(case, words, look, plain=_VALIDATION)


def _make_objective(rng: np.random.Generator, case: Case) -> None:
    X, y = _table()
    settings: dict[str, Any] = {"estimator": GaussianNB(), "X": X, "y": y, "cv": 2}
    pools: dict[str, hostile.Maker] = {
        "estimator": hostile.any_estimator,
        "X": hostile.any_table,
        "y": hostile.any_target,
        "params": lambda r: pick(r, (hostile.any_value(r), {"sample_weight": hostile.any_weights(r)})),
        "groups": hostile.any_weights,
        "max_bytes": hostile.any_value,
        **{
            name: _SELECTOR[name] for name in ("cv", "repeats", "scoring", "n_jobs", "device", "random_state", "engine")
        },
    }
    for name in rng.permutation(list(pools))[: int(rng.integers(1, 3))]:
        settings[str(name)] = _affordable(str(name), pools[str(name)](rng))
    changed = {name: value for name, value in settings.items() if name in pools and value is not X and value is not y}
    own = any(name in changed for name in ("scoring", "params")) or not isinstance(settings["estimator"], GaussianNB)

    def score() -> Any:
        objective = make_objective(**settings)
        return objective(np.ones((1, objective.n_features), dtype=bool))

    losses = _call(case, f"make_objective({_named(changed)})", score, through=_CROSS_VALIDATION, anything_through=own)
    if losses is not None and not np.isfinite(losses).all():
        case.differs("a loss is not finite", f"{losses} | make_objective({_named(changed)})")


def _ask_objective(rng: np.random.Generator, case: Case) -> None:
    objective = _objective().fresh()
    masks = pick(rng, (hostile.any_value, lambda r: r.integers(0, 2, (2, 4)), lambda r: np.eye(4)[:2] > 0))(rng)
    name = pick(rng, ("__call__", "__call__", "fold_losses", "losses_of", "fold_scores"))
    arguments = [masks]
    if name in ("__call__", "fold_losses") and rng.random() < 0.5:
        arguments.append(pick(rng, (hostile.any_value(rng), [0, 1], [0, 2], np.array([0, 1], dtype=np.uint8))))
    words = f"objective.{name}({', '.join(map(short, arguments))})"
    _call(case, words, lambda: getattr(objective, name)(*arguments), through=_CROSS_VALIDATION)


def _budget(rng: np.random.Generator, case: Case) -> None:
    names = rng.permutation(["evaluations", "seconds", "target", "patience"])[: int(rng.integers(1, 4))]
    settings = {str(name): hostile.any_value(rng) for name in names}

    def use() -> Any:
        budget = Budget(**settings)
        return budget.progress(3, 0.5), repr(budget)

    _call(case, f"Budget({_named(settings)})", use)


def _algorithm(rng: np.random.Generator, case: Case) -> None:
    name = pick(rng, algorithms.names())
    known = [field.name for field in dataclasses.fields(algorithms.REGISTRY[name])]
    chosen = rng.permutation([*known, "nothing"])[: int(rng.integers(1, 3))]
    settings = {str(setting): _setting_value(rng) for setting in chosen}
    words = f"get_algorithm({name!r}, {_named(settings)})"
    algorithm = _call(case, words, lambda: algorithms.get_algorithm(name, **settings))
    if algorithm is not None:
        n_features = int(rng.integers(1, 7))
        _steps(rng, case, algorithm, n_features, f"{words}, n_features={n_features}")


def _setting_value(rng: np.random.Generator) -> Any:
    if rng.random() < 0.4:
        sizes = tuple(int(value) for value in rng.integers(-1, 7, size=int(rng.integers(0, 7))))
        return pick(rng, (int(rng.integers(0, 9)), float(rng.random()), sizes, (sizes,), "raw", "logistic", "uniform"))
    return hostile.any_value(rng)


def _steps(rng: np.random.Generator, case: Case, algorithm: Any, n_features: int, words: str) -> None:
    """A few steps of a search, some with odd but finite fitness."""
    scale = pick(rng, (1.0, 1.0, 0.0, 1e300, 1e-320))

    def go() -> None:
        running: Any = Search(algorithm, n_features, 0, evaluations=50)
        for _ in range(3):
            if running.finished:
                break
            masks = running.ask()
            if len(masks) > 100_000:
                break
            running.tell(_distance(masks) * scale)
        _ = running.best, running.front

    _call(case, words, go)


def _ask_and_tell(rng: np.random.Generator, case: Case) -> None:
    settings: dict[str, Any] = {"algorithm": algorithms.TwoDUPSO(), "n_features": 5, "rng": 0}
    if rng.random() < 0.5:
        name = pick(rng, ("algorithm", "n_features", "rng", "evaluations", "n_partitions"))
        value = hostile.any_value(rng)
        if name == "n_features" and isinstance(value, int | np.integer) and int(value) > 1000:
            value = -1
        settings[name] = value
    told: Any = hostile.any_value(rng)
    if rng.random() < 0.5:
        told = np.full(30, 0.5).astype(object)
        told[int(rng.integers(30))] = hostile.any_value(rng)
    progress = pick(rng, (None, 0.5, hostile.any_value(rng)))
    words = f"Search({_named(settings)}).tell({short(told)}, {short(progress)})"

    def go() -> None:
        running: Any = Search(**settings)
        running.ask()
        running.tell(told, progress)
        running.tell_part(told)

    _call(case, words, go)


def _search(rng: np.random.Generator, case: Case) -> None:
    settings: dict[str, Any] = {
        "algorithm": pick(rng, algorithms.names()),
        "objective": _distance,
        "budget": Budget(evaluations=int(rng.integers(1, 70))),
        "rng": 0,
        "n_features": 5,
        "callbacks": [_stopping()],
    }
    if settings["algorithm"] in ("mutual-information", "anova-f", "relieff", "mrmr"):
        settings["algorithm"] = "random"
    pools: dict[str, hostile.Maker] = {
        "algorithm": hostile.any_value,
        "objective": lambda r: pick(
            r,
            (
                hostile.any_value(r),
                hostile.raising,
                *[_returning(hostile.any_value(r))] * 3,
                lambda masks: _distance(masks)[:-1],
                lambda masks: -_distance(masks) * 1e308,
                lambda masks: _distance(masks)[:, None],
                lambda masks: _distance(masks).tolist(),
                lambda masks: np.where(masks[:, 0], np.nan, 1.0),
            ),
        ),
        "budget": hostile.any_value,
        "rng": hostile.any_value,
        "callbacks": lambda r: pick(r, (hostile.any_value(r), [hostile.any_value(r)])),
        "checkpoint": hostile.any_value,
        "checkpoint_seconds": hostile.any_value,
        "n_features": lambda r: pick(r, (hostile.any_value(r), 1, 2)),
        "record": hostile.any_value,
    }
    for name in rng.permutation(list(pools))[: int(rng.integers(1, 3))]:
        settings[str(name)] = pools[str(name)](rng)
    if isinstance(settings["n_features"], int | np.integer) and int(settings["n_features"]) > 1000:
        settings["n_features"] = 0
    if not isinstance(settings["budget"], Budget) and settings["callbacks"] is None:
        settings["budget"] = None
    words = f"search({_named(settings)})"
    _call(case, words, lambda: search(**settings))


def _returning(value: Any) -> Callable[[Any], Any]:
    return lambda masks: value


def _search_together(rng: np.random.Generator, case: Case) -> None:
    settings: dict[str, Any] = {
        "algorithms": ["random", "2d-upso"],
        "objective": _distance,
        "budget": Budget(evaluations=40),
        "rngs": [0, 1],
        "n_features": 5,
    }
    name = pick(rng, ("algorithms", "objective", "rngs", "n_features", "budget"))
    value = hostile.any_value(rng)
    settings[name] = [value, value] if rng.random() < 0.4 else value
    if name == "n_features" and isinstance(value, int | np.integer) and int(value) > 1000:
        settings[name] = 0
    if name == "budget" and value is None:
        settings[name] = "None"
    _call(case, f"search_together({name}={short(settings[name])})", lambda: search_together(**settings))


def _held_out(rng: np.random.Generator, case: Case) -> None:
    X, y = _table()
    selector: Any = SwarmSelector(
        GaussianNB(), "random", cv=2, max_evaluations=4, verbose=0, random_state=0, callbacks=()
    )
    settings: dict[str, Any] = {"selector": selector, "X": X, "y": y, "folds": 2}
    pools: dict[str, hostile.Maker] = {
        "selector": hostile.any_value,
        "X": hostile.any_table,
        "y": hostile.any_target,
        "folds": hostile.any_value,
        "random_state": hostile.any_value,
        "groups": hostile.any_weights,
        "params": hostile.any_value,
    }
    name = pick(rng, list(pools))
    settings[name] = pools[name](rng)
    _call(case, f"held_out({name}={short(settings[name])})", lambda: held_out(**settings), through=_CROSS_VALIDATION)


def _names(rng: np.random.Generator, case: Case) -> None:
    value = hostile.any_value(rng)
    name = pick(rng, ("get_algorithm", "settings", "name_of", "Race", "check_algorithm", "subswarm"))
    words = f"{name}({short(value)})"
    if name == "subswarm":
        with_name = str(value) if isinstance(value, str) else "nothing"
        _call(case, words, lambda: getattr(subswarm, with_name, None))
    elif name == "check_algorithm":
        try:
            check_algorithm(value)
        except AssertionError:
            return  # its answer
        except BaseException as error:
            case.judge(error, words)
    else:
        _call(case, words, lambda: getattr(algorithms, name)(value))


def _plots(rng: np.random.Generator, case: Case) -> None:
    from matplotlib import pyplot

    result, value = _result(), hostile.any_value(rng)
    results = pick(
        rng, (result, value, [value], {"a": value}, {"a": [result]}, {value: result} if _hashable(value) else {})
    )
    other = hostile.any_value(rng)
    calls: dict[str, Callable[[], Any]] = {
        f"convergence({short(results)})": lambda: plot.convergence(results),
        f"convergence(show={short(other)})": lambda: plot.convergence(result, show=other),
        f"convergence(baseline={short(other)})": lambda: plot.convergence(result, show="improvement", baseline=other),
        f"timing({short(results)})": lambda: plot.timing(results),
        f"trade_off({short(value)})": lambda: plot.trade_off(value),
        f"selection_frequency({short(results)})": lambda: plot.selection_frequency(results),
        f"selection_frequency(names={short(other)})": lambda: plot.selection_frequency(result, names=other),
        f"selection_frequency(top={short(other)})": lambda: plot.selection_frequency(result, top=other),
        f"cardinality_likelihood({short(value)})": lambda: plot.cardinality_likelihood(value),
        f"critical_difference({short(results)})": lambda: plot.critical_difference(results, distance=1.0),
        f"critical_difference(1, 2, {short(other)})": lambda: plot.critical_difference(
            {"a": 1.0, "b": other}, distance=1.0
        ),
        f"critical_difference(distance={short(other)})": lambda: plot.critical_difference(
            {"a": 1.0, "b": 2.0}, distance=other
        ),
        f"critical_difference(highlight={short(other)})": lambda: plot.critical_difference(
            {"a": 1.0, "b": 2.0}, distance=1.0, highlight=other
        ),
    }
    words = pick(rng, list(calls))
    _call(case, words, calls[words])
    pyplot.close("all")


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except Exception:
        return False
    return True


_SELECT = [
    "--target",
    "--model",
    "--task",
    "--algorithm",
    "--set",
    "--evaluations",
    "--seconds",
    "--patience",
    "--scoring",
    "--cv",
    "--repeats",
    "--min-features",
    "--max-features",
    "--keep",
    "--choose",
    "--preselect",
    "--drop",
    "--seed",
    "--engine",
    "--checkpoint",
    "--seeds",
    "--against",
    "--out",
    "--report",
    "--held-out",
    "--max-cost",
    "--costs",
    "--max-categories",
    "--missing",
    "--positive",
    "--id",
    "--groups",
    "--time",
    "--weights",
    "--encoding",
    "--write",
    "--save",
]
_FLAGS = ("--race", "--impute", "--one-hot", "--dates", "--skip-unlabelled", "--no-header")
_COSTLY_OPTIONS = ("--evaluations", "--seeds", "--held-out", "--repeats", "--set", "--cv")
_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("algorithms",),
    ("datasets",),
    ("study", "status"),
    ("study", "table"),
    ("study", "report"),
    ("study", "versus"),
    ("study", "run"),
    ("bench", "engines"),
    ("bench", "algorithms"),
    ("bench", "overhead"),
    ("bench", "gpu"),
    ("study",),
    ("bench",),
    (),
)


def _command_line(rng: np.random.Generator, case: Case) -> None:
    from typer.testing import CliRunner

    from subswarm.cli import app

    Path("small.csv").write_text(SMALL_CSV, encoding="utf-8")
    arguments = _select_arguments(rng) if rng.random() < 0.6 else _other_arguments(rng)
    words = f"subswarm {' '.join(map(short, arguments))}"
    announce(words)
    outcome = CliRunner().invoke(app, arguments)
    error = outcome.exception
    if error is None:
        return
    if not isinstance(error, SystemExit):
        case.judge(error, words)
    elif error.code not in (0, 1, 2, 130) or not outcome.output.strip():
        text = f"exit status {error.code!r}: {short(outcome.output)} | {words}"
        case.findings.append(("exception", text))


def _select_arguments(rng: np.random.Generator) -> list[str]:
    fixed = {"--target": "y", "--model": "nb", "--algorithm": "random", "--evaluations": "6", "--cv": "2"}
    for name in rng.permutation(_SELECT)[: int(rng.integers(0, 4))]:
        value = hostile.word(rng)
        if name in _COSTLY_OPTIONS and value.strip("-").isdigit() and len(value) > 3:
            value = "3"
        fixed[str(name)] = value
    table = "small.csv" if rng.random() < 0.85 else hostile.word(rng)
    flags = [flag for flag in _FLAGS if rng.random() < 0.07]
    listed = [part for name, value in fixed.items() for part in (name, value)]
    return ["select", table, *listed, *flags, "--quiet", "--jobs", pick(rng, ("1", "1", "1", "0", "x"))]


def _other_arguments(rng: np.random.Generator) -> list[str]:
    command = list(pick(rng, _COMMANDS))
    options = {
        "algorithms": ["--json"],
        "datasets": ["--json", "--data-dir"],
        "study": ["--json", "--what", "--format", "--out", "--runs", "--evaluations", "--only", "--against", "--outer"],
        "bench": ["--datasets", "--only", "--scale", "--models", "--dataset", "--repeats", "--features", "--device"],
    }
    words = [word for _ in range(int(rng.integers(0, 3))) if (word := hostile.word(rng)) not in ("wine", "digits")]
    names = options.get(command[0], []) if command else []
    for name in rng.permutation(names)[: int(rng.integers(0, 3))]:
        words += [str(name)] if name == "--json" else [str(name), hostile.word(rng)]
    if command[:1] == ["bench"] and not words:
        words = ["--nothing"]  # a measurement that could start would take its time
    if command == ["bench", "overhead"]:
        words = ["--features", hostile.word(rng), "--steps", pick(rng, ("0", "x", "-1", ""))]
    if command == ["bench", "algorithms"]:
        words = ["--only", "random", "--dataset", "zoo" * 3, "--seeds", "1", "--evaluations", hostile.word(rng)[:3]]
    if command == ["bench", "engines"]:
        words += ["--repeats", pick(rng, ("0", "x", "-1"))]
    if command == ["bench", "gpu"]:
        words += ["--device", pick(rng, ("cuda", "x", ""))]
    return [*command, *words]


_ENTRIES: tuple[tuple[float, Callable[[np.random.Generator, Case], None]], ...] = (
    (20, _fit),
    (8, _use_fitted),
    (3, _set_params),
    (14, _make_objective),
    (8, _ask_objective),
    (5, _budget),
    (12, _algorithm),
    (8, _ask_and_tell),
    (10, _search),
    (3, _search_together),
    (1, _held_out),
    (3, _names),
    (1.5, _plots),
    (4, _command_line),
)
