"""OpenML tables from scikit-learn's cache, without a network."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket

import numpy as np
import pytest

from subswarm.datasets import load_openml, open_table
from subswarm.errors import DataError, DatasetError

ARFF = b"""@RELATION flowers
@ATTRIBUTE size NUMERIC
@ATTRIBUTE colour {red,blue,white}
@ATTRIBUTE kind {a,b}
@DATA
1.5,red,a
2.5,?,b
3.5,white,a
2.4,blue,b
"""


def feature(index: int, name: str, kind: str, missing: int, is_target: bool) -> dict[str, str]:
    return {
        "index": str(index),
        "name": name,
        "data_type": kind,
        "number_of_missing_values": str(missing),
        "is_target": str(is_target).lower(),
        "is_ignore": "false",
        "is_row_identifier": "false",
    }


@pytest.fixture
def cache(tmp_path):
    """``cache(targets)``: scikit-learn's cache folder as it looks after data set 999001 was fetched."""

    def fill(targets: tuple[str, ...] = ("kind",)):
        columns = [("size", "numeric", 0), ("colour", "nominal", 1), ("kind", "nominal", 0)]
        features = [
            feature(index, name, kind, missing, name in targets) for index, (name, kind, missing) in enumerate(columns)
        ]
        description = {
            "id": "999001",
            "file_id": "999001",
            "name": "flowers",
            "version": "1",
            "description": "",
            "format": "ARFF",
            "status": "active",
            "url": "https://www.openml.org/data/v1/download/999001/flowers.arff",
            "md5_checksum": hashlib.md5(ARFF).hexdigest(),
        }
        contents = {
            "api/v1/json/data/999001": json.dumps({"data_set_description": description}),
            "api/v1/json/data/features/999001": json.dumps({"data_features": {"feature": features}}),
            "api/v1/json/data/qualities/999001": json.dumps(
                {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "4.0"}]}}
            ),
            "data/v1/download/999001/flowers.arff": ARFF.decode(),
            "data/v1/download/999001": ARFF.decode(),
        }
        for path, content in contents.items():
            file = tmp_path / "openml" / "openml.org" / f"{path}.gz"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(gzip.compress(content.encode()))
        return tmp_path

    return fill


@pytest.fixture
def no_network(monkeypatch):
    """Every request goes to a port of this machine where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{held.getsockname()[1]}"
    for variable in ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, closed)
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)


def test_nominal_columns_of_openml_are_text(cache, no_network):
    table = load_openml(999001, impute=True, one_hot=True, cache_dir=cache())
    assert table.feature_names == ("size", "colour=blue", "colour=red", "colour=white")
    assert table.feature_groups == [[1, 2, 3]]
    assert table.y.tolist() == ["a", "b", "a", "b"]
    np.testing.assert_array_equal(table.X[1], [2.5, 1, 0, 0])
    assert (table.task, table.target_name, table.imputed) == ("classification", "kind", 1)


def test_another_target_may_be_named(cache, no_network):
    table = load_openml("999001", target="size", impute=True, one_hot=True, cache_dir=cache())
    assert (table.task, table.target_name) == ("regression", "size")
    assert table.y.tolist() == [1.5, 2.5, 3.5, 2.4]


def test_a_table_without_its_own_target_asks_for_one(cache, no_network):
    with pytest.raises(DataError, match=r"0 target columns; choose one with target=.*'size', 'colour', 'kind'"):
        load_openml(999001, cache_dir=cache(()))


def test_a_target_that_cannot_be_used_is_a_clear_error(cache, no_network):
    with pytest.raises(DatasetError, match="cannot be used: Target column 'colour' has 1 missing values"):
        load_openml(999001, target="colour", cache_dir=cache())
    with pytest.raises(DatasetError, match=r"cannot be used: .*'nothing'"):
        load_openml(999001, target="nothing", cache_dir=cache())


def test_text_and_missing_cells_are_named(cache, no_network):
    with pytest.raises(DataError, match=r"OpenML data set 999001 has text in column 'colour'"):
        load_openml(999001, cache_dir=cache())


def test_a_network_failure_is_a_clear_error(no_network, tmp_path, monkeypatch):
    with pytest.raises(DatasetError, match=r"OpenML could not be reached for 'iris'.*use load_table"):
        load_openml("iris", cache_dir=tmp_path)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=r"OpenML could not be reached for 'iris'"):
        open_table("openml:iris")


@pytest.mark.parametrize("which", ["²", "größe", "two words", ""])
def test_a_name_that_no_data_set_can_have_is_a_clear_error(no_network, tmp_path, which):
    with pytest.raises(DatasetError, match=r"OpenML has no data set .*: names consist of ASCII"):
        load_openml(which, cache_dir=tmp_path)


def test_a_number_that_is_too_long_is_a_clear_error(no_network, tmp_path):
    with pytest.raises(DatasetError, match=r"OpenML data set .* cannot be used"):
        load_openml("9" * 5000, cache_dir=tmp_path)
