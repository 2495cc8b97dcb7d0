"""Comparisons of a champion: p-values are those of SciPy, and stores that cannot be compared are refused."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from subswarm.errors import SettingError, StoreError
from subswarm.study import Contender, Source, Store, Study
from subswarm.study.analysis.combined import read_combined
from subswarm.study.analysis.compare import ALL_FEATURES, WHAT, compare_algorithms, pair_errors
from subswarm.study.analysis.compare_tables import study_versus, versus_tables
from subswarm.study.analysis.ranks import mean_ranks
from subswarm.study.analysis.statistics import holm, resampled_means, signed_rank_gain
from subswarm.study.records import Outcome, ProblemFacts, RunContent, RunTiming

TIMING = RunTiming(0.1, 0.2, "estimator", "a machine", {"numpy": "1"})
DATASETS = ("wine", "wdbc", "sonar")
GAIN = {"wine": 0.05, "wdbc": 0.0, "sonar": -0.05}
"""How much lower the champion's error is than 2D-UPSO's."""

BASE = Study(
    name="base",
    datasets=tuple(map(Source, DATASETS)),
    models=("nb",),
    algorithms=(Contender("champion", "random", {"batch": 7}), Contender("2d-upso", "2d-upso"), Contender("ga", "ga")),
    runs=12,
    evaluations=100,
    folds=3,
    outer=2,
)
HELD_OUT_ALL = {0: 0.45, 1: 0.35}


def noise(planned, scale):
    fold = -1 if planned.outer_fold is None else planned.outer_fold
    place = [DATASETS.index(planned.dataset), len(planned.algorithm), planned.run, fold + 1]
    return scale * float(np.random.default_rng(place).normal())


def error(planned):
    """2D-UPSO's is 0.3 and GA's 0.34; held-out errors are 0.1 higher."""
    gain = {"champion": GAIN[planned.dataset], "ga": -0.04}.get(planned.algorithm, 0.0)
    return 0.3 - gain + noise(planned, 0.005)


def facts(planned, study, digest="rows"):
    repeats = "" if study.repeats == 1 else f", {study.repeats} partitions"
    held_out = None if planned.outer_fold is None else HELD_OUT_ALL[planned.outer_fold % 2]
    return ProblemFacts(90, 13, 2, f"{digest}{repeats}", 0.4, 0.5, held_out)


def write(path, study, *, error=error, digest="rows", leave_out=lambda planned: False):
    """A store with every planned run but those left out."""
    with Store.writing(path) as store:
        store.adopt(study)
        for planned in study.plan():
            if leave_out(planned):
                continue
            loss = error(planned)
            held_out = None if planned.outer_fold is None else loss + 0.1
            features = tuple(range(3 + planned.run % 2 + (planned.algorithm == "2d-upso")))
            content = RunContent(
                loss, (loss,), features, ((5, loss, len(features)),), 100, 90, "evaluations", held_out, {}
            )
            store.record(Outcome(planned, content, TIMING, facts(planned, study, digest)))
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write(tmp_path_factory.mktemp("stores") / "base.db", BASE)


def losses(dataset, label, what="error"):
    """What `write` put in, by run; the mean over both outer folds where there are any."""
    outer = what != "error"
    rows = [run for run in BASE.plan() if (run.dataset, run.algorithm) == (dataset, label)]
    rows = [run for run in rows if (run.outer_fold is not None) == outer]
    by_fold = sorted(rows, key=lambda run: (run.outer_fold or 0, run.run))
    errors = np.array([error(run) + 0.1 * (what == "held-out") for run in by_fold])
    return errors.reshape(2, -1).mean(axis=0) if outer else errors


def table(grids, title):
    grid = next(grid for grid in grids if grid.title.startswith(title))
    return {row[0]: dict(zip(grid.headers, row, strict=True)) for row in grid.rows}


@pytest.mark.parametrize("what", WHAT)
def test_p_is_scipys_wilcoxon_with_holms_correction_over_the_data_sets(base, what):
    comparison = compare_algorithms(read_combined([base]), "champion", "2d-upso", what)[0]
    raw = [stats.wilcoxon(losses(name, "champion", what), losses(name, "2d-upso", what)).pvalue for name in DATASETS]
    found = comparison.versus("2d-upso")
    assert [verdict.p for verdict in found] == pytest.approx(holm(raw).tolist())
    assert [verdict.sign for verdict in found] == ["+", "=", "−"]


def test_two_models_are_also_compared_together(tmp_path):
    """A data set with a model is a problem; the summary of all is over all of them."""
    both = write(tmp_path / "both.db", replace(BASE, models=("nb", "knn")))
    grids = versus_tables(read_combined([both]), "champion", "2d-upso", "error")
    assert [grid.title.rsplit(", ", 1)[1] for grid in grids] == 3 * ["nb"] + 3 * ["knn"] + 2 * ["nb and knn"]
    one, other, together = (
        {row[0]: row[1] for row in grid.rows} for grid in grids if grid.title.startswith("Criteria")
    )
    assert together["problems significantly worse than the best rival"] == "2 of 6 (sonar with nb, sonar with knn)"
    name = "error of champion / 2d-upso, mean of the ratios"
    ratios = [float(found[name].split()[0]) for found in (one, other, together)]
    assert ratios[2] == pytest.approx(np.mean(ratios[:2]), abs=1e-4)
    ranks = [{row[0]: float(row[1]) for row in grid.rows} for grid in grids if grid.title.startswith("Mean ranks")]
    assert ranks[2]["champion"] == pytest.approx((ranks[0]["champion"] + ranks[1]["champion"]) / 2, abs=0.01)
    assert "Over 6 problems" in grids[-2].notes[0]


def test_each_data_set_has_means_sizes_the_best_rival_and_numbers_of_runs(base):
    rows = table(versus_tables(read_combined([base]), "champion", "2d-upso", "error"), "champion against")
    assert rows["wine"]["champion"] == f"{losses('wine', 'champion').mean():.4f} / 3.5"
    assert rows["wine"]["2d-upso"] == f"{losses('wine', '2d-upso').mean():.4f} / 4.5"
    assert rows["sonar"]["best rival"] == "2d-upso"
    assert rows["sonar"]["its error / size"] == rows["sonar"]["2d-upso"]
    assert rows["sonar"]["p (best rival)"].endswith(" −")
    assert rows["sonar"]["runs"] == "12 / 12 / 12"


def test_ranks_average_ties_and_criteria_count_data_sets(base):
    grids = versus_tables(read_combined([base]), "champion", "2d-upso", "error")
    means = [[losses(name, label).mean() for label in ("champion", "2d-upso", "ga")] for name in DATASETS]
    ranks = {row[0]: row[1] for row in grids[1].rows}
    assert ranks == {
        label: f"{rank:.2f}" for label, rank in zip(("champion", "2d-upso", "ga"), mean_ranks(means), strict=True)
    }
    assert [float(row[1]) for row in grids[1].rows] == sorted(map(float, ranks.values()))
    assert "get their mean rank" in grids[1].notes[0]
    criteria = table(grids, "Criteria")
    better = criteria["data sets significantly better / worse than 2d-upso"]
    assert (better["result"], better["required"], better["met"]) == ("1 / 1 of 3", "better on at least 3", "no")
    worse = criteria["data sets significantly worse than the best rival"]
    assert (worse["result"], worse["met"]) == ("1 of 3 (sonar)", "no")
    sizes = criteria["mean size of champion and 2d-upso"]
    assert (sizes["result"], sizes["met"]) == ("3.50 and 4.50", "yes")
    seconds = TIMING.algorithm_seconds + TIMING.evaluation_seconds
    assert criteria["seconds per search, champion and 2d-upso"]["result"] == f"{seconds:.3f} and {seconds:.3f}"
    ours, theirs = np.array(means)[:, 0], np.array(means)[:, 1]
    name = "error of champion / 2d-upso"
    for means, found in (
        ((ours / theirs).mean(), criteria[f"{name}, mean of the ratios"]["result"]),
        (ours.sum() / theirs.sum(), criteria[f"{name}, ratio of the sums"]["result"]),
    ):
        value, low, high = re.fullmatch(r"(\S+) \((\S+) to (\S+)\)", found).groups()
        assert value == f"{means:.4f}"
        assert float(low) < float(value) < float(high)
    assert "bootstrap interval" in grids[2].notes[0]


def test_the_interval_of_the_ratio_covers_its_true_value_as_often_as_it_says():
    rng, covered = np.random.default_rng(0), 0
    for seed in range(300):
        ours, theirs = 0.9 + rng.normal(0, 0.1, 30), 1.0 + rng.normal(0, 0.1, 30)
        drawn = resampled_means(ours, theirs, times=400, seed=seed)
        low, high = np.percentile(drawn[0] / drawn[1], [2.5, 97.5])
        covered += low <= 0.9 <= high
    assert 0.89 <= covered / 300 <= 0.98


def test_a_ratio_from_a_single_pair_has_no_interval(tmp_path):
    path = write(tmp_path / "a.db", replace(BASE, runs=1))
    grids = versus_tables(read_combined([path]), "champion", "2d-upso", "error")
    found = table(grids, "Criteria")["error of champion / 2d-upso, ratio of the sums"]["result"]
    assert "(" not in found
    assert grids[2].notes == ()


def test_nested_tables_have_all_features_as_a_label_and_the_inner_error(base):
    grids = versus_tables(read_combined([base]), "champion", "2d-upso", "held-out")
    row = table(grids, "champion against")["sonar"]
    ours = losses("sonar", "champion", "held-out")
    assert row["inner"] == f"{ours.mean() - 0.1:.4f}"
    assert row[ALL_FEATURES] == "0.4000 / 13.0"
    constant = np.full(12, (0.45 + 0.35) / 2)
    comparison = compare_algorithms(read_combined([base]), "champion", "2d-upso", "held-out")[0]
    pairs = pair_errors(comparison.scores["sonar"]["champion"].errors, comparison.scores["sonar"][ALL_FEATURES].errors)
    assert pairs[0] == pytest.approx(ours)
    assert pairs[1] == pytest.approx(constant)
    raw = [stats.wilcoxon(losses(name, "champion", "held-out"), constant).pvalue for name in DATASETS]
    found = comparison.versus(ALL_FEATURES)
    assert [verdict.p for verdict in found] == pytest.approx(holm(raw).tolist())
    assert ALL_FEATURES in [row[0] for row in grids[1].rows]
    assert table(grids, "Criteria")["data sets significantly worse than all features"]["required"] == "none"


def test_inner_errors_of_nested_cross_validation_can_be_compared(base):
    grids = versus_tables(read_combined([base]), "champion", "2d-upso", "inner")
    row = table(grids, "champion against 2d-upso, inner error of nested cross-validation")["sonar"]
    assert row["champion"] == f"{losses('sonar', 'champion', 'inner').mean():.4f} / 3.5"
    assert ALL_FEATURES not in row
    assert any("A run is one outer cross-validation" in note for note in grids[0].notes)
    criteria = table(grids, "Criteria")
    assert criteria["data sets significantly worse than the best rival"]["required"] == "none"
    assert criteria["error of champion / 2d-upso, ratio of the sums"]["required"] == "–"


def test_runs_without_every_outer_fold_do_not_count_in_nested_tables(tmp_path):
    path = write(tmp_path / "a.db", BASE, leave_out=lambda run: run.outer_fold == 1 and run.run >= 10)
    comparison = compare_algorithms(read_combined([path]), "champion", "2d-upso", "held-out")[0]
    assert comparison.scores["wine"]["champion"].runs == 10


def test_a_repeated_outer_cross_validation_gives_a_pair_each_time(tmp_path):
    study = replace(BASE, runs=1, outer_repeats=3)
    path = write(tmp_path / "a.db", study, leave_out=lambda run: run.outer_fold == 4)
    combined = read_combined([path])
    comparison = compare_algorithms(combined, "champion", "2d-upso", "held-out")[0]
    errors = comparison.scores["wine"]["champion"].errors
    assert list(errors) == [(0, 0), (0, 1)]  # the third has a result on one of its folds only
    rows = [run for run in study.plan() if (run.dataset, run.algorithm) == ("wine", "champion")]
    by_fold = [error(run) + 0.1 for run in rows if run.outer_fold is not None]
    assert list(errors.values()) == pytest.approx([np.mean(by_fold[:2]), np.mean(by_fold[2:4])])
    assert set(comparison.scores["wine"][ALL_FEATURES].errors) >= set(errors)
    notes = versus_tables(combined, "champion", "2d-upso", "held-out")[0].notes
    assert any("2 outer folds, 3 outer repeats" in note for note in notes)


def test_means_are_over_the_outer_repeats_that_every_label_has(tmp_path):
    study = replace(BASE, runs=1, outer_repeats=3)
    path = write(tmp_path / "a.db", study, leave_out=lambda run: run.algorithm == "ga" and run.outer_fold == 5)
    scores = compare_algorithms(read_combined([path]), "champion", "2d-upso", "held-out")[0].scores["wine"]
    assert {tuple(score.errors) for score in scores.values()} == {((0, 0), (0, 1))}


def test_a_single_run_is_compared_with_every_run_and_others_with_those_in_common():
    ours = {(run, None): run / 10 for run in range(3)}
    assert [values.tolist() for values in pair_errors(ours, {(5, None): 0.7})] == [[0.0, 0.1, 0.2], [0.7, 0.7, 0.7]]
    assert [values.tolist() for values in pair_errors({(5, None): 0.7}, ours)] == [[0.7, 0.7, 0.7], [0.0, 0.1, 0.2]]
    assert [values.tolist() for values in pair_errors(ours, {(1, None): 0.5, (2, None): 0.6, (9, None): 0.7})] == [
        [0.1, 0.2],
        [0.5, 0.6],
    ]


def test_equal_runs_have_p_1_and_the_direction_is_that_of_the_ranks(tmp_path):
    path = write(tmp_path / "a.db", BASE, error=lambda run: 0.2 + run.run / 100)
    comparison = compare_algorithms(read_combined([path]), "champion", "2d-upso", "error")[0]
    assert [(verdict.p, verdict.sign) for verdict in comparison.versus("2d-upso")] == [(1.0, "=")] * 3
    assert set(comparison.ranks().values()) == {2.0}
    assert signed_rank_gain([0.1, 0.1, 0.9], [0.2, 0.3, 0.4]) == 0.0


def test_a_note_says_that_there_are_too_few_runs(tmp_path, base):
    few = write(tmp_path / "few.db", replace(BASE, runs=3))
    said = "There are at most 3 pairs per data set; the exact test needs 7 for any significant result over 3 data sets."
    assert said in versus_tables(read_combined([few]), "champion", "2d-upso", "error")[0].notes
    assert "the exact test needs" not in study_versus("champion", [base])


def test_a_label_of_a_second_store_has_its_studys_name_in_brackets(tmp_path, base):
    other = replace(
        BASE,
        name="islands",
        repeats=2,
        runs=4,
        algorithms=(Contender("champion", "random", {"batch": 9}), Contender("once", "ga")),
    )
    islands = write(tmp_path / "islands.db", other, error=lambda run: 0.1 + run.run / 1000)
    combined = read_combined([base, islands])
    assert combined.results.algorithms == ("champion", "2d-upso", "ga", "champion (islands)", "once")
    comparison = compare_algorithms(combined, "champion (islands)", "champion", "error")[0]
    assert comparison.scores["wine"]["champion (islands)"].runs == 4
    raw = [stats.wilcoxon(0.1 + np.arange(4) / 1000, losses(name, "champion")[:4]).pvalue for name in DATASETS]
    assert [verdict.p for verdict in comparison.versus("champion")] == pytest.approx(holm(raw).tolist())
    assert "The stores differ: 1 and 2 repeats per search." in combined.notes
    third = read_combined([base, islands, write(tmp_path / "third.db", other, error=lambda run: 0.2)])
    assert "champion (islands, 2)" in third.results.algorithms


def test_runs_that_are_in_two_stores_count_once(tmp_path, base):
    more = write(tmp_path / "more.db", replace(BASE, name="more", runs=14))
    combined = read_combined([base, more])
    assert combined.results.algorithms == ("champion", "2d-upso", "ga")
    assert compare_algorithms(combined, "champion", "2d-upso", "error")[0].scores["wine"]["champion"].runs == 14
    assert "more: runs of champion, 2d-upso, ga that an earlier store has too count once." in combined.notes


def test_a_label_without_results_on_all_data_sets_has_no_rank_and_may_be_the_best_rival(tmp_path, base):
    part = replace(BASE, name="part", datasets=(Source("wine"),), algorithms=(Contender("tabu", "tabu"),))
    path = write(tmp_path / "part.db", part, error=lambda run: 0.01)
    grids = versus_tables(read_combined([base, path]), "champion", "2d-upso", "error")
    assert grids[1].rows[-1][:2] == ("tabu", "–")
    assert "has no rank" in grids[1].notes[0]
    assert table(grids, "champion against")["wine"]["best rival"] == "tabu"


def test_only_data_sets_with_results_of_both_count(tmp_path):
    path = write(tmp_path / "a.db", BASE, leave_out=lambda run: (run.algorithm, run.dataset) == ("2d-upso", "wdbc"))
    assert compare_algorithms(read_combined([path]), "champion", "2d-upso", "error")[0].names == ["wine", "sonar"]


@pytest.mark.parametrize(
    ("change", "digest", "said"),
    [
        ({"seed": 1}, "rows", "cannot be compared: seed 0 and 1"),
        ({"folds": 4}, "rows", "folds 3 and 4"),
        ({"protocol": "published"}, "rows", "protocol 'sound' and 'published'"),
        ({}, "others", "the rows or folds of 'wine' differ"),
    ],
)
def test_stores_that_cannot_be_compared_are_refused(tmp_path, base, change, digest, said):
    other = write(tmp_path / "other.db", replace(BASE, **change), digest=digest)
    with pytest.raises(StoreError, match=said):
        read_combined([base, other])


def test_with_other_repeats_the_rows_are_compared_as_far_as_they_can_be(tmp_path, base, monkeypatch):
    study = replace(BASE, repeats=2, runs=1)
    assert read_combined([base, write(tmp_path / "two.db", study, digest="any")]).outer == (2,)
    monkeypatch.setitem(HELD_OUT_ALL, 1, 0.2)
    with pytest.raises(StoreError, match="rows or folds of 'wine'"):
        read_combined([base, write(tmp_path / "other.db", study)])


def test_what_cannot_be_compared_is_a_clear_error(tmp_path, base):
    def refused(said, *arguments, kind=SettingError, **options):
        with pytest.raises(kind, match=said):
            study_versus(*arguments, **options)

    refused(r"the champion 'champio' has no finished run .*Did you mean 'champion'", "champio", [base])
    refused(r"--against 'bpso' has no finished run .*are champion, 2d-upso, ga", "champion", [base], against="bpso")
    refused("cannot be compared with itself", "2d-upso", [base])
    refused("what must be one of", "champion", [base], what="heldout")
    refused("format must be one of", "champion", [base], form="word")
    refused("no store was named", "champion", [], kind=StoreError)
    inner = write(tmp_path / "inner.db", replace(BASE, outer=0, runs=1))
    for what in ("inner", "held-out"):
        refused("have no nested cross-validation; .*--outer 5", "champion", [inner], what=what)
    half = write(tmp_path / "half.db", BASE, leave_out=lambda run: run.outer_fold == 1)
    refused("no data set .* finished run with every outer fold", "champion", [half], what="held-out")
    parted = {"champion": "wine", "2d-upso": "wdbc", "ga": "wine"}
    apart = write(tmp_path / "apart.db", BASE, leave_out=lambda run: run.dataset != parted[run.algorithm])
    refused("no data set on which both 'champion' and '2d-upso'", "champion", [apart])


def test_different_outer_folds_are_refused_only_in_nested_tables(tmp_path, base, monkeypatch):
    monkeypatch.setitem(HELD_OUT_ALL, 2, 0.4)
    three = replace(BASE, name="three", outer=3, runs=2, algorithms=(Contender("tabu", "tabu"),))
    path = write(tmp_path / "three.db", three)
    assert "tabu" in study_versus("champion", [base, path])
    with pytest.raises(SettingError, match="have 2 and 3 outer folds, which are not the same rows"):
        study_versus("champion", [base, path], what="held-out")


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv"])
def test_every_format_is_printed(base, what, form):
    said = study_versus("champion", [base], what=what, form=form)
    assert "Criteria" in said
    if form == "csv":
        headers = [row for row in csv.reader(io.StringIO(said)) if row[0] == "table"]
        assert [row[1] for row in headers] == ["data set", "label", "criterion"]


def test_the_command_prints_the_criteria(tmp_path, base):
    typer_testing = pytest.importorskip("typer.testing", reason="the command line needs the extra 'cli'")
    from subswarm.cli import app

    arguments = ["study", "versus", "ga", str(base), str(base), "--against", "champion", "--what", "held-out"]
    result = typer_testing.CliRunner().invoke(app, [*arguments, "--format", "markdown"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "### Criteria, ga against champion, error in nested cross-validation, nb" in result.output
