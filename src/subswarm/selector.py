"""`SwarmSelector`: feature selection as a scikit-learn transformer."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from subswarm._checks import check_bool, check_choice, check_int, check_real, shown
from subswarm._compilation import announced, compile_seconds, is_compiling_aside, may_compile_aside
from subswarm._fingerprint import digest
from subswarm._permutation import PermutationTest, describe_permutations, run_permutations, shuffles
from subswarm._search.callbacks import Callback, ProgressBar, check_callbacks
from subswarm._search.choice import RULES, choose_subset, found_something, known_subset
from subswarm._search.front import FrontTable, make_front, scores_by_size
from subswarm._search.honest import Compared, HonestScore, compare, corrected_score
from subswarm._search.loop import search
from subswarm._search.plan import (
    AUTO,
    Plan,
    PlanLimits,
    Repeats,
    ends_before_workers_pay,
    is_auto,
    plan_search,
    prepare_kernels,
    time_notice,
)
from subswarm._search.result import History, SearchResult, island_stability, one_standard_error
from subswarm._seeding import seed_from, set_random_states
from subswarm._types import AnyArray, Estimator, FloatArray, IntArray, Mask, Predictor, Scorings, Splits, Subset
from subswarm.algorithms import FoldwiseRace, Race, TwoDElite, as_algorithm
from subswarm.algorithms.base import Algorithm
from subswarm.algorithms.pareto.objectives import MultiObjective
from subswarm.engines.base import DEVICES, ENGINES
from subswarm.engines.boosters import model_has, stopped_early
from subswarm.engines.data import for_columns, is_frame, params_for_columns, take_columns
from subswarm.errors import DataError, DataTypeError, SettingError, SubswarmWarning
from subswarm.nested import HeldOut, check_no_routing, describe_cost, run_outer_folds
from subswarm.objective.constraints import ColumnsView, Space, column_prices, feature_prices, make_space
from subswarm.objective.filters import check_preselection
from subswarm.objective.findings import ColumnFacts, Finding, describe_columns, find_in_scores, find_in_table
from subswarm.objective.folds import DEFAULT_FOLDS, NestedFold, check_outer, nested_folds
from subswarm.objective.objective import Objective, make_objective
from subswarm.objective.scoring import first_scoring, resolve_all, resolve_scoring, scoring_for_target
from subswarm.objective.validation import allows_nan, check_estimator, clone_estimator
from subswarm.plot._methods import Plots

__all__ = ["FitFacts", "SwarmSelector"]

T = TypeVar("T")

FOLDS = "folds"
"""The value of ``race`` for a race on the folds."""

MOST_ROWS = 5000
"""With ``max_rows="auto"``, the rows on which an island compares subsets. docs/results/answers.md has measurements."""

INTERRUPTED = "interrupted: the best subset so far is scored now; Ctrl-C again ends at once"


@dataclass(frozen=True)
class FitFacts:
    """What a report says about the data passed to ``fit``.

    Attributes
    ----------
    seed : the seed of folds and search
    n_rows : rows of the table
    target_name : name of the target, or "" if it has none
    digest : SHA-256 digest of the table and the target
    search_seconds : time of the search, without the compilation of kernels
    """

    seed: int
    n_rows: int
    target_name: str
    digest: str
    search_seconds: float


@dataclass(frozen=True)
class ScoredSize:
    """The size of a subset and its mean score."""

    size: int
    score: float


class SwarmSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Select features with a search over subsets, each scored by cross-validation of an estimator.

    The search maximises ``best_score_``, so this score is optimistic for new rows. ``held_out=5`` adds a nested
    cross-validation, which costs five more searches.

    Parameters
    ----------
    estimator : estimator or pipeline
        The model that will use the features. Clones of it are scored; the object itself stays unfitted.
    algorithm : str or algorithm, default="auto"
        A name from ``subswarm.algorithms.names()``, or an algorithm object with your own settings. "auto" is
        "2d-guided" for a model that has ``feature_importances_`` or ``coef_`` (or is histogram gradient boosting) and
        no fast engine, such as boosted trees and forests, and "2d-elite" for all others.
    cv : int, splitter, list of splits or None
        The folds, drawn once before the search. An integer means shuffled folds (stratified for a classifier) drawn
        with ``random_state``. None means 10 folds, or fewer (with a warning) if there are fewer rows or no class has
        10 rows.
    repeats : int or "auto", default="auto"
        How often the cross-validation is repeated with other folds, if ``cv`` is not a splitter. The score of a subset
        is the mean over all repeats, and each repeat scored counts as one evaluation.
        ``cv=RepeatedStratifiedKFold(...)`` has the same effect. "auto" is chosen for low error on new rows: an
        algorithm that distributes its evaluations among the repeats, such as "2d-elite", gets one repeat for every
        1000 of ``max_evaluations``, at most 6. From 4 repeats on, each leaves out a block of rows, on which the number
        of features is chosen (cross-fitting). Other algorithms, and searches with ``patience``, groups or a splitter,
        get 1 repeat.
    max_rows : int, "auto" or None, default="auto"
        On how many rows each island of a cross-fitted search compares subsets, if the table has more. Each island draws
        other rows, with the classes in proportion. The subsets to select from are then scored on all rows, and so is
        ``best_score_``. "auto" is 5000, None means all rows. Searches that are not cross-fitted always use all rows.
    race : bool or "folds", default=False
        True scores a subset on all repeats only if it does well on the first one (see `subswarm.algorithms.Race`).
        Most subsets then cost one evaluation. "folds" is for models that take long to fit: a subset is scored fold by
        fold, and given up once it is clearly behind what it must beat (see `subswarm.algorithms.FoldwiseRace`).
    scoring : str, callable, list of str, dict or None
        As in scikit-learn. None is the estimator's own score. Of several scorers (a list of names, or a dict of scorers
        by name) the search optimises the first; ``scores_`` and ``front_scores_`` have all of them. "2d-pareto" and
        "nsga2" with ``objectives="scores"`` minimise the losses by two scorers together.
    max_evaluations : int, "auto" or None, default="auto"
        Number of subsets that may be scored, repeated ones included. If the cross-validation is repeated, each repeat
        counts. "auto" is 6000 with a fast engine, and without limit if ``max_fits`` is set. For other models the time
        of a fit is measured first, and "auto" is what takes about three minutes (or ``max_seconds``), at most 6000. The
        number depends on the speed of the machine then, so set a number or ``max_fits`` for repeatable results.
    max_fits : int or None
        Number of times the estimator may be fitted in the search: an evaluation takes one fit for each fold.
    max_seconds : float or None
        Time limit of the search.
    patience : int or None
        Stop after this many evaluations without a better subset.
    min_features, max_features : int, int or None
        Fewest and most columns to select.
    fixed_features : list of column indices or names, optional
        Columns that are always selected.
    feature_groups : list of lists of column indices or names, optional
        Columns that are selected together, such as the columns of a one-hot encoded category.
    initial_subsets : list of subsets, optional
        Subsets to start from, each as column indices, names or a mask.
    preselect : (ranking, number) or None
        Search only among this many features: those that a filter ("mutual-information", "anova-f", "relieff" or
        "mrmr") ranks highest on the table passed to ``fit``. Fixed features are always included.
    choose : "smallest", "best", "one-se", "knee" or "budget", default="smallest"
        Which subset to select. "smallest" is the smallest one that is not worse than the best by more than the noise of
        the paired differences between their losses. These are taken on rows or folds that the search did not optimise:
        the left-out rows, or two new repeats of the cross-validation if ``cv`` is a number of folds. How many standard
        errors count as noise grows with the rows: 0.7 for 200 rows, 1.7 for 1000. "best" is the subset with the best
        score. "one-se" is the smallest one whose score is within one standard error of the best score. "knee" and
        "budget" select from ``front_``: "knee" the subset after which more cost brings little (see `FrontTable.knee`),
        "budget" the best one that costs at most ``max_cost``.
    max_cost : float or None
        With ``choose="budget"``, the highest cost of the selected subset; without ``feature_costs`` its most columns,
        and with ``objectives="scores"`` its highest second loss.
    feature_costs : list of float, dict from column to float, or None
        Price of each column. A group of columns is priced once, at its highest price. The algorithms "2d-pareto" and
        "nsga2" minimise the loss and the cost together; the others ignore the prices, which then only affect
        ``front_``.
    held_out : int, splitter, list of splits or None
        Nested cross-validation: repeat the search without each of this many outer folds, score its selection there,
        and store the result in ``held_out_``. It costs one more search for each fold; ``n_jobs`` of them run at a
        time. A number of outer folds follows ``cv`` (see `subswarm.held_out`); a splitter or a list of splits is used
        as it is.
    permutation_test : int or None
        Permutation test: repeat the search on this many shuffled targets and store the scores and the p-value in
        ``permutation_test_``. With ``groups`` the target is shuffled within them. Each costs one more search;
        ``n_jobs`` of them run at a time.
    early_stopping : int or None
        For LightGBM, XGBoost, CatBoost and HistGradientBoosting, alone or at the end of a pipeline: stop adding trees
        after this many without a better score on a tenth of the rows that the model is fitted on. The test rows of a
        fold are never used for it.
    engine : "auto", "estimator", "fast" or "torch", default="auto"
        What scores the subsets: "auto" is the fastest exact engine, "estimator" is scikit-learn itself, "fast" and
        "torch" are engines that raise an error if they do not support the estimator.
    n_jobs : int or None
        Number of joblib workers. The result does not depend on it.
    device : "cpu" or "cuda"
        "cuda" scores on an NVIDIA GPU and needs the extra ``gpu``. The result does not depend on it.
    random_state : int, RandomState instance or None
        Seed of the folds, the search and each ``random_state=None`` inside the estimator. The global random state is
        not used.
    verbose : int, default=0
        1 shows a progress bar in a terminal or notebook (but nothing in log files) and prints the expected time of a
        long search and of ``held_out`` on standard error. 0 shows nothing.
    callbacks : list of functions
        Each is called with a `Snapshot` after each step. If one returns True, the search stops.
    checkpoint : path, optional
        File to save the search to, and to resume it from after an interruption.
    record : bool, default=False
        Whether ``result_`` keeps every subset visited and the likelihoods of the swarm, for plots and reports.

    Attributes
    ----------
    support_ : bool array of shape (``n_features_in_``,)
        Mask of the selected columns.
    n_features_ : int
        Number of selected columns.
    best_score_ : float
        Mean of ``fold_scores_``.
    fold_scores_ : float array of shape (n_folds,)
        Score of the selected columns in each fold, exactly as ``cross_val_score`` gives it on ``folds_``. The search
        optimised it or similar scores, so it is optimistic.
    honest_score_ : float or None
        Corrected score: an estimate of the score on new rows, never above ``best_score_``. If the search was
        cross-fitted, it is the mean score on the left-out rows of models whose search did not use these rows, for a
        subset of the selected kind and size. Otherwise ``best_score_`` is corrected for what a search gains by chance.
        None only for scorers of your own with a single fold.
    honest_interval_ : (float, float) or None
        95 % interval of the score on new rows, for the sampling of the rows and the uncertainty of the correction.
    stability_ : Stability or None
        How much the islands agree: 1 if the corresponding subsets of all islands are equal, about 0 if they agree no
        more than by chance, with its 95 % interval (see `subswarm.stability`). None for a search without islands,
        or that ended before they could be compared.
    island_shares_ : float array of shape (``n_features_in_``,) or None
        Share of the islands that select each column.
    baseline_score_ : float
        Mean score of all columns on the same folds; NaN if the estimator fails on them.
    scores_ : dict of str to float
        Mean score of the selected columns by each scorer in ``scoring``, ``best_score_`` first.
    baseline_scores_ : dict of str to float
        The same for all columns.
    front_scores_ : dict of str to float array
        Mean score of each subset in ``result_.front`` by each scorer; NaN where a scorer fails.
    folds_ : list of (train rows, test rows)
        The folds, repeat by repeat; one repeat of all rows if the search was cross-fitted.
    front_ : FrontTable
        The subsets that no other one beats in both cost (or number of columns) and loss, with standard errors. With
        ``held_out`` and a multi-objective algorithm, ``choose="knee"`` or ``choose="budget"``, it also has the loss of
        each of them on rows that the searches did not use.
    held_out_ : HeldOut or None
        The nested scores; None if ``held_out`` is None or the search was interrupted.
    permutation_test_ : PermutationTest or None
        ``scores`` on shuffled targets, ``count`` (how many are at least ``best_score_``) and ``p_value``; None if
        ``permutation_test`` is None or the search was interrupted.
    findings_ : tuple of Finding
        Warnings about the table and the scores: nothing found, a score no better than the share of the commonest
        class, a column that is a copy of the target, ids, constant and duplicated columns, and so on.
    result_ : SearchResult
        The search: best subset, best subset of each size (``front``), engine, timings.
    history_ : History
        The search step by step.
    cv_results_ : dict of arrays
        The best subset of each size, in ascending order: ``n_features``, ``support`` (masks of shape (S, n)),
        ``mean_test_score``, ``std_test_score`` and ``split{k}_test_score`` for each fold. A score that the search did
        not compute, or computed before it was resumed from a checkpoint, is NaN.
    estimator_ : estimator
        The model fitted on the selected columns of all rows, with each ``random_state=None`` inside it set to the seed.
        `predict`, `predict_proba`, `decision_function` and `score` use it.
    classes_ : array
        The classes of a classifier.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : array of shape (``n_features_in_``,)
        Names of the columns. Only set if the table has column names.

    See Also
    --------
    held_out : Nested cross-validation of a selector.
    search : The search itself, on any objective.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from subswarm import SwarmSelector
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> selector = SwarmSelector(GaussianNB(), max_evaluations=300, random_state=0).fit(X, y)
    >>> selector.n_features_ < selector.n_features_in_, round(selector.best_score_, 2)
    (True, 0.97)
    >>> selector.transform(X).shape[1] == selector.n_features_
    True
    """

    def __init__(
        self,
        estimator: Estimator,
        algorithm: str | Algorithm[Any] = "auto",
        *,
        cv: Splits | None = None,
        repeats: int | str = "auto",
        max_rows: int | str | None = "auto",
        race: bool | str = False,
        scoring: Scorings = None,
        max_evaluations: int | str | None = "auto",
        max_fits: int | None = None,
        max_seconds: float | None = None,
        patience: int | None = None,
        min_features: int = 1,
        max_features: int | None = None,
        fixed_features: Iterable[int | str] | None = None,
        feature_groups: Iterable[Iterable[int | str]] | None = None,
        initial_subsets: Iterable[ArrayLike] | None = None,
        preselect: tuple[str, int] | None = None,
        choose: str = "smallest",
        max_cost: float | None = None,
        feature_costs: Iterable[float] | Mapping[str, float] | None = None,
        held_out: Splits | None = None,
        permutation_test: int | None = None,
        early_stopping: int | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        device: str = "cpu",
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: int = 0,
        callbacks: Iterable[Callback] = (),
        checkpoint: str | PathLike[str] | None = None,
        record: bool = False,
    ) -> None:
        self.estimator = estimator
        self.algorithm = algorithm
        self.cv = cv
        self.repeats = repeats
        self.max_rows = max_rows
        self.race = race
        self.scoring = scoring
        self.max_evaluations = max_evaluations
        self.max_fits = max_fits
        self.max_seconds = max_seconds
        self.patience = patience
        self.min_features = min_features
        self.max_features = max_features
        self.fixed_features = fixed_features
        self.feature_groups = feature_groups
        self.initial_subsets = initial_subsets
        self.preselect = preselect
        self.choose = choose
        self.max_cost = max_cost
        self.feature_costs = feature_costs
        self.held_out = held_out
        self.permutation_test = permutation_test
        self.early_stopping = early_stopping
        self.engine = engine
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.record = record

    @may_compile_aside()
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: object) -> Self:
        """Search for the best subset of columns.

        Parameters
        ----------
        X : table of shape (N, n)
            The estimator gets a frame of pandas or Polars as a frame of the selected columns, a sparse matrix as a
            sparse matrix, and any other table as an array of float64.
        y : target of shape (N,)
        **params : metadata
            ``groups`` goes to the splitter; ``sample_weight`` and anything else go to the estimator's ``fit``. With
            ``sklearn.set_config(enable_metadata_routing=True)`` each goes to the objects that requested it.

        Returns
        -------
        self
        """
        self._check_settings()
        if self.held_out is not None:
            check_outer("held_out", self.held_out)
            check_no_routing(params)
        if self.permutation_test is not None:
            check_no_routing(params)
        seed = seed_from(self.random_state)
        fit_params, groups = self._split_metadata(params)
        estimator = set_random_states(clone_estimator(self.estimator), seed)
        estimator = stopped_early(estimator, self.early_stopping, seed)
        make = partial(
            make_objective,
            estimator,
            X,
            y,
            cv=self.cv,
            max_rows=MOST_ROWS if isinstance(self.max_rows, str) else self.max_rows,
            scoring=self.scoring,
            groups=groups,
            n_jobs=self.n_jobs,
            device=self.device,
            random_state=seed,
            engine=self.engine,
            params=fit_params,
        )
        plan = self._plan(make)
        objective = plan.objective
        if self.race and self.race != FOLDS and objective.n_partitions == 1:
            raise SettingError(
                "race=True needs a repeated cross-validation, and this one has 1 repeat; set repeats=4, say, or use a "
                "repeated splitter as cv."
            )
        outer = self._outer_folds(objective, groups, seed)
        orders = shuffles(objective.data.y, self.permutation_test, seed, groups) if self.permutation_test else []
        self._set_feature_names(X)
        space = make_space(
            objective.n_features,
            getattr(self, "feature_names_in_", None),
            fixed_features=self.fixed_features,
            feature_groups=self.feature_groups,
            initial_subsets=self.initial_subsets,
            min_features=self.min_features,
            max_features=self.max_features,
        )
        if self.preselect is not None:
            ranking, keep = self.preselect
            space = space.among_best(space.feature_scores(objective.ranking(ranking)), keep)
        prices = self._prices(space)
        compiled = compile_seconds()
        prepare_kernels(objective, plan.algorithm, announce=bool(self.verbose))
        with announced(bool(self.verbose) and not is_compiling_aside()):
            result = self._search(plan, space, seed, prices)
        compiled = compile_seconds() - compiled
        if plan.is_foldwise:  # its partitions are folds, and not repeats of all of them
            result = replace(result, n_partitions=plan.n_repeats)
        self.result_ = result
        self.history_: History = result.history
        self.estimator_ = cast(Predictor, estimator)
        self._facts = FitFacts(
            seed,
            objective.n_rows,
            _name_of_target(y),
            digest([objective.data.X if objective.data.is_plain else objective.data.table, objective.data.y]),
            max(0.0, result.algorithm_seconds + result.evaluation_seconds - compiled),
        )
        self.front_: FrontTable = self._insist(
            partial(
                make_front,
                result,
                objective,
                names=getattr(self, "feature_names_in_", None),
                owner=space.owner,
                prices=prices,
                second_scorer=objective.data.other_scorings[0].name if plan.algorithm.n_losses > 1 else None,
            )
        )
        chosen, left_out = self._chosen(result, objective)
        reported = objective.on_all_rows()
        self.folds_ = reported.folds
        self._score(reported, chosen)
        self._found_something = self._insist(partial(found_something, result, objective))
        self._insist(partial(self._correct, reported, left_out, plan.n_repeats if plan.is_foldwise else None))
        self.stability_, self.island_shares_ = island_stability(result, self.support_)
        self._score_by_all(reported)
        self._column_facts = _unless_interrupted(partial(self._describe, reported, result))
        self._one_standard_error = _unless_interrupted(partial(self._score_smallest, reported, result))
        self.cv_results_ = self._insist(partial(scores_by_size, result, objective))
        weights = self._fit_metadata(params, fit_params)
        names = objective.data.names
        self._is_fitted_on_frame = objective.data.frame is not None
        self._keeps_frames = not objective.data.is_plain and self._is_fitted_on_frame
        self.estimator_ = for_columns(self.estimator_, self.support_, names)
        weights = params_for_columns(weights, self.support_, names)
        self._insist(partial(self.estimator_.fit, objective.data.columns(self.support_), objective.data.y, **weights))
        self.held_out_: HeldOut | None = None
        if outer is not None and result.stop_reason != "interrupted":
            try:
                self.held_out_ = self._measure_held_out(estimator, outer, X, y, groups, fit_params, seed)
                if self.held_out_.fronts:
                    nested_scores = self.held_out_.front_scores(self.front_.cost)
                    self.front_ = self.front_.with_nested_losses(objective.scoring.loss(nested_scores))
            except KeyboardInterrupt:
                warnings.warn(
                    "nested cross-validation was interrupted; the search itself is complete, without a nested score.",
                    SubswarmWarning,
                    stacklevel=2,
                )
        self.permutation_test_: PermutationTest | None = None
        if orders and result.stop_reason != "interrupted":
            self._test_permutations(estimator, X, objective.data.y, orders, groups, fit_params, seed)
        self.findings_ = self._insist(partial(self._find, objective))
        return self

    @available_if(model_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: ArrayLike) -> AnyArray:
        """Predict the target of rows with the model fitted on the selected columns.

        Parameters
        ----------
        X : table of shape (N, n), with all columns

        Returns
        -------
        array of shape (N,)
        """
        columns = self._selected_columns(X)
        return self.estimator_.predict(columns)

    @available_if(model_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict the probabilities of the classes, shape (N, n_classes), with the model fitted on selected columns."""
        columns = self._selected_columns(X)
        return self.estimator_.predict_proba(columns)

    @available_if(model_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the decision function of the model fitted on the selected columns."""
        columns = self._selected_columns(X)
        return self.estimator_.decision_function(columns)

    @available_if(model_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: ArrayLike, y: ArrayLike, **params: object) -> float:
        """Score the model fitted on the selected columns with ``scoring``, or with its own score.

        Parameters
        ----------
        X : table of shape (N, n), with all columns
        y : target of shape (N,)
        **params : metadata for the scorer, such as ``sample_weight``
        """
        columns = self._selected_columns(X)
        try:
            target = np.asarray(y)
        except (ValueError, OverflowError) as error:
            raise DataError(f"y must have one entry for each row: {error}") from error
        scoring = resolve_scoring(self.estimator_, scoring_for_target(self.estimator_, self.scoring, target))
        return float(scoring.scorer(self.estimator_, columns, y, **params))

    @property
    def classes_(self) -> AnyArray:
        """The classes of the model fitted on the selected columns."""
        return self.estimator_.classes_

    def transform(self, X: ArrayLike) -> AnyArray:
        """Return the selected columns.

        A table of numbers becomes an array, or what ``set_output`` says, as with scikit-learn's own selectors. A frame
        with other columns, such as categories, stays a frame, and a sparse matrix a sparse matrix.

        Parameters
        ----------
        X : table of shape (N, n), with all columns

        Returns
        -------
        table of shape (N, ``n_features_``)
        """
        check_is_fitted(self)
        if self._keeps_frames and is_frame(X):
            return self._selected_columns(X)
        return cast(AnyArray, super().transform(X))

    def _selected_columns(self, X: ArrayLike) -> AnyArray:
        """Return the selected columns of a table, as the model was fitted on: a frame, a sparse matrix or an array."""
        check_is_fitted(self)
        if sparse.issparse(X) or (self._is_fitted_on_frame and is_frame(X)):
            validate_data(self, X, skip_check_array=True, reset=False)
            return cast(AnyArray, take_columns(X, self.support_))
        allow_nan = get_tags(self).input_tags.allow_nan
        try:
            table = validate_data(
                self, X, dtype=np.float64, ensure_all_finite="allow-nan" if allow_nan else True, reset=False
            )
        except OverflowError as error:
            raise DataError("X has numbers too large for a float64; scale or drop them.") from error
        return np.asarray(table[:, self.support_])

    def subset_of_size(self, size: int) -> Subset:
        """Return the best subset with exactly ``size`` columns that the search saw; KeyError if it saw none."""
        check_is_fitted(self)
        return self.result_.front.subset_of_size(size)

    @property
    def plot(self) -> Plots:
        """Plots of the fitted selector, such as ``selector.plot.trade_off()``. See `subswarm.plot.Plots`."""
        check_is_fitted(self)
        baseline = None
        if np.isfinite(self.baseline_score_):
            scoring = resolve_scoring(self.estimator_, self.scoring)
            baseline = float(scoring.loss(np.array(self.baseline_score_)))
        return Plots(self.result_, names=getattr(self, "feature_names_in_", None), baseline=baseline, table=self.front_)

    def report(self, path: str | PathLike[str], *, table: str = "the table", target: str | None = None) -> Path:
        """Write a report of the fitted selector as one self-contained HTML page.

        It is the page that ``subswarm select --report`` writes. Fit with ``record=True`` to chart every subset visited,
        and with ``held_out=5`` to fill the section on nested cross-validation. Reports need the extra ``report``.

        Parameters
        ----------
        path : path
            The file to write; an existing file is replaced.
        table, target : str
            Names of the table and the target in the report. The target's own name is used if it has one.

        Returns
        -------
        Path
            The file written.
        """
        check_is_fitted(self)
        from subswarm.report.record import Selection  # imported here, because the report imports this module
        from subswarm.report.selection_page import write_page

        return write_page(Selection.of(self, table=table, target=target), path)

    def _check_settings(self) -> None:
        """Raise an error that names the setting, before anything is computed."""
        check_estimator(self.estimator)
        stopped_early(self.estimator, self.early_stopping)
        if not is_auto(self.algorithm):
            as_algorithm(self.algorithm)
        if not isinstance(self.race, str):
            check_bool("race", self.race)
        elif self.race != FOLDS:
            raise SettingError(f'race must be True, False or "{FOLDS}"; got {shown(self.race)}.')
        if isinstance(self.max_rows, str):
            check_choice("max_rows", self.max_rows, ("auto",))
        check_bool("record", self.record)
        check_choice("choose", self.choose, RULES)
        check_real("max_cost", self.max_cost, low=0, optional=True)
        if (self.max_cost is None) == (self.choose == "budget"):
            raise SettingError(
                f'choose="budget" and max_cost are set together; got choose={self.choose!r} and '
                f"max_cost={self.max_cost!r}."
            )
        check_choice("engine", self.engine, ENGINES)
        check_choice("device", self.device, DEVICES)
        check_int("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, low=0)
        check_int("min_features", self.min_features, low=1)
        check_int("max_features", self.max_features, low=1, optional=True)
        if isinstance(self.max_evaluations, str):
            check_choice("max_evaluations", self.max_evaluations, (AUTO,))
        else:
            check_int("max_evaluations", self.max_evaluations, low=1, optional=True)
        check_int("max_fits", self.max_fits, low=1, optional=True)
        check_real("max_seconds", self.max_seconds, low=0, optional=True)
        check_int("permutation_test", self.permutation_test, low=1, optional=True)
        check_int("patience", self.patience, low=1, optional=True)
        if self.max_evaluations is self.max_fits is self.max_seconds is self.patience is None:
            raise SettingError(
                "set at least one of max_evaluations, max_fits, max_seconds and patience, so that the search ends."
            )
        check_preselection(self.preselect)
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | PathLike):
            raise SettingError(f"checkpoint must be a path or None; got {shown(self.checkpoint)}.")

    def _split_metadata(self, params: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return the metadata for the estimator and the scorer, and the groups for the splitter."""
        if get_config().get("enable_metadata_routing", False):
            routed = process_routing(self, "fit", **params)
            return {**routed.estimator.fit, **routed.scorer.score}, routed.splitter.split.get("groups")
        remaining = {name: value for name, value in params.items() if value is not None}
        return remaining, remaining.pop("groups", None)

    def _fit_metadata(self, params: dict[str, Any], fit_params: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata that the estimator's ``fit`` takes, without that of the scorer."""
        if get_config().get("enable_metadata_routing", False):
            return dict(process_routing(self, "fit", **params).estimator.fit)
        return fit_params

    def _set_feature_names(self, X: ArrayLike) -> None:
        """Set ``n_features_in_`` and ``feature_names_in_``."""
        try:
            validate_data(self, X, skip_check_array=True)
        except TypeError as error:  # column names of mixed types
            raise DataTypeError(str(error)) from error

    def _repeats(self) -> Repeats:
        """Return how often the cross-validation is repeated."""
        if isinstance(self.repeats, str):
            check_choice("repeats", self.repeats, (AUTO,))
        algorithm = TwoDElite() if is_auto(self.algorithm) else as_algorithm(self.algorithm)
        distributes = algorithm.uses_single_partitions and not algorithm.scores_folds and not self.race
        end_is_known = self.patience is None  # the islands merge their subsets at the end of the budget
        may_repeat = self.cv is None or isinstance(self.cv, int | np.integer)
        return Repeats(self.repeats, distributes and end_is_known and may_repeat)

    def _plan(self, make: Callable[..., Objective]) -> Plan:
        """Return the algorithm, the objective and the budget of the search; ``make`` makes an objective."""
        limits = PlanLimits(self.max_evaluations, self.max_fits, self.max_seconds, self.patience)
        repeats = self._repeats()

        def make_repeated(evaluations: int | None) -> Objective:
            return make(repeats=repeats.count(evaluations), cross_fit=repeats.are_cross_fitted(evaluations))

        likely, n_jobs = limits.likely_evaluations(), self.n_jobs
        objective = make_repeated(likely)
        if objective.engine == "estimator" and ends_before_workers_pay(self.max_seconds, n_jobs):
            n_jobs, make = 1, partial(make, n_jobs=1)
            objective = make_repeated(likely)
        if likely is None and self.max_fits is not None:
            likely = int(self.max_fits) // objective.data.folds_each
            objective = make_repeated(likely)
        algorithm = TwoDElite() if self.race and is_auto(self.algorithm) else self.algorithm
        if self.race == FOLDS and not as_algorithm(algorithm).scores_folds:
            algorithm = FoldwiseRace(as_algorithm(algorithm))
        plan = plan_search(
            objective,
            algorithm,
            limits,
            n_jobs=n_jobs,
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
        )
        self._chosen_limits = plan.chosen_limits
        if plan.is_foldwise or repeats.count(plan.evaluations) == repeats.count(likely):
            return plan
        return replace(plan, objective=make_repeated(plan.evaluations))  # fewer repeats for fewer evaluations

    def _insist(self, work: Callable[[], T]) -> T:
        """Do what a finished search needs for its result, and after a first Ctrl-C do it again."""
        try:
            return work()
        except KeyboardInterrupt:
            if self.result_.stop_reason == "interrupted":  # this is the second one
                raise
            return work()

    def _prices(self, space: Space) -> FloatArray | None:
        """Return the price of each feature of the search, or None without prices."""
        if self.feature_costs is None:
            return None
        names = getattr(self, "feature_names_in_", None)
        return feature_prices(column_prices(self.feature_costs, self.n_features_in_, names), space.owner)

    def _chosen(self, result: SearchResult, objective: Objective) -> tuple[Subset, FloatArray | None]:
        """Return the subset that ``choose`` selects, and the losses of its kind on left-out rows, if there are any."""
        try:
            return choose_subset(result, objective, self.choose, self.front_, self.max_cost)
        except KeyboardInterrupt:  # the search is complete; only the comparison of its candidates is not
            return known_subset(result, result.best)

    def _describe(self, objective: Objective, result: SearchResult) -> ColumnFacts | None:
        """Return facts on the selected columns for a report, if the search is recorded; slow models are spared."""
        if not self.record or result.stop_reason == "interrupted":
            return None
        expected = self.n_features_ * result.evaluation_seconds / max(1, result.computed)
        return describe_columns(
            objective, self.support_, with_losses=expected < max(5.0, self._facts.search_seconds / 10)
        )

    def _score_smallest(self, objective: Objective, result: SearchResult) -> ScoredSize | None:
        """Score the smallest subset within one standard error for a report, on the folds of the other scores."""
        if not self.record or result.stop_reason == "interrupted":
            return None
        few = one_standard_error(result)
        return ScoredSize(few.cardinality, float(objective.fold_scores(few.mask).mean()))

    def _search(
        self,
        plan: Plan,
        space: Space,
        seed: int,
        prices: FloatArray | None,
    ) -> SearchResult:
        objective, budget = plan.objective, plan.budget
        races = self.race and self.race != FOLDS and not isinstance(plan.algorithm, Race)
        algorithm = Race(plan.algorithm) if races else plan.algorithm
        scoring = objective.scoring
        line = ProgressBar(budget.evaluations, scoring.score, scoring.name) if self.verbose else nullcontext()
        view = ColumnsView(objective, space, prices)
        callbacks = check_callbacks(self.callbacks)
        if self.verbose and plan.notice:
            print(plan.notice, file=sys.stderr, flush=True)
        notice = [time_notice(objective, budget, self.n_jobs)] if self.verbose and not plan.notice else []
        with line as shown:
            result = search(
                algorithm if prices is None else algorithm.with_costs(tuple(prices.tolist())),
                view,
                budget,
                rng=np.random.default_rng(seed),
                callbacks=[*callbacks, *([] if shown is None else [shown]), *notice],
                checkpoint=self.checkpoint,
                record=self.record,
            )
        if self.verbose and result.stop_reason == "interrupted":
            print(INTERRUPTED, file=sys.stderr, flush=True)
        return result.on_columns(space.owner)

    def _outer_folds(self, objective: Objective, groups: ArrayLike | None, seed: int) -> tuple[NestedFold, ...] | None:
        data = objective.data
        if self.held_out is None:
            return None
        return nested_folds(
            self.cv,
            self.held_out,
            data.X,
            data.y,
            estimator=self.estimator,
            groups=groups,
            random_state=seed,
            least_test_rows=data.scoring.least_rows,
        )

    def _same_search(self, estimator: Estimator, seed: int) -> Self:
        """Return an unfitted selector whose search has the same settings, seed and budget."""
        same = {"estimator": estimator, "random_state": seed}
        return type(self)(**(self.get_params(deep=False) | same | self._chosen_limits))

    def _measure_held_out(
        self,
        estimator: Estimator,
        outer: tuple[NestedFold, ...],
        X: ArrayLike,
        y: ArrayLike | None,
        groups: ArrayLike | None,
        fit_params: Mapping[str, object],
        seed: int,
    ) -> HeldOut:
        if self.verbose:
            print(describe_cost(len(outer), self.n_jobs, self._facts.search_seconds), file=sys.stderr, flush=True)
        same = self._same_search(estimator, seed)
        is_multi_objective = not is_auto(self.algorithm) and isinstance(as_algorithm(self.algorithm), MultiObjective)
        front = self.choose in ("knee", "budget") or is_multi_objective
        return run_outer_folds(same, X, y, outer, n_jobs=self.n_jobs, groups=groups, params=fit_params, front=front)

    def _test_permutations(
        self,
        estimator: Estimator,
        X: ArrayLike,
        y: AnyArray,
        orders: list[IntArray],
        groups: ArrayLike | None,
        fit_params: Mapping[str, object],
        seed: int,
    ) -> None:
        if self.verbose:
            cost = describe_permutations(len(orders), self.n_jobs, self._facts.search_seconds)
            print(cost, file=sys.stderr, flush=True)
        same = self._same_search(estimator, seed)
        params = dict(fit_params) if groups is None else {**fit_params, "groups": groups}
        try:
            self.permutation_test_ = run_permutations(
                same, X, y, orders, score=self.best_score_, n_jobs=self.n_jobs, params=params
            )
        except KeyboardInterrupt:
            warnings.warn(
                "the permutation test was interrupted; the search itself is complete, without a p-value.",
                SubswarmWarning,
                stacklevel=3,
            )

    def _score(self, objective: Objective, chosen: Subset) -> None:
        self.support_: Mask = chosen.mask
        self.n_features_ = chosen.cardinality
        self.fold_scores_: FloatArray = self._insist(partial(objective.fold_scores, chosen.mask))
        self.best_score_ = float(self.fold_scores_.mean())
        try:
            self.baseline_score_ = float(objective.fold_scores(np.ones(objective.n_features, dtype=bool)).mean())
        except (Exception, KeyboardInterrupt):  # all columns may fail or take too long; the selection is still valid
            self.baseline_score_ = float("nan")

    def _correct(self, objective: Objective, left_out: FloatArray | None, repeats: int | None) -> None:
        """Set the score on new rows that the search leads to expect."""
        begin = time.perf_counter()
        self._honest: HonestScore | None = corrected_score(
            objective,
            objective.scoring.loss(self.fold_scores_),
            self.support_,
            left_out,
            compared=self._compare(objective) if left_out is None and repeats is None else None,
            repeats=repeats,
            found_something=self._found_something,
        )
        found = self._honest
        self.honest_score_: float | None = None if found is None else min(found.score, self.best_score_)
        self.honest_interval_: tuple[float, float] | None = None if found is None else (found.low, found.high)
        self._correction_seconds = time.perf_counter() - begin

    def _compare(self, objective: Objective) -> Compared:
        """Score the selection on new folds, and random subsets, unless the search was interrupted."""
        if self.result_.stop_reason == "interrupted":
            return Compared()
        try:
            return compare(objective, self.support_, self.result_.evaluations)
        except KeyboardInterrupt:  # the search is complete; only the correction is less certain
            return Compared()

    def _score_by_all(self, objective: Objective) -> None:
        """Set the scores by all scorers; those by the first one are known."""
        scoring = scoring_for_target(self.estimator_, self.scoring, objective.data.y)
        first, *others = resolve_all(self.estimator_, scoring).items()
        front = self.result_.front
        self.scores_: dict[str, float] = {first[0]: self.best_score_}
        self.baseline_scores_: dict[str, float] = {first[0]: self.baseline_score_}
        self.front_scores_: dict[str, FloatArray] = {
            first[0]: np.array([first[1].score(float(loss)) for loss in front.fitness])
        }
        for name, other in others:
            self.scores_[name] = float(self._insist(partial(objective.fold_scores, self.support_, other)).mean())
            try:
                all_columns = np.ones(objective.n_features, dtype=bool)
                self.baseline_scores_[name] = float(objective.fold_scores(all_columns, other).mean())
            except (Exception, KeyboardInterrupt):  # as for the first scorer
                self.baseline_scores_[name] = float("nan")
            of_front = _unless_interrupted(partial(objective.mean_scores, front.masks, other))
            self.front_scores_[name] = np.full(len(front), np.nan) if of_front is None else of_front

    def _find(self, objective: Objective) -> tuple[Finding, ...]:
        """Return what makes the score less meaningful than it looks."""
        data, nested, is_of_classes = objective.data, self.held_out_, is_classifier(self.estimator)
        return (
            *find_in_scores(
                y=data.y,
                classification=is_of_classes,
                scoring=data.scoring.name,
                support=self.support_,
                score=self.best_score_,
                baseline=self.baseline_score_,
                nested=None if nested is None else (nested.score, nested.baseline_score),
                left_out=self.honest_score_,
                found_something=self._found_something,
            ),
            *find_in_table(data.X, data.y, self.support_, classification=is_of_classes),
        )

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self.support_

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata router: the estimator's ``fit``, the splitter and the scorer."""
        splitter = check_cv(self.cv if self.cv is not None else DEFAULT_FOLDS, classifier=is_classifier(self.estimator))
        scorer = check_scoring(self.estimator, scoring=first_scoring(self.scoring))
        return (
            MetadataRouter(owner=type(self).__name__)
            .add(estimator=self.estimator, method_mapping=_fitting("fit"))
            .add(splitter=splitter, method_mapping=_fitting("split"))
            .add(scorer=scorer, method_mapping=_fitting("score"))
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.allow_nan = allows_nan(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags.required = True
        tags.target_tags.multi_output = inner.target_tags.multi_output
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        return tags

    @property
    def _repr_html_(self) -> Callable[[], str]:
        inherited = super()._repr_html_  # AttributeError, and so no HTML, if scikit-learn is set to display text
        return lambda: inherited() + self._summary_html()

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._summary_html()
        return bundle

    def _summary_html(self) -> str:
        """Return what notebooks show below scikit-learn's diagram of the estimator; nothing before ``fit``."""
        if not hasattr(self, "support_"):
            return ""
        from subswarm.report.summary import summary_html  # imported here: the summary imports this module

        return summary_html(self)


def _unless_interrupted(work: Callable[[], T]) -> T | None:
    """Do what a result can be without; None after Ctrl-C."""
    try:
        return work()
    except KeyboardInterrupt:
        return None


def _fitting(callee: str) -> MethodMapping:
    """Return what ``fit`` calls, also if a pipeline calls ``fit_transform``."""
    return MethodMapping().add(caller="fit", callee=callee).add(caller="fit_transform", callee=callee)


def _name_of_target(y: object) -> str:
    """Return the name of a pandas or Polars series, or "" for anything else."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) else ""
