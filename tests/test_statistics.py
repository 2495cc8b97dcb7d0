"""Statistics agree with SciPy and with worked examples from the literature."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from subswarm._search.result import stability
from subswarm.errors import SettingError
from subswarm.study.analysis.ranks import average_ranks, critical_difference, friedman, ranks
from subswarm.study.analysis.results import performance_improvement
from subswarm.study.analysis.statistics import cliffs_delta, compare_runs, holm, wilcoxon

DEMSAR = np.array(  # AUC of C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on 14 sets: Demšar, JMLR 7 (2006), table 6
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],  # printed as equal, ranked 2 and 3
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_friedmans_worked_example():
    found = friedman(-DEMSAR)
    assert found.mean_ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    assert found.chi_square == pytest.approx(9.28, abs=5e-3)
    assert found.f == pytest.approx(3.69, abs=5e-3)
    assert found.critical_difference == pytest.approx(1.25, abs=5e-3)


def test_nemenyis_critical_values():
    q = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
    for k, value in q.items():
        assert critical_difference(k, 10) == pytest.approx(value * np.sqrt(k * (k + 1) / 60), rel=3e-4)
    assert critical_difference(4, 14, alpha=0.10) == pytest.approx(1.12, abs=5e-3)


def test_wilcoxons_worked_example():
    difference = DEMSAR[:, 1] - DEMSAR[:, 0]
    assert stats.wilcoxon(difference, zero_method="zsplit", method="approx").statistic == 12  # T of Demšar's table 2
    assert wilcoxon(-DEMSAR[:, 1], -DEMSAR[:, 0]) == pytest.approx(0.011, abs=5e-4)


def test_friedman_is_scipys_where_there_are_no_ties():
    table = np.random.default_rng(3).random((9, 5))
    found, theirs = friedman(table), stats.friedmanchisquare(*table.T)
    assert (found.chi_square, found.p_chi_square) == pytest.approx((theirs.statistic, theirs.pvalue))


def test_a_perfect_order_has_an_infinite_f():
    found = friedman(np.tile([0.1, 0.2, 0.3], (5, 1)))
    assert found.f == np.inf
    assert found.p_f == 0


def test_p_values_are_scipys():
    rng = np.random.default_rng(0)
    ours, theirs = rng.random(12), rng.random(12) + 0.3
    found = compare_runs(ours, theirs)
    assert found.p_paired == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert found.p_welch == pytest.approx(stats.ttest_ind(ours, theirs, equal_var=False).pvalue)
    assert found.p_wilcoxon == pytest.approx(stats.wilcoxon(ours, theirs).pvalue)


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([0.10, 0.11, 0.12], [0.20, 0.22, 0.21], "+"),
        ([0.20, 0.22, 0.21], [0.10, 0.11, 0.12], "-"),
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], "="),
        ([0.1, 0.3, 0.2], [0.2, 0.1, 0.3], "?"),
        ([0.1, 0.1, 0.1], [0.2, 0.2, 0.2], "+"),  # no variance, and yet no doubt
        ([0.1], [0.2], "?"),
    ],
)
def test_verdicts(ours, theirs, verdict):
    assert compare_runs(ours, theirs).verdict == verdict


def test_rows_that_do_not_pair_are_refused():
    with pytest.raises(SettingError, match=r"shapes \(2,\) and \(3,\)"):
        compare_runs([1, 2], [1, 2, 3])


def test_holms_worked_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_and_keeps_the_order(values):
    adjusted = holm(values)
    assert (adjusted >= np.array(values) - 1e-15).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(values, kind="stable")]) >= 0).all()


def test_cliffs_delta_of_small_examples():
    assert cliffs_delta([1, 1], [2, 2]) == 1
    assert cliffs_delta([2, 2], [1, 1]) == -1
    assert cliffs_delta([1, 2, 3], [1, 2, 3]) == 0


def test_ranks_with_ties_are_the_papers():
    wine = [0.2259, 0.2085, 0.2151, 0.2166, 0.2419, 0.2453, 0.2085, 0.2122]  # the paper's Wine with naive Bayes
    assert ranks(wine).tolist() == [6, 1, 4, 5, 7, 8, 1, 3]
    assert ranks([0.3, 0.1 + 0.2, 0.4]).tolist() == [1, 1, 3]


def test_average_and_overall_ranks():
    average, overall = average_ranks([[1, 2, 3], [2, 1, 3], [1, 1, 1]])
    assert average == pytest.approx([4 / 3, 4 / 3, 7 / 3])
    assert overall.tolist() == [1, 1, 3]


def test_improvement_is_nan_if_all_features_have_no_error():
    assert np.isnan(performance_improvement(0.0, 0.0))


def kappa(masks):
    """Fleiss' kappa of the features as items, rated in or out by the subsets: what Φ is for two categories."""
    count, d = masks.shape
    chosen = masks.sum(axis=0)
    agreement = (chosen * (chosen - 1) + (count - chosen) * (count - chosen - 1)) / (count * (count - 1))
    share = chosen.sum() / (count * d)
    chance = share**2 + (1 - share) ** 2
    return (agreement.mean() - chance) / (1 - chance)


def test_stability_is_fleiss_kappa():
    rng = np.random.default_rng(1)
    for probability in (0.1, 0.5, 0.8):
        masks = rng.random((7, 30)) < probability
        assert stability(masks).value == pytest.approx(kappa(masks))


def test_stability_of_equal_and_of_opposite_subsets():
    same = np.tile([True, False, True, False], (5, 1))
    assert stability(same) == type(stability(same))(1.0, 1.0, 1.0)
    assert stability([[1, 1, 0, 0], [0, 0, 1, 1]]).value == -1
    assert np.isnan(stability(np.ones((3, 4))).value)
    with pytest.raises(SettingError, match="at least 2 subsets"):
        stability([[1, 0]])


def test_the_interval_of_stability_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(2)
    likelihood = np.where(np.arange(40) < 10, 0.8, 0.15)
    truth = stability(rng.random((40000, 40)) < likelihood).value
    found = [stability(rng.random((60, 40)) < likelihood) for _ in range(400)]
    covered = np.mean([each.low <= truth <= each.high for each in found])
    assert 0.90 <= covered <= 0.99
