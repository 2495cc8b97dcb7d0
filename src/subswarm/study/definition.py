"""What a study runs: its data sets, models, algorithms and settings, given in Python or in a TOML file."""

from __future__ import annotations

import math
import reprlib
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subswarm._checks import check_choice, check_int, suggest
from subswarm._models import make_model
from subswarm.algorithms import Race, get_algorithm
from subswarm.datasets import DEMO_NAMES, PROTOCOLS
from subswarm.datasets import names as catalogue_names
from subswarm.errors import SettingError
from subswarm.study.plan import PlannedRun, canonical_json, key_and_seed

if TYPE_CHECKING:
    from subswarm.algorithms.base import Algorithm

__all__ = ["Contender", "Only", "Source", "Study", "name_key_in_errors", "read_study"]

_MOST_RUNS = 10_000_000
"""The largest plan that is held in memory; no one can compute more runs."""

_MOST_EVALUATIONS = 10**12

_LARGEST_SEED = 2**32 - 2
"""scikit-learn accepts seeds below 2 ** 32, and the outer folds use the next seed."""


@contextmanager
def name_key_in_errors(key: str) -> Iterator[None]:
    """Put the key of a study in front of every error message; any other error becomes a `SettingError`."""
    try:
        yield
    except SettingError as error:
        raise SettingError(f"{key}: {error}") from error
    except Exception as error:  # an algorithm may raise anything if a value has an unexpected type
        message = " ".join(str(error).split())
        raise SettingError(f"{key}: a value cannot be used ({type(error).__name__}: {message}).") from error


@dataclass(frozen=True)
class Source:
    """A data set of a study.

    Attributes
    ----------
    name : a name of the catalogue, "breast-cancer" or "digits", "openml:ID", or any name if ``table`` is given
    table : path of a CSV or Parquet file, or None
    target, drop, impute : as in `subswarm.datasets.load_table`
    """

    name: str
    table: str | None = None
    target: str | None = None
    drop: tuple[str, ...] = ()
    impute: bool = False

    @property
    def in_catalogue(self) -> bool:
        """Whether this is one of the UCI data sets."""
        return self.table is None and self.name in catalogue_names()

    def check(self, protocol: str) -> None:
        """Raise SettingError if the data set is unknown or does not fit the protocol."""
        if self.table is not None:
            if self.target is None:
                raise SettingError(f"the data set {self.name!r} is a file; name its target column with target = ...")
        elif not self.in_catalogue and self.name not in DEMO_NAMES and not self.name.startswith("openml:"):
            known = list(dict.fromkeys([*catalogue_names(), *DEMO_NAMES]))
            hint = suggest(self.name, known) or f" The names are {', '.join(known)}."
            raise SettingError(f"there is no data set {self.name!r}.{hint} Give a file as {{name, table, target}}.")
        if protocol == "published" and not self.in_catalogue:
            raise SettingError(
                f"the published protocol is defined only for the data sets of the paper; got {self.name!r}. "
                'Use protocol = "sound".'
            )


@dataclass(frozen=True)
class Contender:
    """An algorithm with its settings, and the label that the tables show.

    If ``race`` is true, the algorithm runs inside a `subswarm.algorithms.Race`.
    """

    label: str
    algorithm: str
    settings: Mapping[str, object] = field(default_factory=dict)
    race: bool = False

    @property
    def facts(self) -> dict[str, object]:
        """The settings, with ``race`` if it is true."""
        return {**self.settings, **({"race": True} if self.race else {})}

    def make(self) -> Algorithm[Any]:
        """Return the algorithm."""
        algorithm: Algorithm[Any] = get_algorithm(self.algorithm, **self.settings)
        return Race(algorithm) if self.race else algorithm

    def __hash__(self) -> int:
        return hash((self.label, self.algorithm, canonical_json(self.facts)))


@dataclass(frozen=True, kw_only=True)
class Study:
    """What to run.

    Parameters
    ----------
    name : str
    datasets : tuple of Source
    models : tuple of str
        Names of `subswarm._models.MODELS`.
    algorithms : tuple of Contender
    runs : int, default=40
    evaluations : int, default=6000
    protocol : "sound" or "published"
        How the data sets are read and the folds are drawn.
    folds : int, default=10
    repeats : int, default=1
        Repeats of the inner cross-validation. Scoring a subset on one repeat is one evaluation.
    outer : int, default=0
        Outer folds of nested cross-validation; 0 for none. Each search then also runs once without each outer fold.
    outer_repeats : int, default=1
        Repeats of the outer cross-validation, each with other folds. The outer folds are numbered consecutively.
    seed : int, default=0
        Another seed draws other folds and other searches.

    Examples
    --------
    >>> study = Study(name="small", datasets=(Source("wine"),), models=("nb",),
    ...               algorithms=(Contender("random", "random"),), runs=2)
    >>> [str(run) for run in study.plan()]
    ['wine, nb, random, run 1', 'wine, nb, random, run 2']
    """

    name: str
    datasets: tuple[Source, ...]
    models: tuple[str, ...]
    algorithms: tuple[Contender, ...]
    runs: int = 40
    evaluations: int = 6000
    protocol: str = "sound"
    folds: int = 10
    outer: int = 0
    seed: int = 0
    repeats: int = 1
    outer_repeats: int = 1

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_names()
        self._check_datasets()
        self._check_models_and_algorithms()
        self._check_size()

    def names(self) -> dict[str, list[str]]:
        """Return the names of the data sets, models and algorithms."""
        return {
            "datasets": [source.name for source in self.datasets],
            "models": list(self.models),
            "algorithms": [contender.label for contender in self.algorithms],
        }

    def source(self, name: str) -> Source:
        """Return the data set with this name."""
        return next(source for source in self.datasets if source.name == name)

    def contender(self, label: str) -> Contender:
        """Return the algorithm with this label."""
        return next(contender for contender in self.algorithms if contender.label == label)

    @property
    def outer_folds(self) -> int:
        """The number of outer folds over all outer repeats."""
        return self.outer * self.outer_repeats

    def plan(self) -> list[PlannedRun]:
        """Return every run, in the order of the grid."""
        outer_folds: list[int | None] = [None, *range(self.outer_folds)]
        return [
            self._planned(source.name, model, contender, run, outer_fold)
            for source in self.datasets
            for model in self.models
            for outer_fold in outer_folds
            for run in range(self.runs)
            for contender in self.algorithms
        ]

    def frame(self) -> dict[str, str | int]:
        """Return the settings that all runs of a store share, as JSON values."""
        return {
            "protocol": self.protocol,
            "evaluations": self.evaluations,
            "folds": self.folds,
            "seed": self.seed,
            # Left out if 1: keys of studies from before these settings existed stay the same.
            **({"repeats": self.repeats} if self.repeats > 1 else {}),
            **({"outer_repeats": self.outer_repeats} if self.outer_repeats > 1 else {}),
        }

    def _planned(self, dataset: str, model: str, contender: Contender, run: int, outer_fold: int | None) -> PlannedRun:
        key, seed = key_and_seed(
            {
                **{name: value for name, value in self.frame().items() if name != "outer_repeats"},
                "dataset": dataset,
                "model": model,
                "algorithm": contender.algorithm,
                "settings": contender.facts,
                "run": run,
                "outer": None if outer_fold is None else [outer_fold, self.outer],
            }
        )
        return PlannedRun(dataset, model, contender.label, run, outer_fold, key, seed)

    def _check_numbers(self) -> None:
        check_choice("protocol", self.protocol, PROTOCOLS)
        check_int("runs", self.runs, low=1, high=_MOST_RUNS)
        check_int("evaluations", self.evaluations, low=1, high=_MOST_EVALUATIONS)
        check_int("folds", self.folds, low=2, high=_MOST_RUNS)
        check_int("repeats", self.repeats, low=1, high=_MOST_RUNS)
        check_int("outer", self.outer, low=0, high=_MOST_RUNS)
        check_int("outer_repeats", self.outer_repeats, low=1, high=_MOST_RUNS)
        check_int("seed", self.seed, low=0, high=_LARGEST_SEED)
        if self.outer == 1:
            raise SettingError("outer=1: an outer cross-validation needs at least 2 folds, or 0 for none.")
        if self.outer_repeats > 1 and not self.outer:
            raise SettingError(
                f"outer_repeats={self.outer_repeats}, but there is no outer cross-validation to repeat; set outer to "
                "its number of folds, such as 5."
            )

    def _check_names(self) -> None:
        for kind, names in self.names().items():
            if not names:
                raise SettingError(f"the study has no {kind}; name at least one.")
            repeated = [name for name in names if names.count(name) > 1]
            if repeated:
                raise SettingError(f"{kind} contains {repeated[0]!r} twice; give one of them another name or label.")

    def _check_datasets(self) -> None:
        for source in self.datasets:
            with name_key_in_errors("datasets"):
                source.check(self.protocol)
            if source.impute and self.outer:
                raise SettingError(
                    f"the data set {source.name!r} is imputed as a whole, so the test rows of an outer fold would "
                    "influence its training rows; impute it inside each fold yourself, or set outer to 0."
                )

    def _check_models_and_algorithms(self) -> None:
        for model in self.models:
            with name_key_in_errors("models"):
                make_model(model)
        for contender in self.algorithms:
            with name_key_in_errors(f"algorithms, {contender.label!r}"):
                contender.make()
            if contender.race and self.repeats == 1:
                raise SettingError(
                    f"{contender.label!r} has race = true, which needs several repeats of cross-validation; set "
                    "repeats = 4, for example, or remove race = true."
                )

    def _check_size(self) -> None:
        kinds = len(self.datasets) * len(self.models) * len(self.algorithms)
        count = kinds * self.runs * (1 + self.outer_folds)
        if count > _MOST_RUNS:
            raise SettingError(
                f"the study has {count} runs in total; at most {_MOST_RUNS} are possible. Lower runs, outer or "
                "outer_repeats."
            )


@dataclass(frozen=True)
class Only:
    """A part of the grid: each word names a data set, a model or an algorithm.

    Words of one kind add up. A kind that no word names is kept in full.
    """

    words: tuple[str, ...] = ()

    def of(self, study: Study) -> Study:
        """Return the study, reduced to what the words name."""
        known = study.names()
        unknown = [word for word in self.words if not any(word in names for names in known.values())]
        if unknown:
            every = [name for names in known.values() for name in names]
            raise SettingError(
                f"--only {unknown[0]!r} is not a data set, model or algorithm of this study."
                f"{suggest(unknown[0], every)} It has {', '.join(every)}."
            )

        def kept(kind: str) -> list[str]:
            return [name for name in known[kind] if name in self.words] or known[kind]

        return replace(
            study,
            datasets=tuple(study.source(name) for name in kept("datasets")),
            models=tuple(kept("models")),
            algorithms=tuple(study.contender(label) for label in kept("algorithms")),
        )


_NOT_IN_NAMES = ("Cc", "Zl", "Zp")
"""Unicode categories that a name must not contain: control characters and line ends."""

_MOST_LEVELS = 20
"""Nested tables and lists; a study needs three."""

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 80

_LISTS = ("datasets", "models", "algorithms")
_OPTIONS = ("name", "runs", "evaluations", "protocol", "folds", "repeats", "outer", "outer_repeats", "seed")


def read_study(path: str | PathLike[str]) -> Study:
    """Read a study file.

    ::

        datasets = ["wine", "sonar", { name = "patients", table = "patients.csv", target = "outcome" }]
        models = ["nb", "knn"]
        algorithms = ["2d-upso", "bpso", { label = "slow refresh", algorithm = "2d-upso", refresh_gap = 10 }]
        runs = 10

    ``evaluations``, ``protocol``, ``folds``, ``repeats``, ``outer``, ``outer_repeats``, ``seed`` and ``name`` are
    optional (see `Study`). With ``repeats``, the table of an algorithm may contain ``race = true`` (see `Race`).
    Paths of tables are relative to the folder of the study file.
    """
    file = Path(path)
    content = _parse(file)
    try:
        return _make_study({"name": file.stem, **content}, file.parent)
    except SettingError as error:
        raise SettingError(f"the study file {file}: {error}") from error


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingError(f"the study file {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingError(
            f"the study file {file} cannot be read: it is not UTF-8 text (byte {error.start}); save it as UTF-8."
        ) from error
    except ValueError as error:  # includes tomllib's own error, numbers with too many digits, and NUL in the path
        if "\0" in str(file):
            raise SettingError(f"the path of the study file, {str(file)!r}, contains a NUL character.") from error
        raise SettingError(f"the study file {file} is not TOML: {error}.") from error
    except RecursionError as error:
        raise SettingError(f"the study file {file} is not TOML that can be read: it is nested too deeply.") from error


def _make_study(content: Mapping[str, Any], folder: Path) -> Study:
    _check_keys(content, [*_OPTIONS, *_LISTS], "a study")
    for key, value in content.items():
        _check_value(value, key)
    for kind in _LISTS:
        if kind not in content:
            raise SettingError(f"a study needs a list of {kind}; add {kind} = [...].")
        if not isinstance(content[kind], list):
            raise SettingError(f"a study needs a list of {kind}; got {_show(content[kind])}.")
    options = {name: content[name] for name in _OPTIONS if name in content}
    if "name" in options:
        _check_word(options["name"], "name")
    return Study(
        datasets=tuple(_make_source(entry, folder, place) for place, entry in _entries(content, "datasets")),
        models=tuple(_check_word(entry, place) for place, entry in _entries(content, "models")),
        algorithms=tuple(_make_contender(entry, place) for place, entry in _entries(content, "algorithms")),
        **options,
    )


def _entries(content: Mapping[str, Any], kind: str) -> Iterator[tuple[str, object]]:
    """Yield the entries of a list, each with its place as error messages name it."""
    return ((f"{kind}, entry {number}", entry) for number, entry in enumerate(content[kind], start=1))


def _make_source(entry: object, folder: Path, place: str) -> Source:
    if isinstance(entry, str):
        return Source(_check_word(entry, place))
    if not isinstance(entry, Mapping) or "name" not in entry:
        raise SettingError(f"{place}: expected a name, or a table with name, table and target; got {_show(entry)}.")
    _check_keys(entry, [field.name for field in fields(Source)], f"{place}: the data set {_show(entry['name'])}")
    for key in ("name", "table", "target"):
        if key in entry:
            _check_word(entry[key], f"{place}, {key}")
    drop, impute = entry.get("drop", []), entry.get("impute", False)
    if not isinstance(drop, list) or not all(isinstance(column, str) for column in drop):
        raise SettingError(f"{place}, drop: expected a list of column names; got {_show(drop)}.")
    if not isinstance(impute, bool):
        raise SettingError(f"{place}, impute: expected true or false; got {_show(impute)}.")
    table = str(folder / entry["table"]) if "table" in entry else None
    return Source(entry["name"], table, entry.get("target"), tuple(drop), impute)


def _make_contender(entry: object, place: str) -> Contender:
    if isinstance(entry, str):
        return Contender(_check_word(entry, place), entry)
    if not isinstance(entry, Mapping) or "algorithm" not in entry:
        raise SettingError(
            f"{place}: expected a name, or a table with algorithm = NAME and its settings; got {_show(entry)}."
        )
    name = _check_word(entry["algorithm"], f"{place}, algorithm")
    race = entry.get("race", False)
    if not isinstance(race, bool):
        raise SettingError(f"{place}: race of the algorithm {name!r}: expected true or false; got {_show(race)}.")
    settings = {key: _freeze(value) for key, value in entry.items() if key not in ("algorithm", "label", "race")}
    label = _check_word(entry.get("label", f"{name} (race)" if race else name), f"{place}, label")
    contender = Contender(label, name, settings, race)
    with name_key_in_errors(place):
        contender.make()
    return contender


def _freeze(value: object) -> object:
    """Return lists as tuples, as the settings of algorithms are."""
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def _check_word(entry: object, place: str) -> str:
    if not isinstance(entry, str):
        raise SettingError(f"{place}: expected a name in quotes; got {_show(entry)}.")
    if not entry.strip() or any(unicodedata.category(letter) in _NOT_IN_NAMES for letter in entry):
        raise SettingError(f"{place}: expected a name on one line without control characters; got {_show(entry)}.")
    return entry


def _show(value: object) -> str:
    """Return a value as error messages quote it."""
    return _repr.repr(value)


def _check_value(value: object, place: str, level: int = 1) -> None:
    """Raise SettingError for what TOML allows and no key of a study uses: huge numbers, NaN, dates, deep nesting."""
    if level > _MOST_LEVELS:
        raise SettingError(f"{place.split(',')[0]}: tables and lists are nested more than {_MOST_LEVELS} deep.")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_value(inner, f"{place}, {key if key.isprintable() else repr(key)}", level + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value, start=1):
            _check_value(inner, f"{place}, entry {number}", level + 1)
    elif isinstance(value, int):
        if value.bit_length() > 63:
            raise SettingError(f"{place}: the number has more than the 64 bits of an integer in TOML.")
    elif isinstance(value, float) and math.isnan(value):
        raise SettingError(f"{place}: expected a number; got nan.")
    elif not isinstance(value, str | float):
        raise SettingError(f"{place}: a study cannot use a date or a time; got {value}.")


def _check_keys(content: Mapping[str, object], known: list[str], what: str) -> None:
    for key in content:
        if key not in known:
            raise SettingError(
                f"{what} has no entry {_show(key)}.{suggest(key, known)} The entries are {', '.join(known)}."
            )
