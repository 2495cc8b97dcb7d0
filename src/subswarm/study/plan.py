"""From a grid to runs: each has a key, and a seed that follows from the key alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from subswarm.algorithms import Race, get_algorithm
from subswarm.core.checks import check_choice, check_int
from subswarm.core.errors import SettingError
from subswarm.datasets import DEMO_NAMES, PROTOCOLS
from subswarm.datasets import names as catalogue_names
from subswarm.models import make_model

__all__ = ["Contender", "Only", "PlannedRun", "Source", "Study"]


@dataclass(frozen=True)
class Source:
    """A data set of a study.

    Attributes
    ----------
    name : a name of the catalogue, "breast-cancer" or "digits", "openml:ID", or any name for a table of one's own
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
        return self.table is None and self.name in catalogue_names()

    def check(self, protocol: str) -> None:
        """Refuse a name that leads nowhere, before anything is computed."""
        if self.table is not None:
            if self.target is None:
                raise SettingError(f"the data set {self.name!r} is a file; name its target column with target = ...")
        elif not self.in_catalogue and self.name not in DEMO_NAMES and not self.name.startswith("openml:"):
            known = [*catalogue_names(), *DEMO_NAMES]
            hint = _meant(self.name, known) or f"; the names are {', '.join(dict.fromkeys(known))}"
            raise SettingError(f"there is no data set {self.name!r}{hint}. A file is given as {{name, table, target}}.")
        if protocol == "published" and not self.in_catalogue:
            raise SettingError(
                f"the published protocol is about the paper's data sets, and {self.name!r} is none of them; "
                'use protocol = "sound".'
            )


@dataclass(frozen=True)
class Contender:
    """An algorithm with its settings, under the label the tables show.

    ``race`` says whether it runs inside a `subswarm.algorithms.Race`.
    """

    label: str
    algorithm: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    race: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """The settings, and that it races where it does."""
        return {**self.settings, **({"race": True} if self.race else {})}

    def make(self) -> Any:
        """The algorithm itself."""
        algorithm = get_algorithm(self.algorithm, **self.settings)
        return Race(algorithm) if self.race else algorithm

    def __hash__(self) -> int:
        return hash((self.label, self.algorithm, _canonical(self.facts)))


@dataclass(frozen=True)
class PlannedRun:
    """One run of the grid.

    Attributes
    ----------
    dataset, model, algorithm : names; ``algorithm`` is the contender's label
    run : its number, from 0
    outer_fold : the fold held out, or None where the search sees all rows
    key : 32 hexadecimal digits that say all that the result depends on
    seed : of the search; it follows from the same facts
    """

    dataset: str
    model: str
    algorithm: str
    run: int
    outer_fold: int | None
    key: str
    seed: int

    @property
    def group(self) -> tuple[str, str, int | None]:
        """Runs of one group share data, folds and engine."""
        return self.dataset, self.model, self.outer_fold

    def __str__(self) -> str:
        held_out = "" if self.outer_fold is None else f", fold {self.outer_fold + 1} held out"
        return f"{self.dataset}, {self.model}, {self.algorithm}, run {self.run + 1}{held_out}"


@dataclass(frozen=True, kw_only=True)
class Study:
    """What to run.

    Parameters
    ----------
    name : str
    datasets : tuple of Source
    models : tuple of str
        Names of `subswarm.models.MODELS`.
    algorithms : tuple of Contender
    runs : int, default=40
    evaluations : int, default=6000
    protocol : "sound" or "published"
        How the data sets are read and the folds drawn.
    folds : int, default=10
    repeats : int, default=1
        Partitions into folds; each that a subset is scored on is one evaluation.
    outer : int, default=0
        Folds of the outer cross-validation; 0 for none. Each search is then also repeated without each outer fold.
    outer_repeats : int, default=1
        How often the outer cross-validation is repeated, on other folds each time; the folds are counted through.
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
        check_choice("protocol", self.protocol, PROTOCOLS)
        check_int("runs", self.runs, low=1)
        check_int("evaluations", self.evaluations, low=1)
        check_int("folds", self.folds, low=2)
        check_int("repeats", self.repeats, low=1)
        check_int("outer", self.outer, low=0)
        check_int("outer_repeats", self.outer_repeats, low=1)
        check_int("seed", self.seed, low=0)
        if self.outer == 1:
            raise SettingError("outer=1: an outer cross-validation needs at least 2 folds, or 0 for none.")
        if self.outer_repeats > 1 and not self.outer:
            raise SettingError(
                f"outer_repeats={self.outer_repeats}, but there is no outer cross-validation to repeat; give outer "
                "its number of folds, such as 5."
            )
        for kind, named in self.names().items():
            if not named:
                raise SettingError(f"the study names no {kind}; name at least one.")
            twice = [name for name in named if named.count(name) > 1]
            if twice:
                raise SettingError(f"{kind} names {twice[0]!r} twice; give one of them another name or label.")
        for source in self.datasets:
            source.check(self.protocol)
            if source.impute and self.outer:
                raise SettingError(
                    f"the data set {source.name!r} is imputed as a whole, so rows held out would have a part in it; "
                    "impute it yourself inside each fold, or leave outer at 0."
                )
        for model in self.models:
            make_model(model)
        for contender in self.algorithms:
            contender.make()
            if contender.race and self.repeats == 1:
                raise SettingError(
                    f"{contender.label!r} races, which needs several partitions; give the study repeats = 4, say, or "
                    "leave out race = true."
                )

    def names(self) -> dict[str, list[str]]:
        """The names of the data sets, models and algorithms."""
        return {
            "datasets": [source.name for source in self.datasets],
            "models": list(self.models),
            "algorithms": [contender.label for contender in self.algorithms],
        }

    def source(self, name: str) -> Source:
        return next(source for source in self.datasets if source.name == name)

    def contender(self, label: str) -> Contender:
        return next(contender for contender in self.algorithms if contender.label == label)

    @property
    def outer_folds(self) -> int:
        """The outer folds of all repetitions."""
        return self.outer * self.outer_repeats

    def plan(self) -> list[PlannedRun]:
        """Every run, in the order of the grid."""
        outer_folds: list[int | None] = [None, *range(self.outer_folds)]
        return [
            self._planned(source.name, model, contender, run, outer_fold)
            for source in self.datasets
            for model in self.models
            for outer_fold in outer_folds
            for run in range(self.runs)
            for contender in self.algorithms
        ]

    def frame(self) -> dict[str, Any]:
        """What all runs of one store have in common, as JSON values."""
        return {
            "protocol": self.protocol,
            "evaluations": self.evaluations,
            "folds": self.folds,
            "seed": self.seed,
            **({"repeats": self.repeats} if self.repeats > 1 else {}),  # else as it always was
            **({"outer_repeats": self.outer_repeats} if self.outer_repeats > 1 else {}),
        }

    def _planned(self, dataset: str, model: str, contender: Contender, run: int, outer_fold: int | None) -> PlannedRun:
        facts = {
            **{name: value for name, value in self.frame().items() if name != "outer_repeats"},
            "dataset": dataset,
            "model": model,
            "algorithm": contender.algorithm,
            "settings": contender.facts,
            "run": run,
            "outer": None if outer_fold is None else [outer_fold, self.outer],
        }
        digest = hashlib.sha256(_canonical(facts).encode()).hexdigest()
        return PlannedRun(dataset, model, contender.label, run, outer_fold, digest[:32], int(digest[32:], 16))


@dataclass(frozen=True)
class Only:
    """A part of the grid: each word names a data set, a model or an algorithm.

    Words of one kind add up; where a kind is not named, all of it is meant.
    """

    words: tuple[str, ...] = ()

    def of(self, study: Study) -> Study:
        """The study, cut down to what the words name."""
        known = study.names()
        unknown = [word for word in self.words if not any(word in names for names in known.values())]
        if unknown:
            every = [name for names in known.values() for name in names]
            raise SettingError(
                f"--only names {unknown[0]!r}{_meant(unknown[0], every)}, which is no data set, model or algorithm of "
                f"this study; it has {', '.join(every)}."
            )

        def kept(kind: str) -> list[str]:
            return [name for name in known[kind] if name in self.words] or known[kind]

        return replace(
            study,
            datasets=tuple(study.source(name) for name in kept("datasets")),
            models=tuple(kept("models")),
            algorithms=tuple(study.contender(label) for label in kept("algorithms")),
        )


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=list)


def _meant(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
