"""Engines, which compute the losses of many subsets at once."""
