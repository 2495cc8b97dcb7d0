"""The report of a study, as a file and as a live page."""

from __future__ import annotations

import http.client
import threading
import time
from urllib.parse import urlsplit

import pytest

from browser import opened
from limits import SECONDS
from subswarm.report.live_server import LiveServer
from subswarm.report.page import Chart, Charts, Layer, Page, Section, render
from subswarm.report.study_page import grid_parts, study_page
from subswarm.study import Store, read_study, run_study

STUDY = """
datasets = ["wine", { name = "<b>own", table = "own.csv", target = "y" }]
models = ["nb"]
algorithms = ["2d-upso", "random"]
runs = 2
evaluations = 60
folds = 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from sklearn.datasets import load_iris

    folder = tmp_path_factory.mktemp("study")
    (folder / "mine.toml").write_text(STUDY)
    load_iris(as_frame=True).frame.rename(columns={"target": "y"}).to_csv(folder / "own.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def store(folder):
    path = folder / "mine.db"
    run_study(read_study(folder / "mine.toml"), path, jobs=1)
    return path


@pytest.fixture
def served(store):
    """A server of the study's page, and its version, which a test may change."""
    version = ["1"]
    server = LiveServer(lambda: study_page(store, live=True), lambda: version[0])
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server, version
    server.stop()
    server.close()
    thread.join(timeout=SECONDS)


def ask(url: str, path: str | None = None, method: str = "GET", **headers: str) -> tuple[int, str]:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=SECONDS)
    connection.request(method, place.path if path is None else path, headers=headers)
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


def test_the_page_names_the_leader_and_the_command(store):
    page = study_page(store)
    for question in (
        "What was found",
        "How reliable is it?",
        "How it compares",
        "How long the searches took",
        "How to reproduce it",
    ):
        assert f">{question}</h2>" in page
    assert "8 of 8 runs are done" in page
    assert "the best mean rank of error" in page
    assert "subswarm study run mine.toml --store" in page
    with Store.reading(store) as reading:
        assert reading.content_digest() in page
    assert "<b>own" not in page
    assert "&lt;b&gt;own" in page
    assert "connect-src" not in page


def test_a_study_of_ones_own_shows_charts_first_and_nothing_about_the_paper(store):
    page = study_page(store)
    body = page[page.index("<main>") : page.index("</main>")]
    assert body.index("<figure>") < body.index("<table")
    for word in ("paper", "claim", "protocol", "Hafiz", "Ξ"):
        assert word not in body, word
    results = body[: body.index('id="again"')]  # before the names of settings
    for word in ("T1", "T2", "engine", "cardinality"):
        assert word not in results, word


def test_a_study_without_a_finished_run_has_a_page(folder, tmp_path):
    path = tmp_path / "empty.db"
    with Store.writing(path) as writing:
        writing.adopt(read_study(folder / "mine.toml"))
    page = study_page(path)
    assert "0 of 8 runs are done" in page
    assert "There is nothing to compare yet" in page


def test_the_page_of_an_unfinished_study_counts_missing_runs(folder, tmp_path):
    from subswarm.study import Only

    study = read_study(folder / "mine.toml")
    path = tmp_path / "half.db"
    run_study(Only(("wine", "random")).of(study), path, jobs=1)
    with Store.writing(path) as writing:
        writing.adopt(study)
    page = study_page(path)
    assert "6 of 8 runs are missing" in page
    assert "fewer than two data sets are complete" in page


def test_numbers_of_a_printed_table_sort_as_numbers(store):
    from subswarm.study.analysis.results import read_results
    from subswarm.study.tables import make_tables

    table = grid_parts(make_tables(read_results(store), "error")[0])[0]
    assert [column.kind for column in table.columns] == ["text", "text", "number", "number"]
    assert all(cell.value is not None for cell in table.rows[0].cells[2:])


def test_the_command_on_the_page_has_the_number_of_runs(folder, tmp_path):
    from dataclasses import replace

    path = tmp_path / "one.db"
    with Store.writing(path) as writing:
        writing.adopt(replace(read_study(folder / "mine.toml"), runs=1))
    assert f"--store {path} --runs 1<" in study_page(path)


def test_only_the_secret_address_is_answered(served):
    server, _ = served
    assert server.url.startswith("http://127.0.0.1:")
    status, page = ask(server.url)
    assert status == 200
    assert "connect-src 'self'" in page
    assert ask(f"{server.url}version") == (200, "1")
    for path in ("/", "/version", "/wrong/", "/../", f"{urlsplit(server.url).path}x"):
        assert ask(server.url, path)[0] == 404
    assert ask(server.url, Host="evil.example:80")[0] == 403
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(server.url, method=method)[0] == 501
    assert ask(server.url, method="HEAD") == (200, "")


def test_two_servers_have_different_addresses(store):
    servers = [LiveServer(str, str) for _ in range(2)]
    assert len({urlsplit(server.url).path for server in servers}) == 2
    for server in servers:
        server.close()


def test_a_watched_page_updates_itself_when_runs_finish(served):
    server, version = served
    with opened(server.url) as driver:
        driver.execute_script("window.first = true")
        version[0] = "2"
        until = time.monotonic() + 240
        while driver.execute_script("return window.first === true"):
            assert time.monotonic() < until, "the page did not renew itself"
            time.sleep(0.3)
        assert "Study mine" in driver.title


def test_the_page_of_a_study_sorts_filters_and_draws(store, tmp_path):
    path = tmp_path / "study.html"
    path.write_text(study_page(store), encoding="utf-8")
    with opened(path.as_uri(), width=390) as driver:
        from selenium.webdriver.common.by import By

        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
        charts = driver.find_elements(By.CSS_SELECTOR, ".chart > svg polyline")
        assert len(charts) == 2 * 2 * 2  # data sets, measures, algorithms
        search = driver.find_element(By.CSS_SELECTOR, "#compared .tools input")
        driver.execute_script("arguments[0].scrollIntoView()", search)
        search.send_keys("wine mean")
        told = driver.find_element(By.CSS_SELECTOR, "#compared .tools output").text
        assert told.startswith(("1 of", "2 of"))


def test_many_lines_show_the_band_of_the_one_pointed_at_and_folded_charts_open(tmp_path):
    lines = tuple(Layer(f"a{k}", [1, 2], [k, k + 1], colour=k, low=[k, k], high=[k + 1, k + 2]) for k in range(4))
    groups = [Charts(f"of {n}", (Chart("title", "note", "x", "y", lines[:n]),), shown=n == 4) for n in (4, 3)]
    path = tmp_path / "charts.html"
    path.write_text(render(Page("t", "l", (Section("s", "s", tuple(groups)),), "f")), encoding="utf-8")
    with opened(path.as_uri()) as driver:
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys

        def bands(place):
            return len(driver.find_elements(By.CSS_SELECTOR, f"details:nth-of-type({place}) polygon"))

        folded = driver.find_element(By.CSS_SELECTOR, "details:nth-of-type(2) .chart")
        assert (bands(1), folded.is_displayed()) == (0, False)
        driver.find_element(By.CSS_SELECTOR, ".chart > svg").send_keys(Keys.ARROW_RIGHT)
        assert bands(1) == 1
        driver.find_element(By.CSS_SELECTOR, ".legend button").click()  # three lines are left
        assert bands(1) == 3
        driver.find_element(By.CSS_SELECTOR, "details:nth-of-type(2) summary").click()
        assert (bands(2), folded.is_displayed()) == (3, True)
