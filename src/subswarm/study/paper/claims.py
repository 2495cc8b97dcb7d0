"""The paper's claims, each as a statement that our runs support or contradict.

A claim is checked on the data sets and algorithms that ran; if some that it needs are missing, it cannot be tested. The
numbers are the paper's; the sentences are ours. The functions that check them come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from subswarm.study.analysis.ranks import average_ranks
from subswarm.study.analysis.results import Cell, Results, mean_loss, mean_seconds, mean_size, performance_improvement
from subswarm.study.analysis.significance import compare_on_dataset, wilcoxon_over_datasets
from subswarm.study.analysis.text_table import Grid
from subswarm.study.paper.printed_tables import paper_classifier
from subswarm.study.paper.settings import PAPER_ALGORITHMS, PROPOSED

__all__ = ["CLAIMS", "Claim", "check_claim", "claim_tables"]

HOLDS, PARTLY, FAILS, UNTESTABLE = "holds", "in part", "does not hold", "cannot be tested"
RIVALS = tuple(name for name in PAPER_ALGORITHMS if name != PROPOSED)
TIMED = ("ga", "aco", "bpso", PROPOSED)


@dataclass(frozen=True)
class Finding:
    """The result of checking a claim on our runs: the verdict, our figure, and the size of the effect."""

    verdict: str
    figure: str
    effect: str = ""


Check = Callable[[Results, str], Finding]
"""A function from results and the name of a model to a finding."""


def _ranked(
    results: Results, model: str, value: Callable[[Cell], float], algorithms: Sequence[str] = PAPER_ALGORITHMS
) -> tuple[dict[str, float], dict[str, int]]:
    """Return average rank and overall rank of each algorithm over the complete data sets."""
    names = results.complete_datasets(model, algorithms)
    average, overall = average_ranks(results.values(model, names, value, algorithms))
    return dict(zip(algorithms, average.tolist(), strict=True)), dict(
        zip(algorithms, overall.astype(int).tolist(), strict=True)
    )


def best_overall(value: Callable[[Cell], float]) -> Check:
    """Check that 2D-UPSO has the best average rank."""

    def check(results: Results, model: str) -> Finding:
        average, overall = _ranked(results, model, value)
        second = min(rank for name, rank in average.items() if name != PROPOSED)
        verdict = HOLDS if overall[PROPOSED] == 1 else FAILS
        return Finding(
            verdict,
            f"average rank {average[PROPOSED]:.2f}, overall {overall[PROPOSED]}",
            f"{second - average[PROPOSED]:+.2f} ranks to the best rival",
        )

    return check


def leads_significantly(results: Results, model: str) -> Finding:
    """Check that the lead over each rival is significant over the data sets."""
    names, adjusted = wilcoxon_over_datasets(results, model, RIVALS)
    if len(names) < 6:
        return Finding(UNTESTABLE, f"{len(names)} data sets are too few for the test")
    average, _ = _ranked(results, model, mean_loss)
    beaten = [name for name, p in zip(RIVALS, adjusted, strict=True) if p < 0.05 and average[PROPOSED] < average[name]]
    verdict = HOLDS if len(beaten) == len(RIVALS) else PARTLY if beaten else FAILS
    worst = RIVALS[int(np.argmax(adjusted))]
    return Finding(verdict, f"{len(beaten)} of {len(RIVALS)} rivals", f"weakest: {worst}, p = {adjusted.max():.2g}")


def overall_rank(name: str, expected: int) -> Check:
    """Check the overall rank of the error of an algorithm."""

    def check(results: Results, model: str) -> Finding:
        average, overall = _ranked(results, model, mean_loss)
        verdict = HOLDS if overall[name] == expected else PARTLY if abs(overall[name] - expected) == 1 else FAILS
        return Finding(verdict, f"overall {overall[name]}", f"average rank {average[name]:.2f}")

    return check


def worst_three(results: Results, model: str) -> Finding:
    """Check that GA, ErFS and PSO-42 have the worst average ranks of the error."""
    average, overall = _ranked(results, model, mean_loss)
    last = sorted(average, key=lambda name: -average[name])[:3]
    hits = len({"ga", "erfs", "pso-42"} & set(last))
    verdict = HOLDS if hits == 3 else PARTLY if hits == 2 else FAILS
    return Finding(verdict, f"the last three: {', '.join(last)}", f"ranks {', '.join(str(overall[n]) for n in last)}")


def better_on_datasets(rivals: Sequence[str], share: float) -> Check:
    """Check that 2D-UPSO is significantly better than each rival on more than this share of data sets (1: on all)."""

    def check(results: Results, model: str) -> Finding:
        counts, deltas, losses = [], [], []
        names = results.complete_datasets(model, [PROPOSED, *rivals])
        for rival in rivals:
            found = [compare_on_dataset(results, name, model, PROPOSED, rival) for name in names]
            known = [each for each in found if each is not None]
            if not known:
                return Finding(UNTESTABLE, "a test needs at least two runs")
            counts.append(sum(each.verdict == "+" for each in known))
            losses.append(sum(each.verdict == "-" for each in known))
            deltas.append(float(np.median([each.delta for each in known])))
        enough = [count == len(names) if share == 1 else count > share * len(names) for count in counts]
        verdict = HOLDS if all(enough) else PARTLY if any(enough) or min(deltas) > 0 else FAILS
        shown = [f"{rival} {up}+ {down}−" for rival, up, down in zip(rivals, counts, losses, strict=True)]
        effect = ", ".join(f"δ {delta:+.2f}" for delta in deltas)
        return Finding(verdict, f"{', '.join(shown)} of {len(names)}", effect)

    return check


def always_improves(results: Results, model: str) -> Finding:
    """Check that 2D-UPSO has a lower error than all features on every data set."""
    gains = {
        name: _improvement(results, name, model, PROPOSED) for name in results.complete_datasets(model, [PROPOSED])
    }
    positive = sum(gain > 0 for gain in gains.values())
    worst = min(gains, key=lambda name: gains[name])
    verdict = HOLDS if positive == len(gains) else PARTLY if positive > len(gains) / 2 else FAILS
    return Finding(verdict, f"{positive} of {len(gains)}", f"smallest: {worst}, PI {gains[worst]:.1f} %")


def improves_alone_on_lsvt(results: Results, model: str) -> Finding:
    """Check that only 2D-UPSO has a lower error than all features on LSVT."""
    if "lsvt" not in results.complete_datasets(model, PAPER_ALGORITHMS):
        return Finding(UNTESTABLE, "LSVT is not complete")
    gains = {name: _improvement(results, "lsvt", model, name) for name in PAPER_ALGORITHMS}
    others = [name for name in RIVALS if gains[name] > 0]
    verdict = HOLDS if gains[PROPOSED] > 0 and not others else FAILS if gains[PROPOSED] <= 0 else PARTLY
    figure = f"PI {gains[PROPOSED]:.1f} %; {len(others)} rivals improve too"
    return Finding(verdict, figure, f"best rival: PI {max(gains[name] for name in RIVALS):.1f} %")


def ga_fails_on_ozone(results: Results, model: str) -> Finding:
    """Check that GA has a higher error than all features on Ozone."""
    if "ozone" not in results.complete_datasets(model, ["ga"]):
        return Finding(UNTESTABLE, "Ozone is not complete")
    gain = _improvement(results, "ozone", model, "ga")
    return Finding(HOLDS if gain < 0 else FAILS, f"PI {gain:.1f} %")


def smallest_on_most(results: Results, model: str) -> Finding:
    """Check that 2D-UPSO finds the smallest subsets on most data sets."""
    names = results.complete_datasets(model, PAPER_ALGORITHMS)
    sizes = results.values(model, names, mean_size, PAPER_ALGORITHMS)
    ours = sizes[:, PAPER_ALGORITHMS.index(PROPOSED)]
    count = int((ours <= sizes.min(axis=1) + 1e-12).sum())
    verdict = HOLDS if count > len(names) / 2 else PARTLY if count else FAILS
    rivals = np.delete(sizes, PAPER_ALGORITHMS.index(PROPOSED), axis=1)
    ratio = float(np.median(ours / rivals.min(axis=1)))
    return Finding(verdict, f"{count} of {len(names)}", f"median size {ratio:.2f} of the smallest rival's")


def next_smallest(results: Results, model: str) -> Finding:
    """Check that ACO and chBPSO find the smallest subsets of the rivals."""
    average, _ = _ranked(results, model, mean_size)
    order = sorted((name for name in average if name != PROPOSED), key=lambda name: average[name])[:2]
    hits = len({"aco", "chbpso"} & set(order))
    figure = f"smallest rivals: {', '.join(order)}"
    verdict = HOLDS if hits == 2 else PARTLY if hits else FAILS
    return Finding(verdict, figure, f"aco {average['aco']:.2f}, chbpso {average['chbpso']:.2f}")


def smaller_and_better(results: Results, model: str) -> Finding:
    """Check that the subsets of 2D-UPSO are smaller and better than those of most rivals."""
    names = results.complete_datasets(model, PAPER_ALGORITHMS)
    place = PAPER_ALGORITHMS.index(PROPOSED)
    losses = results.values(model, names, mean_loss, PAPER_ALGORITHMS)
    sizes = results.values(model, names, mean_size, PAPER_ALGORITHMS)
    better = (losses[:, place, None] <= losses + 1e-12) & (sizes[:, place, None] <= sizes + 1e-12)
    share = float(np.delete(better, place, axis=1).mean())
    return Finding(
        HOLDS if share > 0.5 else PARTLY if share > 0.25 else FAILS, f"{100 * share:.0f} % of data sets × rivals"
    )


def evaluation_dominates(results: Results, model: str) -> Finding:
    """Check that evaluation takes far longer than the algorithm."""
    names = results.complete_datasets(model, [PROPOSED])
    cells = [results.cell(name, model, PROPOSED) for name in names]
    ratios = [
        float(cell.seconds[:, 1].sum() / max(cell.seconds[:, 0].sum(), 1e-9)) for cell in cells if cell is not None
    ]
    many = sum(ratio > 10 for ratio in ratios)
    verdict = HOLDS if many == len(ratios) else PARTLY if many > len(ratios) / 2 else FAILS
    return Finding(verdict, f"T2 > 10 T1 on {many} of {len(ratios)}", f"median T2/T1 {np.median(ratios):.1f}")


def least_evaluation_time(results: Results, model: str) -> Finding:
    """Check that 2D-UPSO has the least evaluation time on most data sets."""
    names = results.complete_datasets(model, TIMED)
    table = results.values(model, names, lambda cell: float(cell.seconds[:, 1].mean()), TIMED)
    ours = table[:, TIMED.index(PROPOSED)]
    count = int((ours <= table.min(axis=1)).sum())
    verdict = HOLDS if count > len(names) / 2 else PARTLY if count else FAILS
    ratio = float(np.median(ours / np.delete(table, TIMED.index(PROPOSED), axis=1).min(axis=1)))
    return Finding(verdict, f"{count} of {len(names)}", f"median T2 {ratio:.2f} of the fastest rival's")


def shortest_time(results: Results, model: str) -> Finding:
    """Check that 2D-UPSO has the best average rank of the total time."""
    average, overall = _ranked(results, model, mean_seconds, TIMED)
    figure = f"average rank {average[PROPOSED]:.2f}, overall {overall[PROPOSED]} of {len(TIMED)}"
    return Finding(HOLDS if overall[PROPOSED] == 1 else FAILS, figure)


def order_of_algorithm_time(results: Results, model: str) -> Finding:
    """Check the order of the algorithms by T1."""
    names = results.complete_datasets(model, TIMED)
    means = results.values(model, names, lambda cell: float(cell.seconds[:, 0].mean()), TIMED).mean(axis=0)
    time = dict(zip(TIMED, means.tolist(), strict=True))
    order = sorted(time, key=lambda name: time[name])
    verdict = HOLDS if order == ["aco", "ga", "bpso", PROPOSED] else PARTLY if order[-1] == PROPOSED else FAILS
    return Finding(verdict, " < ".join(order), f"{PROPOSED} {time[PROPOSED] / time['bpso']:.1f} times bpso")


def ahead_throughout(value: str) -> Check:
    """Check that 2D-UPSO is ahead of BPSO throughout the search, by error or by cardinality."""

    def check(results: Results, model: str) -> Finding:
        shares = {}
        grid = np.linspace(0, results.info.evaluations, 41)[1:].astype(int).tolist()
        for name in ("lsvt", "ionosphere"):
            ours, theirs = results.cell(name, model, PROPOSED), results.cell(name, model, "bpso")
            if ours is not None and theirs is not None:
                which = 0 if value == "error" else 1
                shares[name] = float(
                    (ours.curves(grid)[which].mean(axis=0) <= theirs.curves(grid)[which].mean(axis=0)).mean()
                )
        if not shares:
            return Finding(UNTESTABLE, "neither LSVT nor Ionosphere ran")
        least = min(shares.values())
        verdict = HOLDS if least >= 0.95 else PARTLY if max(shares.values()) >= 0.95 or least > 0.5 else FAILS
        return Finding(
            verdict, ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items()) + " of the run"
        )

    return check


def _improvement(results: Results, dataset: str, model: str, algorithm: str) -> float:
    cell = results.cell(dataset, model, algorithm)
    if cell is None:
        return float("nan")
    return performance_improvement(mean_loss(cell), results.facts(dataset, model).loss_all)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    name : short name
    statement : the claim in a sentence
    paper : the paper's figures by classifier, "nb" and "knn"
    needs : the algorithms that the claim is about
    check : from results and model to a finding; called only if these algorithms ran
    """

    name: str
    statement: str
    paper: dict[str, str]
    needs: tuple[str, ...]
    check: Check


def check_claim(claim: Claim, results: Results, model: str) -> Finding:
    """Check a claim on the runs of a store with one model."""
    absent = [name for name in claim.needs if name not in results.algorithms]
    if absent:
        return Finding(UNTESTABLE, f"{', '.join(absent)} did not run")
    if not results.complete_datasets(model, claim.needs):
        return Finding(UNTESTABLE, "no data set is complete")
    return claim.check(results, model)


def claim_tables(results: Results) -> list[Grid]:
    """Return every claim with its verdict, the paper's figure, ours, and the size of the effect."""
    grids = []
    for model in results.models:
        classifier = paper_classifier(model)
        if classifier is None:
            continue
        rows = []
        for claim in CLAIMS:
            if classifier not in claim.paper:
                continue
            found = check_claim(claim, results, model)
            rows.append(
                (claim.name, claim.statement, found.verdict, claim.paper[classifier], found.figure, found.effect)
            )
        headers = ("claim", "the paper says", "in our runs", "paper", "ours", "effect")
        note = (
            "The verdicts apply to our runs with this protocol; other choices may give other verdicts. "
            "δ: Cliff's delta over runs, median over the data sets; p: Wilcoxon over data sets, Holm-corrected."
        )
        grids.append(Grid(f"Claims, {model}", headers, tuple(rows), (results.note(), note)))
    return grids


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "best error",
        "2D-UPSO has the lowest error overall (best average rank)",
        {"nb": "rank 1.7, overall 1", "knn": "rank 2.1, overall 1"},
        PAPER_ALGORITHMS,
        best_overall(mean_loss),
    ),
    Claim(
        "best error, tested",
        "its lead over each rival is significant (our test, not the paper's)",
        {"nb": "–", "knn": "–"},
        PAPER_ALGORITHMS,
        leads_significantly,
    ),
    Claim(
        "BPSO second",
        "BPSO is the next best overall",
        {"nb": "overall 2", "knn": "overall 2"},
        PAPER_ALGORITHMS,
        overall_rank("bpso", 2),
    ),
    Claim(
        "ACO fifth",
        "ACO is fifth overall, behind the binary swarms",
        {"nb": "overall 5", "knn": "overall 5"},
        PAPER_ALGORITHMS,
        overall_rank("aco", 5),
    ),
    Claim(
        "GA last",
        "GA is the worst overall",
        {"nb": "overall 8", "knn": "overall 8"},
        PAPER_ALGORITHMS,
        overall_rank("ga", 8),
    ),
    Claim(
        "continuous swarms poor",
        "ErFS and PSO-42 do poorly: with GA they are the last three",
        {"nb": "overall 7, 6", "knn": "overall 7, 6"},
        PAPER_ALGORITHMS,
        worst_three,
    ),
    Claim(
        "better than GA, ErFS, PSO-42",
        "2D-UPSO is significantly better than GA, ErFS and PSO-42 on every data set",
        {"nb": "16 of 16 each", "knn": "16 of 16 each (table: GA 15)"},
        ("ga", "erfs", "pso-42", PROPOSED),
        better_on_datasets(("ga", "erfs", "pso-42"), 1.0),
    ),
    Claim(
        "better than ACO",
        "2D-UPSO is significantly better than ACO on most data sets",
        {"nb": "12 of 16 (table: 11)", "knn": "10 of 16 (table: 9)"},
        ("aco", PROPOSED),
        better_on_datasets(("aco",), 0.5),
    ),
    Claim(
        "better than binary swarms",
        "2D-UPSO is significantly better than BPSO, CBPSO and chBPSO on half or more of the data sets",
        {"nb": "9, 11 and 11 of 16 (table: 8, 10, 10)", "knn": "8, 8 and 9 of 16 (table: 8, 8, 13)"},
        ("bpso", "cbpso", "chbpso", PROPOSED),
        better_on_datasets(("bpso", "cbpso", "chbpso"), 0.499),
    ),
    Claim(
        "always improves",
        "2D-UPSO's subset has a lower error than all features on every data set",
        {"nb": "16 of 16", "knn": "16 of 16"},
        (PROPOSED,),
        always_improves,
    ),
    Claim(
        "LSVT",
        "on LSVT with 5-NN only 2D-UPSO finds a subset better than all features",
        {"knn": "PI 29.6 %, no rival"},
        PAPER_ALGORITHMS,
        improves_alone_on_lsvt,
    ),
    Claim(
        "GA on Ozone",
        "with naive Bayes GA's subset is worse than all features on Ozone",
        {"nb": "PI −3.5 %"},
        ("ga",),
        ga_fails_on_ozone,
    ),
    Claim(
        "smallest subsets",
        "2D-UPSO finds the smallest subsets on most data sets",
        {"nb": "12 of 16", "knn": "10 of 16"},
        PAPER_ALGORITHMS,
        smallest_on_most,
    ),
    Claim(
        "best cardinality",
        "2D-UPSO has the smallest subsets overall (best average rank)",
        {"nb": "rank 1.8, overall 1", "knn": "rank 2.1, overall 1"},
        PAPER_ALGORITHMS,
        best_overall(mean_size),
    ),
    Claim(
        "next smallest",
        "among the rivals ACO and chBPSO find the smallest subsets",
        {"nb": "overall 3 and 2", "knn": "overall 2 and 3"},
        PAPER_ALGORITHMS,
        next_smallest,
    ),
    Claim(
        "smaller and better",
        "its subsets are smaller and better at once on most data sets",
        {"nb": "most", "knn": "most"},
        PAPER_ALGORITHMS,
        smaller_and_better,
    ),
    Claim(
        "evaluation dominates",
        "evaluation takes far longer than the algorithm: T2 ≫ T1",
        {"nb": "all 16", "knn": "all 16"},
        (PROPOSED,),
        evaluation_dominates,
    ),
    Claim(
        "least evaluation time",
        "T2 is lowest with 2D-UPSO on most data sets (of GA, ACO, BPSO, 2D-UPSO)",
        {"nb": "11 of 16", "knn": "9 of 16"},
        TIMED,
        least_evaluation_time,
    ),
    Claim(
        "shortest time",
        "2D-UPSO is the fastest overall in total time",
        {"nb": "rank 1.38, overall 1", "knn": "rank 1.81, overall 1"},
        TIMED,
        shortest_time,
    ),
    Claim(
        "algorithm time",
        "the order by T1 is ACO, GA, BPSO, 2D-UPSO",
        {"nb": "ACO < GA < BPSO < 2D-UPSO", "knn": "ACO < GA < BPSO < 2D-UPSO"},
        TIMED,
        order_of_algorithm_time,
    ),
    Claim(
        "smaller throughout",
        "on LSVT and Ionosphere the best of 2D-UPSO is smaller than BPSO's throughout the search",
        {"nb": "throughout", "knn": "throughout"},
        ("bpso", PROPOSED),
        ahead_throughout("cardinality"),
    ),
    Claim(
        "better throughout",
        "on LSVT and Ionosphere the best of 2D-UPSO has a lower error than BPSO's throughout the search",
        {"nb": "throughout", "knn": "throughout"},
        ("bpso", PROPOSED),
        ahead_throughout("error"),
    ),
)
