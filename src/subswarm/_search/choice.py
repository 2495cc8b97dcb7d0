"""The choice of the subset to select from those that a search found."""

from __future__ import annotations

import numpy as np

from subswarm._search.result import SearchResult, noise_width, one_standard_error, smallest_not_worse
from subswarm._types import FloatArray, Front, Masks, Subset
from subswarm.objective.objective import Objective

__all__ = ["RULES", "choose_subset", "found_something", "known_subset"]

RULES = ("smallest", "best", "one-se")
"""The rules by name."""

_ANY_NOISE = 1e9
"""Standard errors that count as noise if nothing was found: the smallest subset is as good as any."""

CHANCE = 3.5
"""Standard errors by which the best of many candidates must be better than a constant answer. That of its own six
losses is small by chance now and then, so it is at least that of most candidates."""

NEW_REPEATS = 2
"""Repeats of new folds on which the candidates are compared if there are no left-out rows."""


def choose_subset(result: SearchResult, objective: Objective, rule: str) -> tuple[Subset, FloatArray | None]:
    """Return the subset that a rule selects, and the losses of its kind on the left-out rows, if there are any.

    Parameters
    ----------
    result : result of a search on the objective, with masks over columns
    objective : the objective over columns
    rule : one of `RULES`
    """
    finalists = result.finalists
    if rule == "one-se" or finalists is None or finalists.paired is None:
        chosen = one_standard_error(result) if rule == "one-se" else result.best
        if rule == "smallest":
            chosen = _smallest_of_front(result, objective)
        return known_subset(result, chosen)
    row = 0
    if rule == "smallest":
        own = finalists.noise_width
        # one that sets its own number of standard errors does not give up columns that are clearly better than fewer
        usual, cautious = (_width(objective), _ANY_NOISE) if own is None else (own, CHANCE)
        width = usual if found_something(result, objective) else cautious
        row = smallest_not_worse(finalists.masks, finalists.paired[:, None], width)
    left_out = None if finalists.left_out is None else finalists.left_out[row]
    return Subset(finalists.masks[row].copy(), float(finalists.fitness[row])), left_out


def found_something(result: SearchResult, objective: Objective) -> bool:
    """Return whether the best finalist is better on the left-out rows than a constant answer, by more than chance.

    True if that is not known: the search was not cross-fitted, or the scorer cannot score a constant answer.
    """
    finalists = result.finalists
    if finalists is None or finalists.left_out is None:
        return True
    constant = objective.left_out_losses_of_constant()
    if constant is None or len(constant) < 2:
        return True
    gain = constant - finalists.left_out[0]
    spread = max(float(gain.std(ddof=1)), float(np.median(finalists.left_out.std(axis=1, ddof=1))))
    return bool(gain.mean() > CHANCE * spread / np.sqrt(len(gain)))


def _smallest_of_front(result: SearchResult, objective: Objective) -> Subset:
    """Return the smallest subset of the front that is not worse than the best, on folds that were not optimised.

    If there are no such folds, or no time is left, it is compared on the folds of the search.
    """
    front = _undominated(result.front)
    if len(front) == 1 or result.stop_reason == "interrupted":
        return result.best
    compared = objective.on_new_folds(NEW_REPEATS) if result.stop_reason != "seconds" else None
    losses = _fold_losses(objective if compared is None else compared, front.masks)
    row = smallest_not_worse(front.masks, losses, _width(objective))
    return Subset(front.masks[row].copy(), float(front.fitness[row]))


def _width(objective: Objective) -> float:
    return noise_width(objective.n_rows, objective.n_features)


def _undominated(front: Front) -> Front:
    """Return the subsets that are better than every smaller one."""
    before = np.concatenate([[np.inf], np.minimum.accumulate(front.fitness)[:-1]])
    better = front.fitness < before
    return Front(front.masks[better], front.fitness[better])


def _fold_losses(objective: Objective, masks: Masks) -> FloatArray:
    """Return the losses of the masks, shape (K, repeats, folds)."""
    return objective.fold_losses(masks).reshape(len(masks), objective.n_partitions, -1)


def known_subset(result: SearchResult, chosen: Subset) -> tuple[Subset, FloatArray | None]:
    """Return a subset and, if it is one of the finalists, its losses on the left-out rows."""
    finalists = result.finalists
    if finalists is None or finalists.left_out is None:
        return chosen, None
    same = np.flatnonzero((finalists.masks == chosen.mask).all(axis=1))
    return chosen, finalists.left_out[same[0]] if len(same) else None
