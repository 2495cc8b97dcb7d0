"""Compares the fronts of loss and number of columns that searches find, for the tables of docs/results/pareto.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from subswarm._models import MODELS, make_model
from subswarm._search.loop import search
from subswarm._search.run import Budget
from subswarm._types import FloatArray, non_dominated
from subswarm.algorithms import NSGA2, get_algorithm
from subswarm.algorithms.pareto.indicators import hypervolume, inverted_generational_distance
from subswarm.datasets import load_dataset
from subswarm.errors import DataError
from subswarm.objective.objective import make_objective
from subswarm.study.analysis.ranks import mean_ranks
from subswarm.study.analysis.statistics import RunComparison, compare_runs
from subswarm.study.analysis.text_table import markdown_cell

if TYPE_CHECKING:
    from subswarm.algorithms.base import Algorithm

__all__ = ["OURS", "FrontRun", "format_tables", "front_algorithms", "measure", "read_runs"]

OURS = "2d-pareto"


@dataclass(frozen=True)
class FrontRun:
    """The front of one run: numbers of columns (ascending) and losses (descending).

    Attributes
    ----------
    dataset, model, algorithm, run : what was run
    seed : seed of the folds; the search has the seed ``seed + 1 + run``
    evaluations : evaluations allowed
    n_features : columns of the table
    baseline : share of the rows that are not of the most frequent class
    columns, losses : the non-dominated subsets
    seconds : time of the search
    unseen : share of the rows that the search did not use
    unseen_losses : losses of the subsets on these rows
    """

    dataset: str
    model: str
    algorithm: str
    run: int
    seed: int
    evaluations: int
    n_features: int
    baseline: float
    columns: tuple[int, ...]
    losses: tuple[float, ...]
    seconds: float
    unseen: float = 0.0
    unseen_losses: tuple[float, ...] = ()

    @property
    def points(self) -> FloatArray:
        """The front, shape (P, 2): columns as a share of all columns, losses as a share of the baseline."""
        return np.column_stack([np.array(self.columns) / self.n_features, np.array(self.losses) / self.baseline])

    @property
    def hypervolume(self) -> float:
        """The share of the box up to the reference point (n + 1 columns, baseline loss) that the front dominates."""
        return self.dominated(self.baseline)

    def dominated(self, loss: float) -> float:
        """Return the share of the box up to (n + 1 columns, this loss) that the front dominates."""
        points = np.column_stack([self.columns, self.losses]).astype(np.float64)
        return hypervolume(points, (self.n_features + 1.0, loss)) / ((self.n_features + 1) * loss)

    @property
    def gain_on_unseen_rows(self) -> float:
        """The share of the baseline loss that the front saves on unseen rows, mean over limits of 1 to n columns.

        Within each limit the subset of lowest loss in the search counts. A subset worse than the baseline saves
        nothing.
        """
        place = np.searchsorted(self.columns, np.arange(1, self.n_features + 1), side="right") - 1
        losses = np.where(place >= 0, np.array(self.unseen_losses)[np.maximum(place, 0)], self.baseline)
        return float(np.maximum(1 - losses / self.baseline, 0).mean())


def front_algorithms() -> dict[str, Algorithm[Any]]:
    """Return the searches that are compared, by their names in the tables."""
    return {
        OURS: get_algorithm(OURS),
        "nsga2": get_algorithm("nsga2"),
        "nsga2, all sizes, distinct": NSGA2(sizes="uniform", distinct=True),
        "2d-elite": get_algorithm("2d-elite"),
        "2d-upso": get_algorithm("2d-upso"),
        "bpso": get_algorithm("bpso"),
        "sffs": get_algorithm("sffs"),
    }


def measure(
    datasets: Iterable[str],
    *,
    models: Iterable[str] = ("nb", "knn"),
    runs: int = 20,
    seed: int = 0,
    evaluations: int = 6000,
    unseen: float = 0.0,
    n_jobs: int = 1,
    device: str = "cpu",
    store: Path | None = None,
    report: Callable[[FrontRun], object] = lambda row: None,
) -> list[FrontRun]:
    """Return the fronts of all runs; ``store`` is a file that keeps those done, so that they are not run again.

    With ``unseen`` each run keeps this share of the rows from its searches, other rows in each run, and scores the
    fronts on them. ``device`` changes the time only.
    """
    done = [] if store is None or not store.exists() else read_runs(store)
    wanted = [(dataset, model, run) for dataset in datasets for model in models for run in range(runs)]
    found = [row for row in done if (row.seed, row.evaluations, row.unseen) == (seed, evaluations, unseen)]
    known = {(row.dataset, row.model, row.run, row.algorithm) for row in found}
    tasks = []
    work = {key: _work(*key) for key in {task[:2] for task in wanted}}
    for task in sorted(wanted, key=lambda task: -work[task[:2]]):  # all workers stay busy until the end
        missing = tuple(name for name in front_algorithms() if (*task, name) not in known)
        if missing:
            tasks.append(joblib.delayed(_fronts_of)(*task, missing, seed, evaluations, unseen, device))
    for rows in joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks):
        for row in rows:
            found.append(row)
            report(row)
        if store is not None:
            with store.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
    place = {task: number for number, task in enumerate(wanted)}
    asked = [row for row in found if (row.dataset, row.model, row.run) in place]
    return sorted(asked, key=lambda row: place[row.dataset, row.model, row.run])


def _work(dataset: str, model: str) -> float:
    """Return about how long a search takes, in no unit."""
    rows, features = load_dataset(dataset).X.shape
    return float(rows * features * (rows / 50 if model == "knn" else 1))


def read_runs(store: Path) -> list[FrontRun]:
    """Return the runs that `measure` stored in a file."""
    rows = []
    for number, line in enumerate(store.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            values = json.loads(line)
            lists = {name: tuple(values[name]) for name in ("columns", "losses")}
            rows.append(FrontRun(**values | lists | {"unseen_losses": tuple(values.get("unseen_losses", ()))}))
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{store}, line {number}, is not a run of 'subswarm bench pareto' ({error}).") from error
    return rows


def _fronts_of(
    dataset: str,
    model: str,
    run: int,
    names: Sequence[str],
    seed: int,
    evaluations: int,
    unseen: float,
    device: str,
) -> list[FrontRun]:
    data = load_dataset(dataset)
    every = np.arange(len(data.y))
    kept, left_out = every, every[:0]
    if unseen:
        kept, left_out = train_test_split(every, test_size=unseen, stratify=data.y, random_state=seed + 1 + run)
    estimator = make_model(model)
    folds = None if unseen else 10
    shared = make_objective(estimator, data.X[kept], data.y[kept], cv=folds, random_state=seed, device=device)
    _, counts = np.unique(data.y, return_counts=True)
    rows = []
    for name in names:
        result = search(front_algorithms()[name], shared.fresh(), Budget(evaluations=evaluations), rng=seed + 1 + run)
        sizes, losses = result.front.cardinality, result.front.fitness
        best = np.flatnonzero(non_dominated(sizes.astype(np.float64), losses))
        best = best[np.argsort(sizes[best], kind="stable")]
        rows.append(
            FrontRun(
                dataset=dataset,
                model=model,
                algorithm=name,
                run=run,
                seed=seed,
                evaluations=evaluations,
                n_features=data.X.shape[1],
                baseline=1 - float(counts.max() / counts.sum()),
                columns=tuple(sizes[best].tolist()),
                losses=tuple(losses[best].tolist()),
                seconds=result.algorithm_seconds + result.evaluation_seconds,
                unseen=unseen,
                unseen_losses=tuple(
                    1
                    - clone(estimator)
                    .fit(data.X[kept][:, mask], data.y[kept])
                    .score(data.X[left_out][:, mask], data.y[left_out])
                    for mask in (result.front.masks[best] if unseen else ())
                ),
            )
        )
    return rows


def format_tables(rows: Sequence[FrontRun]) -> str:
    """Return the comparison as Markdown: for each model a summary and the hypervolume on each data set."""
    text = []
    for model in dict.fromkeys(row.model for row in rows):
        mine = [row for row in rows if row.model == model]
        text += [f"### {MODELS[model][0]}", _counted(mine)]
        if all(row.unseen_losses for row in mine):
            text += [
                f"Each search used {1 - mine[0].unseen:.0%} of the rows, others in each run. Gain on the other rows: "
                "the share of the loss of always predicting the most frequent class that the best subset within a "
                "limit on the number of columns saves, mean over all limits.",
                _summary_of_gains(mine),
            ]
            continue
        text += [_verdict(mine)]
        text += ["Reference point: n + 1 columns, loss of always predicting the most frequent class.", _summary(mine)]
        text += ["Reference point: n + 1 columns, loss 1.", _summary(mine, lambda row: row.dominated(1.0))]
        text += [
            "Mean hypervolume up to the first reference point, and the verdict of the t-test:",
            _hypervolumes(mine),
        ]
    return "\n\n".join(text) + "\n"


Values = Mapping[str, Mapping[str, FloatArray]]
"""One value for each run, by data set and algorithm."""


def _by_run(rows: Sequence[FrontRun], value: Callable[[FrontRun], float]) -> dict[str, dict[str, FloatArray]]:
    """Return a value of each run by data set and algorithm, for the runs that all algorithms have."""
    found: dict[str, dict[str, FloatArray]] = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        by_name: dict[str, dict[int, float]] = {}
        for row in rows:
            if row.dataset == dataset:
                by_name.setdefault(row.algorithm, {})[row.run] = value(row)
        common = sorted(set.intersection(*map(set, by_name.values())))
        found[dataset] = {name: np.array([values[run] for run in common]) for name, values in by_name.items()}
    return found


def _distances(rows: Sequence[FrontRun]) -> dict[str, dict[str, FloatArray]]:
    """Return the inverted generational distance of each run to the best front known: that of all runs together."""
    best: dict[str, FloatArray] = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        points = np.concatenate([row.points for row in rows if row.dataset == dataset])
        best[dataset] = points[non_dominated(points[:, 0], points[:, 1])]
    return _by_run(rows, lambda row: inverted_generational_distance(row.points, best[row.dataset]))


def _counted(rows: Sequence[FrontRun]) -> str:
    runs = [len(next(iter(values.values()))) for values in _by_run(rows, lambda row: 0.0).values()]
    count = f"{runs[0]} runs" if len(set(runs)) == 1 else f"{min(runs)} to {max(runs)} runs"
    sets = "1 data set" if len(runs) == 1 else f"{len(runs)} data sets"
    return (
        f"{sets}, {count} of each search on each, {rows[0].evaluations} evaluations; folds from seed {rows[0].seed}, "
        f"searches from seeds {rows[0].seed + 1} to {rows[0].seed + max(runs)}."
    )


def _verdict(rows: Sequence[FrontRun]) -> str:
    """Return the best ranks and the comparison with NSGA-II in words."""
    areas, distances = _by_run(rows, lambda row: row.hypervolume), _distances(rows)
    lines = []
    for what, values, sign in (("hypervolume", areas, -1.0), ("IGD", distances, 1.0)):
        names = [name for name in front_algorithms() if all(name in each for each in values.values())]
        ranks = mean_ranks([[sign * each[name].mean() for name in names] for each in values.values()])
        first, second = np.argsort(ranks, kind="stable")[:2]
        lines.append(
            f"- Best mean rank in {what}: {names[first]} with {ranks[first]:.2f}, then {names[second]} with "
            f"{ranks[second]:.2f}."
        )
    if all("nsga2" in values for values in areas.values()):
        tests = zip(("t-test", "Wilcoxon's test"), _counts(_comparisons(areas, "nsga2")), strict=True)
        counts = ((test, counts.split(", ")) for test, counts in tests)
        said = " and ".join(
            f"better on {better} and worse on {worse} by the {test}" for test, (better, worse, _) in counts
        )
        lines.append(f"- Against nsga2, of {len(areas)} data sets, {OURS} is significantly {said}.")
    return "\n".join(lines)


def _summary(rows: Sequence[FrontRun], area: Callable[[FrontRun], float] = lambda row: row.hypervolume) -> str:
    areas, distances = _by_run(rows, area), _distances(rows)
    names = [name for name in front_algorithms() if all(name in values for values in areas.values())]
    area_ranks = mean_ranks([[-values[name].mean() for name in names] for values in areas.values()])
    distance_ranks = mean_ranks([[values[name].mean() for name in names] for values in distances.values()])
    seconds = _by_run(rows, lambda row: row.seconds)
    lines = [
        f"| search | hypervolume: mean rank | IGD: mean rank | mean hypervolume | mean IGD | {OURS} better, worse, not "
        "significant: t-test | Wilcoxon | s per search |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for place, name in enumerate(names):
        tests = ("–", "–") if name == OURS else _counts(_comparisons(areas, name))
        means = [float(np.mean([values[name].mean() for values in each.values()])) for each in (areas, distances)]
        cost = float(np.mean([values[name].mean() for values in seconds.values()]))
        lines.append(
            f"| {markdown_cell(name)} | {area_ranks[place]:.2f} | {distance_ranks[place]:.2f} | {means[0]:.4f} | "
            f"{means[1]:.4f} | {tests[0]} | {tests[1]} | {cost:.2f} |"
        )
    return "\n".join(lines)


def _summary_of_gains(rows: Sequence[FrontRun]) -> str:
    gains = _by_run(rows, lambda row: row.gain_on_unseen_rows)
    names = [name for name in front_algorithms() if all(name in values for values in gains.values())]
    ranks = mean_ranks([[-values[name].mean() for name in names] for values in gains.values()])
    lines = [
        f"| search | mean rank | mean gain | {OURS} better, worse, not significant: t-test | Wilcoxon |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, rank in zip(names, ranks, strict=True):
        tests = ("–", "–") if name == OURS else _counts(_comparisons(gains, name))
        mean = float(np.mean([values[name].mean() for values in gains.values()]))
        lines.append(f"| {markdown_cell(name)} | {rank:.2f} | {mean:.4f} | {tests[0]} | {tests[1]} |")
    return "\n".join(lines)


def _comparisons(areas: Values, rival: str) -> Iterator[RunComparison]:
    for values in areas.values():
        yield compare_runs(-values[OURS], -values[rival])


def _counts(comparisons: Iterable[RunComparison], alpha: float = 0.05) -> tuple[str, str]:
    """Return better, worse and other counts as text, by the t-test and by Wilcoxon's test."""
    listed = list(comparisons)
    by_t = [each.verdict for each in listed]
    by_rank = ["?" if not each.p_wilcoxon < alpha else "+" if each.delta > 0 else "-" for each in listed]
    t_text, rank_text = (
        f"{signs.count('+')}, {signs.count('-')}, {len(signs) - signs.count('+') - signs.count('-')}"
        for signs in (by_t, by_rank)
    )
    return t_text, rank_text


def _hypervolumes(rows: Sequence[FrontRun]) -> str:
    areas = _by_run(rows, lambda row: row.hypervolume)
    names = [name for name in front_algorithms() if all(name in values for values in areas.values())]
    lines = [
        "| data set | " + " | ".join(map(markdown_cell, names)) + " |",
        "|---|" + "---:|" * len(names),
    ]
    for dataset, values in areas.items():
        cells = []
        for name in names:
            sign = "" if name == OURS else " " + compare_runs(-values[OURS], -values[name]).verdict
            cells.append(f"{values[name].mean():.4f}{sign}")
        lines.append(f"| {markdown_cell(dataset)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
