"""2D-Guided: a search for expensive models, guided by the importances of the columns in the fitted models.

With boosted trees or forests, a search can afford a few hundred fits and not 60,000. Each fit tells more than a loss,
though: the importance of every column. The search has three stages:

1. **Path.** In each fold, a model of all columns is fitted on the training rows, a share of the least important columns
   is dropped, and so on. The loss on the test rows of the fold does not depend on what was dropped because of these
   rows, as in scikit-learn's `RFECV`. This gives an unbiased curve of loss against number of columns.
2. **Single steps.** Near the best number of columns, the path is walked again, one column (or a few) at a time. Then
   the curve is smoothed, because the lowest point of a noisy curve is low by chance.
3. **Refinement.** The columns are ranked by how long they survived in all folds. From prefixes of this ranking, an
   elite of subsets is improved by moves: drop a column of low importance, add one that survived long, swap, or a random
   change. Which kinds of moves help is learned from their success. Candidates race (see `FoldCandidates`).

One evaluation is one fit if each fold is a partition of its own, as `FoldwiseObjective` provides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_int, check_real
from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.algorithms.base import Algorithm, Finalists, State
from subswarm.algorithms.fold_candidates import FoldCandidates
from subswarm.algorithms.masks import SubsetRules
from subswarm.algorithms.state import Layout, StatePart
from subswarm.errors import SettingError

__all__ = ["Guided", "TwoDGuided"]

PATH, STARTS, RACE = 0, 1, 2
"""The stages: the path with its single steps, the subsets that the refinement starts from, the refinement."""
MOVES = ("drop", "add", "swap", "random")
LEAST_RATIO = 0.1
"""The smallest share of the columns that a step of the path keeps, however small the budget is."""
MOST_SINGLE_STEPS = 10
"""The most sizes on either side of the best one that the single steps visit."""
MOST_STARTS = 4
"""The most prefixes of the pooled ranking that the refinement starts from."""
USUAL_FOLDS = 4
"""Weight, in folds, of the usual noise of a difference when the noise of a single one is estimated."""
TRIES = 20
"""Moves drawn for a candidate until one gives a subset that was not visited before."""


@dataclass(frozen=True, eq=False)
class Elite(StatePart):
    """Subsets scored on every fold.

    Attributes
    ----------
    masks : shape (E, n); the first is the one whose losses are compared with those of the path
    losses : shape (E, C)
    importances : mean importances over the folds, shape (E, n)
    """

    layout: ClassVar[Layout | None] = Layout(varying=dict.fromkeys(("masks", "losses", "importances"), "elite"))

    masks: Masks
    losses: FloatArray
    importances: FloatArray


@dataclass(frozen=True, eq=False)
class Guided(State):
    """The state of the search on n features and C folds.

    Attributes
    ----------
    masks, partitions : the subsets to score next, and the fold of each
    stage : `PATH`, `STARTS` or `RACE`
    heard : importances in the models of the last masks, shape (P, n); empty before they are told, or if unknown
    rank : the place of each column in each fold's order of elimination, 1 for the last one left, shape (C, n)
    descent : the same before the single steps, shape (C, n)
    sizes : sizes of the path so far, in the order visited, shape (L,)
    path : losses on the path, shape (L, C)
    learned : importances on the path, shape (L, C, n)
    todo : sizes to visit next, shape (T,)
    elite : the subsets that the refinement improves
    race : the candidates being scored
    race_importances : the sum of their importances so far, shape (Q, n)
    moves : the kind of move that made each candidate, and its parent in the elite, shape (Q, 2)
    tries, successes : of each kind of move, shape (4,)
    visited : every candidate so far, shape (V, n)
    noise : standard deviation of a paired difference in one fold
    rounds, idle : number of races, and of those since the last success
    """

    layout: ClassVar[Layout | None] = Layout(
        varying={
            "masks": "asked",
            "partitions": "asked",
            "heard": "heard",
            "sizes": "path",
            "path": "path",
            "learned": "path",
            "todo": "todo",
            "race_importances": "candidates",
            "moves": "candidates",
            "visited": "visited",
        },
        ranges={"stage": (PATH, None), "sizes": (0, None), "todo": (0, None), "rounds": (0, None), "idle": (0, None)},
    )

    masks: Masks
    partitions: IntArray = field()
    stage: int
    heard: FloatArray
    rank: FloatArray
    descent: FloatArray
    sizes: IntArray
    path: FloatArray
    learned: FloatArray
    todo: IntArray
    elite: Elite
    race: FoldCandidates
    race_importances: FloatArray
    moves: IntArray
    tries: FloatArray
    successes: FloatArray
    visited: Masks
    noise: float
    rounds: int
    idle: int

    @property
    def n_folds(self) -> int:
        return len(self.rank)


@dataclass(frozen=True, kw_only=True)
class TwoDGuided(Algorithm[Guided]):
    """Eliminate columns by the importances of the fitted models, then refine the best subsets by guided moves.

    For models that take long to fit. Every loss and every importance comes from the same fits. It works best if each
    fold is a partition of its own; `SwarmSelector` sees to that.

    Parameters
    ----------
    ratio : float, default=0.9
        Share of the columns that a step of the path keeps. With a small budget it is smaller, so that the path takes
        at most ``path_share`` of it.
    path_share : float, default=0.5
        Share of the budget for the path, without its single steps.
    batch : int, default=8
        Number of candidates that race together.
    caution : float, default=1
        Standard errors by which a candidate may be behind in a race.
    tolerance : float, default=1
        Standard errors by which a smaller subset may be worse and still join the elite.
    elite : int, default=20
        Number of subsets that the refinement keeps.
    noise_width : float, default=0.25
        Standard errors of a paired difference that count as noise when ``choose="smallest"`` selects a subset. The
        folds are few and the path is different in each, so that much more loses columns that are needed.
    smoothing : float, default=0.2
        Width of the window in which the curve of loss against the logarithm of the number of columns is smoothed, in
        each fold. The lowest point of a curve from few folds is low by chance; 0 takes it as it is.
    patience : int or None, default=6
        Races without success after which the search ends; None uses the whole budget.
    n_partitions : int or None
        Number of folds; filled in by the search.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = (
        "this package; the path after Guyon, Weston, Barnhill, Vapnik, Machine Learning 46 (2002) 389-422"
    )
    parsimonious = True
    uses_single_partitions: ClassVar[bool] = True
    scores_folds: ClassVar[bool] = True
    uses_importances: ClassVar[bool] = True

    ratio: float = 0.9
    path_share: float = 0.5
    batch: int = 8
    caution: float = 1.0
    tolerance: float = 1.0
    elite: int = 20
    noise_width: float = 0.25
    smoothing: float = 0.2
    patience: int | None = 6
    n_partitions: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("ratio", self.ratio, above=0, high=0.99)
        check_real("path_share", self.path_share, above=0, high=1)
        check_int("batch", self.batch, low=1)
        check_real("caution", self.caution, low=0)
        check_real("tolerance", self.tolerance, low=0)
        check_int("elite", self.elite, low=1)
        check_real("noise_width", self.noise_width, low=0)
        check_real("smoothing", self.smoothing, low=0)
        check_int("patience", self.patience, low=1, optional=True)
        check_int("n_partitions", self.n_partitions, low=1, optional=True)

    def with_partitions(self, n_partitions: int) -> Self:
        """Return the algorithm with the number of folds filled in."""
        if self.n_partitions is None:
            return replace(self, n_partitions=n_partitions)
        if self.n_partitions > n_partitions:
            raise SettingError(
                f"TwoDGuided has n_partitions={self.n_partitions}, but the search has {n_partitions}; leave "
                "n_partitions at None. Inside a race it is always 1."
            )
        return self

    def passing_rules(self, n_features: int) -> SubsetRules:
        """Return the rules for subsets on the path, which starts with all columns."""
        return SubsetRules.of(
            n_features,
            min_features=self.min_features,
            fixed_features=self.fixed_features,
            feature_sizes=self.feature_sizes,
        )

    def begin(self, n_features: int, rng: Generator) -> Guided:
        self.rules(n_features)
        folds = self.n_partitions or 1
        no_masks, no_losses = np.empty((0, n_features), dtype=bool), np.empty((0, folds))
        nothing = np.empty((0, n_features))
        return Guided(
            masks=np.ones((folds, n_features), dtype=bool),
            partitions=np.arange(folds),
            stage=PATH,
            heard=nothing,
            rank=np.tile(np.arange(1.0, n_features + 1), (folds, 1)),
            descent=np.tile(np.arange(1.0, n_features + 1), (folds, 1)),
            sizes=np.empty(0, dtype=np.intp),
            path=no_losses,
            learned=np.empty((0, folds, n_features)),
            todo=np.array([n_features], dtype=np.intp),
            elite=Elite(no_masks, no_losses, nothing),
            race=FoldCandidates.begin(no_masks, no_losses, np.empty(0), 0),
            race_importances=nothing,
            moves=np.empty((0, 2), dtype=np.intp),
            tries=np.zeros(len(MOVES)),
            successes=np.zeros(len(MOVES)),
            visited=no_masks,
            noise=0.0,
            rounds=0,
            idle=0,
        )

    def on_importances(self, state: Guided, importances: FloatArray) -> Guided:
        """Return the state with the importances in the models of its masks, shape (P, n)."""
        return replace(state, heard=importances)

    def step(self, state: Guided, fitness: FloatArray, progress: float, rng: Generator) -> Guided:
        """Record the losses and importances, and ask for the next subsets of the stage."""
        heard = state.heard if len(state.heard) == len(fitness) else np.zeros(state.masks.shape)
        if state.stage == PATH:
            state = self._walked(state, fitness, heard, progress)
            if len(state.todo):
                return self._next_of_path(state, rng)
            return self._ask_starts(state, rng)
        if state.stage == STARTS:
            return self._new_race(self._with_starts(state, fitness, heard), rng)
        state = self._raced(state, fitness, heard)
        return self._ask_race(state) if not state.race.is_over else self._new_race(self._decided(state), rng)

    def finalists(self, state: Guided) -> Finalists | None:
        """Return a subset of each size of the path, and the refined ones, with losses in each fold.

        The losses of the path were not optimised on the rows they were measured on. Those of a refined subset are
        these losses, plus the differences to the subset that the refinement started from, plus what the best of many
        candidates gains by luck, in standard errors (for a smaller subset, plus one standard error). Their losses on
        left-out rows are those of the subset that the refinement started from, which was not chosen on these rows.
        """
        if not len(state.sizes):
            return None
        rules = self.rules(state.rank.shape[1])
        sizes, measured, smooth = self._curve(state)
        masks, paired, left_out = self._pooled(state, sizes), smooth, measured
        if len(state.elite.masks):
            anchor = int(np.argmin(np.abs(sizes - state.elite.masks[0].sum())))
            differences = state.elite.losses[1:] - state.elite.losses[0]
            errors = np.where(state.elite.masks[1:].sum(axis=1) < state.elite.masks[0].sum(), 1.0, self._luck(state))
            added = differences + (errors * _standard_error(differences, state.noise))[:, None]
            masks = np.concatenate([masks, state.elite.masks[1:]])
            paired = np.concatenate([paired, smooth[anchor] + added])
            left_out = np.concatenate([left_out, np.broadcast_to(measured[anchor], added.shape)])
        legal = rules.is_legal(masks)
        if not legal.any():
            return None
        _, first = np.unique(np.packbits(masks[legal], axis=1), axis=0, return_index=True)
        rows = np.flatnonzero(legal)[np.sort(first)]
        fitness = paired.mean(axis=1)
        rows = rows[np.lexsort((masks[rows].sum(axis=1), fitness[rows]))]
        return Finalists(masks[rows], fitness[rows], paired[rows], left_out[rows], noise_width=self.noise_width)

    @staticmethod
    def _luck(state: Guided) -> float:
        """Return how many standard errors the best of all candidates so far is expected to be ahead by luck."""
        return float(np.sqrt(2 * np.log(max(2.0, state.tries.sum()))))

    # The path

    def _walked(self, state: Guided, fitness: FloatArray, heard: FloatArray, progress: float) -> Guided:
        """Return the state after a step of the path; at its ends, the sizes of the next part of it are planned."""
        size = int(state.todo[0])
        state = replace(
            state,
            sizes=np.append(state.sizes, size),
            path=np.concatenate([state.path, fitness[None]]),
            learned=np.concatenate([state.learned, heard[None]]),
            todo=state.todo[1:],
            heard=state.heard[:0],
        )
        rank = state.rank.copy()
        for fold, mask in enumerate(state.masks):  # the remaining columns are ordered by their importance now
            left = np.flatnonzero(mask)
            order = left[np.lexsort((rank[fold, left], -self._worth(heard[fold])[left]))]
            rank[fold, order] = np.arange(1.0, len(order) + 1)
        state = replace(state, rank=rank)
        if len(state.todo):
            return state
        if len(state.sizes) == 1:
            return replace(state, todo=self._path_sizes(state, progress))
        if (np.diff(state.sizes) < 0).all():  # the path has come down for the first time
            return replace(state, todo=self._single_sizes(state), descent=rank)
        return replace(state, rank=_joined(rank, state.descent, size))

    def _worth(self, importances: FloatArray) -> FloatArray:
        """Return the importances with those of the fixed features at infinity, so that these are never dropped."""
        if not self.fixed_features:
            return importances
        worth = importances.copy()
        worth[list(self.fixed_features)] = np.inf
        return worth

    def _path_sizes(self, state: Guided, progress: float) -> IntArray:
        """Return the sizes of the path after the first one, which are as many as the budget allows."""
        n_features = state.rank.shape[1]
        lowest = max(1, self.passing_rules(n_features).cardinalities[0])
        ratio, sizes = self.ratio, _geometric_sizes(n_features, lowest, self.ratio)
        allowed = np.inf if progress <= 0 else self.path_share / progress - 1  # the first step is in every path
        while len(sizes) > max(allowed, 2) and ratio > LEAST_RATIO:
            ratio -= 0.02
            sizes = _geometric_sizes(n_features, lowest, ratio)
        return np.array(sizes, dtype=np.intp)

    def _single_sizes(self, state: Guided) -> IntArray:
        """Return the sizes from the one above the best size of the path down to the one below it, in single steps."""
        order = np.argsort(-state.sizes, kind="stable")
        sizes, loss = state.sizes[order], state.path[order].mean(axis=1)
        best = int(np.lexsort((sizes, loss))[0])
        high, low = int(sizes[max(best - 1, 0)]), int(sizes[min(best + 1, len(sizes) - 1)])
        between = np.arange(high - 1, low, -1)
        if len(between) > 2 * MOST_SINGLE_STEPS:
            between = np.unique(np.linspace(high - 1, low + 1, 2 * MOST_SINGLE_STEPS).round().astype(np.intp))[::-1]
        return np.asarray(between, dtype=np.intp)

    def _next_of_path(self, state: Guided, rng: Generator) -> Guided:
        """Return the state that asks for the next size: in each fold, the columns of the best ranks."""
        size = int(state.todo[0])
        rank = state.rank
        if size > state.sizes[-1]:  # the single steps begin above: the order of the path is that of its models there
            rank = rank.copy()
            above = int(np.flatnonzero(state.sizes > size)[np.argmin(state.sizes[state.sizes > size])])
            for fold in range(state.n_folds):
                left = np.flatnonzero(rank[fold] <= state.sizes[above])
                worth = self._worth(state.learned[above, fold])[left]
                rank[fold, left[np.lexsort((rank[fold, left], -worth))]] = np.arange(1.0, len(left) + 1)
        masks = self.passing_rules(rank.shape[1]).legalize(rank <= size, rng, -rank)
        return replace(state, masks=masks, partitions=np.arange(state.n_folds), rank=rank)

    def _curve(self, state: Guided) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the sizes of the path, ascending, and the losses of each in the folds, as measured and smoothed."""
        sizes, last = np.unique(state.sizes[::-1], return_index=True)
        measured = state.path[len(state.sizes) - 1 - last]
        return sizes, measured, _smoothed(np.log(sizes), measured, self.smoothing)

    def _pooled(self, state: Guided, sizes: IntArray) -> Masks:
        """Return for each size the columns that survived longest in all folds, shape (K, n)."""
        score = np.log(state.rank).mean(axis=0)
        order = np.lexsort((np.arange(len(score)), score))
        place = np.empty(len(score), dtype=np.intp)
        place[order] = np.arange(len(score))
        place[list(self.fixed_features)] = -1
        return np.asarray(np.argsort(np.argsort(place, kind="stable")) < np.asarray(sizes)[:, None])

    # The refinement

    def _ask_starts(self, state: Guided, rng: Generator) -> Guided:
        """Return the state that asks for the subsets that the refinement starts from, on every fold."""
        n_features = state.rank.shape[1]
        rules = self.rules(n_features)
        sizes, _, smooth = self._curve(state)
        loss = smooth.mean(axis=1)
        legal = rules.is_legal(self._pooled(state, sizes))
        sizes, loss = (sizes[legal], loss[legal]) if legal.any() else (sizes[-1:], loss[-1:])
        best = sizes[np.lexsort((sizes, loss))]
        starts = self._pooled(state, best[:1])
        smaller = [size for size in best[1:] if size < best[0]][: MOST_STARTS - 1]
        starts = np.concatenate([starts, self._pooled(state, np.array(smaller, dtype=np.intp))])
        if self.initial_subsets:
            starts = np.concatenate([starts, rules.legalize(self.initial_masks(n_features), rng)])
        starts = rules.legalize(starts, rng, np.broadcast_to(-np.log(state.rank).mean(axis=0), starts.shape))
        folds = state.n_folds
        return replace(
            state,
            stage=STARTS,
            masks=np.repeat(starts, folds, axis=0),
            partitions=np.tile(np.arange(folds), len(starts)),
        )

    def _with_starts(self, state: Guided, fitness: FloatArray, heard: FloatArray) -> Guided:
        """Return the state with the elite of the subsets that were asked for."""
        folds = state.n_folds
        masks = state.masks[::folds]
        losses = fitness.reshape(-1, folds)
        importances = heard.reshape(-1, folds, masks.shape[1]).mean(axis=1)
        neighbours = np.diff(state.path, axis=0) if len(state.path) > 1 else np.zeros((1, folds))
        noise = float(np.median(neighbours.std(axis=1))) if folds > 1 else 0.0
        return replace(
            state,
            stage=RACE,
            elite=Elite(masks, losses, importances),
            visited=masks,
            noise=noise if np.isfinite(noise) else 0.0,
            heard=state.heard[:0],
        )

    def _new_race(self, state: Guided, rng: Generator) -> Guided:
        """Return the state with a race of new candidates; without masks if the search ends."""
        candidates, moves = self._proposals(state, rng)
        ended = self.patience is not None and state.idle >= self.patience
        if ended or not len(candidates):
            return replace(state, masks=state.masks[:0], partitions=state.partitions[:0], heard=state.heard[:0])
        best = self._best(state.elite)
        smaller = candidates.sum(axis=1) < state.elite.masks[best].sum()
        slack = np.where(smaller, self.tolerance * state.noise / np.sqrt(state.n_folds), 0.0)
        race = FoldCandidates.begin(
            candidates,
            np.tile(state.elite.losses[best], (len(candidates), 1)),
            slack,
            state.rounds % state.n_folds,
        )
        state = replace(
            state,
            race=race,
            race_importances=np.zeros(candidates.shape),
            moves=moves,
            visited=np.concatenate([state.visited, candidates]),
            rounds=state.rounds + 1,
        )
        return self._ask_race(state)

    def _ask_race(self, state: Guided) -> Guided:
        masks, partitions = state.race.asked
        return replace(state, masks=masks, partitions=partitions, heard=state.heard[:0])

    def _raced(self, state: Guided, fitness: FloatArray, heard: FloatArray) -> Guided:
        """Return the state after one fold of a race."""
        total = state.race_importances.copy()
        total[state.race.running] += heard / state.n_folds
        race = state.race.told(fitness, state.noise, self.caution)
        return replace(state, race=race, race_importances=total)

    def _decided(self, state: Guided) -> Guided:
        """Return the state after a race: complete candidates join the elite, and their moves are a success."""
        race, elite = state.race, state.elite
        complete = race.complete
        best = self._best(elite)
        behind = (race.losses - race.to_beat).mean(axis=1)
        size = race.candidates.sum(axis=1)
        better = (behind < 0) | ((behind <= race.slack) & (size < elite.masks[best].sum()))
        joined = complete & better
        tries, successes = state.tries.copy(), state.successes.copy()
        np.add.at(tries, state.moves[:, 0], 1.0)
        np.add.at(successes, state.moves[joined, 0], 1.0)
        noise = state.noise
        if complete.any() and state.n_folds > 1:
            noise = 0.8 * noise + 0.2 * float((race.losses - race.to_beat)[complete].std(axis=1, ddof=1).mean())
        masks = np.concatenate([elite.masks, race.candidates[joined]])
        losses = np.concatenate([elite.losses, race.losses[joined]])
        importances = np.concatenate([elite.importances, state.race_importances[joined]])
        kept = np.lexsort((masks[1:].sum(axis=1), losses[1:].mean(axis=1)))[: self.elite] + 1
        kept = np.concatenate([[0], kept]).astype(np.intp)
        return replace(
            state,
            elite=Elite(masks[kept], losses[kept], importances[kept]),
            tries=tries,
            successes=successes,
            noise=noise,
            idle=0 if joined.any() else state.idle + 1,
        )

    @staticmethod
    def _best(elite: Elite) -> int:
        """Return the row of the subset with the lowest mean loss, the smallest of equals."""
        return int(np.lexsort((elite.masks.sum(axis=1), elite.losses.mean(axis=1)))[0])

    def _proposals(self, state: Guided, rng: Generator) -> tuple[Masks, IntArray]:
        """Return candidates that were not visited before, and the move and the parent of each."""
        elite, rules = state.elite, self.rules(state.rank.shape[1])
        trust = (state.successes + 1) / (state.tries + 2)
        order = np.lexsort((elite.masks.sum(axis=1), elite.losses.mean(axis=1)))
        seen = {row.tobytes() for row in np.packbits(state.visited, axis=1)}
        survival = -np.log(state.rank).mean(axis=0)
        candidates, moves = [], []
        for _ in range(self.batch):
            for _ in range(TRIES):
                parent = int(order[min(int(rng.geometric(0.5)) - 1, len(order) - 1)])
                kind = int(rng.choice(len(MOVES), p=trust / trust.sum()))
                child = _moved(elite.masks[parent], MOVES[kind], elite.importances[parent], survival, rng)
                child = rules.legalize(child[None], rng, survival[None])[0]
                key = np.packbits(child).tobytes()
                if key not in seen:
                    seen.add(key)
                    candidates.append(child)
                    moves.append((kind, parent))
                    break
        masks = np.array(candidates, dtype=bool).reshape(len(candidates), state.rank.shape[1])
        return masks, np.array(moves, dtype=np.intp).reshape(-1, 2)


def _geometric_sizes(highest: int, lowest: int, ratio: float) -> list[int]:
    """Return sizes that fall by this ratio, or by 1 if that is more, to the lowest.

    Examples
    --------
    >>> _geometric_sizes(20, 1, 0.5)
    [10, 5, 3, 2, 1]
    """
    sizes, size = [], highest
    while size > lowest:
        size = max(lowest, min(size - 1, int(np.ceil(size * ratio))))
        sizes.append(size)
    return sizes


def _smoothed(x: FloatArray, curves: FloatArray, width: float) -> FloatArray:
    """Return each column of ``curves`` as a function of x, smoothed by local lines with Gaussian weights.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0])
    >>> _smoothed(x, np.array([[1.0], [2.0], [3.0]]), 0.5).ravel().round(12).tolist()
    [1.0, 2.0, 3.0]
    """
    if width == 0 or len(x) < 3:
        return curves
    distance = x - x[:, None]
    weight = np.exp(-0.5 * (distance / width) ** 2)
    first, second = (weight * distance).sum(axis=1), (weight * distance**2).sum(axis=1)
    line = weight * (second[:, None] - first[:, None] * distance)
    total = line.sum(axis=1, keepdims=True)  # of a point without neighbours it is 0
    share = np.divide(line, total, out=np.eye(len(x)), where=total > 1e-9 * weight.sum(axis=1, keepdims=True) ** 2)
    return np.asarray(share @ curves)


def _joined(rank: FloatArray, descent: FloatArray, size: int) -> FloatArray:
    """Return the ranks with those of the last ``size`` columns in the order of an earlier descent."""
    joined = rank.copy()
    for fold in range(len(rank)):
        left = np.flatnonzero(rank[fold] <= size)
        joined[fold, left[np.argsort(descent[fold, left])]] = np.arange(1.0, len(left) + 1)
    return joined


def _moved(parent: Mask, kind: str, importances: FloatArray, survival: FloatArray, rng: Generator) -> Mask:
    """Return a subset one move away: guided drops take columns of low importance, adds those that survived long."""
    child = parent.copy()
    if kind == "random":
        child[rng.integers(len(child), size=int(rng.integers(1, 3)))] ^= True
        return child
    inside, outside = np.flatnonzero(parent), np.flatnonzero(~parent)
    if kind in ("drop", "swap") and len(inside) > 1:
        by_worth = inside[np.argsort(importances[inside], kind="stable")]
        child[by_worth[_places(len(by_worth), rng)]] = False
    if kind in ("add", "swap") and len(outside):
        by_worth = outside[np.argsort(-survival[outside], kind="stable")]
        child[by_worth[_places(len(by_worth), rng)]] = True
    return child


def _places(count: int, rng: Generator) -> IntArray:
    """Draw one place (sometimes two) among ``count``, the first ones more often."""
    drawn = rng.geometric(0.4, size=int(rng.geometric(0.7))) - 1
    return np.minimum(drawn, count - 1).astype(np.intp)


def _standard_error(differences: FloatArray, noise: float) -> FloatArray:
    """Return the standard error of the mean of each row of differences.

    The standard deviation of a few folds is small by chance now and then, and the best of many candidates is one where
    it is. So it is averaged with the ``noise`` of differences in general, which weighs as much as `USUAL_FOLDS` folds.
    """
    folds = differences.shape[1]
    if folds < 2:
        return np.zeros(len(differences))
    variance = ((folds - 1) * differences.var(axis=1, ddof=1) + USUAL_FOLDS * noise**2) / (folds - 1 + USUAL_FOLDS)
    return np.asarray(np.sqrt(variance / folds))
