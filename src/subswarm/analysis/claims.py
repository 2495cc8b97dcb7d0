"""The paper's claims, each as a statement that our runs can bear out or not.

A claim is judged on the data sets and algorithms that are there; what it needs and does not find makes it untestable.
The figures of the paper are facts; the sentences are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from subswarm.analysis import judgements as judged
from subswarm.analysis.grid import Grid
from subswarm.analysis.judgements import TIMED, UNTESTABLE, Judge, Judgement
from subswarm.analysis.measures import mean_note
from subswarm.analysis.results import Results
from subswarm.study.paper import PAPER_ALGORITHMS, PROPOSED

__all__ = ["CLAIMS", "Claim", "claim_tables", "judge"]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    name : to refer to it
    says : the claim
    paper : the paper's figures by classifier, "nb" and "knn"
    needs : the algorithms it is about
    judge : from results and model to a judgement; called only where the algorithms are there
    """

    name: str
    says: str
    paper: dict[str, str]
    needs: tuple[str, ...]
    judge: Judge


def judge(claim: Claim, results: Results, model: str) -> Judgement:
    """What the runs of a store say of a claim, with one model."""
    absent = [name for name in claim.needs if name not in results.algorithms]
    if absent:
        return Judgement(UNTESTABLE, f"{', '.join(absent)} did not run")
    if not results.whole_datasets(model, claim.needs):
        return Judgement(UNTESTABLE, "no data set is complete")
    return claim.judge(results, model)


def claim_tables(results: Results) -> list[Grid]:
    """Every claim with its verdict, the paper's figure, ours, and the effect."""
    grids = []
    for model in results.models:
        classifier = results.classifier(model)
        if classifier is None:
            continue
        rows = []
        for claim in CLAIMS:
            if classifier not in claim.paper:
                continue
            found = judge(claim, results, model)
            rows.append((claim.name, claim.says, found.verdict, claim.paper[classifier], found.figure, found.effect))
        headers = ("claim", "the paper says", "in our runs", "paper", "ours", "effect")
        note = (
            "Verdicts are about our runs in this protocol; a claim may fare otherwise under other choices. "
            "δ: Cliff's delta over runs, median over the data sets; p: Wilcoxon over data sets, Holm-corrected."
        )
        grids.append(Grid(f"Claims, {model}", headers, tuple(rows), (*mean_note(results), note)))
    return grids


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "best error",
        "2D-UPSO has the lowest error overall (best average rank)",
        {"nb": "rank 1.7, overall 1", "knn": "rank 2.1, overall 1"},
        PAPER_ALGORITHMS,
        judged.best_overall(judged.mean_loss),
    ),
    Claim(
        "best error, tested",
        "its lead over each rival is more than chance (our test, not the paper's)",
        {"nb": "–", "knn": "–"},
        PAPER_ALGORITHMS,
        judged.told_apart,
    ),
    Claim(
        "BPSO second",
        "BPSO is the next best overall",
        {"nb": "overall 2", "knn": "overall 2"},
        PAPER_ALGORITHMS,
        judged.overall_rank("bpso", 2),
    ),
    Claim(
        "ACO fifth",
        "ACO is fifth overall, behind the binary swarms",
        {"nb": "overall 5", "knn": "overall 5"},
        PAPER_ALGORITHMS,
        judged.overall_rank("aco", 5),
    ),
    Claim(
        "GA last",
        "GA is the worst overall",
        {"nb": "overall 8", "knn": "overall 8"},
        PAPER_ALGORITHMS,
        judged.overall_rank("ga", 8),
    ),
    Claim(
        "continuous swarms poor",
        "ErFS and PSO-42 do poorly: with GA they are the last three",
        {"nb": "overall 7, 6", "knn": "overall 7, 6"},
        PAPER_ALGORITHMS,
        judged.three_worst,
    ),
    Claim(
        "better than GA, ErFS, PSO-42",
        "2D-UPSO is significantly better than GA, ErFS and PSO-42 on every data set",
        {"nb": "16 of 16 each", "knn": "16 of 16 each (table: GA 15)"},
        ("ga", "erfs", "pso-42", PROPOSED),
        judged.significant(("ga", "erfs", "pso-42"), 1.0),
    ),
    Claim(
        "better than ACO",
        "2D-UPSO is significantly better than ACO on most data sets",
        {"nb": "12 of 16 (table: 11)", "knn": "10 of 16 (table: 9)"},
        ("aco", PROPOSED),
        judged.significant(("aco",), 0.5),
    ),
    Claim(
        "better than binary swarms",
        "2D-UPSO is significantly better than BPSO, CBPSO and chBPSO on half or more of the data sets",
        {"nb": "9, 11 and 11 of 16 (table: 8, 10, 10)", "knn": "8, 8 and 9 of 16 (table: 8, 8, 13)"},
        ("bpso", "cbpso", "chbpso", PROPOSED),
        judged.significant(("bpso", "cbpso", "chbpso"), 0.499),
    ),
    Claim(
        "always improves",
        "2D-UPSO's subset has a lower error than all features on every data set",
        {"nb": "16 of 16", "knn": "16 of 16"},
        (PROPOSED,),
        judged.always_improves,
    ),
    Claim(
        "LSVT",
        "on LSVT with 5-NN only 2D-UPSO finds a subset better than all features",
        {"knn": "PI 29.6 %, no rival"},
        PAPER_ALGORITHMS,
        judged.only_on_lsvt,
    ),
    Claim(
        "GA on Ozone",
        "with naive Bayes GA's subset is worse than all features on Ozone",
        {"nb": "PI −3.5 %"},
        ("ga",),
        judged.ga_fails_on_ozone,
    ),
    Claim(
        "smallest subsets",
        "2D-UPSO finds the smallest subsets on most data sets",
        {"nb": "12 of 16", "knn": "10 of 16"},
        PAPER_ALGORITHMS,
        judged.smallest,
    ),
    Claim(
        "best cardinality",
        "2D-UPSO has the smallest subsets overall (best average rank)",
        {"nb": "rank 1.8, overall 1", "knn": "rank 2.1, overall 1"},
        PAPER_ALGORITHMS,
        judged.best_overall(judged.mean_size),
    ),
    Claim(
        "next smallest",
        "among the rivals ACO and chBPSO find the smallest subsets",
        {"nb": "overall 3 and 2", "knn": "overall 2 and 3"},
        PAPER_ALGORITHMS,
        judged.next_smallest,
    ),
    Claim(
        "smaller and better",
        "its subsets are smaller and better at once on most data sets",
        {"nb": "most", "knn": "most"},
        PAPER_ALGORITHMS,
        judged.smaller_and_better,
    ),
    Claim(
        "evaluation dominates",
        "evaluation takes far longer than the algorithm: T2 ≫ T1",
        {"nb": "all 16", "knn": "all 16"},
        (PROPOSED,),
        judged.evaluation_dominates,
    ),
    Claim(
        "least evaluation time",
        "T2 is lowest with 2D-UPSO on most data sets (of GA, ACO, BPSO, 2D-UPSO)",
        {"nb": "11 of 16", "knn": "9 of 16"},
        TIMED,
        judged.least_evaluation_time,
    ),
    Claim(
        "shortest time",
        "2D-UPSO is the fastest overall in total time",
        {"nb": "rank 1.38, overall 1", "knn": "rank 1.81, overall 1"},
        TIMED,
        judged.shortest_time,
    ),
    Claim(
        "algorithm time",
        "the order by T1 is ACO, GA, BPSO, 2D-UPSO",
        {"nb": "ACO < GA < BPSO < 2D-UPSO", "knn": "ACO < GA < BPSO < 2D-UPSO"},
        TIMED,
        judged.order_of_algorithm_time,
    ),
    Claim(
        "smaller throughout",
        "on LSVT and Ionosphere the best of 2D-UPSO is smaller than BPSO's throughout the search",
        {"nb": "throughout", "knn": "throughout"},
        ("bpso", PROPOSED),
        judged.ahead_throughout("cardinality"),
    ),
    Claim(
        "better throughout",
        "on LSVT and Ionosphere the best of 2D-UPSO has a lower error than BPSO's throughout the search",
        {"nb": "throughout", "knn": "throughout"},
        ("bpso", PROPOSED),
        judged.ahead_throughout("error"),
    ),
)
