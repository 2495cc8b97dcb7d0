"""Search algorithms: settings with two pure rules, and the registry of them all."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

from subswarm.algorithms.ant_colony import AntColony
from subswarm.algorithms.binary_pso import BinaryPSO, CatfishPSO, ChaoticPSO
from subswarm.algorithms.boolean_pso import BooleanPSO
from subswarm.algorithms.branch_and_bound import BranchAndBound
from subswarm.algorithms.elite import EliteSwarm, TwoDElite
from subswarm.algorithms.filters import MRMR, AnovaF, MutualInformation, RankingSearch, ReliefF
from subswarm.algorithms.genetic import GeneticAlgorithm
from subswarm.algorithms.race import Race, inside
from subswarm.algorithms.random_search import RandomSearch
from subswarm.algorithms.search import Algorithm, Search, State
from subswarm.algorithms.sequential import SBFS, SBS, SFFS, SFS, PlusLMinusR
from subswarm.algorithms.subset_settings import SubsetSettings
from subswarm.algorithms.tabu import TabuSearch
from subswarm.algorithms.threshold_pso import PSO42, ErFS
from subswarm.algorithms.two_d import Pull, Swarm, TwoD, TwoDCLPSO, TwoDGPSO, TwoDLPSO, TwoDUPSO
from subswarm.core.errors import SettingError

__all__ = [
    "MRMR",
    "PSO42",
    "SBFS",
    "SBS",
    "SFFS",
    "SFS",
    "Algorithm",
    "AnovaF",
    "AntColony",
    "BinaryPSO",
    "BooleanPSO",
    "BranchAndBound",
    "CatfishPSO",
    "ChaoticPSO",
    "EliteSwarm",
    "ErFS",
    "GeneticAlgorithm",
    "MutualInformation",
    "PlusLMinusR",
    "Pull",
    "Race",
    "RandomSearch",
    "RankingSearch",
    "ReliefF",
    "Search",
    "State",
    "SubsetSettings",
    "Swarm",
    "TabuSearch",
    "TwoD",
    "TwoDCLPSO",
    "TwoDElite",
    "TwoDGPSO",
    "TwoDLPSO",
    "TwoDUPSO",
    "get_algorithm",
    "inside",
    "name_of",
    "names",
    "settings",
]

REGISTRY: dict[str, type[SubsetSettings]] = {
    "2d-elite": TwoDElite,
    "2d-gpso": TwoDGPSO,
    "2d-lpso": TwoDLPSO,
    "2d-clpso": TwoDCLPSO,
    "2d-upso": TwoDUPSO,
    "ga": GeneticAlgorithm,
    "aco": AntColony,
    "bpso": BinaryPSO,
    "cbpso": CatfishPSO,
    "chbpso": ChaoticPSO,
    "erfs": ErFS,
    "pso-42": PSO42,
    "sfs": SFS,
    "sbs": SBS,
    "plus-l-minus-r": PlusLMinusR,
    "sffs": SFFS,
    "sbfs": SBFS,
    "branch-and-bound": BranchAndBound,
    "boolean-pso": BooleanPSO,
    "tabu": TabuSearch,
    "mutual-information": MutualInformation,
    "anova-f": AnovaF,
    "relieff": ReliefF,
    "mrmr": MRMR,
    "random": RandomSearch,
}


def names() -> list[str]:
    """The names of all algorithms.

    Examples
    --------
    >>> "2d-upso" in names()
    True
    """
    return list(REGISTRY)


def get_algorithm(name: str, **settings: Any) -> Any:
    """The algorithm of this name with these settings; the others keep the published values.

    Examples
    --------
    >>> get_algorithm("2d-upso", particles=20).particles
    20
    """
    kind = _kind(name)
    known = [field.name for field in dataclasses.fields(kind)]
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise SettingError(
            f"{name} has no setting {unknown[0]!r}{_meant(unknown[0], known)}; it has {', '.join(known)}."
        )
    return kind(**settings)


def settings(name: str) -> dict[str, Any]:
    """The settings of the algorithm of this name with their defaults."""
    return {field.name: field.default for field in dataclasses.fields(_kind(name))}


def name_of(algorithm: Any) -> str:
    """The registered name of an algorithm, or its class's name where it has none; a race has its inner one's."""
    if isinstance(algorithm, Race):
        return f"{name_of(algorithm.algorithm)} (race)"
    return next((name for name, kind in REGISTRY.items() if type(algorithm) is kind), type(algorithm).__name__)


def _kind(name: str) -> type[SubsetSettings]:
    if name not in REGISTRY:
        raise SettingError(f"there is no algorithm {name!r}{_meant(name, names())}; there are {', '.join(names())}.")
    return REGISTRY[name]


def _meant(word: Any, known: list[str]) -> str:
    close = difflib.get_close_matches(str(word), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
