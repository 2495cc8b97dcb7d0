"""Measurements that the documentation shows, as commands anyone can repeat."""
