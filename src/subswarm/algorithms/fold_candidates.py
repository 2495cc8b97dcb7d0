"""Candidates that are scored fold by fold, and given up once they are clearly behind what they must beat.

For an expensive model, each fold is a fit. A candidate that is clearly worse after two folds of ten costs two fits
instead of ten. The decision uses paired differences: the losses of the candidate and of the subset to beat on the same
folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.algorithms.state import Layout, StatePart

__all__ = ["FoldCandidates"]


@dataclass(frozen=True, eq=False)
class FoldCandidates(StatePart):
    """Q candidates on their way through C folds.

    Attributes
    ----------
    candidates : the subsets, shape (Q, n)
    to_beat : the losses of the subset that each must beat, in each fold, shape (Q, C)
    slack : how much worse than that each candidate may be and still be of use (because it is smaller), shape (Q,)
    losses : the losses so far, zero where unknown, shape (Q, C)
    known : where they are known, shape (Q, C)
    running : which candidates have not been given up, shape (Q,)
    first : the fold that is scored first; races start with different folds in turn
    turn : number of folds scored so far
    """

    layout: ClassVar[Layout | None] = Layout(
        varying=dict.fromkeys(("candidates", "to_beat", "slack", "losses", "known", "running"), "candidates"),
        ranges={"first": (0, None), "turn": (0, None)},
    )

    candidates: Masks
    to_beat: FloatArray
    slack: FloatArray
    losses: FloatArray
    known: Mask
    running: Mask
    first: int
    turn: int

    @classmethod
    def begin(cls, candidates: Masks, to_beat: FloatArray, slack: FloatArray, first: int) -> FoldCandidates:
        """Return the start of a race of these candidates."""
        return cls(
            candidates,
            to_beat,
            slack,
            losses=np.zeros_like(to_beat),
            known=np.zeros(to_beat.shape, dtype=bool),
            running=np.ones(len(candidates), dtype=bool),
            first=first,
            turn=0,
        )

    @property
    def fold(self) -> int:
        """The fold to score next."""
        return int((self.first + self.turn) % self.known.shape[1])

    @property
    def is_over(self) -> bool:
        """Whether no candidate has a fold left to be scored on."""
        return self.turn == self.known.shape[1] or not self.running.any()

    @property
    def complete(self) -> Mask:
        """Which candidates have been scored on every fold, shape (Q,)."""
        return np.asarray(self.known.all(axis=1) & self.running)

    @property
    def asked(self) -> tuple[Masks, IntArray]:
        """The candidates still running, and the fold to score each of them on."""
        masks = self.candidates[self.running]
        return masks, np.full(len(masks), self.fold, dtype=np.intp)

    def against_leader(self, fitness: FloatArray) -> FoldCandidates:
        """Return the race with the candidate to beat that is best after these losses on the next fold."""
        losses = self.losses[self.running]
        losses[:, self.fold] = fitness
        return replace(self, to_beat=np.tile(losses[losses.sum(axis=1).argmin()], (len(self.losses), 1)))

    def told(self, fitness: FloatArray, noise: float, caution: float) -> FoldCandidates:
        """Return the race after a fold: candidates that are clearly behind are given up.

        A candidate is clearly behind if the mean of its paired differences exceeds its slack by more than ``caution``
        standard errors. ``noise`` is the standard deviation of such a difference in one fold. The standard error is
        that of the mean over the folds still to come, so it is 0 after the last fold.
        """
        losses, known = self.losses.copy(), self.known.copy()
        losses[self.running, self.fold] = fitness
        known[self.running, self.fold] = True
        turn, folds = self.turn + 1, known.shape[1]
        behind = np.where(known, losses - self.to_beat, 0.0).sum(axis=1) / turn - self.slack
        error = noise * np.sqrt(1 / turn - 1 / folds)
        running = self.running & ((behind <= caution * error) | (turn == folds))
        return replace(self, losses=losses, known=known, running=running, turn=turn)

    def pessimistic_losses(self) -> FloatArray:
        """Return a mean loss for each candidate, shape (Q,), that never makes one that was given up look better.

        It is the mean loss of those that are complete. Of the others, it is the mean loss of the subset to beat plus
        the mean difference so far, or plus the slack if that is more.
        """
        count = np.maximum(self.known.sum(axis=1), 1)
        behind = np.where(self.known, self.losses - self.to_beat, 0.0).sum(axis=1) / count
        partial = self.to_beat.mean(axis=1) + np.maximum(behind, self.slack)
        return np.asarray(np.where(self.known.all(axis=1), self.losses.mean(axis=1), partial))
