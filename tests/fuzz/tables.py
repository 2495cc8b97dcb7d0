"""Random tables, targets, folds and masks: everything that an engine may meet, the odd more often than in life."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import model_selection as splitters

from .case import pick

__all__ = ["MILD", "VALUES", "Problem", "masks_for", "random_problem"]

VALUES = (
    "normal",
    "normal",
    "normal",
    "integers",
    "few integers",
    "repeated rows",
    "constants",
    "zeros",
    "denormal",
    "smallest",
    "huge",
    "largest",
    "tiny",
    "mixed scales",
    "float32",
    "outlier",
    "offset",
    "tenths",
    "signed zeros",
)
MILD = ("normal", "normal", "integers", "few integers", "repeated rows", "constants", "zeros", "float32", "tenths")
"""Kinds of values on which scikit-learn's logistic regression converges."""
MOST_FITS = 12
"""Fits of scikit-learn (folds times masks) that one batch of a case may cost, about 3 ms each."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A table, its target, the cross-validation, and words for all of it."""

    X: Any
    y: Any
    cv: Any
    groups: Any
    words: str


def random_problem(rng: np.random.Generator, *, regression: bool, values: Sequence[str] = VALUES) -> Problem:
    """A problem; whether it can be used at all (one class, an empty fold) is for others to say."""
    N = int(rng.integers(2, 61)) if rng.random() < 0.93 else int(rng.integers(61, 301))
    n = int(rng.integers(1, 13)) if rng.random() < 0.95 else int(rng.integers(13, 71))
    kind = pick(rng, values)
    X = _values(rng, kind, N, n)
    y = _numbers(rng, N) if regression else _classes(rng, N)
    cv, groups, how = _folds(rng, N, y, regression)
    return Problem(X, y, cv, groups, f"{kind} ({N}, {n}), y {y.dtype} {len(np.unique(y))} values, {how}")


def masks_for(rng: np.random.Generator, n: int, count: int) -> Any:
    """Masks of all sizes, none of them empty; the full one and single columns often among them."""
    masks = rng.random((count, n)) < rng.random((count, 1))
    for row in masks:
        kind = rng.random()
        if kind < 0.15:
            row[:] = True
        elif kind < 0.3 or not row.any():
            row[:] = False
            row[rng.integers(n)] = True
    return masks


def _values(rng: np.random.Generator, kind: str, N: int, n: int) -> Any:
    X = rng.normal(size=(N, n))
    match kind:
        case "integers":
            return rng.integers(-4, 5, size=(N, n)).astype(pick(rng, (np.float64, np.int64, np.int8)))
        case "few integers":
            return rng.integers(0, 2, size=(N, n)).astype(pick(rng, (np.float64, np.bool_)))
        case "repeated rows":
            return X[rng.integers(0, max(1, N // 3), size=N)]
        case "constants":
            X[:, rng.random(n) < 0.6] = rng.choice([0.0, 0.1, 3.0, -1e9])
        case "zeros":
            X[:, rng.random(n) < 0.8] = 0.0
        case "denormal":
            return X * 1e-309
        case "smallest":
            return rng.integers(-3, 4, size=(N, n)) * 5e-324
        case "huge":
            return X * 10.0 ** rng.integers(100, 160)
        case "largest":
            return X * 10.0 ** rng.integers(290, 307)
        case "tiny":
            return X * 10.0 ** -rng.integers(100, 300)
        case "mixed scales":
            top = int(pick(rng, (3, 12, 60, 140, 300)))
            return X * 10.0 ** rng.integers(-top, top + 1, size=n)
        case "float32":
            return X.astype(np.float32)
        case "outlier":
            X[rng.integers(N), rng.integers(n)] = rng.choice([1e6, -1e15, 1e120, 1e200])
        case "offset":
            return X + 10.0 ** rng.integers(3, 13) * rng.choice([1.0, -1.0], size=n)
        case "tenths":
            return np.round(X, 1)
        case "signed zeros":
            return np.where(rng.random((N, n)) < 0.5, np.where(X > 0, 0.0, -0.0), np.round(X))
    return X


def _classes(rng: np.random.Generator, N: int) -> Any:
    many = int(rng.integers(2, 4)) if rng.random() < 0.7 else int(rng.integers(2, max(3, min(N, 9) + 1)))
    shares = rng.dirichlet(np.full(many, pick(rng, (0.5, 2.0, 20.0))))
    codes = rng.choice(many, size=N, p=shares)
    codes[:2] = rng.permutation(many)[:2]
    if rng.random() < 0.15:
        codes = np.sort(codes)
    labels = pick(
        rng,
        (
            np.arange(many),
            np.arange(many),
            np.arange(many) * 3 - 2,
            np.arange(many).astype(float),
            np.array([f"class {c}" for c in range(many)]),
            np.array([f"k{c}" for c in range(many)], dtype=object),
            np.array([-1, 1, *range(2, many)]),
        ),
    )
    return labels[codes]


def _numbers(rng: np.random.Generator, N: int) -> Any:
    y = rng.normal(size=N)
    kinds = (y, y, np.round(y), y * 1e-12 + 5.0, y * 1e12, np.full(N, 3.25), rng.integers(0, 3, size=N))
    return pick(rng, kinds)


def _folds(rng: np.random.Generator, N: int, y: Any, regression: bool) -> tuple[Any, Any, str]:
    seed = int(rng.integers(100))
    k = int(rng.integers(2, max(3, min(N, 6) + 1)))
    size = float(rng.uniform(0.1, 0.6))
    groups = rng.integers(0, max(2, N // 3), size=N)
    kinds = ["kfold", "stratified", "shuffle", "stratified shuffle", "repeated", "repeated stratified", "time"]
    kinds += ["predefined", "groups", "list", "list", "list", "one", "pairs", "number", "number"]
    kind = pick(rng, kinds)
    if regression and "stratified" in kind:
        kind = kind.replace("stratified", "").strip() or "kfold"
    match kind:
        case "kfold":
            cv = splitters.KFold(k, shuffle=True, random_state=seed) if rng.random() < 0.5 else splitters.KFold(k)
        case "stratified":
            cv = splitters.StratifiedKFold(k, shuffle=True, random_state=seed)
        case "shuffle":
            cv = splitters.ShuffleSplit(k, test_size=size, random_state=seed)
        case "stratified shuffle":
            cv = splitters.StratifiedShuffleSplit(k, test_size=size, random_state=seed)
        case "repeated":
            cv = splitters.RepeatedKFold(n_splits=k, n_repeats=2, random_state=seed)
        case "repeated stratified":
            cv = splitters.RepeatedStratifiedKFold(n_splits=k, n_repeats=2, random_state=seed)
        case "time":
            cv = splitters.TimeSeriesSplit(k)
        case "predefined":
            cv = splitters.PredefinedSplit(rng.integers(-1, k, size=N))
        case "groups":
            return splitters.GroupKFold(max(2, min(k, len(np.unique(groups))))), groups, "GroupKFold"
        case "one" if N <= 3 * MOST_FITS:
            cv = splitters.LeaveOneOut()
        case "pairs" if N <= 8:
            cv = splitters.LeavePOut(2)
        case "list":
            return _listed(rng, N, k), None, "list of folds"
        case _:
            return k, None, f"cv={k}"
    return cv, None, " ".join(repr(cv).split())


def _listed(rng: np.random.Generator, N: int, k: int) -> list[tuple[Any, Any]]:
    """Folds as people write them by hand: overlapping, partial, in any order, some test rows more than once."""
    folds = []
    train_on_tested, repeat = rng.random() < 0.2, rng.random() < 0.3
    for _ in range(int(rng.integers(1, k + 1))):
        order = rng.permutation(N)
        cut = int(rng.integers(1, N)) if N > 1 else 1
        train, test = order[:cut], order[cut:]
        if rng.random() < 0.5:
            train = train[: max(1, int(len(train) * rng.uniform(0.4, 1)))]
        if rng.random() < 0.5:
            test = test[: max(1, int(len(test) * rng.uniform(0.2, 1)))]
        if train_on_tested:
            test = np.concatenate([test, train[:2]])
        if repeat:
            test = rng.choice(test, size=len(test) + 2)
        folds.append((np.sort(train), np.sort(test)) if rng.random() < 0.4 else (train, test))
    return folds
