"""Each warning about a meaningless score appears when it should, with its figure, and not otherwise."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

from subswarm import SwarmSelector
from subswarm.objective import findings
from subswarm.objective.findings import find_in_scores, find_in_table
from subswarm.report.record import Selection
from subswarm.report.selection_page import selection_page
from subswarm.report.summary import print_summary

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(200, 4))
CLASSES = RNG.integers(0, 3, 200)
NUMBERS = RNG.normal(size=200)
NAMES = ["a", "b", "c", "d", "extra", "more"]


def in_table(extra, y=CLASSES, classification=True, support=None):
    X = np.column_stack([NOISE[: len(y)], extra])
    support = np.ones(X.shape[1], dtype=bool) if support is None else support
    return {
        finding.kind: finding.sentence(NAMES) for finding in find_in_table(X, y, support, classification=classification)
    }


def in_scores(y=CLASSES, classification=True, scoring="accuracy", score=0.9, baseline=0.5, nested=None, selected=2):
    found = find_in_scores(
        y=y,
        classification=classification,
        scoring=scoring,
        support=np.arange(5) < selected,
        score=score,
        baseline=baseline,
        nested=nested,
    )
    return {finding.kind: finding.sentence(NAMES) for finding in found}


def test_real_tables_have_no_findings():
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        kinds = [each.kind for each in find_in_table(X, y, np.ones(X.shape[1], bool), classification=True)]
        assert kinds == [], load
    X, y = load_diabetes(return_X_y=True)
    assert find_in_table(X, y, np.ones(10, bool), classification=False) == []
    assert in_table(NOISE[:, :1] + 1) == {}
    assert in_scores() == {}


@pytest.mark.parametrize("classification", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_many_columns_are_looked_at_as_one_by_one(seed, classification, monkeypatch):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(20, 90))
    target = rng.integers(0, 3, n_rows) if classification else np.round(rng.normal(size=n_rows), int(rng.integers(4)))
    bases = [
        target,
        target**2,
        np.exp(target),
        np.arange(n_rows),
        rng.permutation(n_rows),
        1e5 + np.arange(n_rows)[::-1],
    ]
    noise = [0, 0, 1e-9, 0.01, 0.1, 0.6, 3]
    X = np.stack([bases[k % 6] + rng.choice(noise) * rng.normal(size=n_rows) for k in range(120)], axis=1)
    X[:, 1::4] = np.round(X[:, 1::4])
    X[:3, ::7] = 0.0
    monkeypatch.setattr("subswarm.objective.findings._CELLS_AT_ONCE", 1000)
    together = find_in_table(X, target, np.ones(120, bool), classification=classification)
    found = {each.kind: set(each.columns) for each in together}
    alone = {kind: set() for kind in ("copy", "leak", "id")}
    target = findings._codes(target) if classification else target.astype(float)
    for column, values in enumerate(X.T):
        if np.ptp(values) == 0:
            continue
        if findings._is_copy(values, target, classification):
            alone["copy"].add(column)
        elif findings._predicts_target(values, target, classification):
            alone["leak"].add(column)
        if findings._is_id(values):
            alone["id"].add(column)
    assert all(alone.values())
    assert {kind: found[kind] for kind in alone} == alone


def test_a_copy_of_the_target_is_named():
    assert in_table(np.array([5.0, -1.0, 2.5])[CLASSES])["copy"] == (
        "Column 'extra' is a copy of the target (and it is selected). Leave it out (--drop)."
    )
    assert "copy" in in_table(3 - 2 * NUMBERS, NUMBERS, classification=False)
    nearly = np.array([5.0, -1.0, 2.5])[CLASSES]
    nearly[:2] = nearly[2]
    assert "copy" not in in_table(nearly)


def test_a_column_that_tells_the_target_is_named():
    support = np.arange(5) < 2
    sentence = in_table(CLASSES + RNG.uniform(0, 0.9, 200), support=support)["leak"]
    assert sentence.startswith("Column 'extra' alone predicts the target in at least 98 %")
    assert "selected" not in sentence
    assert "leak" not in in_table(CLASSES + RNG.normal(0, 0.4, 200))
    assert "leak" in in_table(NUMBERS + RNG.normal(0, 0.01, 200), NUMBERS, classification=False)
    assert "leak" not in in_table(NUMBERS + RNG.normal(0, 0.2, 200), NUMBERS, classification=False)
    even = RNG.permutation(200) / 40
    assert "leak" in in_table(np.exp(even), even, classification=False)
    assert "leak" in in_table(np.round(NUMBERS), np.round(NUMBERS) ** 2, classification=False)
    assert "leak" not in in_table(np.round(NUMBERS), NUMBERS, classification=False)
    rare = np.zeros(200, dtype=int)
    rare[:2] = 1
    assert "leak" not in in_table(rare + RNG.uniform(0, 0.5, 200), rare)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(200),
        5000 - np.arange(200),
        RNG.permutation(200),
        np.arange(200) / 7,
        10**7 + RNG.permutation(9**6)[:200],
    ],
    ids=["rising", "falling", "shuffled", "sorted", "sparse"],
)
def test_ids_and_row_numbers_are_named(values):
    assert in_table(values)["id"].startswith("Column 'extra' looks like an id or a row number: ")


def test_whole_numbers_that_repeat_or_vary_in_length_are_no_ids():
    assert "id" not in in_table(RNG.integers(0, 150, 200))
    assert "id" not in in_table(np.unique(RNG.integers(1, 100_000, 400))[RNG.permutation(200)])


def test_constant_and_duplicated_columns_are_named():
    found = in_table(np.column_stack([np.full(200, 3.5), NOISE[:, 1]]))
    assert found["constant"].startswith("Column 'extra' has the same value in every row")
    assert found["duplicate"] == "Column 'more' repeats 'b' exactly. Keep one of them."
    both = in_table(np.column_stack([NOISE[:, 1], NOISE[:, 1]]))
    assert both["duplicate"] == (
        "Columns 'extra', 'more' repeat other columns exactly: 'extra' repeats 'b', 'more' repeats 'b'. Keep one of "
        "each."
    )


@pytest.mark.parametrize("share", [0.005, 0.03])
def test_a_score_at_the_majority_share_is_named(share):
    y = (np.arange(1000) < 1000 * share).astype(int)
    sentence = in_scores(y=y, score=1 - share)["majority"]
    assert (
        f"Always predicting '0' has an accuracy of {1 - share:.4f}, and the score is only {1 - share:.4f}" in sentence
    )
    assert "balanced_accuracy" in sentence
    assert "because the rarest class has" in in_scores(y=y, score=1 - share / 2)["majority"]
    assert "majority" not in in_scores(y=y, scoring="balanced_accuracy", score=0.8)
    assert "chance (0.5000)" in in_scores(y=y, scoring="roc_auc", score=0.52)["majority"]
    assert "majority" not in in_scores(y=np.arange(100) % 2, score=0.8)
    assert "R² 0.0100" in in_scores(y=NUMBERS, classification=False, scoring="r2", score=0.01)["majority"]


def test_a_selection_that_gains_nothing_is_named():
    assert in_scores(selected=5)["nothing removed"].startswith("Nothing was removed: all 5 features are selected.")
    assert in_scores(score=0.9, baseline=0.9)["all as good"] == (
        "All 5 features score 0.9000, the 2 selected ones 0.9000: the selection saves columns but does not improve the "
        "model."
    )
    assert "on rows that the search did not use" in in_scores(nested=(0.8, 0.85))["all as good"]
    assert in_scores(score=0.9, baseline=0.9, nested=(0.85, 0.8)) == {}
    assert in_scores(baseline=float("nan")) == {}


def test_a_target_of_the_wrong_kind_is_named():
    assert "60 different numbers" in in_scores(y=np.arange(600) % 60)["task"]
    assert "task" not in in_scores(y=np.array([f"c{k % 60}" for k in range(600)]))
    few = in_scores(y=np.arange(600) % 4 * 1.0, classification=False, scoring="r2")
    assert "only 4 different whole numbers" in few["task"]
    assert "task" not in in_scores(y=NUMBERS, classification=False, scoring="r2")


def test_every_display_shows_the_same_warnings():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :4].assign(row=np.arange(len(X)), same=1.0)
    selector = SwarmSelector(GaussianNB(), cv=3, max_evaluations=40, repeats=1, random_state=0, verbose=0).fit(X, y)
    sentences = [finding.sentence(list(X.columns)) for finding in selector.findings_]
    assert {"id", "constant"} <= {finding.kind for finding in selector.findings_}
    selection = Selection.of(selector)
    assert [warning["text"] for warning in selection.as_json()["warnings"]] == sentences
    assert selection.as_json()["warnings"][-1]["columns"] == ["same"]
    console = Console(file=io.StringIO(), width=300)
    print_summary(selection, console)
    for shown in (console.file.getvalue(), selector._repr_html_(), selection_page(selection)):
        assert [sentence for sentence in sentences if sentence.split("'")[0] not in shown] == []
    assert console.file.getvalue().count("warning  ") == len(sentences)


def test_weightless_cases_do_not_fail():
    tiny = SwarmSelector(Ridge(), cv=2, max_evaluations=20, repeats=1, random_state=0, verbose=0)
    tiny.fit(NOISE[:6], NUMBERS[:6])
    assert {finding.kind for finding in tiny.findings_} <= {"majority", "all as good", "nothing removed"}


def test_a_table_whose_columns_all_miss_values_has_no_duplicates():
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[0] = np.nan
    y = np.arange(20) % 2
    found = find_in_table(X, y, np.ones(3, bool), classification=True)
    assert "duplicate" not in {finding.kind for finding in found}
