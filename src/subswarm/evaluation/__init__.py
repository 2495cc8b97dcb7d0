"""From masks to fitness: folds, engines and the objective. Nothing here knows what a swarm is."""

from subswarm.evaluation.objective import Objective, make_objective

__all__ = ["Objective", "make_objective"]
