"""A landscape with partitions, for searches that ask for single ones."""

from __future__ import annotations

import numpy as np

PLANTED = np.arange(9) % 3 == 0


class Partitioned:
    """A function of masks with four partitions that differ a little; it notes what it was asked."""

    n_features = 9
    n_partitions = 4

    def __init__(self):
        self.calls = []

    def __call__(self, masks, partitions=None):
        if partitions is None:
            return np.mean([self.loss(masks, p) for p in range(4)], axis=0)
        self.calls.append((masks, partitions))
        return self.loss(masks, partitions)

    @staticmethod
    def loss(masks, partitions):
        return (masks ^ PLANTED).mean(axis=1) + 0.01 * partitions * masks.mean(axis=1)
