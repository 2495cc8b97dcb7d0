"""How each claim of the paper is judged on our runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from subswarm.analysis.comparisons import compare_cells, wilcoxon_over_datasets
from subswarm.analysis.metrics import average_ranks, performance_improvement
from subswarm.analysis.results import Cell, Results
from subswarm.analysis.statistics import Comparison
from subswarm.core.types import FloatArray
from subswarm.study.paper import PAPER_ALGORITHMS, PROPOSED

__all__ = [
    "FAILS",
    "HOLDS",
    "PARTLY",
    "RIVALS",
    "TIMED",
    "UNTESTABLE",
    "Judge",
    "Judgement",
    "ahead_throughout",
    "always_improves",
    "best_overall",
    "evaluation_dominates",
    "ga_fails_on_ozone",
    "least_evaluation_time",
    "mean_loss",
    "mean_size",
    "next_smallest",
    "only_on_lsvt",
    "order_of_algorithm_time",
    "overall_rank",
    "shortest_time",
    "significant",
    "smaller_and_better",
    "smallest",
    "three_worst",
    "told_apart",
]

HOLDS, PARTLY, FAILS, UNTESTABLE = "holds", "in part", "does not hold", "cannot be tested"
RIVALS = tuple(name for name in PAPER_ALGORITHMS if name != PROPOSED)
TIMED = ("ga", "aco", "bpso", PROPOSED)


@dataclass(frozen=True)
class Judgement:
    """What our runs say of a claim: the verdict, our figure, and how large the effect is."""

    verdict: str
    figure: str
    effect: str = ""


Judge = Callable[[Results, str], Judgement]
"""From results and a model's name to a judgement."""


def mean_loss(cell: Cell) -> float:
    return float(cell.losses.mean())


def mean_size(cell: Cell) -> float:
    return float(cell.sizes.mean())


def _values(
    results: Results, model: str, names: Sequence[str], algorithms: Sequence[str], value: Callable[[Cell], float]
) -> FloatArray:
    found = [[results.cell(name, model, each) for each in algorithms] for name in names]
    return np.array([[np.nan if cell is None else value(cell) for cell in row] for row in found])


def _ranked(
    results: Results, model: str, value: Callable[[Cell], float], algorithms: Sequence[str] = PAPER_ALGORITHMS
) -> tuple[dict[str, float], dict[str, int]]:
    """Average rank and overall rank of each algorithm over the complete data sets."""
    names = results.whole_datasets(model, algorithms)
    average, overall = average_ranks(_values(results, model, names, algorithms, value))
    return dict(zip(algorithms, average.tolist(), strict=True)), dict(
        zip(algorithms, overall.astype(int).tolist(), strict=True)
    )


def best_overall(value: Callable[[Cell], float]) -> Judge:
    def judged(results: Results, model: str) -> Judgement:
        average, overall = _ranked(results, model, value)
        second = min(rank for name, rank in average.items() if name != PROPOSED)
        verdict = HOLDS if overall[PROPOSED] == 1 else FAILS
        return Judgement(
            verdict,
            f"average rank {average[PROPOSED]:.2f}, overall {overall[PROPOSED]}",
            f"{second - average[PROPOSED]:+.2f} ranks to the best rival",
        )

    return judged


def told_apart(results: Results, model: str) -> Judgement:
    names, adjusted = wilcoxon_over_datasets(results, model, RIVALS)
    if len(names) < 6:
        return Judgement(UNTESTABLE, f"{len(names)} data sets are too few for the test")
    average, _ = _ranked(results, model, mean_loss)
    beaten = [name for name, p in zip(RIVALS, adjusted, strict=True) if p < 0.05 and average[PROPOSED] < average[name]]
    verdict = HOLDS if len(beaten) == len(RIVALS) else PARTLY if beaten else FAILS
    worst = RIVALS[int(np.argmax(adjusted))]
    return Judgement(verdict, f"{len(beaten)} of {len(RIVALS)} rivals", f"weakest: {worst}, p = {adjusted.max():.2g}")


def overall_rank(name: str, wanted: int) -> Judge:
    def judged(results: Results, model: str) -> Judgement:
        average, overall = _ranked(results, model, mean_loss)
        verdict = HOLDS if overall[name] == wanted else PARTLY if abs(overall[name] - wanted) == 1 else FAILS
        return Judgement(verdict, f"overall {overall[name]}", f"average rank {average[name]:.2f}")

    return judged


def three_worst(results: Results, model: str) -> Judgement:
    average, overall = _ranked(results, model, mean_loss)
    last = sorted(average, key=lambda name: -average[name])[:3]
    hits = len({"ga", "erfs", "pso-42"} & set(last))
    verdict = HOLDS if hits == 3 else PARTLY if hits == 2 else FAILS
    return Judgement(verdict, f"the last three: {', '.join(last)}", f"ranks {', '.join(str(overall[n]) for n in last)}")


def significant(rivals: Sequence[str], share: float) -> Judge:
    """Significantly better on more than this share of the data sets against every one of the rivals (1: on all)."""

    def judged(results: Results, model: str) -> Judgement:
        counts, deltas, losses = [], [], []
        names = results.whole_datasets(model, [PROPOSED, *rivals])
        for rival in rivals:
            found = [_comparison(results, name, model, rival) for name in names]
            known = [each for each in found if each is not None]
            if not known:
                return Judgement(UNTESTABLE, "two runs are the least a test can use")
            counts.append(sum(each.verdict == "+" for each in known))
            losses.append(sum(each.verdict == "-" for each in known))
            deltas.append(float(np.median([each.delta for each in known])))
        enough = [count == len(names) if share == 1 else count > share * len(names) for count in counts]
        verdict = HOLDS if all(enough) else PARTLY if any(enough) or min(deltas) > 0 else FAILS
        told = [f"{rival} {up}+ {down}−" for rival, up, down in zip(rivals, counts, losses, strict=True)]
        effect = ", ".join(f"δ {delta:+.2f}" for delta in deltas)
        return Judgement(verdict, f"{', '.join(told)} of {len(names)}", effect)

    return judged


def _comparison(results: Results, dataset: str, model: str, rival: str) -> Comparison | None:
    ours, theirs = results.cell(dataset, model, PROPOSED), results.cell(dataset, model, rival)
    return None if ours is None or theirs is None else compare_cells(ours, theirs)


def always_improves(results: Results, model: str) -> Judgement:
    gains = {name: _improvement(results, name, model, PROPOSED) for name in results.whole_datasets(model, [PROPOSED])}
    positive = sum(gain > 0 for gain in gains.values())
    worst = min(gains, key=lambda name: gains[name])
    verdict = HOLDS if positive == len(gains) else PARTLY if positive > len(gains) / 2 else FAILS
    return Judgement(verdict, f"{positive} of {len(gains)}", f"least: {worst}, PI {gains[worst]:.1f} %")


def only_on_lsvt(results: Results, model: str) -> Judgement:
    if "lsvt" not in results.whole_datasets(model, PAPER_ALGORITHMS):
        return Judgement(UNTESTABLE, "LSVT is not complete")
    gains = {name: _improvement(results, "lsvt", model, name) for name in PAPER_ALGORITHMS}
    others = [name for name in RIVALS if gains[name] > 0]
    verdict = HOLDS if gains[PROPOSED] > 0 and not others else FAILS if gains[PROPOSED] <= 0 else PARTLY
    figure = f"PI {gains[PROPOSED]:.1f} %; {len(others)} rivals improve too"
    return Judgement(verdict, figure, f"best rival: PI {max(gains[name] for name in RIVALS):.1f} %")


def ga_fails_on_ozone(results: Results, model: str) -> Judgement:
    if "ozone" not in results.whole_datasets(model, ["ga"]):
        return Judgement(UNTESTABLE, "Ozone is not complete")
    gain = _improvement(results, "ozone", model, "ga")
    return Judgement(HOLDS if gain < 0 else FAILS, f"PI {gain:.1f} %")


def smallest(results: Results, model: str) -> Judgement:
    names = results.whole_datasets(model, PAPER_ALGORITHMS)
    sizes = _values(results, model, names, PAPER_ALGORITHMS, mean_size)
    ours = sizes[:, PAPER_ALGORITHMS.index(PROPOSED)]
    count = int((ours <= sizes.min(axis=1) + 1e-12).sum())
    verdict = HOLDS if count > len(names) / 2 else PARTLY if count else FAILS
    rivals = np.delete(sizes, PAPER_ALGORITHMS.index(PROPOSED), axis=1)
    ratio = float(np.median(ours / rivals.min(axis=1)))
    return Judgement(verdict, f"{count} of {len(names)}", f"median size {ratio:.2f} of the smallest rival's")


def next_smallest(results: Results, model: str) -> Judgement:
    average, _ = _ranked(results, model, mean_size)
    order = sorted((name for name in average if name != PROPOSED), key=lambda name: average[name])[:2]
    hits = len({"aco", "chbpso"} & set(order))
    figure = f"smallest rivals: {', '.join(order)}"
    verdict = HOLDS if hits == 2 else PARTLY if hits else FAILS
    return Judgement(verdict, figure, f"aco {average['aco']:.2f}, chbpso {average['chbpso']:.2f}")


def smaller_and_better(results: Results, model: str) -> Judgement:
    names = results.whole_datasets(model, PAPER_ALGORITHMS)
    place = PAPER_ALGORITHMS.index(PROPOSED)
    losses = _values(results, model, names, PAPER_ALGORITHMS, mean_loss)
    sizes = _values(results, model, names, PAPER_ALGORITHMS, mean_size)
    better = (losses[:, place, None] <= losses + 1e-12) & (sizes[:, place, None] <= sizes + 1e-12)
    share = float(np.delete(better, place, axis=1).mean())
    return Judgement(
        HOLDS if share > 0.5 else PARTLY if share > 0.25 else FAILS, f"{100 * share:.0f} % of data sets × rivals"
    )


def evaluation_dominates(results: Results, model: str) -> Judgement:
    names = results.whole_datasets(model, [PROPOSED])
    cells = [results.cell(name, model, PROPOSED) for name in names]
    ratios = [
        float(cell.seconds[:, 1].sum() / max(cell.seconds[:, 0].sum(), 1e-9)) for cell in cells if cell is not None
    ]
    many = sum(ratio > 10 for ratio in ratios)
    verdict = HOLDS if many == len(ratios) else PARTLY if many > len(ratios) / 2 else FAILS
    return Judgement(verdict, f"T2 > 10 T1 on {many} of {len(ratios)}", f"median T2/T1 {np.median(ratios):.1f}")


def least_evaluation_time(results: Results, model: str) -> Judgement:
    names = results.whole_datasets(model, TIMED)
    table = _values(results, model, names, TIMED, lambda cell: float(cell.seconds[:, 1].mean()))
    ours = table[:, TIMED.index(PROPOSED)]
    count = int((ours <= table.min(axis=1)).sum())
    verdict = HOLDS if count > len(names) / 2 else PARTLY if count else FAILS
    ratio = float(np.median(ours / np.delete(table, TIMED.index(PROPOSED), axis=1).min(axis=1)))
    return Judgement(verdict, f"{count} of {len(names)}", f"median T2 {ratio:.2f} of the fastest rival's")


def shortest_time(results: Results, model: str) -> Judgement:
    average, overall = _ranked(results, model, lambda cell: float(cell.seconds.sum(axis=1).mean()), TIMED)
    figure = f"average rank {average[PROPOSED]:.2f}, overall {overall[PROPOSED]} of {len(TIMED)}"
    return Judgement(HOLDS if overall[PROPOSED] == 1 else FAILS, figure)


def order_of_algorithm_time(results: Results, model: str) -> Judgement:
    names = results.whole_datasets(model, TIMED)
    means = _values(results, model, names, TIMED, lambda cell: float(cell.seconds[:, 0].mean())).mean(axis=0)
    time = dict(zip(TIMED, means.tolist(), strict=True))
    order = sorted(time, key=lambda name: time[name])
    verdict = HOLDS if order == ["aco", "ga", "bpso", PROPOSED] else PARTLY if order[-1] == PROPOSED else FAILS
    return Judgement(verdict, " < ".join(order), f"{PROPOSED} {time[PROPOSED] / time['bpso']:.1f} times bpso")


def ahead_throughout(value: str) -> Judge:
    def judged(results: Results, model: str) -> Judgement:
        shares = {}
        grid = np.linspace(0, results.info.evaluations, 41)[1:].astype(int).tolist()
        for name in ("lsvt", "ionosphere"):
            ours, theirs = results.cell(name, model, PROPOSED), results.cell(name, model, "bpso")
            if ours is not None and theirs is not None:
                which = 0 if value == "error" else 1
                shares[name] = float((ours.curve(grid)[which] <= theirs.curve(grid)[which]).mean())
        if not shares:
            return Judgement(UNTESTABLE, "neither LSVT nor Ionosphere is there")
        least = min(shares.values())
        verdict = HOLDS if least >= 0.95 else PARTLY if max(shares.values()) >= 0.95 or least > 0.5 else FAILS
        return Judgement(
            verdict, ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items()) + " of the run"
        )

    return judged


def _improvement(results: Results, dataset: str, model: str, algorithm: str) -> float:
    cell = results.cell(dataset, model, algorithm)
    if cell is None:
        return float("nan")
    return performance_improvement(mean_loss(cell), results.facts(dataset, model).loss_all)
