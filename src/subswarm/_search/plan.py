"""The plan of a search: which algorithm, how many fits, and what that takes. Fits are what an expensive model costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import effective_n_jobs

from subswarm._display import format_duration
from subswarm._search import checkpoint_file
from subswarm._search.budget import Budget
from subswarm._search.callbacks import LONG_SECONDS
from subswarm.algorithms import TwoDElite, TwoDGuided, as_algorithm
from subswarm.algorithms.base import AnyAlgorithm
from subswarm.errors import SettingError
from subswarm.objective.foldwise import FoldwiseObjective, foldwise
from subswarm.objective.objective import Objective

__all__ = ["AUTO", "AUTO_EVALUATIONS", "AUTO_SECONDS", "Plan", "PlanLimits", "is_auto", "plan_search"]

AUTO = "auto"
AUTO_EVALUATIONS = 6000
"""Evaluations of ``max_evaluations="auto"`` if they do not take too long; always with a fast engine."""
AUTO_SECONDS = 180.0
"""Time for which ``max_evaluations="auto"`` chooses the number of fits for other models."""
FEWEST_STEPS = 6
"""Fits in each fold that every search may make, however long they take."""


def is_auto(value: object) -> bool:
    """Return whether a setting is left to the package."""
    return isinstance(value, str) and value == AUTO


@dataclass(frozen=True)
class PlanLimits:
    """What the user allows: evaluations (a number, "auto" or None), fits, seconds, and patience in evaluations."""

    evaluations: int | str | None = AUTO
    fits: int | None = None
    seconds: float | None = None
    patience: int | None = None

    @property
    def is_measured(self) -> bool:
        """Whether the number of evaluations depends on the time of a fit."""
        return is_auto(self.evaluations) and self.fits is None

    def likely_evaluations(self) -> int | None:
        """Return the number of evaluations if no time is measured; None if they are not limited."""
        if is_auto(self.evaluations):
            return AUTO_EVALUATIONS if self.fits is None else None
        return None if self.evaluations is None else int(self.evaluations)


@dataclass(frozen=True, eq=False)
class Plan:
    """An algorithm, its objective and its budget.

    Attributes
    ----------
    algorithm, objective, budget : what to search with
    evaluations : the planned evaluations of all folds of one repeat; None if they are not limited
    fits : the planned fits; None if they are not limited
    n_repeats : the number of repeats of the cross-validation
    notice : a sentence about the time that the search takes; "" if that was not measured or is short
    """

    algorithm: AnyAlgorithm
    objective: Objective
    budget: Budget
    evaluations: int | None
    fits: int | None
    n_repeats: int = 1
    notice: str = ""

    @property
    def is_foldwise(self) -> bool:
        """Whether each fold is a repeat of its own."""
        return isinstance(self.objective, FoldwiseObjective)

    @property
    def chosen_limits(self) -> dict[str, int | None]:
        """The limits of `SwarmSelector` with which another search gets the same budget, without another measurement."""
        return {"max_evaluations": self.evaluations, "max_fits": self.fits}


def plan_search(
    objective: Objective,
    algorithm: AnyAlgorithm | str,
    limits: PlanLimits,
    *,
    n_jobs: int | None = None,
    checkpoint: Path | None = None,
) -> Plan:
    """Return the plan of a search on this objective.

    With ``algorithm="auto"``, a model that scikit-learn itself fits and scores, and that has importances, is searched
    by `TwoDGuided` fold by fold, and everything else by `TwoDElite`. A measured number of fits is rounded, and a
    checkpoint keeps the one that its search began with.
    """
    named = None if is_auto(algorithm) else as_algorithm(algorithm)
    folds, repeats = objective.data.folds_each, objective.n_partitions
    fits = limits.fits
    evaluations = limits.likely_evaluations()
    if evaluations is not None and not limits.is_measured:
        fits = min(evaluations * folds, np.inf if fits is None else fits)  # type: ignore[assignment]
    is_slow = objective.engine == "estimator"
    by_folds = named is not None and named.scores_folds
    single = foldwise(objective, n_jobs) if is_slow or by_folds else None
    notice = ""
    if single is not None and is_slow and (named is None or limits.is_measured):
        seconds = single.measure_fit() / effective_n_jobs(n_jobs)
        if named is None and single.offers_importances:
            by_folds, named = True, TwoDGuided()
        if limits.is_measured:
            allowed = AUTO_SECONDS if limits.seconds is None else limits.seconds
            fits = int(min(AUTO_EVALUATIONS * folds, max(rounded_down(allowed / seconds), FEWEST_STEPS * folds)))
        notice = _notice(seconds, fits, folds, limits, effective_n_jobs(n_jobs))
    elif limits.is_measured:
        fits = AUTO_EVALUATIONS * folds
    chosen = TwoDElite() if named is None else named
    if fits is not None and fits < folds:
        raise SettingError(
            f"max_fits={limits.fits} is less than one evaluation, which takes {folds} fits, one for each fold; allow "
            "more fits, or use fewer folds."
        )
    if single is not None and by_folds:
        total, each = fits, folds
        patience = None if limits.patience is None else limits.patience * folds
        objective, repeats = single, single.n_partitions // folds
    else:
        total, each = None if fits is None else fits // folds, 1
        patience = limits.patience
    if limits.is_measured and checkpoint is not None and (planned := _planned(checkpoint)) is not None:
        total = planned
        fits = planned if each > 1 else planned * folds
    return Plan(
        chosen,
        objective,
        Budget(evaluations=total, seconds=limits.seconds, patience=patience),
        None if fits is None else fits // folds,
        fits,
        repeats,
        notice,
    )


def rounded_down(fits: float) -> int:
    """Return the number with one significant digit, so that a small difference in time seldom changes it.

    Examples
    --------
    >>> rounded_down(387.2), rounded_down(61999.0), rounded_down(0.4)
    (300, 60000, 0)
    """
    whole = int(fits)
    scale = int(10 ** max(0, len(str(whole)) - 1))
    return whole // scale * scale


def _notice(seconds: float, fits: int | None, folds: int, limits: PlanLimits, workers: int) -> str:
    """Return what the search takes, before it starts; "" if that is short."""
    expected = np.inf if fits is None else seconds * fits
    if limits.seconds is not None:
        expected = min(expected, limits.seconds)
    if fits is None or expected <= LONG_SECONDS:
        return ""
    reason = "" if not limits.is_measured else "; set max_fits, max_evaluations or max_seconds for another budget"
    workers_used = "" if workers == 1 else f" with {workers} workers"
    return (
        f"a fit of all columns takes {seconds * workers:.2g} s; the search makes at most {fits} fits on {folds} folds, "
        f"about {format_duration(expected)}{workers_used} or less{reason}"
    )


def _planned(path: Path) -> int | None:
    """Return the evaluations that the search of a checkpoint was planned with; None if there is no file."""
    saved = checkpoint_file.read(path)
    values: Mapping[str, object] = {} if saved is None else saved.values
    planned = values.get("planned")
    return planned if isinstance(planned, int) and not isinstance(planned, bool) and planned > 0 else None
