"""A fitted selection, with all that its page tells."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subswarm.core.types import FloatArray, Masks
from subswarm.evaluation.scoring import Scoring, resolve_scoring
from subswarm.held_out import HeldOut
from subswarm.selector import SwarmSelector

__all__ = ["Selection", "versions"]


@dataclass(frozen=True, eq=False)
class Selection:
    """A fitted selector with all that its page tells.

    Attributes
    ----------
    selector : fitted, with ``record=True`` for the charts of everything visited
    table, target, model : what was selected from, for what, with which model; in the user's words
    names : names of the columns
    shape : rows and columns of the table
    digest : digest of the table's content
    seed : the seed
    command : the command that made this, or "" where there is none
    honest : the held-out figure, where it was measured
    others : the same selection with other seeds, by seed
    rivals : the same selection with other algorithms, by name
    """

    selector: SwarmSelector
    table: str
    target: str
    model: str
    names: Sequence[str]
    shape: tuple[int, int]
    digest: str
    seed: int
    command: str = ""
    honest: HeldOut | None = None
    others: Mapping[int, SwarmSelector] = field(default_factory=dict)
    rivals: Mapping[str, SwarmSelector] = field(default_factory=dict)

    @property
    def scoring(self) -> Scoring:
        return resolve_scoring(self.selector.estimator_, self.selector.scoring)

    @property
    def again(self) -> Masks:
        """Selections of the repeated searches, held-out folds and other seeds, shape (searches, n)."""
        folds = [] if self.honest is None else list(self.honest.supports)
        found = [*folds, *(other.support_ for other in self.others.values())]
        return np.array(found, dtype=bool).reshape(len(found), len(self.names))

    def scores(self, losses: FloatArray) -> list[float]:
        """Losses as the user's scores."""
        return [self.scoring.score(float(loss)) for loss in losses]

    def listed(self, mask: Any) -> str:
        """The names of the columns of a mask."""
        return ", ".join(name for name, inside in zip(self.names, mask, strict=True) if inside)


def versions() -> dict[str, str]:
    """The versions a result may depend on."""
    import scipy
    import sklearn

    from subswarm._version import __version__

    return {
        "subswarm": __version__,
        "scikit-learn": sklearn.__version__,
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "Python": platform.python_version(),
    }
