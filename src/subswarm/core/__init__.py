"""The words every other room shares: masks, fitness, subsets, budgets and errors."""
