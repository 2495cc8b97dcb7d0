"""Branch and bound: the best subset of a size without trying them all, where the criterion is monotone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm.algorithms.subset_settings import SubsetSettings
from subswarm.core.checks import check_real
from subswarm.core.errors import SettingError
from subswarm.core.masks import SubsetRules
from subswarm.core.types import FloatArray, IntArray, Mask, Masks

__all__ = ["BranchAndBound", "Nodes", "Tree"]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of the tree, the next to be opened last.

    Attributes
    ----------
    masks : the features still in, shape (K, n)
    droppable : those of them that the branch may yet drop, shape (K, n)
    bound : the fitness of ``masks``, which nothing below the node can beat, shape (K,)
    """

    masks: Masks
    droppable: Masks
    bound: FloatArray


@dataclass(frozen=True, eq=False)
class Tree:
    """Where a branch and bound is.

    Attributes
    ----------
    masks : the candidates of the opened node, one feature dropped in each (at first all features), shape (C, n)
    dropped : which feature that is, shape (C,); -1 for the root
    parent : fitness of the opened node; minus infinity above the root
    waiting : nodes not opened yet
    best : the lowest fitness of a subset that is small enough
    """

    masks: Masks
    dropped: IntArray
    parent: float
    waiting: Nodes
    best: float


@dataclass(frozen=True, kw_only=True)
class BranchAndBound(SubsetSettings):
    """The best subset of ``max_features`` features, for a criterion that never improves when a feature is dropped.

    Starting from all features it drops one after the other; a branch whose fitness is no better than the best small
    enough subset is cut off with everything below it. Each node drops the features that are missed most first, so that
    its largest branches are the likeliest to be cut. A step asks the candidates of one node, at most n subsets. It is
    exact for a monotone criterion, and ends with an error when an evaluation contradicts that: most cross-validated
    losses do. Without ``max_features`` the answer is all features.

    Parameters
    ----------
    tolerance : float, default=1e-9
        By how much, relative to the larger of 1 and its size, a loss may fall when a feature is dropped before the
        criterion counts as not monotone.
    min_features, max_features, fixed_features, feature_sizes
        See `subswarm.algorithms.SubsetSettings`.
    """

    source: ClassVar[str] = "Narendra, Fukunaga, IEEE Trans. Computers C-26 (1977) 917-922"
    needs_monotone: ClassVar[bool] = True
    """Dropping a feature may not lower the fitness."""

    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("tolerance", self.tolerance, low=0)
        if self.initial_subsets:
            raise SettingError(
                "branch and bound starts from all features, so it cannot use initial_subsets; leave them out."
            )

    def passing_rules(self, n_features: int) -> SubsetRules:
        return SubsetRules.of(
            n_features,
            min_features=self.min_features,
            fixed_features=self.fixed_features,
            feature_sizes=self.feature_sizes,
        )

    def begin(self, n_features: int, rng: Generator) -> Tree:
        everything = np.ones((1, n_features), dtype=bool)
        nothing = Nodes(everything[:0], everything[:0], np.empty(0))
        return Tree(everything, np.array([-1], dtype=np.intp), -np.inf, nothing, np.inf)

    def step(self, state: Tree, fitness: FloatArray, progress: float, rng: Generator) -> Tree | None:
        self._check_monotone(state, fitness)
        rules = self.rules(state.masks.shape[1])
        small = rules.columns(state.masks) <= rules.upper
        best = min(state.best, float(fitness[small].min(initial=np.inf)))
        waiting = _joined(state.waiting, self._branches(state, fitness, small, rules))
        while len(waiting.bound):
            node, waiting = _popped(waiting)
            if node.bound[0] >= best:
                continue
            dropped = np.flatnonzero(node.droppable[0])
            masks = np.repeat(node.masks, len(dropped), axis=0)
            masks[np.arange(len(dropped)), dropped] = False
            enough = self.passing_rules(masks.shape[1]).is_legal(masks)
            if enough.any():
                return Tree(masks[enough], dropped[enough], float(node.bound[0]), waiting, best)
        return None

    def _branches(self, tree: Tree, fitness: FloatArray, small: Mask, rules: SubsetRules) -> Nodes:
        """The candidates as nodes: each may drop what comes after it, from the most to the least missed."""
        order = np.argsort(-fitness, kind="stable")
        masks = tree.masks[order]
        droppable = np.zeros_like(masks)
        if tree.dropped[0] < 0:
            droppable[0] = ~rules.fixed
        else:
            later = np.triu(np.ones((len(order), len(order)), dtype=bool), k=1)
            droppable[:, tree.dropped[order]] = later
        reachable = rules.columns(masks & ~droppable) <= rules.upper
        keep = reachable & ~small[order]
        return Nodes(masks[keep], droppable[keep], fitness[order][keep])

    def _check_monotone(self, tree: Tree, fitness: FloatArray) -> None:
        slack = self.tolerance * max(1.0, abs(tree.parent))
        lower = np.flatnonzero(fitness < tree.parent - slack)
        if len(lower):
            first = int(lower[0])
            raise SettingError(
                "branch and bound needs a criterion that never improves when a feature is dropped; but dropping number "
                f"{tree.dropped[first]} from a subset of {int(tree.masks[first].sum()) + 1} lowered the loss from "
                f"{tree.parent:g} to {fitness[first]:g}, so its answer could be wrong. Use another search, as sffs."
            )


def _joined(nodes: Nodes, more: Nodes) -> Nodes:
    """All these nodes; of the new ones the best is the last, and so the first to be opened."""
    return Nodes(
        masks=np.concatenate([nodes.masks, more.masks]),
        droppable=np.concatenate([nodes.droppable, more.droppable]),
        bound=np.concatenate([nodes.bound, more.bound]),
    )


def _popped(nodes: Nodes) -> tuple[Nodes, Nodes]:
    """The last node, and the others."""
    last = Nodes(nodes.masks[-1:], nodes.droppable[-1:], nodes.bound[-1:])
    return last, replace(nodes, masks=nodes.masks[:-1], droppable=nodes.droppable[:-1], bound=nodes.bound[:-1])
