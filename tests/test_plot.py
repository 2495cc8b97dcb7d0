"""Plots: they show the values of the search and draw on the axes given."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.naive_bayes import GaussianNB

from subswarm import Budget, SwarmSelector, make_objective, plot, search
from subswarm._search.result import one_standard_error
from subswarm.errors import DataError, SettingError

PLANTED = np.arange(12) < 4


def distance(masks):
    return 0.05 + (masks ^ PLANTED).mean(axis=1)


def run(algorithm="2d-upso", seed=0, **settings):
    return search(algorithm, distance, Budget(evaluations=150), rng=seed, n_features=12, **settings)


@pytest.fixture(autouse=True)
def axes():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot.subplots()[1]
    pyplot.close("all")


@pytest.fixture(scope="module")
def recorded():
    return run(record=True)


def test_a_recording_holds_every_subset_visited(recorded):
    recording = recorded.recording
    assert len(recording.fitness) == len(recording.cardinality) == recorded.evaluations == 150
    assert recording.fitness.min() == recorded.best.fitness
    assert recording.chosen.sum() == recording.cardinality.sum()
    assert recording.evaluations.tolist() == recorded.history.evaluations.tolist()
    np.testing.assert_allclose(recording.likelihood.sum(axis=1), 1.0)


def test_recording_changes_nothing_and_is_off_by_default(recorded):
    plain = run()
    assert plain.recording is None
    assert plain.best.mask.tolist() == recorded.best.mask.tolist()
    assert plain.history.best_fitness.tolist() == recorded.history.best_fitness.tolist()


def test_a_search_without_likelihoods_has_none_to_show():
    result = run("random", record=True)
    assert result.recording.likelihood is None
    with pytest.raises(DataError, match="2-D swarms"):
        result.plot.cardinality_likelihood()
    with pytest.raises(DataError, match="record=True"):
        run().plot.cardinality_likelihood()


def test_groups_of_columns_are_recorded_as_columns():
    X, y = load_wine(return_X_y=True)
    groups = [[0, 1, 2], [3, 4]]
    selector = SwarmSelector(
        GaussianNB(), cv=3, max_evaluations=60, feature_groups=groups, random_state=0, record=True, verbose=0
    ).fit(X, y)
    recording = selector.result_.recording
    assert recording.chosen.shape == (13,)
    assert len(set(recording.chosen[:3])) == 1
    assert recording.chosen.sum() == recording.cardinality.sum()


@pytest.mark.parametrize(
    "draw",
    [
        lambda result, ax: plot.convergence(result, ax=ax),
        lambda result, ax: plot.convergence([result, result], show="improvement", baseline=0.5, ax=ax),
        lambda result, ax: plot.convergence({"a": [result, result], "b": result}, show="reduction", ax=ax),
        lambda result, ax: plot.trade_off(result, ax=ax),
        lambda result, ax: plot.selection_frequency(result, ax=ax),
        lambda result, ax: plot.selection_frequency([result, result], names=[f"$f{i}$" for i in range(12)], ax=ax),
        lambda result, ax: plot.cardinality_likelihood(result, ax=ax),
        lambda result, ax: plot.timing({"swarm": [result], "other": [result]}, ax=ax),
        lambda result, ax: plot.timing({"swarm": (0.5, 2.0)}, ax=ax),
        lambda result, ax: plot.critical_difference({"a": 1.5, "b": 2.0, "c": 2.5}, distance=0.7, highlight="a", ax=ax),
    ],
)
def test_every_plot_draws_on_the_axes_given_and_returns_them(draw, recorded, axes):
    assert draw(recorded, axes) is axes
    axes.figure.canvas.draw()
    assert axes.lines or axes.collections or axes.patches


def test_convergence_shows_the_mean_over_runs_that_stop_at_different_times(axes):
    early = search("2d-upso", distance, Budget(evaluations=60), rng=0, n_features=12)
    late = search("2d-upso", distance, Budget(evaluations=90), rng=1, n_features=12)
    line = plot.convergence({"both": [early, late]}, ax=axes).lines[0]
    assert line.get_xdata().tolist() == [30, 60, 90]
    expected = (early.history.best_fitness[-1] + late.history.best_fitness[-1]) / 2
    assert line.get_ydata()[-1] == pytest.approx(expected)


def test_improvement_and_reduction_are_the_papers(recorded, axes):
    pi = plot.convergence(recorded, show="improvement", baseline=0.8, ax=axes).lines[0].get_ydata()
    assert pi[-1] == pytest.approx(100 * (0.8 - recorded.best.fitness) / 0.8)
    reduction = plot.convergence(recorded, show="reduction", ax=axes).lines[1].get_ydata()
    assert reduction[-1] == pytest.approx(100 * (12 - recorded.best.cardinality) / 12)
    with pytest.raises(SettingError, match="baseline"):
        plot.convergence(recorded, show="improvement", ax=axes)


def test_frequency_among_runs_is_the_share_that_select_the_feature(axes):
    runs = [run(seed=seed) for seed in range(3)]
    bars = plot.selection_frequency(runs, ax=axes).patches
    assert max(bar.get_width() for bar in bars) == pytest.approx(
        100 * np.mean([each.best.mask for each in runs], axis=0).max()
    )
    with pytest.raises(DataError, match="names"):
        plot.selection_frequency(runs, names=["one"], ax=axes)


def test_the_selector_draws_with_its_names_and_baseline(axes):
    X, y = load_wine(return_X_y=True, as_frame=True)
    selector = SwarmSelector(GaussianNB(), cv=3, max_evaluations=60, random_state=0, verbose=0).fit(X, y)
    selector.plot.convergence(show="improvement", ax=axes)
    shown = selector.plot.selection_frequency(ax=axes).get_yticklabels()
    assert {label.get_text() for label in shown} <= set(X.columns)
    assert "baseline" not in repr(selector)


def test_notebooks_show_what_was_found_with_names_escaped():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.rename(columns={"ash": "<script>alert(1)</script>"})
    selector = SwarmSelector(
        GaussianNB(), cv=3, max_evaluations=60, fixed_features=["<script>alert(1)</script>"], random_state=0, verbose=0
    )
    unfitted = selector._repr_mimebundle_()["text/html"]
    selector.fit(X, y)
    for shown in (selector._repr_mimebundle_()["text/html"], selector._repr_html_()):
        assert f"{selector.best_score_:.4f}" in shown
        assert "&lt;script&gt;alert" in shown
        assert "<script>alert" not in shown
    assert "optimistic" not in unfitted
    assert "<polyline" in selector.result_._repr_html_()


def test_the_trade_off_shows_the_best_of_each_size_and_the_choice_within_one_standard_error(axes):
    result = search(
        "2d-upso", make_objective(GaussianNB(), *load_wine(return_X_y=True)), Budget(evaluations=300), rng=0
    )
    plot.trade_off(result, ax=axes)
    line = next(line for line in axes.lines if line.get_label() == "best of each size")
    assert line.get_xdata().tolist() == result.front.cardinality.tolist()
    assert line.get_ydata().tolist() == result.front.fitness.tolist()
    few = one_standard_error(result)
    mark = next(each for each in axes.collections if each.get_label().startswith("within one standard error"))
    assert mark.get_offsets().tolist() == [[few.cardinality, few.fitness]]
    assert few.cardinality < result.best.cardinality


def test_without_folds_there_is_no_standard_error_to_show(recorded, axes):
    plot.trade_off(recorded, ax=axes)
    assert not [each for each in axes.collections if "standard error" in each.get_label()]


def test_a_result_from_a_pickle_can_be_drawn(recorded, axes):
    again = pickle.loads(pickle.dumps(recorded))
    assert again.plot.trade_off(ax=axes) is axes


@pytest.mark.parametrize("value", [None, 3, "text", [3], {"a": 3}, {"a": [3]}, {}, [], np.array(2.0), {"a": {}}, b"x"])
@pytest.mark.parametrize("draw", [plot.convergence, plot.timing, plot.selection_frequency])
def test_plots_of_many_results_refuse_anything_else(draw, value, axes):
    with pytest.raises(DataError, match="expected a"):
        draw(value, ax=axes)


@pytest.mark.parametrize("value", [None, 3, "text", [3], {}, np.array(2.0)])
@pytest.mark.parametrize("draw", [plot.trade_off, plot.cardinality_likelihood])
def test_plots_of_one_result_refuse_anything_else(draw, value, axes):
    with pytest.raises(DataError, match=r"expected a SearchResult.*got"):
        draw(value, ax=axes)


def test_times_must_be_pairs_of_seconds(axes):
    with pytest.raises(DataError, match="must be a pair of seconds"):
        plot.timing({"a": (1.0, 2.0, 3.0)}, ax=axes)
    for seconds in ("x", float("nan"), -1.0):
        with pytest.raises(SettingError, match="T2 of 'a' must be"):
            plot.timing({"a": (1.0, seconds)}, ax=axes)


@pytest.mark.parametrize("names", [3, "text", {"a": 1}, np.array(2.0)])
def test_names_of_features_must_be_a_list(names, recorded, axes):
    with pytest.raises(SettingError, match="names must be a list of feature names"):
        plot.selection_frequency(recorded, names=names, ax=axes)


def test_names_of_features_may_be_an_array(recorded, axes):
    names = np.array([f"f{index}" for index in range(12)], dtype=object)
    shown = plot.selection_frequency(recorded, names=names, ax=axes).get_yticklabels()
    assert {label.get_text() for label in shown} <= set(names)


@pytest.mark.parametrize("ranks", [None, 3, "ab", {"a": 1.0}, [1.0, 2.0]])
def test_ranks_must_be_of_at_least_two_algorithms(ranks, axes):
    with pytest.raises(DataError, match="at least two algorithms"):
        plot.critical_difference(ranks, distance=1.0, ax=axes)


@pytest.mark.parametrize("rank", [None, "x", float("nan"), 0.5, 1e308, np.ones(2)])
def test_a_rank_must_be_a_number_that_can_be_drawn(rank, axes):
    with pytest.raises(SettingError, match="the rank of 'b' must be a finite number from 1 to 1000"):
        plot.critical_difference({"a": 1.0, "b": rank}, distance=1.0, ax=axes)


@pytest.mark.parametrize("highlight", [3, "bpsi", np.ones(2), ["bpso"]])
def test_only_a_name_in_the_ranks_can_be_highlighted(highlight, axes):
    with pytest.raises(SettingError, match="highlight must be a name in ranks or None"):
        plot.critical_difference({"bpso": 1.0, "ga": 2.0}, distance=1.0, highlight=highlight, ax=axes)


def test_without_matplotlib_a_sentence_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from subswarm import Budget, search\n"
        "search('random', lambda m: m.mean(axis=1), Budget(evaluations=9), rng=0, n_features=3).plot.timing()"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'subswarm[plot]'" in process.stderr
