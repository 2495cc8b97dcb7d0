"""The paper's experiment: its settings, its printed tables and its claims, compared with our results."""
