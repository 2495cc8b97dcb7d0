"""The front of a fitted selector: table, choices from it, prices, plot and command line."""

from __future__ import annotations

import json
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

from subswarm import Budget, FrontTable, SwarmSelector, held_out, make_objective, search
from subswarm._search.choice import CostFront
from subswarm.algorithms import TwoDPareto
from subswarm.cli import app
from subswarm.errors import DataError, SettingError
from subswarm.report.record import Selection

X, y = load_wine(return_X_y=True, as_frame=True)
QUICK = {"max_evaluations": 300, "cv": 5, "random_state": 0, "verbose": 0}


def table_of(cost, loss, **settings):
    cost = np.array(cost, dtype=float)
    masks = np.arange(9) < np.arange(1, len(cost) + 1)[:, None]
    return FrontTable(masks, cost, np.array(loss), np.full(len(cost), 0.01), tuple("abcdefghi"), **settings)


def test_the_knee_is_the_point_farthest_below_the_line_between_the_ends():
    # Shares of the ranges: (0, 1), (1/8, 1/2), (1/4, 1/8), (1, 0); the sums are 1, 5/8, 3/8 and 1.
    front = table_of([1, 2, 3, 9], [0.9, 0.5, 0.2, 0.1])
    assert front.knee().fitness == 0.2
    assert table_of([1, 5], [0.4, 0.1]).knee().fitness == 0.1


def test_a_budget_selects_the_lowest_loss_that_is_affordable():
    front = table_of([1.5, 4, 9], [0.9, 0.5, 0.2], is_priced=True)
    assert [front.within(limit).fitness for limit in (1.5, 8.99, 9)] == [0.9, 0.5, 0.2]
    with pytest.raises(SettingError, match=r"costs at most max_cost=1; the lowest cost is 1\.5"):
        front.within(1)
    with pytest.raises(SettingError, match=r"costs at most max_cost=0\.333333"):
        front.within(Fraction(1, 3))
    with pytest.raises(SettingError, match=r"the lowest number of columns is 2"):
        table_of([2], [0.5]).within(1)


@pytest.fixture(scope="module")
def fitted():
    return SwarmSelector(GaussianNB(), "2d-pareto", **QUICK).fit(X, y)


def test_the_front_has_no_dominated_subset_and_contains_the_best(fitted):
    front = fitted.front_
    assert (np.diff(front.cost) > 0).all()
    assert (np.diff(front.loss) < 0).all()
    assert np.array_equal(front.cost, front.size)
    assert front.loss[-1] == fitted.result_.best.fitness
    assert np.array_equal(front.masks[-1], fitted.support_)


def test_losses_and_standard_errors_are_those_of_cross_val_score(fitted):
    for row in range(len(fitted.front_)):
        scores = cross_val_score(GaussianNB(), X.loc[:, fitted.front_.masks[row]], y, cv=fitted.folds_)
        assert fitted.front_.loss[row] == pytest.approx(1 - scores.mean())
        assert fitted.front_.standard_error[row] == pytest.approx(scores.std(ddof=1) / np.sqrt(5))


def test_the_table_names_the_columns(fitted):
    front = fitted.front_
    lines = repr(front).splitlines()
    assert lines[0].split() == ["size", "loss", "standard", "error", "columns"]
    assert len(lines) == len(front) + 1
    assert lines[1].endswith(front.columns(0)[0])
    frame = front.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["size", "loss", "standard_error", "columns"]
    assert frame["columns"][1] == list(X.columns[front.masks[1]])
    assert front._repr_html_().count("<tr>") == len(front) + 1


@pytest.fixture(scope="module")
def nested():
    return SwarmSelector(GaussianNB(), "2d-pareto", choose="best", held_out=3, **QUICK).fit(X, y)


def test_one_nested_run_scores_every_limit_on_rows_that_its_searches_did_not_use(nested):
    front, scores = nested.front_, nested.held_out_.front_scores(nested.front_.cost)
    assert scores.shape == (3, len(front))
    assert front.nested_loss == pytest.approx(1 - scores.mean(axis=0))
    assert front.nested_standard_error == pytest.approx(scores.std(axis=0, ddof=1) / np.sqrt(3))
    # The last subset of a front is the best one, which choose="best" selects: its score is the nested score.
    assert [each.scores[-1] for each in nested.held_out_.fronts] == nested.held_out_.scores.tolist()


def test_a_limit_selects_from_the_fronts_of_the_outer_searches(nested):
    # Searching without an outer fold, limited to two columns, and scoring there gives the same as the front.
    limited = held_out(
        SwarmSelector(GaussianNB(), "2d-pareto", choose="budget", max_cost=2, **QUICK), X, y, folds=3, front=True
    )
    assert np.array_equal(limited.front_scores([2])[:, 0], limited.scores)
    assert (limited.supports.sum(axis=1) <= 2).all()
    assert np.isnan(limited.front_scores([0.5])).all()
    assert held_out(SwarmSelector(GaussianNB(), **QUICK), X, y, folds=3).fronts == ()


def test_the_nested_front_is_in_the_table_the_plot_the_json_and_the_page(nested, tmp_path):
    front = nested.front_
    assert repr(front).splitlines()[0].split()[3:6] == ["error", "nested", "loss"]
    assert "nested_loss" in front.to_pandas().columns
    labels = [text.get_text() for text in nested.plot.front().get_legend().get_texts()]
    assert "on rows not used (nested)" in labels
    record = Selection.of(nested).as_json()
    assert record["nested_front"][0]["cost"] == front.cost[0]
    assert record["nested_front"][-1]["scores"] == nested.held_out_.front_scores(front.cost)[:, -1].tolist()
    assert "What a limit costs on rows" in nested.report(tmp_path / "page.html").read_text()


def test_names_are_escaped_in_html():
    front = FrontTable(np.ones((1, 1), bool), np.ones(1), np.ones(1), np.ones(1), ("<b>",))
    assert "<b>" not in front._repr_html_()
    assert "&lt;b&gt;" in front._repr_html_()


def test_the_selector_selects_the_knee_or_the_best_within_a_budget(fitted):
    knee = SwarmSelector(GaussianNB(), "2d-pareto", choose="knee", **QUICK).fit(X, y)
    assert np.array_equal(knee.support_, fitted.front_.knee().mask)
    three = SwarmSelector(GaussianNB(), "2d-pareto", choose="budget", max_cost=3, **QUICK).fit(X, y)
    assert three.n_features_ <= 3
    assert np.array_equal(three.support_, fitted.front_.within(3).mask)


def test_a_group_is_priced_once_and_the_cost_is_minimised():
    prices = dict.fromkeys(X.columns, 1.0) | {"proline": 50.0, "ash": 7.0, "alcohol": 3.0}
    groups = [["ash", "alcohol", "hue"]]
    selector = SwarmSelector(GaussianNB(), "2d-pareto", feature_costs=prices, feature_groups=groups, **QUICK).fit(X, y)
    front = selector.front_
    assert front.is_priced
    for row in range(len(front)):
        names = set(front.columns(row))
        group = names & set(groups[0])
        assert group in (set(), set(groups[0]))
        expected = sum(prices[name] for name in names - set(groups[0])) + (7.0 if group else 0.0)
        assert front.cost[row] == expected
    assert (np.diff(front.cost) > 0).all()
    assert (np.diff(front.loss) < 0).all()
    cheap = SwarmSelector(GaussianNB(), "2d-pareto", feature_costs=prices, choose="budget", max_cost=20, **QUICK).fit(
        X, y
    )
    assert "proline" not in cheap.get_feature_names_out()


def test_prices_change_the_search_only_of_multi_objective_algorithms():
    prices = np.linspace(1, 20, X.shape[1])
    for name, same in (("2d-upso", True), ("2d-pareto", False), ("nsga2", False)):
        plain, priced = (
            SwarmSelector(GaussianNB(), name, feature_costs=costs, **QUICK).fit(X, y) for costs in (None, prices)
        )
        assert np.array_equal(plain.result_.front.masks, priced.result_.front.masks) == same, name
        assert priced.front_.is_priced


def test_a_front_of_costs_keeps_subsets_that_are_the_best_of_no_size():
    prices = np.array([9.0, 1.0, 1.0])
    seen = CostFront(prices)
    masks = np.array([[True, False, False], [False, True, False], [True, True, False], [False, True, True]])
    state = SimpleNamespace(partitions=None)
    seen(SimpleNamespace(masks=masks, fitness=np.array([0.1, 0.3, 0.05, 0.2]), state=state))
    assert sorted((seen.masks @ prices).tolist()) == [1.0, 2.0, 9.0, 10.0]
    seen(SimpleNamespace(masks=masks[:1], fitness=np.array([0.01]), state=state))
    assert sorted(seen.losses.tolist()) == [0.01, 0.2, 0.3]


def test_steps_on_single_repeats_are_left_out_of_a_front_of_costs():
    seen = CostFront(np.ones(2), n_partitions=3)
    step = SimpleNamespace(masks=np.eye(2, dtype=bool), fitness=np.zeros(2))
    step.state = SimpleNamespace(partitions=np.zeros(2, dtype=int))
    seen(step)
    assert not len(seen.losses)
    step.state = SimpleNamespace(partitions=None)
    seen(step)
    assert len(seen.losses) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"choose": "budget"}, 'choose="budget" and max_cost are set together'),
        ({"max_cost": 3}, 'choose="budget" and max_cost are set together'),
        ({"choose": "budget", "max_cost": "3"}, "max_cost must be a finite number of at least 0 or None; got '3'"),
        ({"feature_costs": [1.0]}, "feature_costs must have one price for each of 13 columns; got 1"),
        ({"feature_costs": [-1.0] * 13}, r"each of feature_costs must be a finite number of at least 0; got -1\.0"),
        ({"feature_costs": {"proof": 1}}, "feature_costs names column 'proof', which is not in the table"),
        ({"feature_costs": {"ash": 1}}, "feature_costs has no price for column 'alcohol'"),
        ({"feature_costs": 3}, "feature_costs must be a list of prices"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        SwarmSelector(GaussianNB(), **QUICK | settings).fit(X, y)


def test_an_archive_that_is_full_drops_the_subset_that_adds_least():
    objective = make_objective(GaussianNB(), X, y, cv=5)
    algorithm = TwoDPareto(archive_size=3, opening=0.0)
    from subswarm._search.ask_tell import Search

    course = Search(algorithm, 13, 0, evaluations=600)
    for _ in range(20):
        course.tell(objective(course.ask()))
        assert len(course.state.archive) <= 3
        assert course.state.archive_losses[-1] == course.best.fitness
    assert len(search(TwoDPareto(), objective, Budget(evaluations=600), rng=0).front) > 3


def test_the_wheel_reaches_one_feature_beyond_the_front():
    objective = make_objective(GaussianNB(), X, y, cv=5)
    from subswarm._search.ask_tell import Search

    course = Search(TwoDPareto(), 13, 0, evaluations=600)
    for _ in range(5):
        course.tell(objective(course.ask()))
        likelihood = course.state.cardinality_likelihood
        largest = int(course.state.archive.sum(axis=1).max())
        assert likelihood.sum() == pytest.approx(1)
        assert np.flatnonzero(likelihood).tolist() == list(range(min(largest + 1, 13)))


def test_the_plot_has_error_bars_and_the_knee(fitted):
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    axes = fitted.plot.front()
    bars = axes.containers[0]
    assert np.array_equal(bars.lines[0].get_xdata(), fitted.front_.cost)
    assert len(bars.lines[2][0].get_segments()) == len(fitted.front_)
    assert axes.get_xlabel() == "features"
    knee = axes.collections[-1].get_offsets()[0]
    assert knee[1] == fitted.front_.knee().fitness
    with pytest.raises(DataError, match=r"use selector\.plot\.front"):
        fitted.result_.plot.front()
    pyplot.close(axes.figure)


class TestCommandLine:
    @pytest.fixture
    def costs(self, tmp_path):
        path = tmp_path / "costs.csv"
        rows = [f"{name},{50 if name == 'proline' else 2}" for name in X.columns]
        path.write_text("\n".join(["column,price", *rows]), encoding="utf-8")
        return path

    def select(self, *options):
        command = ["select", "wine", "--model", "nb", "--algorithm", "2d-pareto", "--evaluations", "200", "--quiet"]
        return CliRunner().invoke(app, [*command, *map(str, options)])

    def test_a_budget_in_prices(self, costs, tmp_path):
        out = tmp_path / "out.json"
        result = self.select("--costs", costs, "--choose", "budget", "--max-cost", 8, "--out", out)
        assert result.exit_code == 0, result.output
        selected = json.loads(out.read_text(encoding="utf-8"))["selected"]
        assert 1 <= len(selected) <= 4
        assert "proline" not in selected

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("proof,1", "names column 'proof', which the table does not have"),
            ("hue", "row 15, must have a column name and a price; got 'hue'"),
        ],
    )
    def test_a_wrong_row_is_named(self, costs, line, message):
        costs.write_text(costs.read_text(encoding="utf-8") + f"\n{line}", encoding="utf-8")
        result = self.select("--costs", costs)
        assert result.exit_code != 0
        assert message in str(result.exception)

    def test_a_column_without_a_price_is_named(self, costs):
        rows = [row for row in costs.read_text(encoding="utf-8").splitlines() if not row.startswith("hue")]
        costs.write_text("\n".join(rows), encoding="utf-8")
        assert "has no price for column 'hue'" in str(self.select("--costs", costs).exception)

    def test_a_missing_file_is_named(self, tmp_path):
        assert "none.csv, which cannot be read" in str(self.select("--costs", tmp_path / "none.csv").exception)
