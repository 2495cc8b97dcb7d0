"""``subswarm bench``: measure the speed of this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from subswarm._checks import check_choice, check_int, check_jobs
from subswarm._files import write_whole
from subswarm.cli.common import check_output, write_text
from subswarm.errors import SettingError

__all__ = ["app"]

app = typer.Typer(help="Run benchmarks on this machine.", no_args_is_help=True, rich_markup_mode="rich")


@app.callback()
def _main() -> None:
    """Run benchmarks on this machine."""


@app.command()
def engines(
    datasets: Annotated[
        str, typer.Option(help="Data sets, separated by commas; all that are present by default.")
    ] = "",
    repeats: Annotated[int, typer.Option(help="How often each side is measured, in turns; medians are printed.")] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="Three small data sets, two repeats.")] = False,
    scale: Annotated[str, typer.Option(help="Columns standardised: once, fold (in a pipeline) or none.")] = "once",
    models: Annotated[
        str, typer.Option(help="Separated by commas: nb, knn, knn-regressor, ols, ridge, lda, qda, logistic, ...")
    ] = "nb,knn",
    scoring: Annotated[
        str, typer.Option(help="Scorers, separated by commas; the estimator's own score by default.")
    ] = "",
    more: Annotated[
        str | None,
        typer.Option(
            help="A folder of .npz files with X and y, for regression; the variable SUBSWARM_MORE by default."
        ),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="A file of rows: new ones are added at once, and those in it are kept.")
    ] = None,
) -> None:
    """Compare the fast engines with cross_val_score: evaluations per second on random half-full subsets."""
    from subswarm.bench.engines import MODELS, SCALINGS, compare, first_use_seconds, gemm_rate, geometric_mean
    from subswarm.datasets import is_present, names

    check_int("repeats", repeats, low=1)
    check_choice("scale", scale, SCALINGS)
    check_output(store, option="--store")
    selected_models = models.split(",")
    for model in selected_models:
        check_choice("models", model, tuple(MODELS))
    chosen = datasets.split(",") if datasets else [name for name in names() if is_present(name)]
    if quick:
        chosen, repeats = [name for name in ("wine", "zoo", "wdbc") if name in chosen], min(repeats, 2)
    typer.echo(
        f"{'dataset':<12} {'rows':>5} {'cols':>4} {'model':<23} {'scoring':<20} | scikit-learn/s {'(way)':<8} | "
        "ours/s  | ratio | of GEMM"
    )
    ratios: dict[tuple[str, str], list[float]] = {}
    for row in compare(
        chosen,
        repeats=repeats,
        scaling=scale,
        models=selected_models,
        scorings=scoring.split(","),
        more=more or os.environ.get("SUBSWARM_MORE"),
        store=store,
    ):
        ratios.setdefault((row.model, row.scoring), []).append(row.ratio)
        share = "" if row.gemm_share is None else f"{row.gemm_share:.0%}"
        typer.echo(
            f"{row.dataset:<12} {row.rows:>5} {row.columns:>4} {row.model:<23} {row.scoring:<20} | "
            f"{row.theirs:>14.1f} ({row.way:<6}) | {row.ours:>7.0f} | {row.ratio:>5.0f} | {share:>6}"
        )
    typer.echo(
        "\n| model | scorer | tables | times scikit-learn, geometric mean | smallest |\n|---|---|---:|---:|---:|"
    )
    for (model, scorer), values in ratios.items():
        typer.echo(f"| {model} | {scorer} | {len(values)} | {geometric_mean(values):.0f} | {min(values):.1f} |")
    typer.echo()
    single, double = gemm_rate("float32") / 1e9, gemm_rate("float64") / 1e9
    typer.echo(f"matrix product on this machine: {single:.0f} GFLOP/s (float32), {double:.0f} GFLOP/s (float64)")
    for model, (compiling, cached) in first_use_seconds().items():
        typer.echo(f"{model}: first evaluation of a new process {cached:.2f} s; {compiling:.1f} s with compilation")


@app.command()
def growth(
    out: Annotated[Path, typer.Option(help="The file of the figure (.png, .svg, .pdf).")] = Path("growth.png"),
    quick: Annotated[bool, typer.Option("--quick", help="Small tables only.")] = False,
    searches: Annotated[
        bool, typer.Option("--searches", help="Measure whole searches of wide and tall tables instead.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Searches of each wide table.")] = 5,
    jobs: Annotated[int | None, typer.Option(help="Threads of a search; -1 uses all cores.")] = None,
) -> None:
    """Measure time per evaluation against samples, features and subset size; print it and draw a figure."""
    from subswarm.bench.growth import WIDE, format_costs, plot_growth, search_costs
    from subswarm.bench.growth import growth as measure

    if searches:
        small: dict[str, Any] = {"wide": (60, 120), "tall": (600, 10), "evaluations": 1000}
        costs = []
        for cost in search_costs(repeats=repeats, n_jobs=jobs, **(small if quick else {"wide": WIDE})):
            costs.append(cost)
            typer.echo(
                f"{cost.model:<4} {cost.rows:>6} x {cost.columns:<5}  {cost.cpu_seconds:>8.2f} s CPU"
                f"  {cost.seconds:>8.2f} s  {cost.megabytes:>5} MB  {cost.selected} selected, {cost.noise} noise"
            )
        typer.echo("\n" + format_costs(costs))
        return
    points = []
    for point in measure(quick=quick):
        points.append(point)
        typer.echo(f"{point.model:<4} {point.axis:<12} {point.value:>5}  {point.seconds * 1e6:>9.1f} µs")
    plot_growth(points, out)
    typer.echo(f"saved {out}")


@app.command()
def algorithms(
    only: Annotated[list[str] | None, typer.Option(help="An algorithm; may be repeated. All by default.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="A data set; may be repeated. Wine, WDBC, Sonar, Ionosphere by default.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each algorithm.")] = 10,
    evaluations: Annotated[int, typer.Option(min=1, help="Evaluations per run.")] = 6000,
    out: Annotated[
        Path | None, typer.Option(help="A Markdown page whose tables are replaced; by default the tables are printed.")
    ] = None,
) -> None:
    """Measure error, features and time of every algorithm with naive Bayes and 5-NN."""
    from subswarm.bench.algorithms import DATASETS, Row, format_tables, measure, named_algorithms, replace_tables

    def report(row: Row) -> None:
        result = row.failure or f"error {row.error:.4f}, {row.cardinality:.1f} features"
        typer.echo(f"{row.dataset}, {row.model}, {row.algorithm}: {result}", err=True)

    rows = measure(
        named_algorithms(only or ()), datasets=dataset or DATASETS, seeds=seeds, evaluations=evaluations, report=report
    )
    content = format_tables(rows, seeds=seeds, evaluations=evaluations)
    if out is None:
        typer.echo(content)
        return
    page = out.read_text(encoding="utf-8") if out.exists() else ""
    write_whole(out, replace_tables(page, content).encode())
    typer.echo(f"saved {out}")


@app.command()
def pareto(
    sets: Annotated[str, typer.Option(help="Data sets, separated by commas; all that are present by default.")] = "",
    models: Annotated[str, typer.Option(help="nb, knn or both, separated by a comma.")] = "nb,knn",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each search on each data set.")] = 20,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the folds; run r searches with the seed after it by r.")
    ] = 0,
    evaluations: Annotated[int, typer.Option(min=1, help="Evaluations per run.")] = 6000,
    unseen: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of the rows kept from the searches, to score the fronts on.")
    ] = 0.0,
    jobs: Annotated[int, typer.Option(help="Number of workers; -1 means all cores.")] = 1,
    device: Annotated[
        str, typer.Option(help="cpu or cuda, where the subsets are scored; the losses are equal.")
    ] = "cpu",
    store: Annotated[
        Path | None, typer.Option(help="A file that keeps the fronts; runs that are in it are not run again.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A Markdown page whose tables are replaced; by default the tables are printed.")
    ] = None,
) -> None:
    """Compare fronts of loss and number of columns: hypervolume, distance to the best front, tests and ranks."""
    from subswarm.bench.algorithms import replace_tables
    from subswarm.bench.pareto import FrontRun, format_tables, measure
    from subswarm.datasets import is_present, names
    from subswarm.engines.base import check_device

    def report(row: FrontRun) -> None:
        typer.echo(f"{row.dataset}, {row.model}, {row.algorithm}, run {row.run}: {row.hypervolume:.4f}", err=True)

    check_jobs("--jobs", jobs)
    check_device(device)
    check_output(store, option="--store")
    check_output(out, option="--out")
    selected_models = models.split(",")
    for model in selected_models:
        check_choice("models", model, ("nb", "knn"))
    chosen = sets.split(",") if sets else [name for name in names() if is_present(name)]
    content = format_tables(
        measure(
            chosen,
            models=selected_models,
            runs=runs,
            seed=seed,
            evaluations=evaluations,
            unseen=unseen,
            n_jobs=jobs,
            device=device,
            store=store,
            report=report,
        )
    )
    if out is None:
        typer.echo(content)
        return
    page = out.read_text(encoding="utf-8") if out.exists() else ""
    write_whole(out, replace_tables(page, content).encode())


@app.command()
def answers(
    problems: Annotated[
        str,
        typer.Option(
            help="Problems separated by commas: KIND-ROWSxCOLUMNS (falling, correlated, xor, noise, rare or amounts), "
            "data sets, files of --more, or the groups made, uci and more."
        ),
    ] = "made",
    models: Annotated[str, typer.Option(help="Models, separated by commas.")] = "nb,knn",
    selectors: Annotated[str, typer.Option(help="Selectors, separated by commas; all by default.")] = "",
    folds: Annotated[int, typer.Option(min=2, help="Outer folds of a data set.")] = 5,
    seeds: Annotated[int, typer.Option(min=1, help="Made-up tables of each kind, and 70/30 splits of madelon.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the tables, folds and searches.")] = 0,
    evaluations: Annotated[int, typer.Option(min=1, help="Evaluations per search of this package.")] = 6000,
    more: Annotated[
        str | None, typer.Option(help="A folder of .npz files with X and y; the variable SUBSWARM_MORE by default.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Selections at a time, each with one thread.")] = 1,
    baseline: Annotated[str, typer.Option(help="The selector that the means are compared with.")] = "select-k-best",
    store: Annotated[
        Path | None, typer.Option(help="A file that keeps each selection; those in it are not made again.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file of the tables; they are printed by default.")] = None,
) -> None:
    """Measure error on new rows, size, noise columns, stability and time of selectors."""
    from subswarm.bench.answers import SELECTORS, Row, format_tables, measure
    from subswarm.bench.problems import problem_names

    def report(row: Row) -> None:
        result = f"error {row.error:.4f}, {row.size:.1f} columns, {row.seconds:.2f} s"
        if row.size != row.size:
            result = "does not apply (other packages may be missing; rfecv needs importances, truth a made-up table)"
        typer.echo(f"{row.problem}, {row.model}, {row.selector}: {result}", err=True)

    check_output(out, option="--out")
    rows = measure(
        problem_names(problems, more),
        models=models.split(","),
        selectors=selectors.split(",") if selectors else list(SELECTORS),
        folds=folds,
        seeds=seeds,
        seed=seed,
        evaluations=evaluations,
        more=more,
        n_jobs=jobs,
        store=store,
        report=report,
    )
    _show_or_save(format_tables(rows, baseline), out)


@app.command()
def honesty(
    problems: Annotated[
        str,
        typer.Option(
            help="Problems separated by commas: KIND-ROWSxCOLUMNS (falling, correlated, xor, noise, rare, linear or "
            "unrelated), data sets, files of the folder --more, or the groups made, uci and more."
        ),
    ] = "made",
    models: Annotated[str, typer.Option(help="Models, separated by commas.")] = "nb,knn,ridge,logistic",
    algorithms: Annotated[str, typer.Option(help="Searches, separated by commas; default is the selector's own.")] = (
        "default,2d-upso,sffs"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Tables of each problem, or halves of a data set.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the tables, halves and searches.")] = 0,
    evaluations: Annotated[int, typer.Option(min=1, help="Evaluations per search.")] = 6000,
    nested: Annotated[
        int,
        typer.Option(min=0, help="Outer folds of a nested cross-validation; 0 for none where there are new rows."),
    ] = 0,
    new_rows: Annotated[int, typer.Option(min=100, help="New rows of a made-up table.")] = 100_000,
    more: Annotated[
        str | None, typer.Option(help="A folder of .npz files with X and y; the variable SUBSWARM_MORE by default.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Searches at the same time, each with one core.")] = 1,
    store: Annotated[
        Path | None, typer.Option(help="A file that keeps the searches; those in it are not run again.")
    ] = None,
    only_stored: Annotated[
        bool,
        typer.Option(
            help="Show what --store has of these problems, models, searches and this seed, and measure nothing."
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="The file of the tables; they are printed by default.")] = None,
) -> None:
    """Compare the reported, the corrected and the nested score with the score on new rows."""
    from subswarm.bench.honesty import Case, format_tables, measure, problem_names

    def report(case: Case) -> None:
        typer.echo(
            f"{case.problem}, {case.model}, {case.algorithm}: reported {case.reported:.4f}, corrected "
            f"{case.corrected:.4f}, {'true' if case.has_new_rows else 'nested'} {case.reference:.4f}, "
            f"{'inside' if case.is_inside else 'outside'}, {case.search_seconds:.1f} s",
            err=True,
        )

    check_output(store, option="--store")
    check_output(out, option="--out")
    if nested == 1:
        raise SettingError("--nested is a number of outer folds, at least 2, or 0 for none; got 1.")
    cases = measure(
        problem_names(problems, more),
        models=models.split(","),
        algorithms=algorithms.split(","),
        seeds=seeds,
        seed=seed,
        evaluations=evaluations,
        nested=nested,
        new_rows=new_rows,
        more=more,
        jobs=jobs,
        store=store,
        only_stored=only_stored,
        report=report,
    )
    if only_stored and not cases:
        raise SettingError("--store has none of these searches.")
    if not cases:
        raise SettingError("none of the models fits any of the problems.")
    _show_or_save(format_tables(cases), out)


@app.command()
def expensive(
    tables: Annotated[
        str,
        typer.Option(help="Tables separated by commas: breast-cancer, made-ROWSxCOLUMNS, or .npz files of --more."),
    ] = "breast-cancer,ada,communities,madelon,made-1500x100,made-5000x200",
    models: Annotated[str, typer.Option(help="Models separated by commas.")] = "lightgbm,hist-gradient-boosting,forest",
    selectors: Annotated[str, typer.Option(help="Selectors, separated by commas; all by default.")] = "",
    folds: Annotated[int, typer.Option(min=2, help="Outer folds.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the tables, folds, models and searches.")] = 0,
    trees: Annotated[int, typer.Option(min=1, help="Trees of each model.")] = 40,
    more: Annotated[Path | None, typer.Option(help="The folder of ada.npz, communities.npz and madelon.npz.")] = None,
    jobs: Annotated[int, typer.Option(help="Selections that run at a time, each on one thread.")] = 1,
    store: Annotated[
        Path | None, typer.Option(help="A file that keeps the measurements; those in it are not made again.")
    ] = None,
    only_stored: Annotated[bool, typer.Option(help="Show what --store has, and measure nothing.")] = False,
    out: Annotated[Path | None, typer.Option(help="The file of the tables; they are printed by default.")] = None,
) -> None:
    """Measure selectors for boosted trees and forests: score on new rows, columns, noise, fits and time."""
    from subswarm.bench.expensive import SELECTORS, Row, format_tables, measure

    def report(row: Row) -> None:
        typer.echo(
            f"{row.table}, {row.model}, {row.selector}, fold {row.fold}: {row.score:.4f}, {row.columns} columns, "
            f"{row.seconds:.1f} s",
            err=True,
        )

    check_jobs("--jobs", jobs)
    check_output(store, option="--store")
    check_output(out, option="--out")
    rows = measure(
        tables.split(","),
        models=models.split(","),
        selectors=selectors.split(",") if selectors else list(SELECTORS),
        folds=folds,
        seed=seed,
        trees=trees,
        more=more,
        n_jobs=jobs,
        store=store,
        only_stored=only_stored,
        report=report,
    )
    _show_or_save(format_tables(rows), out)


@app.command()
def overhead(
    n_features: Annotated[
        list[int] | None, typer.Option("--features", help="Number of features; may be repeated.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps per search.")] = 200,
    repeats: Annotated[int, typer.Option(min=1, help="Searches per algorithm.")] = 5,
) -> None:
    """Measure milliseconds per step of each algorithm itself, without evaluation."""
    from subswarm.bench.overhead import step_costs

    typer.echo(f"{'algorithm':<20} {'features':>8} {'batch':>6} {'median ms':>10} {'slowest tenth':>14}")
    for cost in step_costs(n_features or [30, 600], steps=steps, repeats=repeats):
        typer.echo(
            f"{cost.algorithm:<20} {cost.n_features:>8} {cost.batch:>6} {cost.median:>10.3f} "
            f"{cost.slowest_tenth:>14.3f}"
        )


@app.command()
def gpu(
    datasets: Annotated[
        str, typer.Option(help="Data sets, separated by commas; all that are present by default.")
    ] = "",
    models: Annotated[str, typer.Option(help="Models that have a GPU engine, separated by commas.")] = "nb,knn",
    device: Annotated[str, typer.Option(help="cuda, or cpu to try the command without a GPU.")] = "cuda",
    repeats: Annotated[int, typer.Option(min=1, help="Batches timed; medians are printed.")] = 5,
    searched: Annotated[
        str, typer.Option("--search", help="Data sets on which a whole search is timed as well.")
    ] = "secom,ozone,wdbc,wine",
    evaluations: Annotated[int, typer.Option(min=1, help="Evaluations of that search.")] = 6000,
) -> None:
    """Compare the torch engines with the CPU engines and with the rates of the device: microseconds per evaluation."""
    from subswarm.bench.gpu import compare_device, device_rates, time_search
    from subswarm.datasets import is_present, names

    chosen = datasets.split(",") if datasets else [name for name in names() if is_present(name)]
    rates = device_rates(device)
    typer.echo(
        f"{rates.name}: copies {rates.copy / 1e12:.2f} TB/s, multiplies {rates.float32 / 1e12:.1f} TFLOP/s in float32"
    )
    typer.echo(
        f"{'dataset':<12} {'rows':>5} {'cols':>4} {'model':<13} | us at 30 | at 1200 | us, CPU | ratio | of copy | "
        "of float32 | settled | losses that differ"
    )
    for row in compare_device(chosen, models=models.split(","), device=device, repeats=repeats, rates=rates):
        settled = "" if row.settled is None else f"{row.settled:.2%}"
        typer.echo(
            f"{row.dataset:<12} {row.rows:>5} {row.columns:>4} {row.model:<13} | {row.swarm * 1e6:>8.2f} | "
            f"{row.together * 1e6:>7.2f} | {row.cpu * 1e6:>7.0f} | {row.cpu / row.together:>5.0f} | "
            f"{row.copy_share:>7.1%} | {row.float_share:>10.1%} | {settled:>7} | {row.differ} of {row.compared}"
        )
    for name in [name for name in searched.split(",") if name in chosen]:
        for model in models.split(","):
            took = time_search(name, model=model, device=device, evaluations=evaluations)
            typer.echo(
                f"{took.dataset}, {took.model}, {took.algorithm}, {took.evaluations} evaluations: {took.seconds:.3f} s "
                f"(algorithm {took.algorithm_seconds:.3f}, evaluation {took.evaluation_seconds:.3f})"
            )


def _show_or_save(text: str, out: Path | None) -> None:
    """Print tables, or write them to a file."""
    if out is None:
        typer.echo(text)
        return
    write_text(out, text)
    typer.echo(f"saved {out}")
