"""What scores masks: the protocol, and the choice of an engine.

The engines form a ladder, fastest first; the first one that says it is usable is taken, and the last one
(`EstimatorEngine`, scikit-learn itself) always is. A fast engine joins by being named in `_fast_engines`, one that
computes with torch (on the CPU or on a CUDA device, with the same losses) in `_torch_engines`.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Protocol

from subswarm.core.checks import check_choice
from subswarm.core.errors import SettingError, SubswarmWarning
from subswarm.core.types import FloatArray, Masks
from subswarm.evaluation.estimator import EstimatorEngine
from subswarm.evaluation.folds import FoldedData
from subswarm.evaluation.torch_device import torch_on

__all__ = ["Engine", "check_device", "engine_for"]

DEFAULT_MAX_BYTES = 1 << 30
ENGINES = ("auto", "estimator", "fast", "torch")
DEVICES = ("cpu", "cuda")


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


class TorchEngine(Engine, Protocol):
    """An engine that computes with torch, on a device."""

    def __init__(
        self, estimator: Any, data: FoldedData, *, n_jobs: int | None, max_bytes: int, device: str
    ) -> None: ...


def engine_for(
    estimator: Any,
    data: FoldedData,
    *,
    engine: str = "auto",
    device: str = "cpu",
    n_jobs: int | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Engine:
    """The fastest engine that is exact here; ``engine`` forces "estimator", or demands a "fast" or a "torch" one."""
    check_choice("engine", engine, ENGINES)
    check_device(device)
    if engine == "torch" or (device != "cpu" and engine != "estimator"):
        torch_on(device)
        for kind in _torch_engines():
            if kind.is_usable_for(estimator, data, device):
                return kind(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes, device=device)
        if engine != "torch":
            warnings.warn(
                f"there is no path on {device!r} for {type(estimator).__name__} scored by {data.scoring.name!r}; "
                "the CPU scores it.",
                SubswarmWarning,
                stacklevel=4,
            )
    if engine in ("auto", "fast"):
        for candidate in _fast_engines():
            if candidate.is_usable_for(estimator, data, "cpu"):
                return candidate(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
    if engine in ("fast", "torch"):
        raise SettingError(
            f"engine={engine!r} has no exact fast path for {type(estimator).__name__} scored by "
            f"{data.scoring.name!r}; use engine='auto' or engine='estimator'."
        )
    return EstimatorEngine(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)


def check_device(device: str) -> None:
    """Refuse a device that is unknown, or that is not there."""
    check_choice("device", device, DEVICES)
    if device != "cpu":
        torch_on(device)


def _torch_engines() -> list[type[TorchEngine]]:
    from subswarm.evaluation.torch_knn import TorchKNeighborsEngine
    from subswarm.evaluation.torch_nb import TorchGaussianNBEngine, TorchNormalCDFBayesEngine

    return [TorchGaussianNBEngine, TorchKNeighborsEngine, TorchNormalCDFBayesEngine]


def _fast_engines() -> list[type[Engine]]:
    from subswarm.evaluation.gaussian_nb import GaussianNBEngine
    from subswarm.evaluation.knn import KNeighborsEngine
    from subswarm.evaluation.normal_cdf_engine import NormalCDFBayesEngine

    return [GaussianNBEngine, KNeighborsEngine, NormalCDFBayesEngine]
