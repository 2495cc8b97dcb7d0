"""`subswarm bench engines`: its file of rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from sklearn.datasets import make_regression

from subswarm.bench import engines
from subswarm.bench.store import read_rows
from subswarm.errors import DatasetError


def measure(store, models):
    return list(engines.compare([], models=models, repeats=1, store=store))


def test_rows_in_the_file_are_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "REGRESSION_TABLES", {"small": partial(make_regression, 60, 5, random_state=0)})
    monkeypatch.setattr(engines, "_LEAST_SECONDS", 1e-3)
    store = tmp_path / "rows.jsonl"
    first = measure(store, ["ridge"])
    assert read_rows(store, engines.Comparison, "") == first
    assert first[0].ratio > 1
    store.write_text(store.read_text() + '{"dataset": "small", "ro')  # cut off while it was written
    both = measure(store, ["ridge", "ols"])
    assert [row.model for row in both] == ["ridge", "ols"]
    assert both[0] == first[0]
    assert read_rows(store, engines.Comparison, "") == both
    assert measure(store, ["ols"]) == both[1:]
    assert engines._key(replace(both[0], repeats=5)) != engines._key(both[0])


def test_a_file_of_something_else_is_refused(tmp_path):
    store = tmp_path / "rows.jsonl"
    store.write_text("{}\n{}\n")
    with pytest.raises(DatasetError, match=r"rows.jsonl, line 1, is not a row of 'subswarm bench engines'"):
        measure(store, ["ols"])
