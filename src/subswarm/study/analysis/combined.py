"""Reads several stores as if they were one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath

from subswarm.errors import StoreError
from subswarm.study.analysis.results import Results, read_results
from subswarm.study.plan import Group
from subswarm.study.records import ProblemFacts, Row

__all__ = ["CombinedResults", "read_combined"]

_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class CombinedResults:
    """The results of several stores.

    Attributes
    ----------
    results : all finished runs; a label that an earlier store has too gets the name of its study in brackets
    outer : the different numbers of outer folds of the stores that have any
    notes : what each store contains, and what was left out
    """

    results: Results
    outer: tuple[int, ...]
    notes: tuple[str, ...]


def read_combined(paths: Sequence[str | PathLike[str]]) -> CombinedResults:
    """Read the finished runs of stores whose protocol, seed, folds and data agree; raise StoreError otherwise.

    Runs of the same label in two stores are merged only if some of them are in both stores with the same results.
    """
    if not paths:
        raise StoreError("no store was named; name at least one file that `subswarm study run` wrote.")
    read = [read_results(path) for path in paths]
    for place, later in enumerate(read):
        for path, earlier in zip(paths[:place], read[:place], strict=True):
            _check_comparable(fspath(path), earlier, fspath(paths[place]), later)
    notes = [_describe(results) for results in read] + _describe_differences(read)
    by_label: dict[str, dict[str, Row]] = {}
    for results in read:
        merged = []
        for label, theirs in _rows_by_label(results).items():
            known = by_label.get(label, {})
            if _are_the_same_runs(known, theirs):
                by_label[label] = {**theirs, **known}
                merged.append(label)
            else:
                by_label[_free_label(label, results.info.name, by_label)] = theirs
        if merged:
            notes.append(f"{results.info.name}: runs of {', '.join(merged)} that an earlier store has too count once.")
    rows = [
        replace(row, planned=replace(row.planned, algorithm=label))
        for label, found in by_label.items()
        for row in found.values()
    ]
    outer = tuple(dict.fromkeys(results.info.outer for results in read if results.info.outer))
    return CombinedResults(_merge(read, rows, tuple(by_label), max(outer, default=0)), outer, tuple(notes))


def _merge(read: Sequence[Results], rows: list[Row], labels: tuple[str, ...], outer: int) -> Results:
    problems: dict[Group, ProblemFacts] = {}
    for results in read:
        problems = {**results.problems, **problems}
    return Results(
        info=replace(read[0].info, outer=outer),
        datasets=tuple(dict.fromkeys(name for results in read for name in results.datasets)),
        models=tuple(dict.fromkeys(name for results in read for name in results.models)),
        algorithms=labels,
        problems=problems,
        rows=tuple(rows),
        planned=sum(results.planned for results in read),
        failed=sum(results.failed for results in read),
    )


def _check_comparable(first: str, earlier: Results, second: str, later: Results) -> None:
    differences = [
        f"{name} {getattr(earlier.info, name)!r} and {getattr(later.info, name)!r}"
        for name in ("protocol", "seed", "folds")
        if getattr(earlier.info, name) != getattr(later.info, name)
    ]
    if differences:
        raise StoreError(
            f"the stores {first} and {second} cannot be compared: {'; '.join(differences)}; name stores whose studies "
            "agree in these."
        )
    same_folds = earlier.info.repeats == later.info.repeats
    same_outer = earlier.info.outer == later.info.outer
    for group, facts in later.problems.items():
        known = earlier.problems.get(group)
        if known is None or (group[2] is not None and not same_outer):
            continue
        if facts.data_digest != known.data_digest if same_folds else _have_other_rows(known, facts):
            raise StoreError(
                f"the stores {first} and {second} cannot be compared: the rows or folds of {group[0]!r} differ; run "
                "one of the studies again on the data of the other."
            )


def _have_other_rows(known: ProblemFacts, facts: ProblemFacts) -> bool:
    """Return whether the rows differ, as far as can be told without the digest, which includes the inner folds."""
    shapes = [(each.n_rows, each.n_features, each.n_classes) for each in (known, facts)]
    if shapes[0] != shapes[1]:
        return True
    return abs((known.held_out_all or 0.0) - (facts.held_out_all or 0.0)) > _SAME


def _rows_by_label(results: Results) -> dict[str, dict[str, Row]]:
    """Return the finished runs by key, for each label that has any."""
    found: dict[str, dict[str, Row]] = {label: {} for label in results.algorithms}
    for row in results.rows:
        found[row.planned.algorithm][row.planned.key] = row
    return {label: rows for label, rows in found.items() if rows}


def _are_the_same_runs(known: dict[str, Row], theirs: dict[str, Row]) -> bool:
    """Return whether some runs are in both, with equal results."""
    both = known.keys() & theirs.keys()
    return bool(both) and all(known[key].content == theirs[key].content for key in both)


def _free_label(label: str, study: str, taken: dict[str, dict[str, Row]]) -> str:
    """Return the label, with the name of its study and a number as far as needed to make it unique."""
    unique, number = label, 1
    while unique in taken:
        unique = f"{label} ({study})" if number == 1 else f"{label} ({study}, {number})"
        number += 1
    return unique


def _describe_differences(read: Sequence[Results]) -> list[str]:
    """Name the differences that are allowed but make errors less comparable."""
    values = {
        "evaluations": list(dict.fromkeys(results.info.evaluations for results in read)),
        "repeats": list(dict.fromkeys(results.info.repeats for results in read)),
    }
    differing = [f"{' and '.join(map(str, each))} {name}" for name, each in values.items() if len(each) > 1]
    return [f"The stores differ: {', '.join(differing)} per search."] if differing else []


def _describe(results: Results) -> str:
    info = results.info
    parts = [f"{info.protocol} protocol", f"{info.evaluations} evaluations", f"{info.folds} folds"]
    parts += [f"{info.repeats} repeats"] if info.repeats > 1 else []
    parts += [f"{info.folds_per_outer_repeat} outer folds"] if info.outer else []
    parts += [f"{info.outer_repeats} outer repeats"] if info.outer_repeats > 1 else []
    done, missing = len(results.rows), results.planned - len(results.rows)
    parts.append(f"{done} searches" + (f", {missing} of {results.planned} missing" if missing else ""))
    return f"{info.name}: {', '.join(parts)}."
