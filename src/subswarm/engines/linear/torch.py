"""Least squares, discriminant analysis and centroids on a torch device, in double precision.

Factors of all subsets and folds are computed in one batch, scores by products. The bounds on the rounding are those of
the CPU engines, and what they do not decide is left to scikit-learn here as well. So predicted classes are equal, and
predicted numbers and probabilities agree within the bounds: their last digits may depend on the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from subswarm._types import AnyArray, Estimator, FloatArray, Masks
from subswarm.engines.data import FoldedData
from subswarm.engines.gpu.device import ColumnLists, in_pieces, torch_on
from subswarm.engines.linear.centroids import CentroidEngine, ColumnTerms
from subswarm.engines.linear.engine import LinearEngine
from subswarm.engines.linear.quadratic import QuadraticEngine
from subswarm.engines.linear.quadratic_tables import Covariances, TestColumns
from subswarm.engines.linear.tables import EPS, Systems, TestRows

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TorchCentroidEngine", "TorchLinearEngine", "TorchQuadraticEngine"]

_LEAST_PIVOT = 1e-13


class TorchLinearEngine(LinearEngine):
    """Scores what `LinearEngine` does."""

    name: ClassVar[str] = "linear-torch"

    def __init__(
        self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int, device: str = "cpu"
    ) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._device, self._torch = device, torch_on(device)
        self._tensors: list[_SystemTensors] | None = None

    def _evaluate(self, masks: Masks, out: FloatArray, bounds: FloatArray) -> None:
        F, n, T = self._data.n_folds, self._data.n_features, out.shape[1]
        if 8 * F * n * n > self._max_bytes:
            super()._evaluate(masks, out, bounds)
            return

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            for tensors in self._on_device():
                _solve(tensors, lists, out, bounds, first + lists.order, self._torch)

        most = max(1, self._max_bytes // (8 * F * (4 * n * n + 4 * n * T)))
        for p in in_pieces(work, 0, len(masks), most=most):
            super()._evaluate(masks[p : p + 1], out[p : p + 1], bounds[p : p + 1])

    def _on_device(self) -> list[_SystemTensors]:
        if self._tensors is None:
            self._tensors = [
                _SystemTensors(systems, tests, self._starts[first], self._torch, self._device)
                for first, _, systems, tests in self._blocks()
            ]
        return self._tensors


class _SystemTensors:
    """`Systems` and test rows on the device, with a column of zeros at the end of each array of columns."""

    def __init__(self, systems: Systems, tests: TestRows, start: int, torch: ModuleType, device: str) -> None:
        self.systems, self.first_row = systems, int(start)
        moved = _mover(torch, device)
        self.gram = moved(np.pad(systems.gram, ((0, 0), (0, 1), (0, 1))))
        self.target = moved(np.pad(systems.target, ((0, 0), (0, 1), (0, 0))))
        diagonal = np.einsum("fii->fi", systems.gram)
        self.spread, self.noise, self.residue, self.shift, self.diagonal = (
            moved(np.pad(array, ((0, 0), (0, 1))))
            for array in (systems.spread, systems.noise, systems.residue, systems.shift, diagonal)
        )
        self.offset, self.level, self.prior = moved(systems.offset), moved(systems.level), moved(systems.prior)
        rows = _fold_rows(tests.rows, tests.offsets, tests.sizes)
        finite = [np.asarray(np.isfinite(part).all(axis=1)) for part in rows]
        self.unsafe = moved(np.pad(~np.stack(finite), ((0, 0), (0, 1))))  # a weight of zero does not undo infinity
        self.rows = [moved(np.where(fine[:, None], part, 0.0)) for part, fine in zip(rows, finite, strict=True)]
        self.lengths = [moved(tests.lengths[low : low + size]) for low, size in _ranges(tests.starts, tests.sizes)]
        self.places = [
            slice(self.first_row + low, self.first_row + low + size) for low, size in _ranges(tests.starts, tests.sizes)
        ]


def _solve(
    t: _SystemTensors, lists: ColumnLists, out: FloatArray, bounds: FloatArray, order: AnyArray, torch: ModuleType
) -> None:
    """Solve the systems of all folds, as `subswarm.engines.linear.numpy.solve` and ``evaluate`` do one by one."""
    systems, device = t.systems, t.gram.device
    columns = torch.as_tensor(lists.table(), device=device)
    sizes = torch.as_tensor(lists.sizes, device=device).to(torch.float64)
    ridge = systems.ridge + systems.shrink * t.spread[:, columns].sum(dim=2) / sizes
    real = columns < lists.n_features
    squares = torch.where(real, t.diagonal[:, columns] + ridge[..., None], 0.0)
    sure = torch.isfinite(squares).all(dim=2) & ~t.unsafe[:, columns].any(dim=2)
    kept = real & (squares != 0) & sure[..., None]
    count = kept.sum(dim=2).to(torch.float64)
    squares = torch.where(kept, squares, 0.0)
    trace = squares.sum(dim=2)
    residue = t.residue[:, columns].sum(dim=2)
    sure &= (count > 0) & ((ridge > 0) | (residue * count <= 0.1 * systems.least_share * trace))
    if not systems.drops:
        sure &= count == sizes
    scale = torch.where(kept, 1.0 / torch.sqrt(squares), 0.0)
    matrix = t.gram[:, columns[:, :, None], columns[:, None, :]] * scale[..., :, None] * scale[..., None, :]
    inverse, sure = _inverse_factor(matrix, sure, torch)
    diagonal = torch.where(kept, (inverse**2).sum(dim=-2), 0.0)
    kappa, spread = diagonal.sum(dim=2), (diagonal * scale**2).sum(dim=2)
    noise = (t.noise[:, columns] * scale).nan_to_num(nan=torch.inf).amax(dim=2)
    error = 16.0 * (noise + (count + systems.rounding) * EPS) * kappa
    if systems.condition_power > 0:
        error = error + 16.0 * count * EPS * (spread * trace) ** systems.condition_power
    dual = 16.0 * EPS * systems.rounding * trace / ridge
    error = error + torch.where(sizes > systems.least_rows, dual.nan_to_num(nan=torch.inf), 0.0)
    sure &= (error <= systems.most_error) & (kappa <= systems.most_kappa)
    sure &= spread * trace * systems.least_share <= 1.0
    target = t.target[:, columns] * scale[..., None]
    solved = inverse @ target
    weights = inverse.transpose(-1, -2) @ solved
    length = (solved**2).sum(dim=2)
    largest = torch.sqrt((weights**2).sum(dim=2).amax(dim=2))
    offset = t.offset[:, None, :]
    constant = offset - 0.5 * length if systems.quadratic else offset.expand_as(length)
    base = 16.0 * EPS * (count + 2) * (t.level[:, None, :] + 0.5 * length).amax(dim=2)
    if systems.quadratic:
        base = base + error * largest * torch.sqrt((target**2).sum(dim=2).amax(dim=2))
    rate = error * largest
    shift = t.shift[:, columns] * scale
    far = torch.sqrt((shift**2).sum(dim=2))
    base = base + 16.0 * EPS * (count + 2) * largest * far
    if systems.uncentred:
        own = inverse.transpose(-1, -2) @ (inverse @ shift[..., None])
        own_length = torch.sqrt((own**2).sum(dim=(2, 3)))
        rate = rate + error * own_length
        base = base + error * (own_length + largest) * far
    if systems.least_between > 0:
        for f, C in enumerate(systems.n_targets):
            if C > 2:
                solved_f, prior = solved[f, :, :, :C], t.prior[f, :C]
                sure[f] &= _spans(solved_f, kept[f], prior, systems.least_between, error[f], torch)
    weights = (weights * scale[..., None]).transpose(-1, -2)
    for f, place in enumerate(t.places):
        wide = torch.zeros((len(lists), weights.shape[2], lists.n_features + 1), dtype=torch.float64, device=device)
        wide.scatter_(2, columns[:, None, :].expand_as(weights[f]), weights[f])
        scores = wide[:, :, :-1] @ t.rows[f] + constant[f, :, :, None]
        reach = rate[f][:, None] * t.lengths[f] + base[f][:, None]
        open_rows = ~sure[f][:, None]
        out[order, : scores.shape[1], place] = scores.masked_fill_(open_rows[:, None], 0.0).cpu().numpy()
        bounds[order, place] = reach.masked_fill_(open_rows, torch.inf).cpu().numpy()


def _inverse_factor(matrix: Tensor, sure: Tensor, torch: ModuleType) -> tuple[Tensor, Tensor]:
    """Return the inverses of the Cholesky factors, and which are certain; the diagonals are taken to be one."""
    k = matrix.shape[-1]
    eye = torch.eye(k, dtype=matrix.dtype, device=matrix.device)
    matrix = torch.where(sure[..., None, None], matrix, eye)
    matrix.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    factor, info = torch.linalg.cholesky_ex(matrix)
    pivots = factor.diagonal(dim1=-2, dim2=-1).amin(dim=-1)
    sure = sure & (info == 0) & (pivots**2 > _LEAST_PIVOT)
    factor = torch.where(sure[..., None, None], factor, eye)
    return torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False), sure


def _spans(solved: Tensor, kept: Tensor, prior: Tensor, least: float, error: Tensor, torch: ModuleType) -> Tensor:
    """Return in which subsets the whitened class means (P, k, C) certainly span as many dimensions as they can."""
    C = solved.shape[2]
    weighted = solved * torch.sqrt(prior)
    trace = (weighted**2).sum(dim=(1, 2)).clamp_min(1e-300)[:, None, None]
    roots = torch.sqrt(prior)
    between = weighted.transpose(1, 2) @ weighted / trace + roots[:, None] * roots
    few = kept.sum(dim=1) < C
    spans = _sum_of_inverse(between, least, torch) * (4.0 * least + error) < 1.0
    if few.any():
        eye = torch.diag_embed((~kept[few]).to(solved.dtype))  # columns that do not count
        within = weighted[few] @ weighted[few].transpose(1, 2) / trace[few] + eye
        total = _sum_of_inverse(within, least, torch) - (~kept[few]).sum(dim=1)
        spans[few] = total * (4.0 * least + error[few]) < 1.0
    return spans


def _sum_of_inverse(matrix: Tensor, least: float, torch: ModuleType) -> Tensor:
    """Return the sums of the inverses' diagonals; infinite where a pivot is not above a quarter of ``least``."""
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    factor, info = torch.linalg.cholesky_ex(matrix)
    sure = (info == 0) & (factor.diagonal(dim1=-2, dim2=-1).amin(dim=-1) ** 2 > 0.25 * least)
    factor = torch.where(sure[:, None, None], factor, eye)
    inverse = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
    return torch.where(sure, (inverse**2).sum(dim=(1, 2)), torch.inf)


class TorchQuadraticEngine(QuadraticEngine):
    """Scores what `QuadraticEngine` does."""

    name: ClassVar[str] = "quadratic-torch"

    def __init__(
        self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int, device: str = "cpu"
    ) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._device, self._torch = device, torch_on(device)
        self._tensors: list[_ClassTensors] | None = None

    def _evaluate(self, masks: Masks, out: FloatArray, bounds: FloatArray) -> None:
        n = self._data.n_features
        if self._data.n_folds * self._bytes_of_fold() > self._max_bytes:
            super()._evaluate(masks, out, bounds)
            return

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            for tensors in self._on_device():
                _fit_quadratic(tensors, lists, out, bounds, first + lists.order, self._torch)

        rows = max(len(fold.test) for fold in self._data.folds)
        for p in in_pieces(work, 0, len(masks), most=max(1, self._max_bytes // (8 * n * (4 * n + 4 * rows)))):
            super()._evaluate(masks[p : p + 1], out[p : p + 1], bounds[p : p + 1])

    def _on_device(self) -> list[_ClassTensors]:
        if self._tensors is None:
            self._tensors = [
                _ClassTensors(classes, tests, self._starts[first], self._torch, self._device)
                for first, _, classes, tests in self._blocks()
            ]
        return self._tensors


class _ClassTensors:
    """`Covariances` and test rows on the device, with a column of zeros at the end of each array of columns."""

    def __init__(self, classes: Covariances, tests: TestColumns, start: int, torch: ModuleType, device: str) -> None:
        self.classes = classes
        moved = _mover(torch, device)
        self.gram = moved(np.pad(classes.gram, ((0, 0), (0, 0), (0, 1), (0, 1))))
        self.spread, self.mean, self.noise = (
            moved(np.pad(array, ((0, 0), (0, 0), (0, 1)))) for array in (classes.spread, classes.mean, classes.noise)
        )
        rows = _fold_rows(tests.rows, tests.offsets, tests.sizes)
        self.rows = [moved(np.pad(part, ((0, 1), (0, 0)))) for part in rows]
        self.places = [slice(start + low, start + low + size) for low, size in _ranges(tests.starts, tests.sizes)]


def _fit_quadratic(
    t: _ClassTensors, lists: ColumnLists, out: FloatArray, bounds: FloatArray, order: AnyArray, torch: ModuleType
) -> None:
    """Compute the scores of all folds, as `subswarm.engines.linear.quadratic_numpy.fit_quadratic` does one by one."""
    classes, device = t.classes, t.gram.device
    columns = torch.as_tensor(lists.table(), device=device)
    real = columns < lists.n_features
    sizes = torch.as_tensor(lists.sizes, device=device).to(torch.float64)
    for f, place in enumerate(t.places):
        C = int(classes.n_classes[f])
        known = torch.full((len(lists),), C > 0, device=device)
        reach = torch.zeros((len(lists), t.rows[f].shape[1]), dtype=torch.float64, device=device)
        scores = torch.zeros((len(lists), out.shape[1], reach.shape[1]), dtype=torch.float64, device=device)
        for c in range(C):
            ridge = classes.ridge + classes.shrink * t.spread[f, c, columns].sum(dim=1) / sizes
            squares = torch.where(real, t.gram[f, c].diagonal()[columns] + ridge[:, None], 1.0)
            sure = (sizes <= int(classes.most_columns[f, c])) & (squares > 0).all(dim=1)
            squares = torch.where(sure[:, None], squares, 1.0)
            scale = torch.where(real, 1.0 / torch.sqrt(squares), 0.0)
            matrix = t.gram[f, c][columns[:, :, None], columns[:, None, :]] * scale[:, :, None] * scale[:, None, :]
            inverse, sure = _inverse_factor(matrix, sure, torch)
            diagonal = torch.where(real, (inverse**2).sum(dim=1), 0.0)
            kappa, spread = diagonal.sum(dim=1), (diagonal * scale**2).sum(dim=1)
            if not classes.ridge > 1.01 * classes.least:
                sure &= spread * 1.01 * classes.least < 1.0
            condition = torch.where(real, squares, 0.0).sum(dim=1) * spread
            theirs = torch.sqrt(condition) if classes.squares else condition
            noise = (t.noise[f, c, columns] * scale).nan_to_num(nan=torch.inf).amax(dim=1)
            rate = 16.0 * ((noise + (sizes + classes.rounding) * EPS) * kappa + sizes * EPS * theirs)
            known &= sure & (rate < 1e-3)
            root = 4.0 * noise * torch.sqrt(sizes * kappa)
            log_det = (torch.log(squares) - 2.0 * torch.log(inverse.diagonal(dim1=1, dim2=2))).sum(dim=1)
            gaps = (t.rows[f][columns] - t.mean[f, c, columns][..., None]) * scale[..., None]
            distances = ((inverse @ gaps) ** 2).sum(dim=1)
            prior = float(classes.log_prior[f, c])
            scores[:, c] = prior - 0.5 * (distances + log_det[:, None])
            base = rate + 16.0 * EPS * (sizes + 2) * (log_det.abs() + abs(prior) + 1.0)
            own = rate[:, None] * distances + root[:, None] * torch.sqrt(distances) + base[:, None]
            reach = torch.maximum(reach, own)
        known &= torch.isfinite(reach).all(dim=1)
        out[order, :, place] = scores.masked_fill_(~known[:, None, None], 0.0).cpu().numpy()
        bounds[order, place] = reach.masked_fill_(~known[:, None], torch.inf).cpu().numpy()


class TorchCentroidEngine(CentroidEngine):
    """Scores what `CentroidEngine` does: masks times a table."""

    name: ClassVar[str] = "centroids-torch"

    def __init__(
        self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int, device: str = "cpu"
    ) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._device, self._torch = device, torch_on(device)
        self._tables: list[tuple[Tensor, Tensor]] | None = None

    def _evaluate(self, masks: Masks, out: FloatArray, bounds: FloatArray) -> None:
        blocks = list(self._blocks())
        if len(blocks) > 1:
            super()._evaluate(masks, out, bounds)
            return
        ((_, _, table),) = blocks
        torch = self._torch
        finite = np.where(np.isfinite(table.reach), table.reach, 0.0)
        reach = (masks @ finite.T) * (masks.sum(axis=1)[:, None] + table.more)
        reach += 16.0 * EPS * np.abs(table.constant).max(axis=1)
        reach[(masks @ ~np.isfinite(table.reach).T) | ~(masks @ table.varies.T)] = np.inf
        bounds[:] = np.repeat(reach, table.sizes, axis=1)

        def work(first: int, last: int) -> None:
            given = torch.as_tensor(masks[first:last], device=self._device).to(torch.float64)
            for f, (terms, constant) in enumerate(self._on_device(table)):
                scores = torch.einsum("pn,tns->pts", given, terms) + constant[:, None]
                place = slice(int(table.starts[f]), int(table.starts[f] + table.sizes[f]))
                out[first:last, : len(constant), place] = scores.cpu().numpy()

        most = max(1, self._max_bytes // (8 * 4 * out.shape[1] * int(table.sizes.max())))
        for p in in_pieces(work, 0, len(masks), most=most):
            super()._evaluate(masks[p : p + 1], out[p : p + 1], bounds[p : p + 1])

    def _on_device(self, table: ColumnTerms) -> list[tuple[Tensor, Tensor]]:
        """Return the terms (T, n, rows) and constants (T,) of each fold."""
        if self._tables is None:
            moved = _mover(self._torch, self._device)
            tables = []
            for f, T in enumerate(table.n_scores):
                size, n = int(table.sizes[f]), self._data.n_features
                terms = table.terms[table.offsets[f] :][: T * n * size].reshape(T, n, size).copy()
                terms[:, np.isinf(table.reach[f])] = 0.0
                tables.append((moved(terms), moved(table.constant[f, :T])))
            self._tables = tables
        return self._tables


def _mover(torch: ModuleType, device: str) -> Callable[[AnyArray], Tensor]:
    def moved(array: AnyArray) -> Tensor:
        tensor: Tensor = torch.as_tensor(np.ascontiguousarray(array), device=device)
        return tensor

    return moved


def _ranges(starts: AnyArray, sizes: AnyArray) -> Iterator[tuple[int, int]]:
    return ((int(start), int(size)) for start, size in zip(starts, sizes, strict=True))


def _fold_rows(rows: FloatArray, offsets: AnyArray, sizes: AnyArray) -> list[FloatArray]:
    """Return the test rows of each fold, (n, rows)."""
    ends = [*offsets[1:], len(rows)]
    return [rows[start:end].reshape(-1, size) for start, end, size in zip(offsets, ends, sizes, strict=True)]
