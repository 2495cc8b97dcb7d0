"""The functions of `subswarm.engines.linear.numba` in NumPy, for machines without numba."""

from __future__ import annotations

import numpy as np

from subswarm._types import FloatArray
from subswarm.engines.data import Codes, Int64Array
from subswarm.engines.linear.tables import EPS, Scores, Systems, TestRows

__all__ = ["evaluate", "inverse_factor", "judge", "solve"]


def solve(first: int, last: int, columns: Int64Array, starts: Int64Array, systems: Systems, scores: Scores) -> None:
    """Solve the systems of all folds for masks ``first`` to ``last``, into ``scores``."""
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        for f in range(len(systems.gram)):
            scores.rate[p, f] = scores.base[p, f] = np.inf
            C = int(systems.n_targets[f])
            ridge = systems.ridge
            if systems.shrink > 0:
                ridge += systems.shrink * systems.spread[f, chosen].mean()
            squares = systems.gram[f, chosen, chosen] + ridge
            kept = squares != 0
            k = int(kept.sum())
            if k == 0 or (k < len(chosen) and not systems.drops):
                continue
            used, squares = chosen[kept], squares[kept]
            trace = squares.sum()
            if ridge == 0 and not systems.residue[f, chosen].sum() * k <= 0.1 * systems.least_share * trace:
                continue
            scale = 1.0 / np.sqrt(squares)
            noise = (systems.noise[f, used] * scale).max()
            matrix = systems.gram[f][np.ix_(used, used)] * np.outer(scale, scale)
            np.fill_diagonal(matrix, 1.0)
            inverse = inverse_factor(matrix, max(1e-13, 0.5 / systems.most_kappa))
            if inverse is None and systems.least_between > 0:
                inverse = _singular_inverse(matrix, systems.least_between)
            if inverse is None:
                continue
            is_singular = len(inverse) < k
            diagonal = (inverse**2).sum(axis=0)
            kappa = diagonal.sum()
            spread = diagonal @ scale**2
            error = (48.0 if is_singular else 16.0) * (noise + (k + systems.rounding) * EPS) * kappa
            if systems.condition_power > 0:
                error += 16.0 * k * EPS * (spread * trace) ** systems.condition_power
            if len(chosen) > systems.least_rows:
                error += 16.0 * EPS * systems.rounding * trace / ridge if ridge > 0 else np.inf
            if not (
                error <= systems.most_error
                and kappa <= systems.most_kappa
                and spread * trace * systems.least_share <= 1.0
            ):
                continue
            target = systems.target[f][used][:, :C] * scale[:, None]
            solved = inverse @ target
            weights = inverse.T @ solved
            between = systems.least_between if C > 2 else 0.0
            if between > 0 and not _spans(solved, systems.prior[f, :C], between, error):
                continue
            found = np.zeros((C, len(chosen)))
            found[:, kept] = (weights * scale[:, None]).T
            scores.weights[f, :C, starts[p] : starts[p + 1]] = found
            squares = (solved**2).sum(axis=0)
            offset = systems.offset[f, :C]
            scores.constant[p, f, :C] = offset - (0.5 * squares if systems.quadratic else 0.0)
            largest = np.sqrt((weights**2).sum(axis=0).max())
            scores.rate[p, f] = error * largest
            scores.base[p, f] = 16.0 * EPS * (k + 2) * (systems.level[f, :C] + 0.5 * squares).max()
            if systems.quadratic:
                scores.base[p, f] += error * largest * np.sqrt((target**2).sum(axis=0).max())
            if is_singular:
                farthest = (target**2).sum(axis=0).max()
                scores.rate[p, f] += error * kappa * np.sqrt(farthest)
                scores.base[p, f] += error * kappa * farthest
            shift = systems.shift[f, used] * scale
            length = np.sqrt((shift**2).sum())
            scores.base[p, f] += 16.0 * EPS * (k + 2) * largest * length
            if systems.uncentred:
                own = np.sqrt(((inverse.T @ (inverse @ shift)) ** 2).sum())
                scores.rate[p, f] += error * own
                scores.base[p, f] += error * (own + largest) * length


def inverse_factor(matrix: FloatArray, least: float) -> FloatArray | None:
    """Return the inverse of the Cholesky factor; None if a pivot is not above ``least``."""
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    if not factor.diagonal().min() ** 2 > least:
        return None
    return np.asarray(np.tril(np.linalg.inv(factor)))


def _singular_inverse(matrix: FloatArray, least: float) -> FloatArray | None:
    """Return H with H'H the pseudoinverse of a matrix; None unless small eigenvalues are certainly below ``least``."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > least
    if kept.all() or not kept.any() or not np.abs(values[~kept]).sum() <= 0.1 * least:
        return None
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T)


def _spans(solved: FloatArray, prior: FloatArray, least: float, error: float) -> bool:
    """Return whether the whitened class means (k, C) certainly span as many dimensions as they can."""
    k, C = solved.shape
    weighted = solved * np.sqrt(prior)
    matrix = weighted @ weighted.T if k < C else weighted.T @ weighted
    trace = np.trace(matrix)
    if not trace > 0:
        return False
    matrix = matrix / trace
    if k >= C:
        matrix += np.sqrt(np.outer(prior, prior))
    inverse = inverse_factor(matrix, 0.25 * least)
    return inverse is not None and bool((inverse**2).sum() * (4.0 * least + error) < 1.0)


def evaluate(
    first: int,
    last: int,
    columns: Int64Array,
    starts: Int64Array,
    tests: TestRows,
    scores: Scores,
    out: FloatArray,
    bounds: FloatArray,
) -> None:
    """Compute the scores of all test rows, into ``out`` (P, T, rows), and bounds on their errors (P, rows)."""
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        for f, (size, low, C) in enumerate(zip(tests.sizes, tests.starts, tests.n_targets, strict=True)):
            rows = slice(low, low + size)
            if not scores.rate[p, f] < np.inf:
                bounds[p, rows], out[p, :, rows] = np.inf, 0.0
                continue
            bounds[p, rows] = scores.rate[p, f] * tests.lengths[rows] + scores.base[p, f]
            weights = scores.weights[f, :C, starts[p] : starts[p + 1]]
            out[p, :C, rows] = weights @ _fold_rows(tests, f)[chosen] + scores.constant[p, f, :C, None]


def judge(
    first: int,
    last: int,
    out: FloatArray,
    bounds: FloatArray,
    starts: Int64Array,
    n_classes: Int64Array,
    codes: Codes,
    doubts: Int64Array,
) -> None:
    """Take the class of the highest score for each test row, and count the rows of each fold that are in doubt."""
    for f, C in enumerate(n_classes):
        rows = slice(starts[f], starts[f + 1])
        values = out[first:last, :C, rows]
        if C == 2:
            margins = values[:, 0] if out.shape[1] == 1 else values[:, 1] - values[:, 0]
            codes[first:last, rows] = margins > 0
            gaps = np.abs(margins)
        else:
            codes[first:last, rows] = values.argmax(axis=1)
            ordered = np.partition(values, C - 2, axis=1)
            gaps = ordered[:, C - 1] - ordered[:, C - 2]
        doubts[first:last, f] = (~(gaps > 2.0 * bounds[first:last, rows])).sum(axis=1)


def _fold_rows(tests: TestRows, fold: int) -> FloatArray:
    """Return a fold's test rows, (n, rows)."""
    start, size = tests.offsets[fold], tests.sizes[fold]
    end = tests.offsets[fold + 1] if fold + 1 < len(tests.offsets) else len(tests.rows)
    return tests.rows[start:end].reshape(-1, size)
