"""The paper's claims, each as a statement that our runs support or contradict.

A claim is checked on the data sets and algorithms that ran; if some that it needs are missing, it cannot be tested. The
numbers are the paper's; the sentences are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from subswarm.study.analysis.results import Results, mean_loss, mean_size
from subswarm.study.analysis.text_table import Grid
from subswarm.study.paper import claim_checks as checks
from subswarm.study.paper.claim_checks import TIMED, UNTESTABLE, Check, Finding
from subswarm.study.paper.printed_tables import paper_classifier
from subswarm.study.paper.settings import PAPER_ALGORITHMS, PROPOSED

__all__ = ["CLAIMS", "Claim", "check_claim", "claim_tables"]


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
        checks.best_overall(mean_loss),
    ),
    Claim(
        "best error, tested",
        "its lead over each rival is significant (our test, not the paper's)",
        {"nb": "–", "knn": "–"},
        PAPER_ALGORITHMS,
        checks.leads_significantly,
    ),
    Claim(
        "BPSO second",
        "BPSO is the next best overall",
        {"nb": "overall 2", "knn": "overall 2"},
        PAPER_ALGORITHMS,
        checks.overall_rank("bpso", 2),
    ),
    Claim(
        "ACO fifth",
        "ACO is fifth overall, behind the binary swarms",
        {"nb": "overall 5", "knn": "overall 5"},
        PAPER_ALGORITHMS,
        checks.overall_rank("aco", 5),
    ),
    Claim(
        "GA last",
        "GA is the worst overall",
        {"nb": "overall 8", "knn": "overall 8"},
        PAPER_ALGORITHMS,
        checks.overall_rank("ga", 8),
    ),
    Claim(
        "continuous swarms poor",
        "ErFS and PSO-42 do poorly: with GA they are the last three",
        {"nb": "overall 7, 6", "knn": "overall 7, 6"},
        PAPER_ALGORITHMS,
        checks.worst_three,
    ),
    Claim(
        "better than GA, ErFS, PSO-42",
        "2D-UPSO is significantly better than GA, ErFS and PSO-42 on every data set",
        {"nb": "16 of 16 each", "knn": "16 of 16 each (table: GA 15)"},
        ("ga", "erfs", "pso-42", PROPOSED),
        checks.better_on_datasets(("ga", "erfs", "pso-42"), 1.0),
    ),
    Claim(
        "better than ACO",
        "2D-UPSO is significantly better than ACO on most data sets",
        {"nb": "12 of 16 (table: 11)", "knn": "10 of 16 (table: 9)"},
        ("aco", PROPOSED),
        checks.better_on_datasets(("aco",), 0.5),
    ),
    Claim(
        "better than binary swarms",
        "2D-UPSO is significantly better than BPSO, CBPSO and chBPSO on half or more of the data sets",
        {"nb": "9, 11 and 11 of 16 (table: 8, 10, 10)", "knn": "8, 8 and 9 of 16 (table: 8, 8, 13)"},
        ("bpso", "cbpso", "chbpso", PROPOSED),
        checks.better_on_datasets(("bpso", "cbpso", "chbpso"), 0.499),
    ),
    Claim(
        "always improves",
        "2D-UPSO's subset has a lower error than all features on every data set",
        {"nb": "16 of 16", "knn": "16 of 16"},
        (PROPOSED,),
        checks.always_improves,
    ),
    Claim(
        "LSVT",
        "on LSVT with 5-NN only 2D-UPSO finds a subset better than all features",
        {"knn": "PI 29.6 %, no rival"},
        PAPER_ALGORITHMS,
        checks.improves_alone_on_lsvt,
    ),
    Claim(
        "GA on Ozone",
        "with naive Bayes GA's subset is worse than all features on Ozone",
        {"nb": "PI −3.5 %"},
        ("ga",),
        checks.ga_fails_on_ozone,
    ),
    Claim(
        "smallest subsets",
        "2D-UPSO finds the smallest subsets on most data sets",
        {"nb": "12 of 16", "knn": "10 of 16"},
        PAPER_ALGORITHMS,
        checks.smallest_on_most,
    ),
    Claim(
        "best cardinality",
        "2D-UPSO has the smallest subsets overall (best average rank)",
        {"nb": "rank 1.8, overall 1", "knn": "rank 2.1, overall 1"},
        PAPER_ALGORITHMS,
        checks.best_overall(mean_size),
    ),
    Claim(
        "next smallest",
        "among the rivals ACO and chBPSO find the smallest subsets",
        {"nb": "overall 3 and 2", "knn": "overall 2 and 3"},
        PAPER_ALGORITHMS,
        checks.next_smallest,
    ),
    Claim(
        "smaller and better",
        "its subsets are smaller and better at once on most data sets",
        {"nb": "most", "knn": "most"},
        PAPER_ALGORITHMS,
        checks.smaller_and_better,
    ),
    Claim(
        "evaluation dominates",
        "evaluation takes far longer than the algorithm: T2 ≫ T1",
        {"nb": "all 16", "knn": "all 16"},
        (PROPOSED,),
        checks.evaluation_dominates,
    ),
    Claim(
        "least evaluation time",
        "T2 is lowest with 2D-UPSO on most data sets (of GA, ACO, BPSO, 2D-UPSO)",
        {"nb": "11 of 16", "knn": "9 of 16"},
        TIMED,
        checks.least_evaluation_time,
    ),
    Claim(
        "shortest time",
        "2D-UPSO is the fastest overall in total time",
        {"nb": "rank 1.38, overall 1", "knn": "rank 1.81, overall 1"},
        TIMED,
        checks.shortest_time,
    ),
    Claim(
        "algorithm time",
        "the order by T1 is ACO, GA, BPSO, 2D-UPSO",
        {"nb": "ACO < GA < BPSO < 2D-UPSO", "knn": "ACO < GA < BPSO < 2D-UPSO"},
        TIMED,
        checks.order_of_algorithm_time,
    ),
    Claim(
        "smaller throughout",
        "on LSVT and Ionosphere the best of 2D-UPSO is smaller than BPSO's throughout the search",
        {"nb": "throughout", "knn": "throughout"},
        ("bpso", PROPOSED),
        checks.ahead_throughout("cardinality"),
    ),
    Claim(
        "better throughout",
        "on LSVT and Ionosphere the best of 2D-UPSO has a lower error than BPSO's throughout the search",
        {"nb": "throughout", "knn": "throughout"},
        ("bpso", PROPOSED),
        checks.ahead_throughout("error"),
    ),
)
