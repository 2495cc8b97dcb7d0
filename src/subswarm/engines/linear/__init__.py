"""Linear models: Gram matrices once per fold, then one small system of equations for each subset and fold."""
