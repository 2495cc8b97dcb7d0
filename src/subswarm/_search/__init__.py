"""The search: the loop, ask and tell, budgets, results and checkpoints."""
