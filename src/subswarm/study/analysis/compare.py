"""Compares one algorithm, the champion, with another one, with the best of all others, and with all features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from subswarm._checks import check_choice, suggest
from subswarm._types import FloatArray
from subswarm.errors import SettingError
from subswarm.study.analysis.combined import CombinedResults
from subswarm.study.analysis.ranks import mean_ranks
from subswarm.study.analysis.results import ABSENT, Cell, Results, mean_loss, mean_seconds, mean_size
from subswarm.study.analysis.statistics import holm, signed_rank_gain, wilcoxon
from subswarm.study.records import Row

__all__ = [
    "ALL_FEATURES",
    "LEVEL",
    "WHAT",
    "Comparison",
    "Score",
    "Verdict",
    "compare_algorithms",
    "pair_errors",
    "pool",
]

ALL_FEATURES = "all features"
WHAT = {
    "error": "cross-validated error",
    "inner": "inner error of nested cross-validation",
    "held-out": "error in nested cross-validation",
}
"""What can be compared, and how titles name it."""
LEVEL = 0.05

Pair = tuple[int, int | None]
"""A run number, and the outer repeat that the run belongs to, or None."""


@dataclass(frozen=True)
class Score:
    """What one label achieved on one data set.

    Attributes
    ----------
    errors : by run number and outer repeat
    size : mean cardinality
    inner : mean of the errors that the searches minimised
    seconds : mean time of a search; NaN if there was none
    machines : the machines that the searches ran on
    """

    errors: Mapping[Pair, float]
    size: float
    inner: float
    seconds: float = np.nan
    machines: frozenset[str] = frozenset()

    @property
    def mean(self) -> float:
        """The mean error."""
        return float(np.mean(list(self.errors.values())))

    @property
    def runs(self) -> int:
        """The number of errors."""
        return len(self.errors)


@dataclass(frozen=True)
class Verdict:
    """Holm-adjusted p (NaN if there is nothing to pair), and "+" (significantly better), "−" (worse) or "="."""

    p: float
    sign: str

    def __str__(self) -> str:
        return ABSENT if np.isnan(self.p) else f"{self.p:.2g} {self.sign}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results of a champion and others with one model, on the data sets where it and its opponent have any.

    Attributes
    ----------
    model, champion, against : the model, and the labels of the champion and its opponent
    scores : by data set, then by label; the labels are in the order of the stores
    unit : what one entry of ``scores`` is called
    """

    model: str
    champion: str
    against: str
    scores: Mapping[str, Mapping[str, Score]]
    unit: str = "data set"

    @property
    def names(self) -> list[str]:
        """The data sets."""
        return list(self.scores)

    @property
    def labels(self) -> list[str]:
        """All labels."""
        return list(dict.fromkeys(label for scores in self.scores.values() for label in scores))

    def best_rivals(self) -> list[str]:
        """Return the label other than the champion with the lowest mean error (then size), for each data set."""
        return [
            min(
                (round(score.mean, 12), score.size, label) for label, score in scores.items() if label != self.champion
            )[2]
            for scores in self.scores.values()
        ]

    def of(self, labels: str | Iterable[str]) -> list[Score]:
        """Return the scores of one label, or of one label for each data set."""
        chosen = [labels] * len(self.scores) if isinstance(labels, str) else labels
        return [scores[label] for scores, label in zip(self.scores.values(), chosen, strict=True)]

    def versus(self, labels: str | Iterable[str]) -> list[Verdict]:
        """Test the champion against these labels on each data set, corrected over the data sets."""
        return _test(self.of(self.champion), self.of(labels))

    def ranks(self) -> dict[str, float]:
        """Return the mean rank over the data sets, best first, of the labels with results on all of them."""
        complete = [label for label in self.labels if all(label in scores for scores in self.scores.values())]
        average = mean_ranks([[scores[label].mean for label in complete] for scores in self.scores.values()])
        return {complete[place]: float(average[place]) for place in np.argsort(average, kind="stable")}


def compare_algorithms(combined: CombinedResults, champion: str, against: str, what: str) -> list[Comparison]:
    """Compare the champion with the others: one comparison for each model with a data set that both have results on."""
    results = combined.results
    check_choice("what", what, WHAT)
    for name, label in (("the champion", champion), ("--against", against)):
        _check_label(name, label, results.algorithms)
    if champion == against:
        raise SettingError(f"{champion!r} cannot be compared with itself; name another label with --against.")
    score = _error_scores(results) if what == "error" else _outer_scores(combined, held_out=what == "held-out")
    found = []
    for model in results.models:
        scores = {dataset: score(dataset, model) for dataset in results.datasets}
        scores = {dataset: by for dataset, by in scores.items() if champion in by and against in by}
        if scores:
            found.append(Comparison(model, champion, against, scores))
    if not found:
        outer = "" if what == "error" else " with every outer fold"
        raise SettingError(
            f"there is no data set on which both {champion!r} and {against!r} have a finished run{outer}; run the "
            "study of one of them on the data sets and models of the other."
        )
    return found


def pool(found: Sequence[Comparison]) -> Comparison:
    """Return the comparisons of several models as one, in which a data set with a model is a problem."""
    scores = {f"{name} with {each.model}": by for each in found for name, by in each.scores.items()}
    models = " and ".join(each.model for each in found)
    return Comparison(models, found[0].champion, found[0].against, scores, unit="problem")


def pair_errors(ours: Mapping[Pair, float], theirs: Mapping[Pair, float]) -> tuple[FloatArray, FloatArray]:
    """Return the errors of the pairs that both have; a single run is paired with every run of the other.

    Examples
    --------
    >>> [values.tolist() for values in pair_errors({(0, None): 0.1, (1, None): 0.2}, {(0, None): 0.3})]
    [[0.1, 0.2], [0.3, 0.3]]
    """
    first, second = _repeat_single_run(ours, theirs), _repeat_single_run(theirs, ours)
    common = [pair for pair in first if pair in second]
    return np.array([first[pair] for pair in common]), np.array([second[pair] for pair in common])


def _test(ours: Sequence[Score], theirs: Sequence[Score]) -> list[Verdict]:
    """Compute Wilcoxon's signed-rank test on each data set, corrected over the data sets with Holm's rule."""
    pairs = [pair_errors(one.errors, other.errors) for one, other in zip(ours, theirs, strict=True)]
    raw = np.array([wilcoxon(*pair) for pair in pairs])
    adjusted = holm(np.where(np.isnan(raw), 1.0, raw))
    found = []
    for pair, p, each in zip(pairs, raw, adjusted, strict=True):
        sign = "=" if not each < LEVEL else "+" if signed_rank_gain(*pair) > 0 else "−"
        found.append(Verdict(float("nan") if np.isnan(p) else float(each), sign))
    return found


def _error_scores(results: Results) -> Callable[[str, str], dict[str, Score]]:
    """Return a function that scores the searches on all rows of a data set, by label."""

    def scores(dataset: str, model: str) -> dict[str, Score]:
        cells = {label: results.cell(dataset, model, label) for label in results.algorithms}
        return {
            label: _make_score(cell, {(row.planned.run, None): row.content.loss for row in cell.rows})
            for label, cell in cells.items()
            if cell is not None
        }

    return scores


def _outer_scores(combined: CombinedResults, *, held_out: bool) -> Callable[[str, str], dict[str, Score]]:
    """Return a function that scores nested cross-validation, by label: errors on the outer folds, or inner errors."""
    results = combined.results
    if not combined.outer:
        raise SettingError(
            "these stores have no nested cross-validation; run their studies again with --outer 5 (finished runs are "
            "kept), or use --what error."
        )
    if len(combined.outer) > 1:
        raise SettingError(
            f"these stores have {' and '.join(map(str, combined.outer))} outer folds, which are not the same rows; "
            "name stores that agree."
        )

    folds = results.info.folds_per_outer_repeat

    def scores(dataset: str, model: str) -> dict[str, Score]:
        cells = {label: results.outer_cell(dataset, model, label) for label in results.algorithms}
        complete = {label: _complete_rows(cell.rows, folds) for label, cell in cells.items() if cell is not None}
        by_label = {label: rows for label, rows in complete.items() if rows}
        if not by_label:
            return {}
        common = set.intersection(*({_pair(row, folds)[1] for row in rows} for rows in by_label.values()))
        found = {ALL_FEATURES: _score_all_features(results, dataset, model, common)} if common and held_out else {}
        for label, rows in by_label.items():
            cell = Cell(tuple(row for row in rows if _pair(row, folds)[1] in common), 0)
            if cell.rows:
                errors = cell.held_out if held_out else cell.losses
                pairs = zip((_pair(row, folds) for row in cell.rows), errors.tolist(), strict=True)
                found[label] = _make_score(cell, _average(pairs))
        return found

    return scores


def _complete_rows(rows: Sequence[Row], folds: int) -> list[Row]:
    """Return the rows of outer repeats with a result on every fold: a mean over some folds would be over other rows."""
    found = Counter(_pair(row, folds) for row in rows)
    return [row for row in rows if found[_pair(row, folds)] == folds]


def _pair(row: Row, folds: int) -> Pair:
    fold = row.planned.outer_fold
    return row.planned.run, None if fold is None else fold // folds


def _average(errors: Iterable[tuple[Pair, float]]) -> dict[Pair, float]:
    found: dict[Pair, list[float]] = {}
    for pair, error in errors:
        found.setdefault(pair, []).append(error)
    return {pair: float(np.mean(of_folds)) for pair, of_folds in found.items()}


def _score_all_features(results: Results, dataset: str, model: str, repeats: Set[int | None]) -> Score:
    folds = results.info.folds_per_outer_repeat
    facts = {
        fold: results.problems[dataset, model, fold] for fold in range(results.info.outer) if fold // folds in repeats
    }
    errors = _average(
        ((0, fold // folds), np.nan if each.held_out_all is None else each.held_out_all) for fold, each in facts.items()
    )
    n_features = next(iter(facts.values())).n_features
    return Score(errors, float(n_features), float(np.mean([each.loss_all for each in facts.values()])))


def _make_score(cell: Cell, errors: dict[Pair, float]) -> Score:
    machines = frozenset(row.timing.machine for row in cell.rows)
    return Score(errors, mean_size(cell), mean_loss(cell), mean_seconds(cell), machines)


def _repeat_single_run(errors: Mapping[Pair, float], other: Mapping[Pair, float]) -> Mapping[Pair, float]:
    """Return the errors of a single run for every run of the other; several runs are returned unchanged."""
    runs = {run for run, _ in errors}
    if len(runs) != 1:
        return errors
    single = runs.pop()
    return {(run, repeat): errors[single, repeat] for run, repeat in other if (single, repeat) in errors}


def _check_label(name: str, label: str, labels: Sequence[str]) -> None:
    if label not in labels:
        raise SettingError(
            f"{name} {label!r} has no finished run in these stores.{suggest(label, labels)} The labels with finished "
            f"runs are {', '.join(labels)}."
        )
