"""The result of a search, its history, what callbacks see, and how much the subsets of several searches agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from subswarm._types import CostFront, FloatArray, Front, IntArray, Mask, Masks, Subset
from subswarm.algorithms.base import Finalists, State
from subswarm.errors import SettingError

if TYPE_CHECKING:
    from subswarm.plot._methods import Plots

__all__ = [
    "History",
    "Recording",
    "SearchResult",
    "Snapshot",
    "Stability",
    "error_over_folds",
    "island_stability",
    "noise_width",
    "one_standard_error",
    "result_html",
    "rows_html",
    "smallest_not_worse",
    "stability",
    "standard_error",
]


POOLED = 5
"""Weight of the variance that all differences suggest, where that of a difference weighs as many as its degrees of
freedom."""


@dataclass(frozen=True, eq=False)
class History:
    """The history of a search, one entry for each step.

    Attributes
    ----------
    evaluations : evaluations so far: masks times the repeats each was scored on
    best_fitness, best_cardinality : loss and size of the best subset so far
    spread : mean distance between two masks of the step's batch, as a share of the features (0: all equal)
    seconds : time since the start of the search
    """

    evaluations: IntArray
    best_fitness: FloatArray
    best_cardinality: IntArray
    spread: FloatArray
    seconds: FloatArray

    def __len__(self) -> int:
        return len(self.evaluations)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a callback receives after each step; a callback that returns True stops the search.

    Attributes
    ----------
    best : the best subset so far
    evaluations : evaluations so far: masks times the repeats each was scored on
    progress : share of the budget spent, 0 to 1
    spread : mean distance between two masks of this step, as a share of the features
    seconds : time since the start of the search
    masks, fitness : this step's batch, shapes (P, n) and (P,)
    state : the algorithm's state before it learnt from this batch (read only)
    """

    best: Subset
    evaluations: int
    progress: float
    spread: float
    seconds: float
    masks: Masks
    fitness: FloatArray
    state: State


@dataclass(frozen=True, eq=False)
class Recording:
    """All subsets a search has evaluated; only searches run with ``record=True`` have one.

    A search that continues from a checkpoint records only what it evaluates from there on.

    Attributes
    ----------
    evaluations : evaluations after each step, shape (steps,)
    cardinality, fitness : size and loss of each subset in order of evaluation, including repeated ones, shape (E,)
    chosen : how often each feature was in an evaluated subset, shape (n,)
    likelihood : probability of each cardinality 1..n before each step, shape (steps, n); None for algorithms without
        such likelihoods
    """

    evaluations: IntArray
    cardinality: IntArray
    fitness: FloatArray
    chosen: IntArray
    likelihood: FloatArray | None


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The result of a search.

    Attributes
    ----------
    best : the best subset evaluated (or the first of the algorithm's finalists, if it scores most subsets on some
        repeats only; ``front`` likewise)
    fold_losses : its loss in each fold, repeat by repeat; None if the objective has no folds
    n_partitions : number of repeats of the cross-validation
    finalists : the subsets that the algorithm selects from, the best first; None if it has none
    front : the best subset of each cardinality evaluated
    history : best loss, size, spread and time after each step
    stop_reason : "evaluations", "seconds", "target", "patience", "finished", "callback" or "interrupted"
    evaluations : number of evaluations: subsets times the repeats each was scored on
    computed : number of distinct evaluations
    algorithm_seconds, evaluation_seconds : time in the algorithm and in the evaluations, the paper's T1 and T2
    engine : name of the engine that scored the subsets
    algorithm, settings : name and settings of the algorithm
    recording : all evaluated subsets, if the search was run with ``record=True``
    cost_front : the subsets that are best in loss and cost, if the objective has prices or the algorithm two losses
    """

    best: Subset
    fold_losses: FloatArray | None
    front: Front
    history: History
    stop_reason: str
    evaluations: int
    computed: int
    algorithm_seconds: float
    evaluation_seconds: float
    engine: str
    algorithm: str
    settings: dict[str, object] = field(default_factory=dict)
    recording: Recording | None = None
    n_partitions: int = 1
    finalists: Finalists | None = None
    cost_front: CostFront | None = None

    @property
    def plot(self) -> Plots:
        """Plots of this result, such as ``result.plot.trade_off()``; see `subswarm.plot.Plots`."""
        from subswarm.plot._methods import Plots  # matplotlib is needed only when something is drawn

        return Plots(self)

    def on_columns(self, owner: IntArray) -> SearchResult:
        """Return the result with masks over columns; ``owner`` is the feature of each column, -1 for none."""

        def columns(masks: Masks) -> Masks:
            return np.asarray(masks[..., owner] & (owner >= 0))

        recording = self.recording
        if recording is not None:
            recording = replace(recording, chosen=np.where(owner >= 0, recording.chosen[owner], 0))
        finalists = self.finalists
        if finalists is not None:
            islands = None if finalists.islands is None else columns(finalists.islands)
            finalists = finalists._replace(masks=columns(finalists.masks), islands=islands)
        return replace(
            self,
            finalists=finalists,
            best=Subset(columns(self.best.mask), self.best.fitness),
            front=Front(columns(self.front.masks), self.front.fitness),
            recording=recording,
            cost_front=None if self.cost_front is None else self.cost_front.on_columns(owner),
        )

    def _repr_html_(self) -> str:
        return result_html(self)

    def __repr__(self) -> str:
        return (
            f"SearchResult({self.algorithm}: fitness {self.best.fitness:.6g} with {self.best.cardinality} of "
            f"{len(self.best.mask)} features, {self.evaluations} evaluations, stopped by {self.stop_reason})"
        )


def standard_error(result: SearchResult) -> float | None:
    """Return the standard error of the best subset's mean loss over the folds; None if there are too few folds."""
    if result.fold_losses is None or len(result.fold_losses) < 2 * result.n_partitions:
        return None
    return error_over_folds(result.fold_losses, result.n_partitions)


def error_over_folds(losses: FloatArray, n_partitions: int) -> float:
    """Return the standard error of a mean loss over the folds, given repeat by repeat; NaN with fewer than two folds.

    If the cross-validation is repeated, it is the mean of the standard errors of the repeats, because repeats add no
    rows.
    """
    by_repeat = losses.reshape(n_partitions, -1)
    if by_repeat.shape[1] < 2:
        return float("nan")
    return float(by_repeat.std(axis=1, ddof=1).mean() / np.sqrt(by_repeat.shape[1]))


def one_standard_error(result: SearchResult) -> Subset:
    """Return the smallest evaluated subset whose loss is within one standard error of the best.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from subswarm import Budget, make_objective, search
    >>> objective = make_objective(GaussianNB(), *load_wine(return_X_y=True))
    >>> result = search("2d-upso", objective, Budget(evaluations=300), rng=0)
    >>> one_standard_error(result).cardinality <= result.best.cardinality
    True
    """
    error = standard_error(result)
    if error is None:
        return result.best
    within = np.flatnonzero(result.front.fitness <= result.best.fitness + error)
    return result.front.subset_of_size(int(result.front.cardinality[within].min()))


def noise_width(n_rows: float, n_columns: int = 1, *, searched: bool = False) -> float:
    """Return how many standard errors count as noise for a table of this many rows and columns.

    With few rows, a standard error is large compared with what a useful column contributes, so that only a part of it
    counts; with many rows, several are still a small difference. With more columns than rows, many subsets are about
    equally good, and more counts as noise. ``searched`` says that the search saw all rows: then losses on new folds are
    too low as well, and more counts as noise, too. docs/results/answers.md says how the numbers were chosen.

    Examples
    --------
    >>> [round(noise_width(rows), 2) for rows in (50, 200, 1000, 5000)]
    [0.1, 0.25, 1.18, 2.11]
    >>> noise_width(50, 2000)
    0.2
    """
    if searched:
        return max(1.0 if n_columns > n_rows else 0.6, 0.45 * math.log2(n_rows / 70))
    return max(0.2 if n_columns > n_rows else 0.1, 0.4 * math.log2(n_rows / 130))


def smallest_not_worse(masks: Masks, losses: FloatArray, width: float = 1.0, mean: FloatArray | None = None) -> int:
    """Return the row of the smallest subset that is not worse than the best one by more than the noise.

    The noise is ``width`` standard errors of the differences between the losses of the two subsets, taken in pairs:
    both subsets are scored on the same parts of the rows.

    Parameters
    ----------
    masks : subsets, shape (K, n)
    losses : their losses, shape (K, repeats, parts); repeats add no rows, so their standard errors are averaged
    width : float
    mean : what the losses of the subsets are on the whole, shape (K,); None for the means of ``losses``

    Examples
    --------
    >>> masks = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)
    >>> losses = np.array([[[0.3, 0.1, 0.5]], [[0.2, 0.1, 0.3]], [[0.1, 0.1, 0.3]]])
    >>> smallest_not_worse(masks, losses)
    1
    """
    mean = losses.mean(axis=(1, 2)) if mean is None else mean
    sizes = masks.sum(axis=1)
    best = int(np.lexsort((sizes, mean))[0])
    parts = losses.shape[2]
    variance = np.zeros(len(masks))
    if parts > 1:
        variance = (losses - losses[best]).var(axis=2, ddof=1).mean(axis=1)
        variance = _pooled(variance, (masks ^ masks[best]).sum(axis=1), parts - 1)
    noise = width * np.sqrt(variance / parts)
    worse = mean - mean[best] > noise + 1e-12 * abs(mean[best])
    return int(np.lexsort((mean, sizes, worse))[0])


def _pooled(variance: FloatArray, distance: IntArray, freedom: int) -> FloatArray:
    """Return the variances of differences, each averaged with what all of them together suggest for it.

    A variance of few parts is itself uncertain. That of a difference grows with the number of features in which the two
    subsets differ, about as its square root.
    """
    expected = np.sqrt(distance)
    if not expected.any():
        return variance
    expected = expected * (variance.sum() / expected.sum())
    return np.asarray((freedom * variance + POOLED * expected) / (freedom + POOLED))


_MOST_NAMES = 40


def result_html(result: SearchResult, names: Sequence[str] | None = None) -> str:
    """Return the result as an HTML table with a small chart of the best loss."""
    chosen = [str(index) if names is None else str(names[index]) for index in result.best.features]
    more = f" and {len(chosen) - _MOST_NAMES} more" if len(chosen) > _MOST_NAMES else ""
    seconds = result.algorithm_seconds + result.evaluation_seconds
    return rows_html(
        {
            "best loss": f"{result.best.fitness:.6g}",
            "features": f"{result.best.cardinality} of {len(result.best.mask)}: "
            + ", ".join(chosen[:_MOST_NAMES])
            + more,
            "search": f"{result.algorithm}, {result.evaluations} evaluations, {result.computed} distinct, "
            f"{seconds:.1f} s, engine {result.engine}, stopped by {result.stop_reason}",
        },
        picture=_loss_chart(result.history.best_fitness),
    )


def rows_html(rows: dict[str, str], picture: str = "") -> str:
    """Return a two-column HTML table of escaped text; ``picture`` is trusted HTML."""
    lines = "".join(
        f'<tr><th scope="row" style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    shown = f'<tr><th scope="row" style="text-align:left">history</th><td>{picture}</td></tr>' if picture else ""
    return f'<table class="subswarm">{lines}{shown}</table>'


def _loss_chart(values: FloatArray, width: int = 240, height: int = 36) -> str:
    if len(values) < 2:
        return ""
    low, high = float(values.min()), float(values.max())
    span = high - low or 1.0
    points = " ".join(
        f"{place * (width - 4) / (len(values) - 1) + 2:.1f},{(high - float(value)) / span * (height - 4) + 2:.1f}"
        for place, value in enumerate(values)
    )
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="best loss from {high:.4g} to {low:.4g}">'
        f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="1.5"/></svg>'
    )


@dataclass(frozen=True)
class Stability:
    """Nogueira's Φ: 1 if all subsets are equal, about 0 if they agree no more than by chance.

    Attributes
    ----------
    value : Φ; NaN if every subset is full or every subset is empty
    low, high : limits of its confidence interval
    """

    value: float
    low: float
    high: float


def stability(masks: ArrayLike, confidence: float = 0.95) -> Stability:
    """Compute the measure of Nogueira, Sechidis and Brown (JMLR 18, 2018) for at least 2 subsets, one per row.

    Examples
    --------
    >>> stability([[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0]]).value
    1.0
    """
    chosen = np.asarray(masks, dtype=np.float64)
    if chosen.ndim != 2 or len(chosen) < 2:
        raise SettingError(f"stability needs at least 2 subsets, one per row; got an array of shape {chosen.shape}.")
    count, d = chosen.shape
    frequency = chosen.mean(axis=0)
    size = chosen.sum(axis=1)
    mean_size = float(size.mean())
    chance = mean_size / d * (1.0 - mean_size / d)
    if chance <= 0:
        return Stability(float("nan"), float("nan"), float("nan"))
    spread = count / (count - 1) * frequency * (1.0 - frequency)
    value = float(1.0 - spread.mean() / chance)
    terms = (
        chosen @ frequency / d
        - size * mean_size / d**2
        + value / 2.0 * (2.0 * mean_size * size / d**2 - size / d - mean_size / d + 1.0)
    ) / chance
    deviation = float(np.sqrt(4.0 / count**2 * ((terms - terms.mean()) ** 2).sum()))
    reach = float(stats.norm.ppf(0.5 + confidence / 2.0)) * deviation
    return Stability(value, value - reach, value + reach)


def island_stability(result: SearchResult, support: Mask) -> tuple[Stability | None, FloatArray | None]:
    """Return how much the islands of a search agree, and the share of them that select each column.

    The subsets are those of each island that correspond to the selected one. Both are None without islands.
    """
    finalists = result.finalists
    if finalists is None or finalists.islands is None or finalists.islands.shape[1] < 2:
        return None, None
    same = np.flatnonzero((finalists.masks == support).all(axis=1))
    masks = finalists.islands[same[0] if len(same) else 0]
    return stability(masks), np.asarray(masks.mean(axis=0))
