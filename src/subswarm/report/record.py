"""The record of one selection, from which the terminal summary, the JSON and the page are made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from subswarm._display import package_versions
from subswarm._permutation import PermutationTest
from subswarm._search.honest import HonestScore
from subswarm._search.result import SearchResult, Stability, stability
from subswarm._types import Estimator, FloatArray, Mask, Masks
from subswarm.algorithms import get_algorithm
from subswarm.engines.data import Scoring
from subswarm.nested import HeldOut
from subswarm.objective.scoring import resolve_scoring
from subswarm.selector import FitFacts, SwarmSelector

__all__ = ["Selection", "search_with_algorithms", "search_with_seeds"]


@dataclass(frozen=True, eq=False)
class Selection:
    """A fitted selector with the names and comparisons that its outputs show. `Selection.of` fills in the defaults.

    Attributes
    ----------
    selector : the fitted selector
    table, target, model : names of the table, the target and the model
    names : names of the columns
    command : the command that made the selection, or ""
    other_seeds : the same selection with other seeds
    other_algorithms : the same selection with other algorithms
    """

    selector: SwarmSelector
    table: str
    target: str
    model: str
    names: Sequence[str]
    command: str = ""
    other_seeds: Mapping[int, SwarmSelector] = field(default_factory=dict)
    other_algorithms: Mapping[str, SwarmSelector] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        selector: SwarmSelector,
        *,
        table: str = "the table",
        target: str | None = None,
        model: str | None = None,
        names: Sequence[str] | None = None,
        command: str = "",
        other_seeds: Mapping[int, SwarmSelector] | None = None,
        other_algorithms: Mapping[str, SwarmSelector] | None = None,
    ) -> Selection:
        """Make the record of a fitted selector; names that are not given come from the data passed to ``fit``."""
        if names is None:
            numbered = [f"x{column}" for column in range(selector.n_features_in_)]
            names = [str(name) for name in getattr(selector, "feature_names_in_", numbered)]
        return cls(
            selector,
            table,
            target or selector._facts.target_name or "the target",
            model or _model_name(selector.estimator_),
            names,
            command,
            other_seeds or {},
            other_algorithms or {},
        )

    @property
    def result(self) -> SearchResult:
        """The search."""
        return self.selector.result_

    @property
    def held_out(self) -> HeldOut | None:
        """The nested scores, if they were measured."""
        return self.selector.held_out_

    @property
    def corrected(self) -> HonestScore | None:
        """The corrected score with its interval."""
        return self.selector._honest

    @property
    def interval(self) -> str:
        """The interval of the corrected score in words: a formula is less certain than left-out rows."""
        found = self.corrected
        if found is None:
            return ""
        if found.is_from_left_out:
            return f"95 % interval {found.low:.4f} to {found.high:.4f}"
        return f"likely between {found.low:.4f} and {found.high:.4f}"

    @property
    def agreement(self) -> str:
        """How much the islands agree, in words; "" without islands."""
        found, shares = self.selector.stability_, self.selector.island_shares_
        if found is None or shares is None or not math.isfinite(found.value):
            return ""
        limits = f" (95 % interval {found.low:.2f} to {min(found.high, 1.0):.2f})"
        always = int((shares == 1).sum())
        return f"stability {found.value:.2f}{limits}, {always} features selected by every island"

    @property
    def facts(self) -> FitFacts:
        """Seed, number of rows and digest of the data."""
        return self.selector._facts

    @property
    def task(self) -> str:
        """ "classification" or "regression"."""
        return "classification" if is_classifier(self.selector.estimator_) else "regression"

    @cached_property
    def scoring(self) -> Scoring:
        """The scorer, with its name."""
        return resolve_scoring(self.selector.estimator_, self.selector.scoring)

    @property
    def selected(self) -> list[str]:
        """Names of the selected columns."""
        return self.names_in(self.selector.support_)

    @property
    def repeated_supports(self) -> Masks:
        """Selections of the repeated searches (outer folds and other seeds), shape (searches, n)."""
        folds = [] if self.held_out is None else list(self.held_out.supports)
        found = [*folds, *(other.support_ for other in self.other_seeds.values())]
        return np.array(found, dtype=bool).reshape(len(found), len(self.names))

    @property
    def warnings(self) -> list[str]:
        """What makes the score less meaningful than it looks, one sentence each."""
        return [finding.sentence(self.names) for finding in self.selector.findings_]

    def scores(self, losses: FloatArray) -> list[float]:
        """Return the scores that belong to losses."""
        return [self.scoring.score(float(loss)) for loss in losses]

    def names_in(self, mask: Mask) -> list[str]:
        """Return the names of the columns in a mask."""
        return [name for name, is_selected in zip(self.names, mask, strict=True) if is_selected]

    def as_json(self) -> dict[str, Any]:
        """Return the selection as values that JSON can hold."""
        selector, result = self.selector, self.result
        return {
            "table": self.table,
            "target": self.target,
            "task": self.task,
            "model": self.model,
            "scoring": self.scoring.name,
            "selected": self.selected,
            "support": selector.support_.tolist(),
            "n_features": selector.n_features_,
            "n_features_in": selector.n_features_in_,
            "honest_score": selector.honest_score_,
            "honest_interval": None if selector.honest_interval_ is None else list(selector.honest_interval_),
            "honest_from": None
            if self.corrected is None
            else "left-out rows"
            if self.corrected.is_from_left_out
            else "formula",
            "best_score": selector.best_score_,
            "stability": None if selector.stability_ is None else _stability_json(selector.stability_),
            "island_shares": None if selector.island_shares_ is None else selector.island_shares_.tolist(),
            "fold_scores": selector.fold_scores_.tolist(),
            "repeats": result.n_partitions,
            "baseline_score": _number_or_none(selector.baseline_score_),
            "scores": {name: _number_or_none(value) for name, value in selector.scores_.items()},
            "baseline_scores": {name: _number_or_none(value) for name, value in selector.baseline_scores_.items()},
            "optimistic": True,
            "warnings": [
                {"kind": finding.kind, "text": sentence, "columns": [self.names[column] for column in finding.columns]}
                for finding, sentence in zip(selector.findings_, self.warnings, strict=True)
            ],
            "held_out": None if self.held_out is None else _nested_json(self.held_out),
            "cost_front": self._cost_front(),
            "nested_front": self._nested_front(),
            "permutation_test": None if selector.permutation_test_ is None else _test_json(selector.permutation_test_),
            "seeds": {str(seed): self._brief(other) for seed, other in self.other_seeds.items()},
            "against": {name: self._brief(other) for name, other in self.other_algorithms.items()},
            "front": [
                {
                    "n_features": int(size),
                    "loss": float(loss),
                    "features": self.names_in(mask),
                    "scores": {
                        name: _number_or_none(float(values[row])) for name, values in selector.front_scores_.items()
                    },
                }
                for row, (size, loss, mask) in enumerate(
                    zip(result.front.cardinality, result.front.fitness, result.front.masks, strict=True)
                )
            ],
            "algorithm": result.algorithm,
            "settings": result.settings,
            "seed": self.facts.seed,
            "evaluations": result.evaluations,
            "computed": result.computed,
            "stop_reason": result.stop_reason,
            "engine": result.engine,
            "algorithm_seconds": result.algorithm_seconds,
            "evaluation_seconds": result.evaluation_seconds,
            "versions": package_versions(),
        }

    def _cost_front(self) -> dict[str, object] | None:
        """Return the front if it is not one of loss and number of features, which ``front`` has."""
        front = self.selector.front_
        if front.cost_name == "features":
            return None
        return {
            "objective": front.cost_name,
            "subsets": [
                {"cost": cost, "n_features": size, "loss": loss, "features": self.names_in(mask)}
                for cost, size, loss, mask in zip(
                    front.cost.tolist(), front.size.tolist(), front.loss.tolist(), front.masks, strict=True
                )
            ],
        }

    def _nested_front(self) -> list[dict[str, object]] | None:
        """Return the scores for each limit on the cost on rows that the searches did not use, if they were measured."""
        front, nested = self.selector.front_, self.held_out
        if nested is None or not nested.fronts:
            return None
        return [
            {"cost": cost, "scores": [_number_or_none(score) for score in scores]}
            for cost, scores in zip(front.cost.tolist(), nested.front_scores(front.cost).T.tolist(), strict=True)
        ]

    def _brief(self, other: SwarmSelector) -> dict[str, object]:
        return {
            "best_score": other.best_score_,
            "n_features": other.n_features_,
            "selected": self.names_in(other.support_),
        }


def search_with_seeds(
    selector: SwarmSelector,
    X: ArrayLike,
    y: ArrayLike,
    seeds: Iterable[int],
    params: Mapping[str, object] | None = None,
) -> dict[int, SwarmSelector]:
    """Repeat a selection with other seeds, each with its own folds; ``params`` is the metadata passed to ``fit``."""
    return {seed: _fit_again(selector, X, y, params, random_state=seed) for seed in seeds}


def search_with_algorithms(
    selector: SwarmSelector,
    X: ArrayLike,
    y: ArrayLike,
    names: Iterable[str],
    params: Mapping[str, object] | None = None,
) -> dict[str, SwarmSelector]:
    """Repeat a selection with other algorithms and their published settings, on the same folds.

    If the cross-validation is repeated, algorithms that do not distribute their evaluations among the repeats race.
    """
    n_repeats = selector.result_.n_partitions
    found = {}
    for name in names:
        algorithm = get_algorithm(name)
        race = n_repeats > 1 and not algorithm.uses_single_partitions
        repeats = n_repeats if selector.cv is None or isinstance(selector.cv, int) else 1
        found[name] = _fit_again(selector, X, y, params, algorithm=algorithm, repeats=repeats, race=race)
    return found


def _fit_again(
    selector: SwarmSelector, X: ArrayLike, y: ArrayLike, params: Mapping[str, object] | None, **changes: object
) -> SwarmSelector:
    copy: SwarmSelector = clone(selector)
    copy.set_params(**selector._chosen_limits)  # the budget that was chosen, and not another one
    copy.set_params(checkpoint=None, verbose=0, record=False, held_out=None, permutation_test=None, **changes)
    fitted = copy.fit(X, y, **(params or {}))
    if fitted.result_.stop_reason == "interrupted":  # Ctrl-C means all searches, not this one
        raise KeyboardInterrupt
    return fitted


def _model_name(estimator: Estimator) -> str:
    """Return the class name of an estimator, or of the last step of a pipeline."""
    return type(estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator).__name__


def _test_json(found: PermutationTest) -> dict[str, object]:
    return {"p_value": found.p_value, "count": found.count, "scores": found.scores.tolist()}


def _stability_json(found: Stability) -> dict[str, float | None]:
    return {name: _number_or_none(getattr(found, name)) for name in ("value", "low", "high")}


def _nested_json(nested: HeldOut) -> dict[str, object]:
    arrays = {
        "scores": nested.scores,
        "baseline_scores": nested.baseline_scores,
        "inner_scores": nested.inner_scores,
        "n_features": nested.supports.sum(axis=1),
    }
    return {
        "score": _number_or_none(nested.score),
        "baseline_score": _number_or_none(nested.baseline_score),
        "stability": _number_or_none(stability(nested.supports).value),
        **{name: [_number_or_none(value) for value in array.tolist()] for name, array in arrays.items()},
    }


def _number_or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
