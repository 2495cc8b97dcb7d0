"""2D-Elite, the default search."""

from subswarm.algorithms.elite.state import EliteSwarm
from subswarm.algorithms.elite.swarm import TwoDElite

__all__ = ["EliteSwarm", "TwoDElite"]
