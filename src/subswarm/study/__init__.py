"""Studies: a grid of data sets, models, algorithms and runs as one command that can be broken off and resumed."""

from subswarm.study.definition import read_study
from subswarm.study.paper import BUILT_IN, built_in_study
from subswarm.study.plan import Contender, Only, PlannedRun, Source, Study
from subswarm.study.runner import Summary, run_study
from subswarm.study.store import Store

__all__ = [
    "BUILT_IN",
    "Contender",
    "Only",
    "PlannedRun",
    "Source",
    "Store",
    "Study",
    "Summary",
    "built_in_study",
    "read_study",
    "run_study",
]
