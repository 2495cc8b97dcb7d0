"""Gaussian naive Bayes."""
