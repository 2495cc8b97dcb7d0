"""The front of a fitted selector: table, choices from it, prices, plot and command line."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

from subswarm import Budget, FrontTable, Search, SwarmSelector, held_out, make_objective, search
from subswarm._search.run import FunctionObjective
from subswarm._types import CostFront
from subswarm.algorithms import Race, TwoDPareto, get_algorithm
from subswarm.cli import app
from subswarm.errors import DataError, FitnessError, SettingError
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
    masks = np.array([[True, False, False], [False, True, False], [True, True, False], [False, True, True]])
    front = CostFront.empty(3).with_more(masks, masks @ prices, np.array([0.1, 0.3, 0.05, 0.2]))
    assert front.costs.tolist() == (front.masks @ prices).tolist() == [1.0, 2.0, 9.0, 10.0]
    front = front.with_more(masks[:1], np.array([9.0]), np.array([0.01]))
    assert front.losses.tolist() == [0.3, 0.2, 0.01]
    # A free second column changes nothing, so the smaller of two equally good subsets is kept.
    front = CostFront.empty(2).with_more(np.array([[True, True], [True, False]]), np.ones(2), np.ones(2))
    assert front.masks.tolist() == [[True, False]]


def test_steps_on_single_repeats_are_left_out_of_a_front_of_costs():
    # With islands, 2d-elite scores subsets on single repeats: a loss of 0 there must not be on the front.
    prices = np.linspace(1, 5, 13)
    fitted = SwarmSelector(GaussianNB(), "2d-elite", feature_costs=prices, repeats=3, **QUICK).fit(X, y)
    objective = make_objective(GaussianNB(), X, y, cv=5, repeats=3, random_state=0)
    assert fitted.front_.loss == pytest.approx(objective(fitted.front_.masks))


def test_the_front_of_costs_keeps_the_limits_of_a_search_that_passes_smaller_subsets():
    prices = np.linspace(1, 20, 13)
    fitted = SwarmSelector(GaussianNB(), "sffs", feature_costs=prices, min_features=3, **QUICK).fit(X, y)
    assert fitted.front_.size.min() == 3


@pytest.mark.parametrize(
    ("name", "second"),
    [("2d-pareto", "cost"), ("2d-elite", "cost"), ("2d-pareto", "score"), ("nsga2", "score")],
)
def test_a_resumed_search_has_the_front_of_an_uninterrupted_one(name, second, tmp_path):
    settings = QUICK | {"max_evaluations": 600, "repeats": 1}
    if second == "cost":
        algorithm, settings = name, settings | {"feature_costs": np.random.default_rng(0).uniform(1, 20, 13)}
    else:
        algorithm = get_algorithm(name, objectives="scores")
        settings |= {"scoring": ["accuracy", "neg_log_loss"]}
    whole = SwarmSelector(GaussianNB(), algorithm, **settings).fit(X, y)
    path = tmp_path / "search.ckpt"
    stop = [lambda snapshot: snapshot.evaluations >= 300]
    SwarmSelector(GaussianNB(), algorithm, checkpoint=path, callbacks=stop, **settings).fit(X, y)
    resumed = SwarmSelector(GaussianNB(), algorithm, checkpoint=path, **settings).fit(X, y)
    assert resumed.result_.evaluations == whole.result_.evaluations
    assert np.array_equal(resumed.front_.masks, whole.front_.masks)
    assert np.array_equal(resumed.front_.cost, whole.front_.cost)


@pytest.fixture(scope="module")
def by_scores():
    algorithm = TwoDPareto(objectives="scores")
    scoring = {"right": "accuracy", "surprise": "neg_log_loss"}
    return SwarmSelector(GaussianNB(), algorithm, scoring=scoring, held_out=3, **QUICK).fit(X, y)


class TestTwoScores:
    def test_both_losses_of_the_front_are_those_of_cross_val_score(self, by_scores):
        front = by_scores.front_
        assert len(front) > 2
        assert (np.diff(front.cost) > 0).all()
        assert (np.diff(front.loss) < 0).all()
        for row in (0, -1):
            table = X.loc[:, front.masks[row]]
            scores = {
                name: cross_val_score(GaussianNB(), table, y, cv=by_scores.folds_, scoring=name).mean()
                for name in ("accuracy", "neg_log_loss")
            }
            assert front.loss[row] == pytest.approx(1 - scores["accuracy"])
            assert front.cost[row] == pytest.approx(-scores["neg_log_loss"])

    @pytest.mark.parametrize("name", ["2d-pareto", "nsga2"])
    def test_both_objectives_are_minimised(self, name):
        # The second loss alone would be the lowest with the last three features, the first with the first three.
        class TwoLosses(FunctionObjective):
            def other_losses(self, masks):
                return (masks ^ (np.arange(12) >= 9)).mean(axis=1)[:, None]

        objective = TwoLosses(lambda masks: (masks ^ (np.arange(12) < 3)).mean(axis=1), 12)
        found = search(get_algorithm(name, objectives="scores"), objective, Budget(evaluations=3000), rng=0).cost_front
        # Each of the six features that only one loss wants is in or out: the sums of both losses are all 6/12.
        assert found.costs * 12 == pytest.approx(np.arange(7))
        assert found.losses * 12 == pytest.approx(np.arange(7)[::-1])

    def test_a_limit_on_the_second_loss(self, by_scores):
        limit = float(np.median(by_scores.front_.cost))
        settings = by_scores.get_params(deep=False) | {"choose": "budget", "max_cost": limit, "held_out": None}
        limited = SwarmSelector(**settings).fit(X, y)
        assert -limited.scores_["surprise"] <= limit
        assert -by_scores.scores_["surprise"] > limit
        with pytest.raises(SettingError, match="the lowest loss by neg_log_loss is"):
            by_scores.front_.within(0)

    def test_displays_name_the_second_loss(self, by_scores, tmp_path):
        front = by_scores.front_
        assert repr(front).splitlines()[0].startswith("loss by neg_log_loss  size   loss")
        assert front.to_pandas().columns[0] == "loss by neg_log_loss"
        assert by_scores.plot.front().get_xlabel() == "loss by neg_log_loss"
        record = Selection.of(by_scores).as_json()["cost_front"]
        assert record["objective"] == "loss by neg_log_loss"
        assert [row["cost"] for row in record["subsets"]] == front.cost.tolist()
        page = by_scores.report(tmp_path / "page.html").read_text(encoding="utf-8")
        assert "Subsets that are best in accuracy and loss by neg_log_loss" in page
        assert "loss by neg_log_loss at most" in page

    def test_losses_that_do_not_fit_are_refused(self):
        algorithm = TwoDPareto(objectives="scores")
        for scoring, count in ((None, 1), (["accuracy", "f1_macro", "roc_auc_ovr"], 3)):
            with pytest.raises(SettingError, match=f"by two scorers, and the objective has {count}"):
                SwarmSelector(GaussianNB(), algorithm, scoring=scoring, **QUICK).fit(X, y)
        with pytest.raises(SettingError, match=r'feature_costs are for objectives="size"'):
            SwarmSelector(GaussianNB(), algorithm, feature_costs=np.ones(13), **QUICK).fit(X, y)
        with pytest.raises(SettingError, match="a race compares subsets by one loss"):
            Race(algorithm)
        with pytest.raises(FitnessError, match=r"fitness of shape \(30,\).*the shape must be \(30, 2\)"):
            Search(algorithm, 5, 0).tell(np.zeros(30))


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
