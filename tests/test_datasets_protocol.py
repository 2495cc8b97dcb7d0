"""The fixed folds of both protocols."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from subswarm.datasets import names, protocol_folds, published_folds, sound_folds
from subswarm.errors import DataError, SettingError


@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    n_splits=st.integers(2, 10),
    seed=st.integers(0, 1000),
)
def test_published_folds_partition_the_rows_and_distribute_each_class_evenly(counts, n_splits, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    if max(counts) < n_splits:
        with pytest.raises(DataError, match="Use fewer folds"):
            published_folds(y, n_splits=n_splits, seed=seed)
        return
    folds = published_folds(y, n_splits=n_splits, seed=seed)
    assert np.sort(np.concatenate([test for _, test in folds])).tolist() == list(range(len(y)))
    for train, test in folds:
        assert np.sort(np.concatenate([train, test])).tolist() == list(range(len(y)))
    dealt = np.array([np.bincount(y[test], minlength=len(counts)) for _, test in folds])
    assert (dealt.max(axis=0) - dealt.min(axis=0) <= 1).all()


def test_published_folds_depend_on_the_seed_alone():
    y = np.repeat([0, 1, 2], 30)
    same = [published_folds(y, seed=3), published_folds(y, seed=3)]
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(*same, strict=True))
    other = published_folds(y, seed=4)
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(same[0], other, strict=True))


def test_sound_folds_are_scikit_learns():
    y = np.repeat([0, 1, 2], [30, 20, 15])
    wanted = StratifiedKFold(10, shuffle=True, random_state=5).split(y, y)
    for (train, test), (wanted_train, wanted_test) in zip(sound_folds(y, seed=5), wanted, strict=True):
        assert np.array_equal(train, wanted_train)
        assert np.array_equal(test, wanted_test)


@pytest.mark.parametrize("name", [name for name in names() if name != "secom"])
@pytest.mark.parametrize("protocol", ["sound", "published"])
def test_every_data_set_can_be_split_into_ten_folds_without_a_warning(uci, name, protocol):
    dataset = uci(name, protocol)
    folds = protocol_folds(dataset, seed=1)
    assert len(folds) == 10
    assert sum(len(test) for _, test in folds) == len(dataset.y)


def test_impossible_folds_are_refused():
    with pytest.raises(SettingError, match="n_splits must be a whole number of at least 2"):
        published_folds([0, 1], n_splits=1)
    with pytest.raises(DataError, match="one label for each row"):
        sound_folds([[0], [1]])
    with pytest.raises(DataError, match="Use fewer folds"):
        sound_folds([0, 0, 1, 1])
