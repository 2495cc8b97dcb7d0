"""Nested cross-validation of a selector: the search is repeated inside an outer cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn import get_config
from sklearn.base import clone, is_regressor
from sklearn.model_selection import cross_validate
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

from subswarm._checks import check_int, check_jobs, shown
from subswarm._display import format_duration
from subswarm._search.front import FrontTable
from subswarm._search.result import rows_html
from subswarm._types import Estimator, FloatArray, Mask, Masks, Scorer, Scorings, Splits
from subswarm.engines.boosters import stopped_early
from subswarm.engines.data import Fold, column_names, for_columns, is_frame, params_for_columns, take_columns
from subswarm.errors import SettingError
from subswarm.objective.folds import NestedFold, check_outer, nested_folds
from subswarm.objective.scoring import first_scoring, resolve_scoring, scoring_for_target
from subswarm.objective.validation import (
    check_estimator,
    check_groups,
    check_metadata,
    check_target,
    clone_estimator,
    read_table,
)

__all__ = [
    "QUIET",
    "HeldOut",
    "NestedFront",
    "Selector",
    "check_no_routing",
    "describe_cost",
    "held_out",
    "plan_outer_folds",
    "run_outer_folds",
    "score_left_out",
]

QUIET = {
    "held_out": None,
    "permutation_test": None,
    "n_jobs": 1,
    "verbose": 0,
    "checkpoint": None,
    "record": False,
    "callbacks": (),
}
"""Settings of the searches that are repeated on other rows or targets."""


class Selector(Estimator, Protocol):
    """What nested cross-validation uses of a `SwarmSelector`."""

    estimator: Estimator
    cv: Splits | None
    scoring: Scorings
    early_stopping: int | None


@dataclass(frozen=True, eq=False)
class NestedFront:
    """The front of the search of one outer fold, scored on the rows that the search did not use.

    Attributes
    ----------
    cost : float array of shape (S,)
        Cost of each subset, ascending: its number of columns, or its price.
    scores : float array of shape (S,)
        Score of the model with each subset.
    """

    cost: FloatArray
    scores: FloatArray


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Nested scores of a selector: one score for each of K outer folds, on rows that its search did not use.

    Attributes
    ----------
    scores : float array of shape (K,)
        Score of the model with the columns selected on the other folds.
    baseline_scores : float array of shape (K,)
        Score of the model with all columns on the same rows; NaN if the model fails on them.
    inner_scores : float array of shape (K,)
        Score that each search reported for its own selection.
    supports : bool array of shape (K, n)
        Columns selected in each fold.
    seconds : float
        Time that the searches took.
    fronts : tuple of K NestedFront
        The front of each search, scored on the same rows; empty if they were not asked for.
    """

    scores: FloatArray
    baseline_scores: FloatArray
    inner_scores: FloatArray
    supports: Masks
    seconds: float
    fronts: tuple[NestedFront, ...] = ()

    @property
    def score(self) -> float:
        """Mean of ``scores``."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of ``score`` over the folds. The folds share training rows, so it is approximate."""
        if len(self.scores) == 1:
            return float("nan")
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores)))

    @property
    def baseline_score(self) -> float:
        """Mean of ``baseline_scores``."""
        return float(self.baseline_scores.mean())

    def _repr_html_(self) -> str:
        rows = {
            "nested score": f"{self.score:.4f}"
            + ("" if len(self.scores) == 1 else f" ± {self.standard_error:.4f} (standard error)"),
            "with all features": f"{self.baseline_score:.4f} on the same rows",
            "reported by the searches": f"{self.inner_scores.mean():.4f} (optimistic)",
            "features": ", ".join(str(size) for size in self.supports.sum(axis=1)) + " in the folds",
            "scores of the folds": ", ".join(f"{score:.4f}" for score in self.scores),
        }
        return rows_html(rows)

    def front_scores(self, costs: ArrayLike) -> FloatArray:
        """Return what a limit on the cost scores on rows that the searches did not use, shape (K, number of limits).

        For each limit and each outer fold, it is the score of the subset of lowest loss on the front of that search
        that costs at most the limit; NaN if the search saw none. ``choose="budget"`` selects this subset. It takes the
        searches of one nested cross-validation, whatever the number of limits; set ``front=True`` in `held_out`.
        """
        limits = np.asarray(costs, dtype=np.float64)
        found = np.full((len(self.fronts), len(limits)), np.nan)
        for scores, front in zip(found, self.fronts, strict=True):
            place = np.searchsorted(front.cost, limits, side="right") - 1
            scores[place >= 0] = front.scores[place[place >= 0]]
        return found

    def sentence(self) -> str:
        """Describe the scores in one sentence."""
        sizes = self.supports.sum(axis=1).mean()
        spread = "" if len(self.scores) == 1 else f" ± {self.standard_error:.4f}"
        searches = "1 search" if len(self.scores) == 1 else f"{len(self.scores)} searches"
        return (
            f"{self.score:.4f}{spread} with {sizes:.1f} features on rows that {searches} did not use; "
            f"{self.baseline_score:.4f} with all features"
        )


def held_out(
    selector: Selector,
    X: ArrayLike,
    y: ArrayLike,
    *,
    folds: Splits = 5,
    n_jobs: int | None = None,
    random_state: int = 0,
    groups: ArrayLike | None = None,
    params: Mapping[str, object] | None = None,
    front: bool = False,
) -> HeldOut:
    """Score a selector by nested cross-validation.

    The whole search is repeated on the training rows of each of K outer folds, and the model with the selected columns
    is scored on the test rows of that fold. This takes K searches, each on a share (K - 1) / K of the rows.
    ``SwarmSelector(held_out=K)`` does the same in ``fit``.

    Parameters
    ----------
    selector : SwarmSelector
        Fitted or not; it stays as it is.
    X, y : table of shape (N, n) and target of shape (N,)
    folds : int, splitter or list of splits, default=5
        The outer folds. A number of folds follows the selector's ``cv``:

        - ``TimeSeriesSplit``: each training row comes before each test row, with the same ``gap`` and ``test_size``.
        - A group splitter, or ``groups``: an outer fold consists of whole groups.
        - ``PredefinedSplit``: an outer fold consists of one or more whole predefined folds.
        - ``KFold`` and ``StratifiedKFold`` without shuffling: outer folds without shuffling.
        - A number, None, or a splitter that shuffles rows: shuffled, stratified for a classifier.

        If ``cv`` is a list of splits or a splitter of any other class, pass an outer splitter.
    n_jobs : int or None
        Number of searches that run at the same time.
    random_state : int, default=0
        Seed of the outer folds, if they are shuffled.
    groups : array of shape (N,), optional
        Passed to the splitters. Outer folds that follow ``cv`` keep the rows of a group together.
    params : dict, optional
        Metadata for the estimator's ``fit``, such as ``sample_weight``.
    front : bool, default=False
        Also score every subset on the front of each search; see `HeldOut.front_scores`. This takes one fit for each
        subset and outer fold.

    Returns
    -------
    HeldOut

    See Also
    --------
    subswarm.stability : How much the selections of several searches agree.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from subswarm import SwarmSelector, held_out
    >>> X, y = load_wine(return_X_y=True)
    >>> nested = held_out(SwarmSelector(GaussianNB(), cv=3, max_evaluations=60, random_state=0), X, y, folds=3)
    >>> nested.scores.shape, nested.supports.shape
    ((3,), (3, 13))
    """
    _check_selector(selector)
    check_outer("folds", folds)
    check_jobs("n_jobs", n_jobs)
    check_int("random_state", random_state, low=0, high=2**32 - 1)
    check_metadata(params)
    params = dict(params or {})
    check_no_routing(params if groups is None else {**params, "groups": groups})
    outer = plan_outer_folds(selector, X, y, folds=folds, random_state=random_state, groups=groups, setting="folds")
    return run_outer_folds(selector, X, y, outer, n_jobs=n_jobs, groups=groups, params=params, front=front)


def plan_outer_folds(
    selector: Selector,
    X: ArrayLike,
    y: ArrayLike,
    *,
    folds: Splits,
    random_state: int = 0,
    groups: ArrayLike | None = None,
    setting: str = "held_out",
) -> tuple[NestedFold, ...]:
    """Return the outer folds that `held_out` uses; raise an error if a search cannot run on one of them."""
    estimator = selector.estimator
    check_estimator(estimator)
    table = read_table(X, estimator).values
    multi_output = get_tags(estimator).target_tags.multi_output
    target = check_target(y, table.shape[0], numeric=is_regressor(estimator), multi_output=multi_output)
    check_groups(groups, table.shape[0])
    return nested_folds(
        selector.cv,
        folds,
        table,
        target,
        estimator=estimator,
        groups=groups,
        random_state=random_state,
        least_test_rows=resolve_scoring(estimator, selector.scoring).least_rows,
        setting=setting,
    )


def run_outer_folds(
    selector: Selector,
    X: ArrayLike,
    y: ArrayLike | None,
    outer: Sequence[NestedFold],
    *,
    n_jobs: int | None = None,
    groups: ArrayLike | None = None,
    params: Mapping[str, object] | None = None,
    front: bool = False,
) -> HeldOut:
    """Search and score on each of the planned outer folds, ``n_jobs`` at a time."""
    params = dict(params or {})
    started = time.perf_counter()
    settings = selector.get_params(deep=False) | QUIET | {"estimator": clone_estimator(selector.estimator)}
    quiet = type(selector)(**settings)
    scoring = first_scoring(scoring_for_target(selector.estimator, selector.scoring, np.asarray(y)))
    for_search = params if groups is None else {**params, "groups": groups}
    found = Parallel(n_jobs=n_jobs)(
        delayed(_search_and_score)(
            clone(quiet).set_params(cv=each.cv),
            X,
            y,
            each.outer,
            scoring,
            for_search,
            params if front else None,
        )
        for each in outer
    )
    return HeldOut(
        scores=np.array([score for score, _, _, _ in found], dtype=np.float64),
        baseline_scores=_score_all_columns(selector, X, y, params, outer, n_jobs, scoring),
        inner_scores=np.array([score for _, score, _, _ in found]),
        supports=np.array([support for _, _, support, _ in found]),
        seconds=time.perf_counter() - started,
        fronts=tuple(scored for _, _, _, scored in found if scored is not None),
    )


def check_no_routing(metadata: Mapping[str, object]) -> None:
    """Raise SettingError, before any search, for metadata that would have to be routed to the searches."""
    if metadata and get_config().get("enable_metadata_routing", False):
        raise SettingError(
            f"nested cross-validation cannot route {', '.join(metadata)} while enable_metadata_routing is set; use "
            "scikit-learn's cross_validate on a pipeline of the selector and the model instead."
        )


def describe_cost(folds: int, n_jobs: int | None, seconds: float) -> str:
    """Say what nested cross-validation will cost, given that one search took ``seconds``."""
    workers = min(folds, int(effective_n_jobs(n_jobs)))
    expected = seconds * (folds - 1) / folds * -(-folds // workers)
    return f"nested cross-validation: {folds} more searches, {workers} at a time, about {format_duration(expected)}"


def _check_selector(selector: object) -> None:
    """Raise SettingError for anything that does not have the settings of a `SwarmSelector`."""
    expected = {"estimator", "cv", "scoring", "early_stopping", *QUIET}
    if not isinstance(selector, type) and hasattr(selector, "get_params"):
        try:
            if expected <= set(selector.get_params(deep=False)):
                return
        except Exception:  # an object with a get_params of its own
            pass
    raise SettingError(f"selector must be a SwarmSelector; got {shown(selector)}.")


def _search_and_score(
    selector: Selector,
    X: ArrayLike,
    y: ArrayLike | None,
    fold: Fold,
    scoring: str | Scorer | None,
    params: Mapping[str, object],
    front_params: Mapping[str, object] | None,
) -> tuple[float, float, Mask, NestedFront | None]:
    """Return the score on an outer fold's test rows, the score that the search reported, and the columns selected.

    A selector predicts with its estimator fitted on the selected columns of the training rows. Also returns the scores
    of the search's front, if ``front_params`` has the metadata of its fits.
    """
    score, search = score_left_out(selector, X, y, fold, scoring=scoring, params=params)
    if search.result_.stop_reason == "interrupted":  # Ctrl-C means all searches, not this one
        raise KeyboardInterrupt
    model = stopped_early(clone_estimator(selector.estimator), selector.early_stopping)
    front = None if front_params is None else _score_front(search.front_, model, X, y, fold, scoring, front_params)
    return score, search.best_score_, search.support_, front


def _score_front(
    front: FrontTable,
    model: Estimator,
    X: ArrayLike,
    y: ArrayLike | None,
    fold: Fold,
    scoring: str | Scorer | None,
    params: Mapping[str, object],
) -> NestedFront:
    """Return the scores of the model with each subset on a front, fitted and scored on the rows of an outer fold."""
    names, table = column_names(X), X if is_frame(X) or sparse.issparse(X) else np.asarray(X)
    scores = [
        _score_model(
            for_columns(model, mask, names),
            take_columns(table, mask),
            y,
            [fold],
            scoring,
            params_for_columns(params, mask, names),
        )[0]
        for mask in front.masks
    ]
    return NestedFront(front.cost, np.array(scores))


def _score_model(
    model: Estimator,
    X: ArrayLike,
    y: ArrayLike | None,
    folds: Sequence[Fold],
    scoring: str | Scorer | None,
    params: Mapping[str, object],
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the score of a model on each fold, fitted on the training rows of the fold."""
    found = cross_validate(
        clone_estimator(model),
        X,
        y,
        cv=[(fold.train, fold.test) for fold in folds],
        scoring=scoring,
        params=dict(params) or None,
        n_jobs=n_jobs,
        error_score="raise",
    )
    return np.asarray(found["test_score"], dtype=np.float64)


def score_left_out(
    estimator: Estimator,
    X: ArrayLike,
    y: ArrayLike | None,
    fold: Fold,
    *,
    scoring: str | Scorer | None = None,
    params: Mapping[str, object] | None = None,
) -> tuple[float, Any]:
    """Fit an estimator on the training rows of a fold, and score it on the test rows.

    Returns the score and the fitted estimator.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")  # already given for all rows
        warnings.filterwarnings("ignore", message=r"scoring='roc_auc' of")  # likewise
        found = cross_validate(
            estimator,
            X,
            y,
            cv=[(fold.train, fold.test)],
            scoring=scoring,
            params=dict(params or {}) or None,
            error_score="raise",
            return_estimator=True,
        )
    return float(found["test_score"][0]), found["estimator"][0]


def _score_all_columns(
    selector: Selector,
    X: ArrayLike,
    y: ArrayLike | None,
    params: Mapping[str, object],
    outer: Sequence[NestedFold],
    n_jobs: int | None,
    scoring: str | Scorer | None,
) -> FloatArray:
    """Return the scores of the model with all columns, or NaN for each fold if it fails."""
    try:
        model = stopped_early(clone_estimator(selector.estimator), selector.early_stopping)
        return _score_model(model, X, y, [each.outer for each in outer], scoring, params, n_jobs)
    except Exception:  # an estimator may raise anything on all columns; the nested scores are still valid
        return np.full(len(outer), np.nan)
