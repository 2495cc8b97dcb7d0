"""Branch and bound: the best subset of a size for a monotone criterion, without evaluating all subsets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_real
from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.algorithms.base import Algorithm, State
from subswarm.algorithms.masks import SubsetRules
from subswarm.algorithms.state import Layout, StatePart
from subswarm.errors import SettingError

__all__ = ["BranchAndBound", "Nodes", "Tree"]


@dataclass(frozen=True, eq=False)
class Nodes(StatePart):
    """Nodes of the tree; the last one is opened next.

    Attributes
    ----------
    masks : the remaining features, shape (K, n)
    droppable : features that the branch may still drop, shape (K, n)
    bound : the loss of ``masks``, a lower bound for all subsets below the node, shape (K,)
    """

    layout: ClassVar[Layout | None] = Layout(varying={"masks": "nodes", "droppable": "nodes", "bound": "nodes"})

    masks: Masks
    droppable: Masks
    bound: FloatArray


@dataclass(frozen=True, eq=False)
class Tree(State):
    """The state of a branch and bound search.

    Attributes
    ----------
    masks : the candidates of the open node, each with one feature dropped (at first all features), shape (C, n)
    dropped : the dropped feature of each candidate, shape (C,); -1 for the root
    parent : loss of the open node; minus infinity for the root
    waiting : nodes that are not open yet
    best : the lowest loss of a subset that is small enough
    """

    layout: ClassVar[Layout | None] = Layout(
        varying={"masks": "candidates", "dropped": "candidates"}, ranges={"dropped": (-1, "n_features")}
    )

    masks: Masks
    dropped: IntArray
    parent: float
    waiting: Nodes
    best: float


@dataclass(frozen=True, kw_only=True)
class BranchAndBound(Algorithm[Tree]):
    """Find the best subset of ``max_features`` features, if the loss never falls when a feature is dropped.

    The search starts from all features and drops one after the other. A branch is pruned if its loss is not better than
    the best subset that is small enough. Each node drops the most useful features first, so that its largest branches
    are the most likely to be pruned. A step evaluates the candidates of one node, at most n subsets. The result is
    exact for a monotone criterion. If an evaluation contradicts this, the search ends with an error; most
    cross-validated losses are not monotone. Without ``max_features`` the result is all features.

    Parameters
    ----------
    tolerance : float, default=1e-9
        How much a loss may fall when a feature is dropped, relative to the larger of 1 and the loss, before the
        criterion counts as not monotone.
    min_features, max_features, fixed_features, feature_sizes
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = "Narendra, Fukunaga, IEEE Trans. Computers C-26 (1977) 917-922"
    needs_monotone = True

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
        """Return the candidates as nodes; each may drop the features after it, from the most to the least useful."""
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
                f"{tree.parent:g} to {fitness[first]:g}, so it could be wrong. Use another search, such as sffs."
            )


def _joined(nodes: Nodes, more: Nodes) -> Nodes:
    """Return all nodes; the best of the new ones is last, so it is opened next."""
    return Nodes(
        masks=np.concatenate([nodes.masks, more.masks]),
        droppable=np.concatenate([nodes.droppable, more.droppable]),
        bound=np.concatenate([nodes.bound, more.bound]),
    )


def _popped(nodes: Nodes) -> tuple[Nodes, Nodes]:
    """Return the last node, and the others."""
    last = Nodes(nodes.masks[-1:], nodes.droppable[-1:], nodes.bound[-1:])
    return last, replace(nodes, masks=nodes.masks[:-1], droppable=nodes.droppable[:-1], bound=nodes.bound[:-1])
