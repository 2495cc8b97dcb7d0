"""The paper's two-dimensional swarms."""

from subswarm.algorithms.two_d.swarm import Pull, Swarm, TwoD, TwoDCLPSO, TwoDGPSO, TwoDLPSO, TwoDUPSO

__all__ = ["Pull", "Swarm", "TwoD", "TwoDCLPSO", "TwoDGPSO", "TwoDLPSO", "TwoDUPSO"]
