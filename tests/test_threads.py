"""Work on threads is done completely and once, and its errors are raised."""

from __future__ import annotations

import numpy as np
import pytest

from subswarm.engines.workers import spread


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n_items", [0, 1, 3, 100])
def test_every_item_is_worked_on_once(threads, n_items):
    done = np.zeros(n_items, dtype=int)

    def work(start, stop):
        done[start:stop] += 1

    spread(work, n_items, threads)
    assert (done == 1).all()


def test_work_may_itself_be_spread():
    done = np.zeros((6, 6), dtype=int)

    def outer(start, stop):
        for row in done[start:stop]:
            spread(lambda first, last, row=row: np.add(row[first:last], 1, out=row[first:last]), 6, 3)

    spread(outer, 6, 3)
    assert (done == 1).all()


def test_an_error_in_any_thread_is_raised():
    def work(start, stop):
        if start >= 50:
            raise IndexError("no such item")

    with pytest.raises(IndexError, match="no such item"):
        spread(work, 100, 3)
