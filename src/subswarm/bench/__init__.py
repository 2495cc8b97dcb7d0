"""Benchmarks that anyone can repeat; the two sides of a ratio are measured alternately."""
