"""A champion against one algorithm, against the best of all others, and (on rows never seen) against all features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from subswarm.analysis.results import Cell, Results
from subswarm.analysis.statistics import holm, mean_ranks, signed_rank_gain, wilcoxon
from subswarm.analysis.together import Together
from subswarm.core.checks import check_choice
from subswarm.core.errors import SettingError
from subswarm.core.types import FloatArray
from subswarm.study.records import Row

__all__ = [
    "ALL_FEATURES",
    "LEVEL",
    "WHAT",
    "Contest",
    "Score",
    "Verdict",
    "contests",
    "paired",
    "pooled",
    "verdicts",
]

ALL_FEATURES = "all features"
WHAT = {
    "error": "error of the search",
    "inner": "error of the search without each outer fold",
    "held-out": "error on rows never seen",
}
"""What may be compared, and what a title calls it."""
ABSENT = "–"
LEVEL = 0.05

Pair = tuple[int, int | None]
"""A run's number, and which outer cross-validation it was repeated in, or None."""


@dataclass(frozen=True)
class Score:
    """What one label achieved on one data set.

    Attributes
    ----------
    errors : by run number and, on rows never seen, repetition of the outer cross-validation
    size : mean cardinality
    inner : mean of the errors the searches minimised
    seconds : mean time of a search; NaN where there is none
    machines : what the searches ran on
    """

    errors: Mapping[Pair, float]
    size: float
    inner: float
    seconds: float = np.nan
    machines: frozenset[str] = frozenset()

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.errors.values())))

    @property
    def runs(self) -> int:
        return len(self.errors)


@dataclass(frozen=True)
class Verdict:
    """Holm-adjusted p (NaN where there is nothing to pair), and "+" (significantly better), "−" (worse) or "="."""

    p: float
    sign: str

    def __str__(self) -> str:
        return ABSENT if np.isnan(self.p) else f"{self.p:.2g} {self.sign}"


@dataclass(frozen=True, eq=False)
class Contest:
    """A champion's results with one model, on the data sets where it and its opponent have any.

    Attributes
    ----------
    scores : by data set, then by label; the labels are in the order of the stores
    unit : what one of ``scores`` is about
    """

    model: str
    champion: str
    against: str
    scores: Mapping[str, Mapping[str, Score]]
    unit: str = "data set"

    @property
    def names(self) -> list[str]:
        return list(self.scores)

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(label for scores in self.scores.values() for label in scores))

    def best_rivals(self) -> list[str]:
        """The label other than the champion with the lowest mean error (then size), for each data set."""
        return [
            min(
                (round(score.mean, 12), score.size, label) for label, score in scores.items() if label != self.champion
            )[2]
            for scores in self.scores.values()
        ]

    def of(self, labels: str | Iterable[str]) -> list[Score]:
        """The scores of one label, or of one for each data set."""
        chosen = [labels] * len(self.scores) if isinstance(labels, str) else labels
        return [scores[label] for scores, label in zip(self.scores.values(), chosen, strict=True)]

    def versus(self, labels: str | Iterable[str]) -> list[Verdict]:
        """The champion against them, corrected over the data sets."""
        return verdicts(self.of(self.champion), self.of(labels))

    def ranks(self) -> dict[str, float]:
        """Mean rank over the data sets, best first, of the labels that have results on all of them."""
        whole = [label for label in self.labels if all(label in scores for scores in self.scores.values())]
        average = mean_ranks([[scores[label].mean for label in whole] for scores in self.scores.values()])
        return {whole[place]: float(average[place]) for place in np.argsort(average, kind="stable")}


def contests(together: Together, champion: str, against: str, what: str) -> list[Contest]:
    """The champion against the others, one contest for each model with a data set that both have results on."""
    results = together.results
    check_choice("what", what, WHAT)
    for name, label in (("the champion", champion), ("--against", against)):
        _check_label(name, label, results.algorithms)
    if champion == against:
        raise SettingError(f"{champion!r} cannot be compared with itself; name another label with --against.")
    score = _error_scores(results) if what == "error" else _outer_scores(together, held_out=what == "held-out")
    found = []
    for model in results.models:
        scores = {dataset: score(dataset, model) for dataset in results.datasets}
        scores = {dataset: by for dataset, by in scores.items() if champion in by and against in by}
        if scores:
            found.append(Contest(model, champion, against, scores))
    if not found:
        outer = "" if what == "error" else " with every outer fold"
        raise SettingError(
            f"there is no data set on which both {champion!r} and {against!r} have a finished run{outer}; run the "
            "study of one of them on the data sets and models of the other."
        )
    return found


def pooled(found: Sequence[Contest]) -> Contest:
    """The contests of several models as one, in which a data set with a model is a problem."""
    scores = {f"{name} with {each.model}": by for each in found for name, by in each.scores.items()}
    models = " and ".join(each.model for each in found)
    return Contest(models, found[0].champion, found[0].against, scores, unit="problem")


def paired(ours: Mapping[Pair, float], theirs: Mapping[Pair, float]) -> tuple[FloatArray, FloatArray]:
    """The errors of the (run, fold) pairs both have; a single run is paired with every run of the other.

    Examples
    --------
    >>> [values.tolist() for values in paired({(0, None): 0.1, (1, None): 0.2}, {(0, None): 0.3})]
    [[0.1, 0.2], [0.3, 0.3]]
    """
    first, second = _for_every_run(ours, theirs), _for_every_run(theirs, ours)
    common = [pair for pair in first if pair in second]
    return np.array([first[pair] for pair in common]), np.array([second[pair] for pair in common])


def verdicts(ours: Sequence[Score], theirs: Sequence[Score]) -> list[Verdict]:
    """Wilcoxon's signed-rank test on each data set, corrected over them by Holm's rule."""
    pairs = [paired(one.errors, other.errors) for one, other in zip(ours, theirs, strict=True)]
    raw = np.array([wilcoxon(*pair) for pair in pairs])
    adjusted = holm(np.where(np.isnan(raw), 1.0, raw))
    found = []
    for pair, p, each in zip(pairs, raw, adjusted, strict=True):
        sign = "=" if not each < LEVEL else "+" if signed_rank_gain(*pair) > 0 else "−"
        found.append(Verdict(float("nan") if np.isnan(p) else float(each), sign))
    return found


def _error_scores(results: Results) -> Callable[[str, str], dict[str, Score]]:
    def scores(dataset: str, model: str) -> dict[str, Score]:
        cells = {label: results.cell(dataset, model, label) for label in results.algorithms}
        return {
            label: _score(cell, {(row.planned.run, None): row.content.loss for row in cell.rows})
            for label, cell in cells.items()
            if cell is not None
        }

    return scores


def _outer_scores(together: Together, *, held_out: bool) -> Callable[[str, str], dict[str, Score]]:
    """Of the searches inside an outer cross-validation: their errors on the rows held out, or those they minimised."""
    results = together.results
    if not together.outer:
        raise SettingError(
            "these stores held no rows out; run their studies again with --outer 5 (the searches already done are "
            "kept), or take --what error."
        )
    if len(together.outer) > 1:
        raise SettingError(
            f"these stores held rows out in {' and '.join(map(str, together.outer))} folds, which are not the same "
            "rows; name stores that agree."
        )

    folds = results.info.folds_at_a_time

    def scores(dataset: str, model: str) -> dict[str, Score]:
        cells = {label: results.outer_cell(dataset, model, label) for label in results.algorithms}
        whole = {label: _whole(cell.rows, folds) for label, cell in cells.items() if cell is not None}
        by_label = {label: rows for label, rows in whole.items() if rows}
        if not by_label:
            return {}
        common = set.intersection(*({_pair(row, folds)[1] for row in rows} for rows in by_label.values()))
        found = {ALL_FEATURES: _all_features(results, dataset, model, common)} if common and held_out else {}
        for label, rows in by_label.items():
            cell = Cell(tuple(row for row in rows if _pair(row, folds)[1] in common), 0)
            if cell.rows:
                errors = cell.held_out if held_out else cell.losses
                pairs = zip((_pair(row, folds) for row in cell.rows), errors.tolist(), strict=True)
                found[label] = _score(cell, _averaged(pairs))
        return found

    return scores


def _whole(rows: Sequence[Row], folds: int) -> list[Row]:
    """Those of outer cross-validations with a result on every fold: a mean over some would be of other rows."""
    found = Counter(_pair(row, folds) for row in rows)
    return [row for row in rows if found[_pair(row, folds)] == folds]


def _pair(row: Row, folds: int) -> Pair:
    fold = row.planned.outer_fold
    return row.planned.run, None if fold is None else fold // folds


def _averaged(errors: Iterable[tuple[Pair, float]]) -> dict[Pair, float]:
    found: dict[Pair, list[float]] = {}
    for pair, error in errors:
        found.setdefault(pair, []).append(error)
    return {pair: float(np.mean(of_folds)) for pair, of_folds in found.items()}


def _all_features(results: Results, dataset: str, model: str, repetitions: Set[int | None]) -> Score:
    folds = results.info.folds_at_a_time
    facts = {
        fold: results.problems[dataset, model, fold]
        for fold in range(results.info.outer)
        if fold // folds in repetitions
    }
    errors = _averaged(
        ((0, fold // folds), np.nan if each.held_out_all is None else each.held_out_all) for fold, each in facts.items()
    )
    n_features = next(iter(facts.values())).n_features
    return Score(errors, float(n_features), float(np.mean([each.loss_all for each in facts.values()])))


def _score(cell: Cell, errors: dict[Pair, float]) -> Score:
    seconds = float(cell.seconds.sum(axis=1).mean())
    machines = frozenset(row.timing.machine for row in cell.rows)
    return Score(errors, float(cell.sizes.mean()), float(cell.losses.mean()), seconds, machines)


def _for_every_run(errors: Mapping[Pair, float], other: Mapping[Pair, float]) -> Mapping[Pair, float]:
    runs = {run for run, _ in errors}
    if len(runs) != 1:
        return errors
    single = runs.pop()
    return {(run, fold): errors[single, fold] for run, fold in other if (single, fold) in errors}


def _check_label(name: str, label: str, labels: Sequence[str]) -> None:
    if label in labels:
        return
    close = get_close_matches(label, labels, n=1)
    meant = f" (did you mean {close[0]!r}?)" if close else ""
    raise SettingError(
        f"{name} {label!r} has no finished run in these stores{meant}; those that have are {', '.join(labels)}."
    )
