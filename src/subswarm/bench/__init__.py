"""Benchmarks: ratios measured side by side, by commands that anyone can repeat."""
