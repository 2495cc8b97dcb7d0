"""The score of a selection, corrected for the search: from left-out rows, or by the expected gain of chance.

A search that leaves out rows (cross-fitting) has losses on rows that its islands did not use. Their mean is the
corrected loss.

Any other search used all rows. The loss L of its selection is then too low by what the best of many subsets gains by
chance. Resampling the losses of the subsets visited, as in BBC-CV (Tsamardinos, Greasidou, Borboudakis 2018), finds
only a part of it, because the search has adapted all of them to the same rows. The correction here is a share of the
gain G = L0 - L over the loss L0 of a constant answer:

    q / (1 - q),  q = FACTOR * a * sqrt(log C(n, k)) * v / (N G^2),  at most 1,

where k of n columns are selected, v / N is the variance of a loss over N rows, and a is 1 for 6000 evaluations or more
and less for fewer. On pure noise it leads back to L0; where the columns tell much, it falls with the number of rows, as
the penalties of model selection do. FACTOR is fitted on made-up tables; docs/results/honesty.md has measurements.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor

from subswarm._types import AnyArray, FloatArray, Mask
from subswarm.objective.objective import Objective

__all__ = ["HonestScore", "corrected_score"]

FACTOR = 2.5
"""Scale of the correction for searches that used all rows."""

FULL_SEARCH = 6000
"""Evaluations of the searches that FACTOR is fitted on; fewer find less luck, by the ratio of the logarithms."""

FEWEST = 5
"""Fewer selected columns count as this many in the correction."""

UNCERTAINTY = 0.5
"""Standard error of that correction, as a share of it."""

SEARCH_SHARE = 1 / 1.5
"""Share of the variance over the blocks of left-out rows that counts; it is itself estimated from few blocks."""

_REACH = float(norm.ppf(0.975))
"""Half the width of a 95 % interval, in standard errors."""

GENERIC_SHARE = 0.6
"""Correction of a scorer of unknown kind, in standard errors, for each of the standard errors that chance gains."""

_AMOUNT = 2.0
"""Scale of the correction of amounts, such as squared errors."""

_LINEAR_SPREAD = 0.5
"""Change of an absolute error, as a share of that of a squared error."""

_DRAWS = 5
"""Random answers that are scored to find the score of chance, for scorers that do not reward the commonest class."""

_LABELS = ("accuracy", "balanced_accuracy", "f1", "jaccard", "precision", "recall", "top_k_accuracy")
_RANKINGS = ("average_precision", "roc_auc")
_AMOUNTS = ("explained_variance", "neg_", "r2")


@dataclass(frozen=True)
class HonestScore:
    """An estimate of the score on new rows.

    Attributes
    ----------
    score : the estimate, at most the score that the search reported
    low, high : limits of its 95 % interval
    is_from_left_out : whether it comes from rows that the search left out; otherwise it is corrected by a formula
    """

    score: float
    low: float
    high: float
    is_from_left_out: bool


@dataclass(frozen=True)
class _Chance:
    """What is known of a loss without any search.

    Attributes
    ----------
    constant : the loss of a constant answer
    rows : the number of rows that a mean loss is over, or for rankings the number that has the same variance
    is_share : whether the loss of a row is 0 or 1, so that its variance follows from its mean
    is_ranking : whether it is a share of pairs of rows
    spread : relative change of a loss that is not a share, against that of a squared error
    """

    constant: float
    rows: float
    is_share: bool
    is_ranking: bool = False
    spread: float = 1.0

    def variance(self, loss: float) -> float:
        """Return the variance of a mean loss."""
        if self.is_share:
            inside = (min(max(loss, 0.0), 1.0) * self.rows + 1) / (self.rows + 2)
            return inside * (1 - inside) / self.rows
        return self.spread * self.constant**2 / self.rows

    def variance_on_the_way(self, loss: float) -> float:
        """Return a variance between that of a mean loss and that of a constant answer.

        It is the largest one, or for rankings, whose variance falls faster near a perfect score, the geometric mean. By
        chance an amount falls by a share of itself.
        """
        low, high = sorted((loss, self.constant))
        if not self.is_share:
            return _AMOUNT * self.spread * loss * (self.constant - loss) / self.rows
        if self.is_ranking:
            return math.sqrt(self.variance(low) * self.variance(high))
        return self.variance(min(max(0.5, low), high))


def corrected_score(
    objective: Objective,
    fold_losses: FloatArray,
    support: Mask,
    left_out: FloatArray | None,
    *,
    evaluations: int = FULL_SEARCH,
    repeats: int | None = None,
) -> HonestScore | None:
    """Return the corrected score of a selection; None if there is only one fold and the scorer is of unknown kind.

    Parameters
    ----------
    objective : the objective whose folds the selection was scored on
    fold_losses : its losses there, shape (n_folds,)
    support : the selected columns
    left_out : losses of selections of its kind on the rows that their searches left out; None if there are none
    evaluations : number of evaluations of the search
    repeats : number of repeats that the folds are; None for that of the objective
    """
    loss = float(fold_losses.mean())
    repeats = objective.n_partitions if repeats is None else repeats
    error = _fold_error(fold_losses, repeats)
    chance = _chance(objective, repeats)
    if error is None and chance is None:
        return None
    if left_out is not None:
        corrected = max(loss, float(left_out.mean()))
        variance = max(_row_variance(chance, error, corrected), SEARCH_SHARE * _block_variance(left_out))
    else:
        correction = _expected_gain(loss, error, chance, _strength(support, evaluations))
        corrected = loss + correction
        variance = _row_variance(chance, error, corrected) + (UNCERTAINTY * correction) ** 2
    share = None if chance is None or not chance.is_share else chance
    low, high = _interval(corrected, variance) if share is None else _interval_of_share(corrected, variance, share)
    scoring = objective.scoring
    return HonestScore(scoring.score(corrected), scoring.score(high), scoring.score(low), left_out is not None)


def _expected_gain(loss: float, error: float | None, chance: _Chance | None, strength: float) -> float:
    """Return by how much chance lowers the loss of the best subset that a search finds."""
    if chance is not None:
        gain = chance.constant - loss
        if gain <= 0:
            return 0.0
        share = strength * chance.variance_on_the_way(loss) / gain**2
        return gain * (share / (1 - share) if share < 0.5 else 1.0)
    return GENERIC_SHARE * math.sqrt(strength) * (error or 0.0)


def _strength(support: Mask, evaluations: int) -> float:
    """Return how much luck a search can find: the more subsets there are, and the more it evaluated."""
    effort = min(1.0, math.log(max(evaluations, 1)) / math.log(FULL_SEARCH))
    return FACTOR * effort * math.sqrt(_n_nats(support))


def _n_nats(support: Mask) -> float:
    """Return the logarithm of the number of subsets of this size.

    A selection of very few columns was found among larger ones too, so it counts as one of `FEWEST` columns.
    """
    n, k = len(support), int(support.sum())
    k = max(k, min(FEWEST, n // 2)) if k < n else k
    return max(0.0, float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)))


def _row_variance(chance: _Chance | None, error: float | None, loss: float) -> float:
    """Return the variance of a mean loss: that of a share, or else the one over the folds."""
    if chance is not None and chance.is_share:
        return chance.variance(loss)
    return error**2 if error is not None else 0.0 if chance is None else chance.variance(loss)


def _fold_error(losses: FloatArray, repeats: int) -> float | None:
    """Return the standard error over the folds of one repeat; None with fewer than two folds."""
    by_repeat = losses.reshape(repeats, -1)
    if by_repeat.shape[1] < 2:
        return None
    return float(np.sqrt(by_repeat.var(axis=1, ddof=1).mean() / by_repeat.shape[1]))


def _block_variance(losses: FloatArray) -> float:
    """Return the variance of the mean over blocks, corrected for training rows in common (Nadeau, Bengio 2003)."""
    count = len(losses)
    return float(losses.var(ddof=1)) * (1 / count + 1 / (count - 1)) if count > 1 else 0.0


def _interval(loss: float, variance: float) -> tuple[float, float]:
    """Return the limits of the normal interval around a loss."""
    reach = _REACH * math.sqrt(variance)
    return loss - reach, loss + reach


def _interval_of_share(loss: float, variance: float, chance: _Chance) -> tuple[float, float]:
    """Return the limits of Wilson's interval around a share, for the number of rows that would have this variance."""
    loss = min(max(loss, 0.0), 1.0)
    rows = chance.rows * chance.variance(loss) / variance
    middle = (loss + _REACH**2 / (2 * rows)) / (1 + _REACH**2 / rows)
    half = _REACH / (1 + _REACH**2 / rows) * math.sqrt(loss * (1 - loss) / rows + _REACH**2 / (4 * rows**2))
    return min(loss, max(0.0, middle - half)), max(loss, min(1.0, middle + half))


def _chance(objective: Objective, repeats: int) -> _Chance | None:
    """Return what is known of the losses of a scorer; None for one of unknown kind."""
    scoring, data = objective.scoring, objective.data
    known = scoring.given is None or isinstance(scoring.given, str)
    if not known or data.y.ndim != 1 or not scoring.name.startswith((*_LABELS, *_RANKINGS, *_AMOUNTS)):
        return None
    tested = np.unique(np.concatenate([fold.test for fold in data.folds[: data.n_folds // repeats]]))
    constant = _constant_loss(objective)
    if constant is None:
        return None
    is_share = not scoring.name.startswith(_AMOUNTS)
    rows = _effective_rows(scoring.name, data.y[tested]) if is_share else float(len(tested))
    spread = _LINEAR_SPREAD if "absolute" in scoring.name or "root" in scoring.name else 1.0
    return _Chance(constant, rows, is_share, scoring.name.startswith(_RANKINGS), spread)


def _effective_rows(name: str, y: AnyArray) -> float:
    """Return the number of rows whose share of errors has the variance of the score by chance."""
    counts = np.unique(y, return_counts=True)[1].astype(np.float64)
    if name in ("accuracy", "top_k_accuracy") or len(counts) < 2:
        return float(len(y))
    if name.startswith(_RANKINGS):  # the variance of a random ranking, of each class against the rest
        others = len(y) - counts
        return float((3 * counts * others / (len(y) + 1)).mean())
    return float(len(counts) ** 2 / (1 / counts).sum())


def _constant_loss(objective: Objective) -> float | None:
    """Return the loss of an answer that ignores the columns; None if the scorer fails."""
    scoring, y = objective.scoring, objective.data.y
    rows = np.zeros((len(y), 1))
    if is_classifier(objective.estimator):
        models = [DummyClassifier(strategy="prior")]
        if scoring.name != "accuracy" and scoring.name.startswith(_LABELS):
            models += [DummyClassifier(strategy="stratified", random_state=draw) for draw in range(_DRAWS)]
    else:
        models = [DummyRegressor()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = [float(scoring.scorer(model.fit(rows, y), rows, y)) for model in models]
    except Exception:  # a scorer of the user, or one that needs another method
        return None
    found = max(scores[0], float(np.mean(scores[1:] or scores)))
    return float(scoring.loss(np.array(found))) if math.isfinite(found) else None
