"""From masks to fitness: folds, engines and the objective. Nothing here knows what a swarm is."""

from subswarm.evaluation.normal_cdf_bayes import NormalCDFBayes
from subswarm.evaluation.objective import Objective, make_objective

__all__ = ["NormalCDFBayes", "Objective", "make_objective"]
