"""A small, fixed share of the fuzzed cases; ``make fuzz`` runs as many as one likes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fuzz import selftest
from fuzz.case import rng_of
from fuzz.workers import run_cases

pytestmark = pytest.mark.slow

SEED = 1


@pytest.mark.parametrize(("what", "cases"), [("exactness", 70), ("inputs", 500), ("files", 500)])
def test_random_tables_hostile_inputs_and_damaged_files_do_no_harm(what, cases):
    found = run_cases(what, SEED, range(cases), processes=1)
    assert found.is_clean, "\n".join([*found.lines, found.sentence()])
    assert found.cases == cases
    assert found.compared > cases // 2 or what != "exactness"


def test_a_crash_a_hang_and_an_error_are_findings_a_lacking_package_is_not_and_the_other_cases_are_run():
    cases = range(14)
    ways = Counter(selftest.way_of(rng_of("selftest", SEED, number)) for number in cases)
    assert ways.keys() == set(selftest.WAYS)
    found = run_cases("selftest", SEED, cases, processes=1, case_seconds=1, tell=lambda line: None)
    wanted = {"crash": ways["crash"], "timeout": ways["hang"], "exception": ways["raise"], "difference": ways["differ"]}
    assert found.counts == wanted
    assert found.cases == len(cases) - ways["lack"]
    assert found.lacking == {"polars": ways["lack"]}
    assert found.sentence().endswith(f", {ways['lack']} left out without polars")
    assert found.compared == ways["well"] + ways["differ"]
    assert any("this one ends by crash" in line for line in found.lines)


def test_a_case_depends_on_its_kind_seed_and_number_alone():
    one = rng_of("files", 3, 7).integers(1 << 60, size=4)
    assert np.array_equal(one, rng_of("files", 3, 7).integers(1 << 60, size=4))
    others = [rng_of("files", 3, 8), rng_of("files", 4, 7), rng_of("inputs", 3, 7)]
    assert not any(np.array_equal(one, other.integers(1 << 60, size=4)) for other in others)
