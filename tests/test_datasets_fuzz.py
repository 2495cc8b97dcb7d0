"""A table damaged at random places is read, or refused with an error of this package."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mutations import mutations, seed_files, workbook
from subswarm.datasets import describe, load_table
from subswarm.datasets._load import _parse_files
from subswarm.errors import SubswarmError

DAMAGED = 150


@pytest.mark.parametrize("name", seed_files())
def test_a_damaged_table_is_read_or_refused(name, tmp_path):
    path, content, said = tmp_path / name, seed_files()[name], []
    drop = [] if name.endswith("parquet") else ["day"]
    path.write_bytes(content)
    assert load_table(path, "kind", drop=drop, impute=True, one_hot=True).X.shape[0] == 5
    for damaged in mutations(content, DAMAGED, seed=7):
        path.write_bytes(damaged)
        try:
            load_table(path, "kind", drop=drop, impute=True, one_hot=True)
        except SubswarmError as error:
            said.append(str(error))
    assert len(said) > DAMAGED // 2
    assert [sentence for sentence in said if name not in sentence or "\n" in sentence] == []


def uci_files():
    comma = "\n".join(f"{1 + row % 3}," + ",".join(str(row + cell / 2) for cell in range(13)) for row in range(6))
    blank = "\n".join(" ".join(str(row + cell / 2) for cell in range(14)) + f" {row % 2}" for row in range(6))
    reading = replace(describe("lsvt").reading("sound"), label=2, features=(1, 1))
    book = replace(describe("lsvt"), sheets=("Data",), feature_names=(), readings={"sound": reading})
    return {
        "comma": (describe("wine"), comma.encode()),
        "blank": (describe("australian"), blank.encode()),
        "workbook": (book, workbook()),
    }


@pytest.mark.parametrize("kind", uci_files())
def test_a_damaged_file_of_the_catalogue_is_read_or_refused(kind):
    entry, content = uci_files()[kind]
    reading, refused = entry.reading("sound"), 0
    assert len(_parse_files(entry, reading, [content])[0]) in (3, 6)
    for damaged in mutations(content, DAMAGED, seed=7):
        try:
            _parse_files(entry, reading, [damaged])
        except SubswarmError:
            refused += 1
    assert refused > DAMAGED // 2
