"""Wrapper feature selection with two-dimensional learning particle swarms: which features, and how many."""

from subswarm._version import __version__

__all__ = ["__version__"]
