"""Naive Bayes with normal cumulative probabilities, as in the paper."""
