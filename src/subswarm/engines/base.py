"""The protocol of the engines that score masks, and the choice of one.

The engines are tried in order, fastest first, and the first usable one is taken; the last (`EstimatorEngine`,
scikit-learn itself) always is. A new fast engine is added to `_fast_engines`, one that computes with torch (on the CPU
or on a CUDA device, with the same losses) to `_torch_engines`.
"""

from __future__ import annotations

import warnings
from typing import ClassVar, Protocol

from subswarm._checks import check_choice
from subswarm._types import Estimator, FloatArray, Masks
from subswarm.engines.data import FoldedData
from subswarm.engines.gpu.device import torch_on
from subswarm.engines.reference import EstimatorEngine
from subswarm.errors import SettingError, SubswarmWarning

__all__ = ["DEFAULT_MAX_BYTES", "DEVICES", "ENGINES", "Engine", "check_device", "engine_for", "uses_fast_engine"]

DEFAULT_MAX_BYTES = 1 << 30
ENGINES = ("auto", "estimator", "fast", "torch")
DEVICES = ("cpu", "cuda")


class Engine(Protocol):
    """Scores a batch of masks on fixed folds with the losses of scikit-learn's ``cross_val_score``."""

    name: ClassVar[str]

    def __init__(self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None, max_bytes: int) -> None: ...

    @classmethod
    def is_usable_for(cls, estimator: Estimator, data: FoldedData) -> bool:
        """Return whether the losses are exactly scikit-learn's for this estimator, data and scorer."""
        ...

    def fold_losses(self, masks: Masks) -> FloatArray:
        """Return losses of shape (P, n_folds) for P masks, none of them empty; NaN where the estimator failed."""
        ...

    @property
    def error(self) -> Exception | None:
        """The first exception that the estimator raised, or None."""
        ...

    @property
    def facts(self) -> dict[str, int]:
        """What the engine counts, by name, for benchmarks."""
        ...


class TorchEngine(Engine, Protocol):
    """An engine that computes with torch, on a device."""

    def __init__(
        self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None, max_bytes: int, device: str
    ) -> None: ...


def engine_for(
    estimator: Estimator,
    data: FoldedData,
    *,
    engine: str = "auto",
    device: str = "cpu",
    n_jobs: int | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Engine:
    """Return the fastest exact engine; ``engine`` selects "estimator", or requires a "fast" or a "torch" one."""
    check_choice("engine", engine, ENGINES)
    check_device(device)
    if not data.is_plain and engine in ("fast", "torch"):
        raise SettingError(
            f"engine={engine!r} needs a table of numbers; got a sparse matrix, or a frame with other columns. Use "
            "engine='auto'."
        )
    if not data.is_plain:
        return EstimatorEngine(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
    if engine == "torch" or (device != "cpu" and engine != "estimator"):
        torch_on(device)
        for kind in _torch_engines():
            if kind.is_usable_for(estimator, data):
                return kind(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes, device=device)
        if engine != "torch":
            warnings.warn(
                f"no engine for device={device!r} scores {type(estimator).__name__} by {data.scoring.name!r}; "
                "the CPU is used.",
                SubswarmWarning,
                stacklevel=4,
            )
    if engine in ("auto", "fast"):
        for candidate in _fast_engines():
            if candidate.is_usable_for(estimator, data):
                return candidate(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
    if engine in ("fast", "torch"):
        raise SettingError(
            f"engine={engine!r} has no exact fast path for {type(estimator).__name__} scored by "
            f"{data.scoring.name!r}; use engine='auto' or engine='estimator'."
        )
    return EstimatorEngine(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)


def uses_fast_engine(estimator: Estimator, data: FoldedData, engine: str, device: str) -> bool:
    """Return whether anything but scikit-learn itself may score the subsets."""
    if engine == "estimator" or not data.is_plain:
        return False
    with_torch = engine == "torch" or device != "cpu"
    kinds: list[type[Engine]] = [*_fast_engines(), *(_torch_engines() if with_torch else [])]
    return any(kind.is_usable_for(estimator, data) for kind in kinds)


def check_device(device: str) -> None:
    """Raise SettingError if a device is unknown or not available."""
    check_choice("device", device, DEVICES)
    if device != "cpu":
        torch_on(device)


def _torch_engines() -> list[type[TorchEngine]]:
    from subswarm.engines.linear.torch import TorchCentroidEngine, TorchLinearEngine, TorchQuadraticEngine
    from subswarm.engines.naive_bayes.torch import TorchGaussianNBEngine
    from subswarm.engines.neighbors.torch import TorchKNeighborsEngine
    from subswarm.engines.normal_cdf.torch import TorchNormalCDFBayesEngine

    return [
        TorchGaussianNBEngine,
        TorchKNeighborsEngine,
        TorchNormalCDFBayesEngine,
        TorchLinearEngine,
        TorchQuadraticEngine,
        TorchCentroidEngine,
    ]


def _fast_engines() -> list[type[Engine]]:
    from subswarm.engines.linear.centroids import CentroidEngine
    from subswarm.engines.linear.engine import LinearEngine
    from subswarm.engines.linear.logistic import LogisticEngine
    from subswarm.engines.linear.quadratic import QuadraticEngine
    from subswarm.engines.naive_bayes.engine import GaussianNBEngine
    from subswarm.engines.neighbors.engine import KNeighborsEngine
    from subswarm.engines.normal_cdf.engine import NormalCDFBayesEngine

    return [
        GaussianNBEngine,
        KNeighborsEngine,
        NormalCDFBayesEngine,
        LinearEngine,
        LogisticEngine,
        QuadraticEngine,
        CentroidEngine,
    ]
