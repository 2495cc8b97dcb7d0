"""Search algorithms and their registry."""

from __future__ import annotations

import dataclasses
import difflib

from subswarm._checks import import_named, shown
from subswarm.algorithms.ant_colony import AntColony
from subswarm.algorithms.base import Algorithm, AnyAlgorithm, Problem, State
from subswarm.algorithms.binary_pso import BinaryPSO, CatfishPSO, ChaoticPSO
from subswarm.algorithms.boolean_pso import BooleanPSO
from subswarm.algorithms.branch_and_bound import BranchAndBound
from subswarm.algorithms.elite.state import EliteSwarm
from subswarm.algorithms.elite.swarm import TwoDElite
from subswarm.algorithms.filters import MRMR, AnovaF, MutualInformation, RankingSearch, ReliefF
from subswarm.algorithms.genetic import GeneticAlgorithm
from subswarm.algorithms.guided import TwoDGuided
from subswarm.algorithms.pareto.nsga2 import NSGA2
from subswarm.algorithms.pareto.swarm import ParetoSwarm, TwoDPareto
from subswarm.algorithms.race import Race
from subswarm.algorithms.race_on_folds import FoldwiseRace
from subswarm.algorithms.random_search import RandomSearch
from subswarm.algorithms.sequential import SBFS, SBS, SFFS, SFS, PlusLMinusR
from subswarm.algorithms.state import Layout
from subswarm.algorithms.tabu import TabuSearch
from subswarm.algorithms.threshold_pso import PSO42, ErFS
from subswarm.algorithms.two_d.swarm import Pull, Swarm, TwoD, TwoDCLPSO, TwoDGPSO, TwoDLPSO, TwoDUPSO
from subswarm.errors import SettingError

__all__ = [
    "MRMR",
    "NSGA2",
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
    "FoldwiseRace",
    "GeneticAlgorithm",
    "Layout",
    "MutualInformation",
    "ParetoSwarm",
    "PlusLMinusR",
    "Problem",
    "Pull",
    "Race",
    "RandomSearch",
    "RankingSearch",
    "ReliefF",
    "State",
    "Swarm",
    "TabuSearch",
    "TwoD",
    "TwoDCLPSO",
    "TwoDElite",
    "TwoDGPSO",
    "TwoDGuided",
    "TwoDLPSO",
    "TwoDPareto",
    "TwoDUPSO",
    "get_algorithm",
    "name_of",
    "names",
    "settings",
]

REGISTRY: dict[str, type[AnyAlgorithm]] = {
    "2d-elite": TwoDElite,
    "2d-guided": TwoDGuided,
    "2d-pareto": TwoDPareto,
    "2d-gpso": TwoDGPSO,
    "2d-lpso": TwoDLPSO,
    "2d-clpso": TwoDCLPSO,
    "2d-upso": TwoDUPSO,
    "ga": GeneticAlgorithm,
    "nsga2": NSGA2,
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
    """Return the names of all algorithms.

    Examples
    --------
    >>> "2d-upso" in names()
    True
    """
    return list(REGISTRY)


def get_algorithm(name: str, **settings: object) -> AnyAlgorithm:
    """Return the algorithm of this name with these settings; the others keep the published values.

    The name may be the import path of a class of your own, such as "mypackage.mymodule:MyAlgorithm".

    Examples
    --------
    >>> get_algorithm("2d-upso", particles=20).particles
    20
    """
    kind = _class_of(name)
    known = [field.name for field in dataclasses.fields(kind)]
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise SettingError(
            f"{name} has no setting {unknown[0]!r}{_suggestion(unknown[0], known)}; it has {', '.join(known)}."
        )
    return kind(**settings)  # type: ignore[arg-type]


def as_algorithm(algorithm: object, name: str = "algorithm") -> AnyAlgorithm:
    """Return the algorithm itself, or the one registered under a name; raise SettingError for anything else."""
    if isinstance(algorithm, str):
        return get_algorithm(algorithm)
    if not isinstance(algorithm, Algorithm):
        raise SettingError(
            f"{name} must be a registered name or an algorithm such as TwoDUPSO(); got {shown(algorithm)}."
        )
    return algorithm


def settings(name: str) -> dict[str, object]:
    """Return the settings of the algorithm of this name with their defaults."""
    return {field.name: field.default for field in dataclasses.fields(_class_of(name))}


def name_of(algorithm: object) -> str:
    """Return the registered name of an algorithm, or else its class name; a race is named after its inner algorithm."""
    if isinstance(algorithm, Race):
        return f"{name_of(algorithm.algorithm)} (race)"
    if isinstance(algorithm, FoldwiseRace):
        return f"{name_of(algorithm.algorithm)} (race on folds)"
    return next((name for name, kind in REGISTRY.items() if type(algorithm) is kind), type(algorithm).__name__)


def _class_of(name: object) -> type[AnyAlgorithm]:
    if not isinstance(name, str):
        raise SettingError(f"the name of an algorithm must be text, such as '2d-elite'; got {shown(name)}.")
    if ":" in name:
        kind = import_named(name)
        if not isinstance(kind, type) or not issubclass(kind, Algorithm) or not dataclasses.is_dataclass(kind):
            raise SettingError(f"{name!r} is {shown(kind)}; expected a dataclass derived from Algorithm.")
        return kind
    if name not in REGISTRY:
        hint = _suggestion(name, names())
        raise SettingError(f"there is no algorithm {shown(name)}{hint}; there are {', '.join(names())}.")
    return REGISTRY[name]


def _suggestion(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word[:100], known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
