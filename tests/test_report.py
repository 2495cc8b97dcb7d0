"""The report page: its content, and its behaviour in a browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

from browser import opened
from limits import SECONDS
from subswarm import SwarmSelector
from subswarm.errors import SettingError
from subswarm.nested import HeldOut, held_out
from subswarm.report.page import Chart, Layer
from subswarm.report.record import Selection
from subswarm.report.selection_page import selection_page, verdict

NASTY = "<script>document.title='broken'</script>"
HEADINGS = ["What was selected", "How reliable is it?", "How it compares", "How the search went", "How to reproduce it"]


def run(*arguments, status=0, cwd=None):
    command = [sys.executable, "-W", "error", "-m", "subswarm", *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=cwd)
    assert process.returncode == status, process.stdout + process.stderr
    return process


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A report of a table with an ill-named column, and the JSON of the same search."""
    folder = tmp_path_factory.mktemp("report")
    frame = load_wine(as_frame=True).frame.rename(columns={"ash": NASTY, "hue": "</script><b>&hue"})
    frame.to_csv(folder / "wine.csv", index=False)
    shown = run(
        *("select", "wine.csv", "--target", "target", "--model", "nb", "--evaluations", 300, "--cv", 5, "--seed", 4),
        *("--held-out", 3, "--seeds", 1, "--against", "random", "--keep", NASTY, "--keep", "</script><b>&hue"),
        *("--report", "answer.html", "--out", "answer.json"),
        cwd=folder,
    )
    return folder / "answer.html", json.loads((folder / "answer.json").read_text()), shown


def fitted_wine(**settings):
    X, y = load_wine(return_X_y=True, as_frame=True)
    settings = {"cv": 3, "max_evaluations": 60, "random_state": 0, "verbose": 0, **settings}
    return SwarmSelector(GaussianNB(), **settings).fit(X, y)


def lines_without_times(path):
    """The lines of a page, without the seconds and the numbers of the parts below the command."""
    return re.sub(r"\d+\.\d+ s|(?<=again-)\d", "", path.read_text(encoding="utf-8")).splitlines()


class Words(HTMLParser):
    """The text of a page, with the tags it met and what they pointed to."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.links, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data):
        self.text += data


def test_the_page_has_its_five_sections_in_order(made):
    page = Words(made[0].read_text(encoding="utf-8")).text
    places = [page.index(f"\n{heading}\n") for heading in HEADINGS]
    assert places == sorted(places)


def test_the_page_shows_the_scores_of_the_search(made):
    path, found, shown = made
    page = Words(path.read_text(encoding="utf-8")).text
    for value in (found["honest_score"], found["best_score"], found["baseline_score"], found["held_out"]["score"]):
        assert f"{value:.4f}" in page
        assert f"{value:.4f}" in shown.stdout
    assert shown.stdout.index("selected, corrected") < shown.stdout.index("optimistic") < shown.stdout.index("nested")
    low, high = found["honest_interval"]
    assert f"likely between {low:.4f} and {high:.4f}" in page
    assert found["honest_from"] == "formula"
    assert "subswarm select wine.csv --target target --model nb" in page
    assert "--seed 4" in page
    assert found["versions"]["scikit-learn"] in page
    assert "nested cross-validation: 3 more searches" in shown.stderr
    assert found["against"]["random"]["n_features"] >= 1
    assert list(found["seeds"]) == ["5"]


def test_the_page_loads_nothing_from_the_network(made):
    page = Words(made[0].read_text(encoding="utf-8"))
    assert all(link.startswith("#") or link == "data:," for link in page.links)
    assert "default-src 'none'" in made[0].read_text(encoding="utf-8")


def test_names_from_the_data_are_escaped(made):
    raw = made[0].read_text(encoding="utf-8")
    assert NASTY not in raw
    assert "</script><b>" not in raw
    assert NASTY in Words(raw).text
    assert Words(raw).tags.count("b") == 0


def test_a_fitted_selector_writes_the_page_of_the_command_line(tmp_path):
    frame = load_wine(as_frame=True).frame
    frame.to_csv(tmp_path / "wine.csv", index=False)
    run(
        *("select", "wine.csv", "--target", "target", "--model", "nb", "--evaluations", 60, "--cv", 3, "--seed", 0),
        *("--held-out", 2, "--report", "cli.html"),
        cwd=tmp_path,
    )
    selector = fitted_wine(held_out=2, record=True)
    path = selector.report(tmp_path / "python.html", table="wine.csv")
    assert path == tmp_path / "python.html"
    from_python, from_command_line = lines_without_times(path), lines_without_times(tmp_path / "cli.html")
    only_python = [line for line in from_python if line not in from_command_line]
    only_command_line = [line for line in from_command_line if line not in from_python]
    assert [line.replace("GaussianNB", "nb") for line in only_python] == only_command_line[:1]  # the model's name
    assert "Model" in only_command_line[0]
    assert all("command" in line or "--held-out 2" in line for line in only_command_line[1:])
    assert len(from_python) > 200


def test_a_selector_that_is_not_fitted_has_no_report(tmp_path):
    with pytest.raises(NotFittedError):
        SwarmSelector(GaussianNB()).report(tmp_path / "x.html")


def test_a_report_that_cannot_be_written_is_a_setting_error(tmp_path):
    selector = fitted_wine()
    for path in (tmp_path / "no" / "x.html", tmp_path, tmp_path / "a\0b.html"):
        with pytest.raises(SettingError, match="cannot write the report to"):
            selector.report(path)


def test_a_report_without_names_numbers_the_features(tmp_path):
    X, y = load_wine(return_X_y=True)
    selector = SwarmSelector(GaussianNB(), cv=3, max_evaluations=60, random_state=0, verbose=0).fit(X, y)
    page = Words(selector.report(tmp_path / "x.html").read_text(encoding="utf-8")).text
    assert "features predict the target" in page
    assert all(f"x{column}" in page for column in np.flatnonzero(selector.support_))


def test_a_page_without_extras_says_how_to_get_them():
    X, y = load_wine(return_X_y=True)
    selector = SwarmSelector(GaussianNB(), cv=3, max_evaluations=60, random_state=0, verbose=0).fit(X, y)
    names = [f"f{k}" for k in range(13)]
    page = selection_page(Selection.of(selector, table="wine", target="class", model="nb", names=names))
    assert "--held-out 5" in page
    assert "--against" in page
    assert "The command" not in page


def test_regression_with_a_negated_score_and_failing_baseline_makes_a_page():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    y = X[:, 0] + rng.normal(size=40)
    selector = SwarmSelector(
        LinearRegression(), cv=3, max_evaluations=60, scoring="neg_mean_squared_error", random_state=0, verbose=0
    ).fit(X, y)
    selector.baseline_score_ = float("nan")
    page = selection_page(Selection.of(selector, table="made", target="y", names=list("abcdef")))
    assert f"{selector.best_score_:.4f}" in page
    assert "could not be scored" in page


def test_a_report_that_cannot_be_written_is_refused_before_the_search(tmp_path):
    error = run("select", "wine", "--report", tmp_path / "no" / "x.html", status=2).stderr
    assert "does not exist" in error
    assert "no algorithm 'swarmy'" in run("select", "wine", "--against", "swarmy", status=2).stderr


def test_chart_data_cannot_end_its_script_element():
    chart = Chart("t", "n", "x", "y", (Layer("</script><!--", [1.0], [2.0], notes=["&<>"]),))
    assert not re.search("[<>&]", chart.json)
    assert json.loads(chart.json)["layers"][0]["name"] == "</script><!--"


def test_held_out_scores_are_those_of_rows_left_out():
    X, y = load_wine(return_X_y=True)
    selector = SwarmSelector(GaussianNB(), cv=3, max_evaluations=90, random_state=1, verbose=0)
    nested = held_out(selector, X, y, folds=4, random_state=7)
    from sklearn.model_selection import StratifiedKFold

    for fold, (train, test) in enumerate(StratifiedKFold(4, shuffle=True, random_state=7).split(X, y)):
        chosen = nested.supports[fold]
        again = SwarmSelector(GaussianNB(), cv=3, max_evaluations=90, random_state=1, verbose=0).fit(X[train], y[train])
        assert again.support_.tolist() == chosen.tolist()
        assert nested.inner_scores[fold] == again.best_score_
        model = GaussianNB().fit(X[train][:, chosen], y[train])
        assert nested.scores[fold] == model.score(X[test][:, chosen], y[test])
        assert nested.baseline_scores[fold] == GaussianNB().fit(X[train], y[train]).score(X[test], y[test])
    parallel = held_out(selector, X, y, folds=4, random_state=7, n_jobs=2)
    assert parallel.scores.tolist() == nested.scores.tolist()
    with pytest.raises(SettingError, match="folds"):
        held_out(selector, X, y, folds=1)


@pytest.mark.parametrize(
    ("scores", "baseline", "words"),
    [
        ([0.9, 0.92, 0.91], [0.8, 0.83, 0.8], "clearly better"),
        ([0.7, 0.72, 0.71], [0.8, 0.83, 0.8], "clearly worse"),
        ([0.8, 0.7, 0.9], [0.82, 0.75, 0.8], "no clear difference"),
        ([0.8, 0.8, 0.8], [0.8, 0.8, 0.8], "no clear difference"),
        ([0.8, 0.7, 0.9], [np.nan] * 3, "On rows that the search did not use"),
    ],
)
def test_the_verdict_follows_the_paired_difference(scores, baseline, words):
    nested = HeldOut(np.array(scores), np.array(baseline), np.array([0.95] * 3), np.eye(3, dtype=bool), 1.0)
    assert words in verdict(nested)


def test_the_page_works_in_a_browser(made):
    with opened(made[0].as_uri()) as driver:
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys

        assert driver.title.startswith(f"{made[1]['n_features']} of 13 features")
        table = driver.find_element(By.CSS_SELECTOR, "[aria-label='All features'] table")
        tools = f"[data-tools-of='{table.get_attribute('id')}']"

        def shown():
            cells = table.find_elements(By.CSS_SELECTOR, "tbody tr:not([hidden]) td:first-child")
            return [cell.text for cell in cells]

        heading = table.find_element(By.CSS_SELECTOR, "thead button")
        heading.click()
        ascending = shown()
        plain = [name for name in ascending if name[0].isalpha()]
        assert (len(ascending), plain) == (13, sorted(plain))
        heading.send_keys(Keys.ENTER)
        assert shown() == ascending[::-1]
        assert table.find_element(By.CSS_SELECTOR, "th").get_attribute("aria-sort") == "descending"
        number = table.find_elements(By.CSS_SELECTOR, "thead button")[2]
        number.click()
        shares = [
            float(cell.get_attribute("data-value"))
            for cell in table.find_elements(By.CSS_SELECTOR, "tbody td:nth-child(3)")
        ]
        assert shares == sorted(shares, reverse=True)
        search = driver.find_element(By.CSS_SELECTOR, f"{tools} input")
        search.send_keys("phenols")
        assert {"total_phenols", "flavanoids"} & set(shown()) == {"total_phenols"}
        assert "of 13 rows" in driver.find_element(By.CSS_SELECTOR, f"{tools} output").text
        search.clear()
        search.send_keys("script")
        assert NASTY in shown()


def test_charts_respond_to_the_keyboard_and_the_mouse(made):
    with opened(made[0].as_uri()) as driver:
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys

        charts = driver.find_elements(By.CSS_SELECTOR, ".chart")
        assert len(charts) == 3
        drawn = charts[0].find_element(By.CSS_SELECTOR, ":scope > svg")
        readout = charts[0].find_element(By.CSS_SELECTOR, ".readout")
        before = readout.text
        driver.execute_script("arguments[0].focus()", drawn)
        drawn.send_keys(Keys.ARROW_RIGHT)
        first = readout.text
        assert "best of each size: features" in first
        drawn.send_keys(Keys.END)
        assert readout.text != first
        drawn.send_keys(Keys.ARROW_DOWN)
        assert readout.text.startswith("selected: ")
        drawn.send_keys(Keys.ESCAPE)
        assert readout.text == before
        ActionChains(driver).move_to_element(drawn).perform()
        assert "features" in readout.text
        button = charts[0].find_element(By.CSS_SELECTOR, ".legend button")
        dots = len(drawn.find_elements(By.CSS_SELECTOR, "path"))
        button.click()
        assert button.get_attribute("aria-pressed") == "false"
        assert len(charts[0].find_elements(By.CSS_SELECTOR, ":scope > svg > path")) == dots - 1


@pytest.mark.parametrize(("width", "dark"), [(390, False), (400, True), (1200, True)])
def test_the_page_fits_its_width_in_both_themes(made, width, dark):
    with opened(made[0].as_uri(), width=width, dark=dark) as driver:
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        paper = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")


def test_the_selected_features_are_a_table_with_what_each_is_worth():
    from subswarm.objective.findings import describe_columns
    from subswarm.objective.objective import make_objective

    X, y = load_wine(return_X_y=True)
    objective = make_objective(GaussianNB(), X, y, cv=3, random_state=0)
    selected = np.isin(np.arange(X.shape[1]), [0, 6, 9])
    facts = describe_columns(objective, selected)
    assert facts.columns.tolist() == [0, 6, 9]
    assert facts.losses[1] == objective(np.isin(np.arange(X.shape[1]), [0, 9])[None])[0]
    assert facts.shares.sum(axis=2) == pytest.approx(1.0)
    assert facts.medians[0].tolist() == [np.median(np.asarray(X)[np.asarray(y) == k, 0]) for k in range(3)]
    alone = describe_columns(objective, np.arange(X.shape[1]) == 6)
    assert np.isnan(alone.losses).all()


def test_thirds_of_a_numeric_target_take_the_place_of_classes():
    from sklearn.linear_model import Ridge

    from subswarm.objective.findings import describe_columns
    from subswarm.objective.objective import make_objective

    X = np.arange(60.0).reshape(30, 2)
    facts = describe_columns(make_objective(Ridge(), X, X[:, 0], cv=3, random_state=0), np.array([True, True]))
    assert facts.classes == ("low", "middle", "high")
    assert (np.diff(facts.medians[0]) > 0).all()


def test_nested_scores_have_a_display_in_notebooks():
    nested = HeldOut(np.array([0.9, 0.8]), np.array([0.7, 0.7]), np.array([0.95, 0.9]), np.eye(2, dtype=bool), 1.0)
    shown = nested._repr_html_()
    assert shown.startswith("<table")
    for words in ("0.8500 ± 0.0500", "0.7000 on the same rows", "0.9250 (optimistic)"):
        assert words in shown
