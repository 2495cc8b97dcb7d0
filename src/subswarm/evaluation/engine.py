"""What scores masks: the protocol, and the choice of an engine.

The engines form a ladder, fastest first; the first one that says it is usable is taken, and the last one
(`EstimatorEngine`, scikit-learn itself) always is. A fast engine joins by being named in `_fast_engines`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from subswarm.core.checks import check_choice
from subswarm.core.errors import SettingError
from subswarm.core.types import FloatArray, Masks
from subswarm.evaluation.estimator import EstimatorEngine
from subswarm.evaluation.folds import FoldedData

__all__ = ["Engine", "engine_for"]

DEFAULT_MAX_BYTES = 1 << 30


class Engine(Protocol):
    """Scores a batch of masks on fixed folds exactly as scikit-learn's ``cross_val_score`` would."""

    name: ClassVar[str]

    def __init__(self, estimator: Any, data: FoldedData, *, n_jobs: int | None, max_bytes: int) -> None: ...

    @classmethod
    def is_usable_for(cls, estimator: Any, data: FoldedData, device: str) -> bool:
        """Whether the losses would be exactly scikit-learn's for this estimator, data, scoring and device."""
        ...

    def fold_losses(self, masks: Masks) -> FloatArray:
        """Losses of shape (P, n_folds) for P masks, none of them empty; NaN where the estimator failed."""
        ...

    @property
    def error(self) -> Exception | None:
        """The first exception the estimator raised, if it ever did."""
        ...


def engine_for(
    estimator: Any,
    data: FoldedData,
    *,
    engine: str = "auto",
    device: str = "cpu",
    n_jobs: int | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Engine:
    """The fastest engine that is exact here; ``engine`` forces "estimator", or demands a "fast" one."""
    check_choice("engine", engine, ("auto", "estimator", "fast"))
    check_choice("device", device, ("cpu",))
    if engine != "estimator":
        for candidate in _fast_engines():
            if candidate.is_usable_for(estimator, data, device):
                return candidate(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        if engine == "fast":
            raise SettingError(
                f"engine='fast' has no exact fast path for {type(estimator).__name__} scored by "
                f"{data.scoring.name!r}; use engine='auto' or engine='estimator'."
            )
    return EstimatorEngine(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)


def _fast_engines() -> list[type[Engine]]:
    from subswarm.evaluation.gaussian_nb import GaussianNBEngine
    from subswarm.evaluation.knn import KNeighborsEngine
    from subswarm.evaluation.normal_cdf_engine import NormalCDFBayesEngine

    return [GaussianNBEngine, KNeighborsEngine, NormalCDFBayesEngine]
