"""The score of a selection, corrected for the search: from left-out rows, or by the expected gain of chance.

A search that leaves out rows (cross-fitting) has losses on rows that its islands did not use. Their mean is the
corrected loss. The size of the selection is chosen by these losses, too, so that their minimum is a little too low on
pure noise; if they are not better than the loss of a constant answer by more than chance, that one is reported.

Any other search used all rows. The loss L of its selection is then too low, for two reasons. It is the best of many on
these folds; the loss F on new folds shows by how much, because folds are cheap to draw again. And it is the best of
many on these rows. Resampling the losses of the subsets visited, as in BBC-CV (Tsamardinos, Greasidou, Borboudakis
2018), finds only a part of this, because the search has adapted all of them to the same rows. So a share q of the gain
G = E - F is taken back, where E is what chance reaches: the mean loss of random subsets of the same size, or of a
constant answer if that is lower.

    q = SCALE / N * (log C(n, k))^0.25 * exp(4 f),  at most 1,

for k of n columns and N rows. The fragility f is the share of the gain that is lost if a quarter of the columns is
exchanged for others at random: selections that owe their loss to chance lose more of it. Where it cannot be measured,
the size of the gain in standard deviations sigma of a mean loss over N rows stands for it:

    q = SCALE_OF_GAINS / N * (log C(n, k))^0.25 * (sigma / G)^1.25.

Where random subsets do no better than a constant answer, a small gain is all taken back, so that the corrected loss on
pure noise is that of chance. For a target of numbers this is worse than a constant answer. Let h be predictions of rows
that were not trained on, as deviations from the mean. The squared error is var(y) - 2 cov(y, h) + var(h); of useless
columns the covariance is luck, and on new rows var(y) + var(h) is left. Where the columns tell much, the correction
falls with the number of rows. The constants are fitted on made-up tables and halves of data sets;
docs/results/honesty.md has measurements.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln
from scipy.stats import norm
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import _safe_indexing

from subswarm._types import AnyArray, FloatArray, Mask, Masks, Predictor
from subswarm.engines.data import for_columns
from subswarm.objective.objective import Objective

__all__ = ["Compared", "HonestScore", "compare", "corrected_score"]

SCALE = 3.2
"""Scale of the share of the gain that is taken back from searches that used all rows."""

FRAGILE = 4.0
"""Logarithm of the ratio of this share for a selection that loses all of its gain to that for one that loses none."""

SCALE_OF_GAINS = 280.0
"""Scale of this share if the fragility is unknown."""

SMALL_GAIN = 2.8
"""Where random subsets do no better than a constant answer, a gain below this times sigma (log C)^0.25 is by chance."""

NO_BETTER = 0.9
"""Share of the loss of a constant answer above which random subsets do no better."""

RANKING = 0.69
"""Factor of this share for scores of rankings, such as the area under the ROC curve."""

STEEPNESS = 4
"""From targets of numbers, at least this power of that smallest gain, over the gain, is taken back as a share."""

SAME_FOLDS = 1.5
"""Factor of this share if there are no new folds."""

NEW_REPEATS = 2
"""Repeats of new folds; those on which the selection may have been compared with others already."""

MOST_DRAWN = 24
"""The most random subsets that are scored, and the most that have a part of the selected columns."""

DRAWN_SHARE = 1 / 150
"""Share of the evaluations of the search that each of these may take."""

PREDICTED = 3
"""One row in this many is predicted by a model of the others, to find how much predictions of numbers vary."""

FEWEST_PREDICTED = 10
"""The fewest such rows."""

FEWEST_EVALUATIONS = 200
"""With fewer evaluations, the selection is not scored on new folds either: this would take a notable share of time."""

EXCHANGED = 0.25
"""Share of the selected columns that is exchanged to find the fragility."""

FEWEST = 5
"""Fewer selected columns count as this many in the correction."""

UNCERTAINTY = 0.5
"""Standard error of that correction, as a share of it."""

SEARCH_SHARE = 1 / 1.5
"""Share of the variance over the blocks of left-out rows that counts; it is itself estimated from few blocks."""

_REACH = float(norm.ppf(0.975))
"""Half the width of a 95 % interval, in standard errors."""

_GENERIC = 0.95
"""Correction of a scorer of unknown kind, in standard errors, if there are no random subsets to compare with."""

_AMOUNT = 2.0
"""Scale of the variance by chance of amounts, such as squared errors."""

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

    def variance_by_chance(self, loss: float, gain: float) -> float:
        """Return the variance of a mean loss by chance; that of an amount is a share of itself."""
        return self.variance(loss) if self.is_share else _AMOUNT * self.spread * loss * gain / self.rows


@dataclass(frozen=True)
class Compared:
    """What a selection is compared with, None where it is unknown.

    Attributes
    ----------
    fresh : its mean loss on new folds
    chance : mean loss of random subsets of its size
    exchanged : its mean loss with a quarter of its columns exchanged at random
    predicted : mean square of its predictions of a number around the mean, as a share of the variance of the target
    """

    fresh: float | None = None
    chance: float | None = None
    exchanged: float | None = None
    predicted: float | None = None


def compare(objective: Objective, support: Mask, evaluations: int) -> Compared:
    """Score a selection on new folds, and random subsets, within 2 % of the evaluations of its search."""
    if evaluations < FEWEST_EVALUATIONS:
        return Compared()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a random subset that fails says nothing
        new = objective.on_new_folds(NEW_REPEATS)
        fresh = None if new is None else float(new.losses_of(support).mean())
        count, size = min(MOST_DRAWN, int(DRAWN_SHARE * evaluations)), int(support.sum())
        if count == 0 or size == len(support):
            return Compared(fresh)
        rng = np.random.default_rng(objective.ranking_seed)
        chance = _mean_loss(objective, _draw_subsets(len(support), size, count, rng))
        part = min(max(1, round(EXCHANGED * size)), len(support) - size)
        exchanged = None if size < 3 else _mean_loss(objective, _exchange(support, part, count, rng))
        return Compared(fresh, chance, exchanged, _predicted_share(objective, support, rng))


def _draw_subsets(n_features: int, size: int, count: int, rng: Generator) -> Masks:
    """Return random subsets of a size, shape (count, n)."""
    masks = np.zeros((count, n_features), dtype=bool)
    keys = rng.random((count, n_features))
    np.put_along_axis(masks, np.argpartition(keys, size - 1, axis=1)[:, :size], True, axis=1)
    return masks


def _exchange(support: Mask, part: int, count: int, rng: Generator) -> Masks:
    """Return subsets with ``part`` of the selected columns exchanged for others at random, shape (count, n)."""
    inside, outside = np.flatnonzero(support), np.flatnonzero(~support)
    masks = np.tile(support, (count, 1))
    masks[:, inside] = ~_draw_subsets(len(inside), part, count, rng)
    masks[:, outside] = _draw_subsets(len(outside), part, count, rng)
    return masks


def _mean_loss(objective: Objective, masks: Masks) -> float | None:
    """Return the mean loss of those of the subsets that can be scored, on the folds of the first repeat."""
    losses = objective(masks, np.zeros(len(masks), dtype=np.intp))
    scored = losses[losses < objective.scoring.worst]
    return float(scored.mean()) if len(scored) else None


def _predicted_share(objective: Objective, support: Mask, rng: Generator) -> float | None:
    """Return `Compared.predicted`, from a model of part of the rows; None if the target is no number or it fails."""
    data, y = objective.data, objective.data.y
    test, train = np.split(rng.permutation(len(y)), [len(y) // PREDICTED])
    if not is_regressor(objective.estimator) or y.ndim > 1 or len(test) < FEWEST_PREDICTED:
        return None
    columns = data.columns(support)
    try:
        model = cast(Predictor, clone(for_columns(objective.estimator, support, data.names)))
        model.fit(_safe_indexing(columns, train), y[train])
        share = float(np.square(model.predict(_safe_indexing(columns, test)) - y[train].mean()).mean() / y.var())
    except Exception:  # it needs metadata, or cannot be fitted on these rows
        return None
    return share if math.isfinite(share) else None


def corrected_score(
    objective: Objective,
    fold_losses: FloatArray,
    support: Mask,
    left_out: FloatArray | None,
    *,
    compared: Compared | None = None,
    repeats: int | None = None,
    found_something: bool = True,
) -> HonestScore | None:
    """Return the corrected score of a selection; None if there is only one fold and the scorer is of unknown kind.

    Parameters
    ----------
    objective : the objective whose folds the selection was scored on
    fold_losses : its losses there, shape (n_folds,)
    support : the selected columns
    left_out : losses of selections of its kind on the rows that their searches left out; None if there are none
    compared : what the selection is compared with if there are none
    repeats : number of repeats that the folds are; None for that of the objective
    found_something : whether the losses on the left-out rows are better than that of a constant answer by more than
        chance; otherwise the corrected score is that of a constant answer, or for amounts not above it
    """
    loss = float(fold_losses.mean())
    repeats = objective.n_partitions if repeats is None else repeats
    error = _fold_error(fold_losses, repeats)
    chance = _chance(objective, repeats)
    if error is None and chance is None:
        return None
    if left_out is not None:
        corrected = max(loss, float(left_out.mean()))
        if chance is not None and not found_something:
            corrected = max(loss if chance.is_share else corrected, chance.constant)
        variance = max(_row_variance(chance, error, corrected), SEARCH_SHARE * _block_variance(left_out))
    else:
        corrected = _take_back(loss, error, chance, support, compared or Compared(), objective.n_rows)
        variance = _row_variance(chance, error, corrected) + (UNCERTAINTY * (corrected - loss)) ** 2
    share = None if chance is None or not chance.is_share else chance
    low, high = _interval(corrected, variance) if share is None else _interval_of_share(corrected, variance, share)
    scoring = objective.scoring
    return HonestScore(scoring.score(corrected), scoring.score(high), scoring.score(low), left_out is not None)


def _take_back(
    loss: float, error: float | None, chance: _Chance | None, support: Mask, compared: Compared, n_rows: int
) -> float:
    """Return the loss of a selection without what a search gains by chance."""
    base = loss if compared.fresh is None else max(loss, compared.fresh)
    nats_root = math.pow(_n_nats(support), 0.25)
    reached = compared.chance
    if chance is not None and (reached is None or chance.is_share):
        reached = min(chance.constant, math.inf if reached is None else reached)
    if reached is None:
        return base + _GENERIC * nats_root * (error or 0.0)
    tells_nothing = chance is not None and reached > NO_BETTER * chance.constant
    gain, luck = reached - base, 0.0
    if chance is not None and tells_nothing and compared.predicted is not None:
        luck = _luck(base, max(reached, chance.constant * (1 + chance.spread * compared.predicted)), chance, nats_root)
    if gain <= 0:
        return base + luck
    sigma = error or 0.0 if chance is None else math.sqrt(max(0.0, chance.variance_by_chance(base, gain)))
    if tells_nothing and compared.predicted is None and gain < SMALL_GAIN * sigma * nats_root:
        return reached
    fragility = _fragility(loss, compared)
    if fragility is None:
        share = SCALE_OF_GAINS * math.pow(sigma / gain, 1.25)
    else:
        share = SCALE * math.exp(FRAGILE * fragility)
    share *= nats_root / (n_rows if chance is None else chance.rows)
    share *= RANKING if chance is not None and chance.is_ranking else 1.0
    share *= SAME_FOLDS if compared.fresh is None else 1.0
    return base + max(luck, gain * min(1.0, share))


def _luck(base: float, useless: float, chance: _Chance, nats_root: float) -> float:
    """Return the part of a gain over the loss of useless columns that chance explains: all of a small gain."""
    gain = useless - base
    if gain <= 0:
        return 0.0
    small_gain = SMALL_GAIN * math.sqrt(max(0.0, chance.variance_by_chance(base, gain))) * nats_root
    return gain * min(1.0, (small_gain / gain) ** STEEPNESS)


def _fragility(loss: float, compared: Compared) -> float | None:
    """Return the share of the gain that is lost if a quarter of the columns is exchanged; None if that is unknown."""
    if compared.chance is None or compared.exchanged is None or compared.chance <= loss:
        return None
    return min(max((compared.exchanged - loss) / (compared.chance - loss), 0.0), 1.2)


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
    if scoring.name == "accuracy":  # the usual scorers need no model, which would take as long as all else here
        return 1 - float(np.unique(y, return_counts=True)[1].max() / len(y))
    if scoring.name == "r2" and y.var() > 0:
        return 1.0
    if scoring.name == "neg_mean_squared_error":
        return float(y.var())
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
