"""The choice of the subset to select from those that a search found."""

from __future__ import annotations

import numpy as np
from sklearn.base import is_classifier

from subswarm._search.front import FrontTable
from subswarm._search.result import SearchResult, noise_width, one_standard_error, smallest_not_worse
from subswarm._types import AnyArray, FloatArray, Front, Masks, Subset
from subswarm.algorithms.base import Finalists
from subswarm.objective.objective import Objective

__all__ = ["RULES", "choose_subset", "found_something", "known_subset"]

RULES = ("smallest", "best", "one-se", "knee", "budget")
"""The rules by name."""

WIDTH_OF_NOTHING = 1.5
"""Fewest standard errors that count as noise if the search may have found nothing."""

WIDTH_OF_NOTHING_ON_PATHS = 3.5
"""The same for algorithms with a noise width of their own, whose candidates are subsets of each other."""

CHANCE = 2.0
"""Standard errors by which a selection must be better than a constant answer. That of its own six losses is small by
chance now and then, so it is at least that of most candidates."""

NEW_REPEATS = 2
"""Repeats of new folds on which the candidates are compared if there are no left-out rows."""


def choose_subset(
    result: SearchResult, objective: Objective, rule: str, table: FrontTable, max_cost: float | None = None
) -> tuple[Subset, FloatArray | None]:
    """Return the subset that a rule selects, and the losses of its kind on the left-out rows, if there are any.

    Parameters
    ----------
    result : result of a search on the objective, with masks over columns
    objective : the objective over columns
    rule : one of `RULES`
    table : the front of the search, for "knee" and "budget"
    max_cost : the highest cost of the subset, for "budget"
    """
    if rule == "knee":
        return known_subset(result, table.knee())
    if rule == "budget" and max_cost is not None:
        return known_subset(result, table.within(max_cost))
    finalists = result.finalists
    if rule == "one-se" or finalists is None or finalists.paired is None:
        chosen = one_standard_error(result) if rule == "one-se" else result.best
        if rule == "smallest":
            chosen = _smallest_of_front(result, objective)
        return known_subset(result, chosen)
    found = found_something(result, objective)
    width = 0.0 if rule == "best" else _width_among(finalists, objective)
    if rule == "smallest" and not found:
        width = max(width, WIDTH_OF_NOTHING if finalists.noise_width is None else WIDTH_OF_NOTHING_ON_PATHS)
    row = 0
    if rule == "smallest":
        row = smallest_not_worse(finalists.masks, finalists.paired[:, None], width, finalists.fitness)
    chosen = Subset(finalists.masks[row].copy(), float(finalists.fitness[row]))
    if finalists.left_out is None:
        return chosen, None
    unseen = _losses_without(finalists, finalists.paired, finalists.left_out, width)
    return chosen, (finalists.left_out[row] + unseen) / 2 if found else unseen


def _losses_without(finalists: Finalists, paired: FloatArray, left_out: FloatArray, width: float) -> FloatArray:
    """Return the loss on each block of left-out rows of what is selected by the losses on the other blocks, shape (C,).

    The loss of the subset selected on all blocks is too low, because its luck there is a part of why it was selected.
    This one is too high if fewer blocks select worse.
    """
    blocks, rows = left_out.shape[1], []
    if blocks < 3:
        row = smallest_not_worse(finalists.masks, paired[:, None], width, finalists.fitness)
        return np.asarray(left_out[row])
    for block in range(blocks):
        others = np.delete(paired, block, axis=1)[:, None]
        mean = None if finalists.without is None else finalists.without[:, block]
        rows.append(smallest_not_worse(finalists.masks, others, width, mean))
    return np.asarray(left_out[rows, np.arange(blocks)])


def found_something(result: SearchResult, objective: Objective) -> bool:
    """Return whether selected subsets are better on the left-out rows than a constant answer, by more than chance.

    True if that is not known: the search was not cross-fitted, or the scorer cannot score a constant answer.
    """
    finalists = result.finalists
    if finalists is None or finalists.left_out is None or finalists.paired is None:
        return True
    constant = objective.left_out_losses_of_constant()
    if constant is None or len(constant) < 2:
        return True
    width = _width_among(finalists, objective)
    gain = constant - _losses_without(finalists, finalists.paired, finalists.left_out, width)
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
    row = smallest_not_worse(front.masks, losses, _width(objective, searched=True))
    return Subset(front.masks[row].copy(), float(front.fitness[row]))


def _width_among(finalists: Finalists, objective: Objective) -> float:
    return _width(objective) if finalists.noise_width is None else finalists.noise_width


def _width(objective: Objective, *, searched: bool = False) -> float:
    data = objective.data
    rows = effective_rows(data.y) if is_classifier(objective.estimator) else float(objective.n_rows)
    return noise_width(rows, objective.n_features, searched=searched)


def effective_rows(y: AnyArray) -> float:
    """Return how many rows with equally frequent classes tell as much as these: the rarer a class, the fewer.

    Examples
    --------
    >>> round(effective_rows(np.repeat([0, 1], [500, 500]))), round(effective_rows(np.repeat([0, 1], [950, 50])))
    (1000, 190)
    """
    shares = np.unique(y, return_counts=True)[1] / len(y)
    classes = len(shares)
    return len(y) * float(1 - np.sum(shares**2)) * classes / (classes - 1) if classes > 1 else float(len(y))


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
