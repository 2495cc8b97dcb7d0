"""The best subsets that a search saw, as tables: by cost and loss, and by size."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from subswarm._checks import check_real
from subswarm._search.result import SearchResult, error_over_folds
from subswarm._types import AnyArray, CostFront, FloatArray, IntArray, Mask, Masks, Subset
from subswarm.errors import MissingExtraError, SettingError
from subswarm.objective.foldwise import FoldwiseObjective
from subswarm.objective.objective import Objective

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["FrontTable", "make_front", "scores_by_size"]

_MOST_NAMES = 8
"""Most column names in a row of the table as text."""


@dataclass(frozen=True, eq=False, repr=False)
class FrontTable:
    """The subsets of a search that no other one beats in both cost and loss, by ascending cost.

    Without prices the cost of a subset is its number of columns. If the search minimised the losses by two scorers, the
    cost is the second loss. The losses are those that the search minimised, so they are optimistic for new rows.

    Attributes
    ----------
    masks : bool array of shape (S, n)
        The subsets.
    cost : float array of shape (S,)
        Their costs, or their numbers of columns.
    loss : float array of shape (S,)
        Their losses; lower is better.
    standard_error : float array of shape (S,)
        Standard errors of the losses over the folds; NaN if there are too few folds.
    names : tuple of str
        Names of all columns of the table.
    is_priced : bool
        Whether ``cost`` has prices instead of numbers of columns.
    second_scorer : str or None
        Name of the scorer whose loss is the ``cost``; None if it is not a loss.
    nested_loss : float array of shape (S,) or None
        Loss, on rows that the searches of a nested cross-validation did not use, of the best subset within each cost;
        see `HeldOut.front_scores`. None if it was not measured.
    nested_standard_error : float array of shape (S,) or None
        Standard errors of ``nested_loss`` over the outer folds.

    Examples
    --------
    >>> front = FrontTable(
    ...     np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], bool), np.array([1.0, 2.0, 3.0]), np.array([0.3, 0.12, 0.1]),
    ...     np.full(3, 0.02), ("age", "dose", "weight"))
    >>> front
    size   loss  standard error  columns
       1  0.300           0.020  age
       2  0.120           0.020  age, dose
       3  0.100           0.020  age, dose, weight
    >>> front.knee().features.tolist(), front.within(1).features.tolist()
    ([0, 1], [0])
    """

    masks: Masks
    cost: FloatArray
    loss: FloatArray
    standard_error: FloatArray
    names: tuple[str, ...]
    is_priced: bool = False
    second_scorer: str | None = None
    nested_loss: FloatArray | None = None
    nested_standard_error: FloatArray | None = None

    def with_nested_losses(self, losses: FloatArray) -> FrontTable:
        """Return the table with the mean and the standard error of nested losses, shape (outer folds, S)."""
        spread = losses.std(axis=0, ddof=1) if len(losses) > 1 else np.full(len(self), np.nan)
        return replace(self, nested_loss=losses.mean(axis=0), nested_standard_error=spread / np.sqrt(len(losses)))

    @property
    def cost_name(self) -> str:
        """What ``cost`` is: "features", "cost", or the loss by the second scorer."""
        if self.second_scorer is not None:
            return f"loss by {self.second_scorer}"
        return "cost" if self.is_priced else "features"

    @property
    def size(self) -> IntArray:
        """Number of columns of each subset, shape (S,)."""
        return np.asarray(self.masks.sum(axis=1, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.loss)

    def columns(self, row: int) -> list[str]:
        """Return the names of the columns of the subset in this row."""
        return [self.names[column] for column in np.flatnonzero(self.masks[row])]

    def knee(self) -> Subset:
        """Return the subset farthest below the line between the cheapest subset and the one of lowest loss.

        Cost and loss count as shares of their ranges on the front. A front of at most two subsets has no knee; the
        subset of lowest loss is then returned.
        """
        if len(self) < 3:
            return self._subset(len(self) - 1)
        cost = (self.cost - self.cost[0]) / (self.cost[-1] - self.cost[0])
        loss = (self.loss - self.loss[-1]) / (self.loss[0] - self.loss[-1])
        return self._subset(int(np.argmin(cost + loss)))

    def within(self, max_cost: float) -> Subset:
        """Return the subset of lowest loss that costs at most ``max_cost``; SettingError if there is none."""
        check_real("max_cost", max_cost, low=0)
        affordable = np.flatnonzero(self.cost <= max_cost)
        if not len(affordable):
            unit = "number of columns" if self.cost_name == "features" else self.cost_name
            raise SettingError(
                f"no subset that the search saw costs at most max_cost={float(max_cost):g}; the lowest {unit} is "
                f"{self.cost[0]:g}. Allow more, or more evaluations."
            )
        return self._subset(int(affordable[-1]))

    def to_pandas(self) -> DataFrame:
        """Return the table as a pandas data frame."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise MissingExtraError("to_pandas() needs pandas, which is not installed; pip install pandas") from error
        rows = [self.columns(row) for row in range(len(self))]
        values: dict[str, object] = {"size": self.size, "loss": self.loss, "standard_error": self.standard_error}
        if self.nested_loss is not None:
            values["nested_loss"] = self.nested_loss
            values["nested_standard_error"] = self.nested_standard_error
        values["columns"] = rows
        return DataFrame(values if self.cost_name == "features" else {self.cost_name: self.cost, **values})

    def __repr__(self) -> str:
        heading, *rows = self._cells()
        widths = [max(len(row[place]) for row in (heading, *rows)) for place in range(len(heading) - 1)]
        return "\n".join(
            "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
            for row in (heading, *rows)
        )

    def _repr_html_(self) -> str:
        heading, *rows = self._cells()
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in heading)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f'<table class="subswarm"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'

    def _cells(self) -> list[tuple[str, ...]]:
        """Return the table as text, the heading first."""
        priced = () if self.cost_name == "features" else (self.cost_name,)
        measured = self.nested_loss is not None
        headings = ("loss", "standard error", *(("nested loss", "standard error") if measured else ()))
        rows: list[tuple[str, ...]] = [(*priced, "size", *headings, "columns")]
        for row, size in enumerate(self.size.tolist()):
            names = self.columns(row)
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            price = f"{self.cost[row]:g}" if self.second_scorer is None else f"{self.cost[row]:.3f}"
            cost = (price,) if priced else ()
            values = (self.loss, self.standard_error, self.nested_loss, self.nested_standard_error)
            numbers = tuple(f"{each[row]:.3f}" for each in values if each is not None)
            rows.append((*cost, str(size), *numbers, ", ".join(names[:_MOST_NAMES]) + more))
        return rows

    def _subset(self, row: int) -> Subset:
        return Subset(self.masks[row].copy(), float(self.loss[row]))


def make_front(
    result: SearchResult,
    objective: Objective,
    *,
    names: Iterable[object] | None = None,
    owner: IntArray | None = None,
    prices: FloatArray | None = None,
    second_scorer: str | None = None,
) -> FrontTable:
    """Return the front of a search whose masks are over columns.

    Parameters
    ----------
    result : the search
    objective : the objective over columns
    names : names of the columns
    owner, prices : the feature of each column, and the price of each feature; None for numbers of columns
    second_scorer : name of the scorer of the second loss, if the search minimised two
    """
    n_columns = result.front.masks.shape[1]
    front = CostFront.empty(n_columns) if result.cost_front is None else result.cost_front
    if second_scorer is None:  # the cost of any subset is known
        masks = result.front.masks
        priced = None if owner is None or prices is None else _costs_of(masks, owner, prices)
        costs = masks.sum(axis=1).astype(np.float64) if priced is None else priced
        front = front.with_more(masks, costs, result.front.fitness)
    losses_of = _losses_known(result, objective)
    errors = [error_over_folds(losses_of(mask), result.n_partitions) for mask in front.masks]
    return FrontTable(
        masks=front.masks,
        cost=front.costs,
        loss=front.losses,
        standard_error=np.array(errors),
        names=tuple(str(name) for name in (range(n_columns) if names is None else names)),
        is_priced=prices is not None,
        second_scorer=second_scorer,
    )


def _costs_of(masks: Masks, owner: IntArray, prices: FloatArray) -> FloatArray:
    """Return the cost of subsets of columns: each feature is priced once."""
    has = np.zeros((len(masks), len(prices)), dtype=bool)
    for column in np.flatnonzero(owner >= 0):
        has[:, owner[column]] |= masks[:, column]
    return np.asarray(has @ prices)


def _losses_known(result: SearchResult, objective: Objective) -> Callable[[Mask], FloatArray]:
    """Return a function from a subset to its loss in each fold, which makes no fits for the subsets of a path."""
    finalists = result.finalists
    if not isinstance(objective, FoldwiseObjective) or finalists is None or finalists.paired is None:
        return objective.losses_of
    known = dict(zip((mask.tobytes() for mask in finalists.masks), finalists.paired, strict=True))
    return lambda mask: known[mask.tobytes()] if mask.tobytes() in known else objective.losses_of(mask)


def scores_by_size(result: SearchResult, objective: Objective) -> dict[str, AnyArray]:
    """Return the best subset of each size with its scores, in the form of scikit-learn's ``cv_results_``."""
    front, scoring = result.front, objective.scoring
    losses = np.array([objective.remembered_losses(mask) for mask in front.masks]).reshape(len(front), -1)
    sign = 0.0 if scoring.negated else 1.0
    scores = sign - losses
    return {
        "n_features": front.cardinality,
        "mean_test_score": sign - front.fitness,
        "std_test_score": scores.std(axis=1),
        **{f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])},
        "support": front.masks.copy(),
    }
