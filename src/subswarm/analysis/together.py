"""Several stores, read as if they were one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath

from subswarm.analysis.results import Results, read_results
from subswarm.core.errors import StoreError
from subswarm.study.records import ProblemFacts, Row

__all__ = ["Together", "read_together"]

_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Together:
    """What several stores hold.

    Attributes
    ----------
    results : all finished runs; a label of a later store that is taken has its study's name in brackets
    outer : the numbers of outer folds of the stores that held rows out
    notes : what each store is, and what was left out
    """

    results: Results
    outer: tuple[int, ...]
    notes: tuple[str, ...]


def read_together(paths: Sequence[str | PathLike[str]]) -> Together:
    """The finished runs of stores whose protocol, seed, folds and data agree; others are refused.

    A label is the same in two stores, and its runs are put together, only where some of its runs are in both with the
    same findings.
    """
    if not paths:
        raise StoreError("no store was named; name at least one file that `subswarm study run` wrote.")
    read = [read_results(path) for path in paths]
    for place, later in enumerate(read):
        for path, earlier in zip(paths[:place], read[:place], strict=True):
            _check_comparable(fspath(path), earlier, fspath(paths[place]), later)
    notes = [_described(results) for results in read] + _differences(read)
    by_label: dict[str, dict[str, Row]] = {}
    for results in read:
        again = []
        for label, theirs in _labelled(results).items():
            known = by_label.get(label, {})
            if _are_the_same_runs(known, theirs):
                by_label[label] = {**theirs, **known}
                again.append(label)
            else:
                by_label[_free_label(label, results.info.name, by_label)] = theirs
        if again:
            notes.append(f"{results.info.name}: runs of {', '.join(again)} that an earlier store has too count once.")
    rows = [
        replace(row, planned=replace(row.planned, algorithm=label))
        for label, found in by_label.items()
        for row in found.values()
    ]
    outer = tuple(dict.fromkeys(results.info.outer for results in read if results.info.outer))
    return Together(_joined(read, rows, tuple(by_label), max(outer, default=0)), outer, tuple(notes))


def _joined(read: Sequence[Results], rows: list[Row], labels: tuple[str, ...], outer: int) -> Results:
    problems: dict[tuple[str, str, int | None], ProblemFacts] = {}
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
    differing = [
        f"{name} {getattr(earlier.info, name)!r} and {getattr(later.info, name)!r}"
        for name in ("protocol", "seed", "folds")
        if getattr(earlier.info, name) != getattr(later.info, name)
    ]
    if differing:
        raise StoreError(
            f"the stores {first} and {second} cannot be compared: {'; '.join(differing)}; name stores whose studies "
            "agree in these."
        )
    same_folds = earlier.info.repeats == later.info.repeats
    same_outer = earlier.info.outer == later.info.outer
    for group, facts in later.problems.items():
        known = earlier.problems.get(group)
        if known is None or (group[2] is not None and not same_outer):
            continue
        if facts.data_digest != known.data_digest if same_folds else _other_rows(known, facts):
            raise StoreError(
                f"the stores {first} and {second} cannot be compared: the rows or folds of {group[0]!r} are not the "
                "same in both; run one of them again on the data of the other."
            )


def _other_rows(known: ProblemFacts, facts: ProblemFacts) -> bool:
    """Whether the rows differ, as far as can be told without the digest, which is also of the inner folds."""
    shapes = [(each.n_rows, each.n_features, each.n_classes) for each in (known, facts)]
    if shapes[0] != shapes[1]:
        return True
    return abs((known.held_out_all or 0.0) - (facts.held_out_all or 0.0)) > _SAME


def _labelled(results: Results) -> dict[str, dict[str, Row]]:
    """The finished runs by key, of each label that has any."""
    found: dict[str, dict[str, Row]] = {label: {} for label in results.algorithms}
    for row in results.rows:
        found[row.planned.algorithm][row.planned.key] = row
    return {label: rows for label, rows in found.items() if rows}


def _are_the_same_runs(known: dict[str, Row], theirs: dict[str, Row]) -> bool:
    """Whether some runs are in both, and those found the same."""
    both = known.keys() & theirs.keys()
    return bool(both) and all(known[key].content == theirs[key].content for key in both)


def _free_label(label: str, study: str, taken: dict[str, dict[str, Row]]) -> str:
    """The label itself, or with its study's name, or with a number where that is taken too."""
    shown, number = label, 1
    while shown in taken:
        shown = f"{label} ({study})" if number == 1 else f"{label} ({study}, {number})"
        number += 1
    return shown


def _differences(read: Sequence[Results]) -> list[str]:
    """What is allowed to differ, and makes errors less comparable."""
    found = {
        "evaluations": list(dict.fromkeys(results.info.evaluations for results in read)),
        "partitions": list(dict.fromkeys(results.info.repeats for results in read)),
    }
    differing = [f"{' and '.join(map(str, values))} {name}" for name, values in found.items() if len(values) > 1]
    return [f"The stores differ: {', '.join(differing)} a search."] if differing else []


def _described(results: Results) -> str:
    info = results.info
    parts = [f"{info.protocol} protocol", f"{info.evaluations} evaluations", f"{info.folds} folds"]
    parts += [f"{info.repeats} partitions"] if info.repeats > 1 else []
    parts += [f"{info.folds_at_a_time} outer folds"] if info.outer else []
    parts += [f"drawn {info.outer_repeats} times"] if info.outer_repeats > 1 else []
    done, missing = len(results.rows), results.planned - len(results.rows)
    parts.append(f"{done} searches" + (f", {missing} of {results.planned} missing" if missing else ""))
    return f"{info.name}: {', '.join(parts)}."
