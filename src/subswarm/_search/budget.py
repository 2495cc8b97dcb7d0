"""The limits at which a search stops."""

from __future__ import annotations

from dataclasses import dataclass

from subswarm._checks import check_int, check_real
from subswarm.errors import SettingError

__all__ = ["Budget"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of a search; it stops at the first one it reaches.

    Parameters
    ----------
    evaluations : int or None, default=6000
        Maximum number of subsets to evaluate, including initial and repeated ones. If the cross-validation is
        repeated, each repeat that a subset is scored on counts. A last batch that does not fit is evaluated in part.
    seconds : float or None
        Wall-clock time. It is kept to one evaluation or about 10 %, whichever is longer; a batch is evaluated in part.
        (`search_together` checks it between batches.)
    target : float or None
        Stop once the best loss is at most this value.
    patience : int or None
        Stop after this many evaluations without a better subset.

    Examples
    --------
    >>> Budget(evaluations=300, patience=100)
    Budget(evaluations=300, seconds=None, target=None, patience=100)
    """

    evaluations: int | None = 6000
    seconds: float | None = None
    target: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        check_int("evaluations", self.evaluations, low=1, optional=True)
        check_real("seconds", self.seconds, low=0, optional=True)
        check_real("target", self.target, optional=True)
        check_int("patience", self.patience, low=1, optional=True)
        if self.evaluations is self.seconds is self.target is self.patience is None:
            raise SettingError(
                "a budget needs at least one limit; got None for evaluations, seconds, target and patience."
            )

    def progress(self, evaluations: int, seconds: float) -> float:
        """Return the share of the budget spent, 0 to 1; by evaluations if they are limited, which is reproducible."""
        if self.evaluations is not None:
            return min(1.0, evaluations / self.evaluations)
        if self.seconds:
            return float(min(1.0, seconds / self.seconds))
        return 0.0
