"""From masks to fitness: folds, engines and the objective. Nothing here knows what a swarm is."""

from subswarm.evaluation.engine import check_device
from subswarm.evaluation.normal_cdf_bayes import NormalCDFBayes
from subswarm.evaluation.objective import Objective, make_objective

__all__ = ["NormalCDFBayes", "Objective", "check_device", "make_objective"]
