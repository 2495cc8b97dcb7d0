"""Measurements people can repeat: each prints what it compared, and how."""
