"""Studies: a grid of data sets, models, algorithms and runs, computed by one command that can be resumed."""

from subswarm.study.definition import Contender, Only, Source, Study, read_study
from subswarm.study.paper.settings import BUILT_IN, built_in_study
from subswarm.study.plan import PlannedRun
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
