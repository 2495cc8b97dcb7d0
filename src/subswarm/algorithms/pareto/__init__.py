"""Multi-objective searches: NSGA-II and the 2-D swarm along the front."""

from subswarm.algorithms.pareto.nsga2 import NSGA2
from subswarm.algorithms.pareto.swarm import ParetoSwarm, TwoDPareto

__all__ = ["NSGA2", "ParetoSwarm", "TwoDPareto"]
