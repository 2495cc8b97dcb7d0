"""The scikit-learn face: a selector that drops into a pipeline."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, validate_data

from subswarm.algorithms import Race, get_algorithm, inside
from subswarm.algorithms.subset_settings import SubsetSettings
from subswarm.columns import ColumnsView
from subswarm.core.budget import Budget
from subswarm.core.checks import check_choice, check_int
from subswarm.core.choice import one_standard_error
from subswarm.core.display import result_html, rows_html
from subswarm.core.errors import SettingError
from subswarm.core.space import Space, make_space
from subswarm.core.types import FloatArray, History, Mask, SearchResult, Subset
from subswarm.drive import Callback, search
from subswarm.evaluation.objective import Objective, make_objective
from subswarm.evaluation.scoring import resolve_scoring
from subswarm.evaluation.tables import allows_nan
from subswarm.held_out import HeldOut, check_repeatable, cost_sentence
from subswarm.held_out import held_out as measured_held_out
from subswarm.hybrid import preselected, with_scores
from subswarm.plot.methods import Plots
from subswarm.progress import ProgressLine

__all__ = ["SwarmSelector"]

PARTITION_EVALUATIONS = 1000
"""Evaluations for which there is one more partition where their number is left to the selector."""

MOST_PARTITIONS = 6
"""What was measured on rows never seen: see docs/results/flagship.md."""


class SwarmSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Select the features an estimator needs, by a search over subsets scored with cross-validation.

    The score reported is the one the search maximised, so it is optimistic: ``held_out=5`` adds an honest figure, for
    the price of five more searches.

    Parameters
    ----------
    estimator : estimator or pipeline
        The model the features are for; a clone is scored, this object stays unfitted.
    algorithm : str or algorithm, default="2d-elite"
        A name from ``subswarm.algorithms.names()``, or an algorithm with settings of your own.
    cv : int, splitter or list of splits, default=10
        The folds, drawn once. An integer means shuffled folds (stratified for a classifier) from ``random_state``.
    repeats : int or "auto", default="auto"
        Partitions of the rows into ``cv`` folds, where ``cv`` is an integer: every subset's score is the mean over them
        all, and each partition scored is one evaluation. ``cv=RepeatedStratifiedKFold(...)`` does the same. "auto" is
        for new rows: an algorithm that shares its evaluations among partitions, such as "2d-elite", has one for every
        1000 of ``max_evaluations``, but no more than 6; any other has 1, and so has a search with ``patience`` or a
        splitter of its own. ``repeats=1`` gives fewer features and a higher, but more optimistic, score.
    race : bool, default=False
        Whether a subset is scored on all partitions only where it does well on the first one (see
        `subswarm.algorithms.Race`); most then cost one evaluation.
    scoring : str, callable or None
        As in scikit-learn; None is the estimator's own score.
    max_evaluations : int or None, default=6000
        Subsets that may be scored, repeated ones included; on several partitions, each one counts.
    max_seconds : float or None
        Time that the search may take.
    patience : int or None
        Stop after this many evaluations without a better subset.
    min_features, max_features : int, int or None
        Fewest and most columns to select.
    fixed_features : list of column indices or names, optional
        Columns that are always selected.
    feature_groups : list of lists of column indices or names, optional
        Columns taken or left together, as the columns of one encoded category.
    initial_subsets : list of subsets, optional
        Subsets (column indices, names or masks) to start from.
    preselect : (ranking, number) or None
        Search only among this many features that a filter ("mutual-information", "anova-f", "relieff" or "mrmr") ranks
        highest on the table passed to ``fit``; fixed features are always among them.
    choose : "best" or "one-se", default="best"
        "one-se" selects the fewest columns whose score is within one standard error of the best subset's.
    held_out : int or None
        Repeat the whole search without each of so many outer folds (stratified for a classifier, never splitting
        ``groups``) and score its selection there: an honest figure, in ``held_out_``. It costs as many more searches,
        ``n_jobs`` at a time.
    engine : "auto", "estimator", "fast" or "torch", default="auto"
        What scores the subsets: the fastest exact engine, scikit-learn itself, or a fast (or torch) engine or an error.
    n_jobs : int or None
        Workers for joblib. The result does not depend on it.
    device : "cpu" or "cuda"
        "cuda" scores on an NVIDIA GPU and needs the extra ``gpu``. The result does not depend on it.
    random_state : int, RandomState instance or None
        Fixes folds, search and any ``random_state=None`` inside the estimator. Global random state is never touched.
    verbose : int, default=1
        1 shows one live line in a terminal or notebook (and nothing in logs), and says on standard error what
        ``held_out`` will cost; 0 shows nothing.
    callbacks : functions called with a `Snapshot` after each step; one that returns True stops the search
    checkpoint : path, optional
        File to save the search to and to go on from after an interruption.
    record : bool, default=False
        Whether ``result_`` keeps every subset visited and the swarm's likelihoods, for plots.

    Attributes
    ----------
    support_ : bool array of shape (``n_features_in_``,)
        The selected columns.
    n_features_ : int
        How many they are.
    best_score_ : float
        Mean of ``fold_scores_``.
    fold_scores_ : float array of shape (n_folds,)
        Score of the selected columns in each fold, exactly as ``cross_val_score`` gives it on ``folds_``.
    baseline_score_ : float
        Mean score of all columns on the same folds; NaN where the estimator fails on them.
    folds_ : list of (train rows, test rows), partition by partition
    held_out_ : HeldOut or None
        Scores on rows the searches never saw; None where ``held_out`` is None or the search was interrupted.
    result_ : SearchResult
        The search: best subset, best subset of each size (``front``), engine, timings.
    history_ : History
        The search step by step.
    estimator_ : estimator
        The unfitted clone that was scored, every ``random_state=None`` inside it fixed.
    n_features_in_ : int
    feature_names_in_ : array of shape (``n_features_in_``,)
        Only where the table has column names.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from subswarm import SwarmSelector
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> selector = SwarmSelector(GaussianNB(), max_evaluations=300, random_state=0).fit(X, y)
    >>> bool(selector.best_score_ >= selector.baseline_score_)
    True
    >>> selector.transform(X).shape[1] == selector.n_features_
    True
    """

    def __init__(
        self,
        estimator: Any,
        algorithm: Any = "2d-elite",
        *,
        cv: Any = 10,
        repeats: int | str = "auto",
        race: bool = False,
        scoring: Any = None,
        max_evaluations: int | None = 6000,
        max_seconds: float | None = None,
        patience: int | None = None,
        min_features: int = 1,
        max_features: int | None = None,
        fixed_features: Iterable[Any] | None = None,
        feature_groups: Iterable[Iterable[Any]] | None = None,
        initial_subsets: Iterable[Any] | None = None,
        preselect: tuple[str, int] | None = None,
        choose: str = "best",
        held_out: int | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        device: str = "cpu",
        random_state: Any = None,
        verbose: int = 1,
        callbacks: Iterable[Callback] = (),
        checkpoint: str | PathLike[str] | None = None,
        record: bool = False,
    ) -> None:
        self.estimator = estimator
        self.algorithm = algorithm
        self.cv = cv
        self.repeats = repeats
        self.race = race
        self.scoring = scoring
        self.max_evaluations = max_evaluations
        self.max_seconds = max_seconds
        self.patience = patience
        self.min_features = min_features
        self.max_features = max_features
        self.fixed_features = fixed_features
        self.feature_groups = feature_groups
        self.initial_subsets = initial_subsets
        self.preselect = preselect
        self.choose = choose
        self.held_out = held_out
        self.engine = engine
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.record = record

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Search for the best subset of columns.

        Parameters
        ----------
        X : table of shape (N, n)
        y : target of shape (N,)
        **params : metadata
            ``groups`` goes to the splitter and ``sample_weight`` (or anything else) to the estimator's ``fit``; with
            ``sklearn.set_config(enable_metadata_routing=True)`` each goes to whoever requested it.

        Returns
        -------
        self
        """
        check_choice("choose", self.choose, ("best", "one-se"))
        check_int("verbose", int(self.verbose), low=0)
        check_int("held_out", self.held_out, low=2, optional=True)
        if self.held_out is not None:
            check_repeatable(self, params)
        budget = Budget(evaluations=self.max_evaluations, seconds=self.max_seconds, patience=self.patience)
        seed = _seed(self.random_state)
        fit_params, groups = self._metadata(params)
        estimator = _seeded(clone(self.estimator), seed)
        objective = make_objective(
            estimator,
            X,
            y,
            cv=self.cv,
            repeats=self._partitions(),
            scoring=self.scoring,
            groups=groups,
            n_jobs=self.n_jobs,
            device=self.device,
            random_state=seed,
            engine=self.engine,
            params=fit_params,
        )
        if self.race and objective.n_partitions == 1:
            raise SettingError(
                "race=True scores the best subsets on several partitions of the rows, and here is one; give repeats=4, "
                "or a repeated splitter as cv."
            )
        validate_data(self, X, skip_check_array=True)  # sets n_features_in_ and feature_names_in_
        space = make_space(
            objective.n_features,
            getattr(self, "feature_names_in_", None),
            fixed_features=self.fixed_features,
            feature_groups=self.feature_groups,
            initial_subsets=self.initial_subsets,
        )
        ranked = {"X": X, "y": y, "classification": is_classifier(estimator), "random_state": seed}
        if self.preselect is not None:
            ranking, keep = self._preselection()
            space = space.among(preselected(ranking, keep=keep, owner=space.owner, **ranked))
        algorithm = with_scores(self._algorithm(space), owner=space.owner, **ranked)
        result = self._search(algorithm, objective, space, budget, seed)
        self.result_ = result
        self.history_: History = result.history
        self.estimator_ = estimator
        self.folds_ = objective.folds
        chosen = result.best if self.choose == "best" else one_standard_error(result)
        self._score(objective, chosen)
        self.held_out_: HeldOut | None = None
        if self.held_out is not None and result.stop_reason != "interrupted":
            self.held_out_ = self._measure_held_out(X, y, groups, fit_params, seed)
        return self

    def subset_of_size(self, size: int) -> Subset:
        """The best subset with exactly ``size`` columns that the search saw."""
        check_is_fitted(self)
        return self.result_.front.subset_of_size(size)

    @property
    def plot(self) -> Plots:
        """Plots of the fitted selector, such as ``selector.plot.trade_off()``; see `subswarm.plot.Plots`."""
        check_is_fitted(self)
        baseline = None
        if np.isfinite(self.baseline_score_):
            scoring = resolve_scoring(self.estimator_, self.scoring)
            baseline = float(scoring.loss(np.array(self.baseline_score_)))
        return Plots(self.result_, names=getattr(self, "feature_names_in_", None), baseline=baseline)

    @property
    def _repr_html_(self) -> Callable[[], str]:
        inherited = super()._repr_html_  # AttributeError, and so no HTML, where scikit-learn is set to show text
        return lambda: inherited() + self._summary_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._summary_html()
        return bundle

    def _summary_html(self) -> str:
        """What was found, below scikit-learn's own picture of the estimator; nothing before ``fit``."""
        if not hasattr(self, "support_"):
            return ""
        names = getattr(self, "feature_names_in_", None)
        chosen = [str(index if names is None else names[index]) for index in np.flatnonzero(self.support_)]
        honest = {} if self.held_out_ is None else {"held out": self.held_out_.sentence()}
        return rows_html(
            {
                "score": f"{self.best_score_:.4f} with {self.n_features_} of {self.n_features_in_} features "
                f"(optimistic: the search has seen these folds); {self.baseline_score_:.4f} with all of them",
                **honest,
                "selected": ", ".join(chosen),
            }
        ) + result_html(self.result_, names)

    def get_metadata_routing(self) -> MetadataRouter:
        """Who gets which metadata: the estimator's ``fit``, the splitter and the scorer."""
        splitter = check_cv(self.cv if self.cv is not None else 10, classifier=is_classifier(self.estimator))
        scorer = check_scoring(self.estimator, scoring=self.scoring)
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
        tags.input_tags.sparse = False
        tags.target_tags.required = True
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self.support_

    def _metadata(self, params: dict[str, Any]) -> tuple[Mapping[str, Any], Any]:
        """Metadata for cross-validation, and the splitter's groups."""
        if get_config().get("enable_metadata_routing", False):
            routed = process_routing(self, "fit", **params)
            return {**routed.estimator.fit, **routed.scorer.score}, routed.splitter.split.get("groups")
        remaining = {name: value for name, value in params.items() if value is not None}
        return remaining, remaining.pop("groups", None)

    def _partitions(self) -> Any:
        """How many partitions of the rows there are to be; what was asked for, if anything was."""
        if not isinstance(self.repeats, str):
            return self.repeats
        check_choice("repeats", self.repeats, ("auto",))
        shares_them_out = hasattr(self._named_algorithm(), "n_partitions") and not self.race
        end_is_known = self.patience is None  # what the clans agree on comes last
        if not (shares_them_out and end_is_known and isinstance(self.cv, int | np.integer)):
            return 1
        evaluations = MOST_PARTITIONS * PARTITION_EVALUATIONS if self.max_evaluations is None else self.max_evaluations
        return int(np.clip(evaluations // PARTITION_EVALUATIONS, 1, MOST_PARTITIONS))

    def _named_algorithm(self) -> Any:
        return get_algorithm(self.algorithm) if isinstance(self.algorithm, str) else self.algorithm

    def _algorithm(self, space: Space) -> Any:
        algorithm = self._named_algorithm()
        if not hasattr(algorithm, "begin") or isinstance(algorithm, type):
            raise SettingError(f"algorithm must be a name or an algorithm such as TwoDUPSO(); got {algorithm!r}.")
        if self.race and not isinstance(algorithm, Race):
            algorithm = Race(algorithm)
        return inside(algorithm, lambda inner: self._limited(inner, space))

    def _limited(self, algorithm: Any, space: Space) -> Any:
        """The algorithm, within the limits of this selector."""
        asked = {"min_features": self.min_features, "max_features": self.max_features, **space.settings()}
        defaults = {
            "min_features": 1,
            "max_features": None,
            "fixed_features": (),
            "feature_sizes": None,
            "initial_subsets": (),
        }
        changed = {name: value for name, value in asked.items() if value != defaults[name]}
        if changed and not isinstance(algorithm, SubsetSettings):
            raise SettingError(
                f"{type(algorithm).__name__} does not derive from SubsetSettings, so it cannot honour "
                f"{', '.join(changed)}."
            )
        return replace(algorithm, **changed) if changed else algorithm

    def _preselection(self) -> tuple[str, int]:
        try:
            ranking, keep = self.preselect  # type: ignore[misc]
        except (TypeError, ValueError):
            raise SettingError(
                f'preselect must be a pair of a ranking and a number, such as ("mrmr", 50); got {self.preselect!r}.'
            ) from None
        return ranking, keep

    def _search(self, algorithm: Any, objective: Objective, space: Space, budget: Budget, seed: int) -> SearchResult:
        scoring = objective.scoring
        line = ProgressLine(budget.evaluations, scoring.score, scoring.name) if self.verbose else nullcontext()
        view = ColumnsView(objective, space)
        with line as shown:
            result = search(
                algorithm,
                view,
                budget,
                rng=np.random.default_rng(seed),
                callbacks=[*self.callbacks, *([shown] if shown is not None else [])],
                checkpoint=self.checkpoint,
                record=self.record,
            )
        return space.result_on_columns(result)

    def _measure_held_out(self, X: Any, y: Any, groups: Any, fit_params: Mapping[str, Any], seed: int) -> HeldOut:
        folds = int(self.held_out or 0)
        if self.verbose:
            seconds = self.result_.algorithm_seconds + self.result_.evaluation_seconds
            print(cost_sentence(folds, self.n_jobs, seconds), file=sys.stderr, flush=True)
        same = clone(self).set_params(estimator=self.estimator_, random_state=seed)
        return measured_held_out(
            same, X, y, folds=folds, n_jobs=self.n_jobs, random_state=seed, groups=groups, params=fit_params
        )

    def _score(self, objective: Objective, chosen: Subset) -> None:
        self.support_: Mask = chosen.mask
        self.n_features_ = chosen.cardinality
        self.fold_scores_: FloatArray = objective.fold_scores(chosen.mask)
        self.best_score_ = float(self.fold_scores_.mean())
        try:
            self.baseline_score_ = float(objective.fold_scores(np.ones(objective.n_features, dtype=bool)).mean())
        except Exception:  # whatever an estimator may raise on all columns is no reason to lose the search
            self.baseline_score_ = float("nan")


def _fitting(callee: str) -> MethodMapping:
    """What ``fit`` calls, also when a pipeline calls ``fit_transform``."""
    return MethodMapping().add(caller="fit", callee=callee).add(caller="fit_transform", callee=callee)


def _seed(random_state: Any) -> int:
    """A seed from what scikit-learn takes for ``random_state``; None draws fresh entropy, not global state."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    check_int("random_state", random_state, low=0, high=2**32 - 1)
    return int(random_state)


def _seeded(estimator: Any, seed: int) -> Any:
    """The estimator with every ``random_state=None`` inside it fixed, so that a subset scores the same each time."""
    unset = [
        name
        for name, value in sorted(estimator.get_params(deep=True).items())
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
    return estimator.set_params(**dict.fromkeys(unset, seed)) if unset else estimator
