"""Where a search goes, in few characters."""

from __future__ import annotations

import hashlib

import numpy as np


def digest_of(search, n):
    """Of all masks asked in 50 steps, on a landscape of whole numbers, and of the generator's state after them."""
    planted, weights = np.arange(n) % 3 == 0, np.arange(n) * 7919 % 101 + 1
    asked = hashlib.sha256()
    for _ in range(50):
        masks = search.ask()
        asked.update(np.packbits(masks, axis=1).tobytes())
        search.tell(((masks ^ planted).sum(axis=1) * 3 + masks @ weights % 7) / (3 * n + 7))
    asked.update(str(search.saved()[1]["generator"]).encode())
    return asked.hexdigest()[:16]
