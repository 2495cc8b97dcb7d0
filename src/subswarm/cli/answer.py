"""What was found, for a person, for a program and as a page."""

from __future__ import annotations

import hashlib
import math
import platform
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Answer"]


@dataclass(frozen=True, eq=False)
class Answer:
    """A fitted selector, and what was measured beside it."""

    table: str
    data: Any
    model: str
    task: str
    selector: Any
    seed: int
    honest: Any = None
    others: dict[int, Any] = field(default_factory=dict)
    rivals: dict[str, Any] = field(default_factory=dict)

    def show(self) -> None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        selector, result = self.selector, self.selector.result_
        scorer = selector.scoring or ("accuracy" if self.task == "classification" else "r2")
        console = Console(highlight=False)
        summary = Table(show_header=True, header_style="bold", box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for heading, side in (("", "left"), ("features", "right"), (scorer, "right")):
            summary.add_column(heading, justify=side)  # type: ignore[arg-type]
        summary.add_row("all features", str(selector.n_features_in_), f"{selector.baseline_score_:.4f}")
        summary.add_row("selected", str(selector.n_features_), f"{selector.best_score_:.4f}", style="bold")
        for name, other in (*self.rivals.items(), *((f"seed {seed}", each) for seed, each in self.others.items())):
            summary.add_row(name, str(other.n_features_), f"{other.best_score_:.4f}")
        if self.honest is not None:
            sizes = f"{self.honest.supports.sum(axis=1).mean():.1f}"
            summary.add_row("held out, all features", str(selector.n_features_in_), f"{self.honest.baseline_score:.4f}")
            summary.add_row("held out, selected", sizes, f"{self.honest.score:.4f}", style="bold")
        console.print()
        console.print(summary)
        console.print()
        console.print(Text("features  ", style="bold") + Text(", ".join(self.selected)))
        seconds = result.algorithm_seconds + result.evaluation_seconds
        console.print(
            Text("search    ", style="bold")
            + Text(
                f"{result.algorithm}, {result.evaluations} evaluations, {result.computed} distinct, {seconds:.1f} s, "
                f"engine {result.engine}, stopped by {result.stop_reason}"
            )
        )
        honest = "." if self.honest is None else "; 'held out' is on rows that the searches never saw."
        console.print(
            Text(
                f"The scores are means over {len(selector.fold_scores_)} folds that the search itself has seen, so the "
                f"selected one is optimistic for new data{honest}",
                style="dim",
            )
        )

    @property
    def selected(self) -> list[str]:
        return self._names(self.selector.support_)

    def as_json(self) -> dict[str, Any]:
        import numpy
        import sklearn

        from subswarm._version import __version__

        selector, result = self.selector, self.selector.result_
        return {
            "table": self.table,
            "target": self.data.target_name,
            "task": self.task,
            "model": self.model,
            "scoring": selector.scoring or ("accuracy" if self.task == "classification" else "r2"),
            "selected": self.selected,
            "support": selector.support_.tolist(),
            "n_features": selector.n_features_,
            "n_features_in": selector.n_features_in_,
            "best_score": selector.best_score_,
            "fold_scores": selector.fold_scores_.tolist(),
            "repeats": result.n_partitions,
            "baseline_score": None if math.isnan(selector.baseline_score_) else selector.baseline_score_,
            "optimistic": True,
            "held_out": None if self.honest is None else _held_out_json(self.honest),
            "seeds": {str(seed): self._brief(other) for seed, other in self.others.items()},
            "against": {name: self._brief(other) for name, other in self.rivals.items()},
            "front": [
                {"n_features": int(size), "loss": float(loss), "features": self._names(mask)}
                for size, loss, mask in zip(
                    result.front.cardinality, result.front.fitness, result.front.masks, strict=True
                )
            ],
            "algorithm": result.algorithm,
            "settings": result.settings,
            "seed": self.seed,
            "evaluations": result.evaluations,
            "computed": result.computed,
            "stop_reason": result.stop_reason,
            "engine": result.engine,
            "algorithm_seconds": result.algorithm_seconds,
            "evaluation_seconds": result.evaluation_seconds,
            "versions": {
                "subswarm": __version__,
                "scikit-learn": sklearn.__version__,
                "numpy": numpy.__version__,
                "python": platform.python_version(),
            },
        }

    def as_page(self, command: str) -> str:
        """The report."""
        from subswarm.report import Selection, selection_page

        digest = hashlib.sha256(np.ascontiguousarray(self.data.X).tobytes() + repr(self.data.y.tolist()).encode())
        return selection_page(
            Selection(
                selector=self.selector,
                table=self.table,
                target=self.data.target_name,
                model=self.model,
                names=self.data.feature_names,
                shape=self.data.X.shape,
                digest=f"sha256 {digest.hexdigest()}",
                seed=self.seed,
                command=command,
                honest=self.honest,
                others=self.others,
                rivals=self.rivals,
            )
        )

    def _brief(self, other: Any) -> dict[str, Any]:
        return {
            "best_score": other.best_score_,
            "n_features": other.n_features_,
            "selected": self._names(other.support_),
        }

    def _names(self, mask: Any) -> list[str]:
        return [name for name, chosen in zip(self.data.feature_names, mask, strict=True) if chosen]


def _held_out_json(honest: Any) -> dict[str, Any]:
    from subswarm.analysis.stability import stability

    scores = {
        "scores": honest.scores,
        "baseline_scores": honest.baseline_scores,
        "inner_scores": honest.inner_scores,
        "n_features": honest.supports.sum(axis=1),
    }
    figures = {
        "score": honest.score,
        "baseline_score": honest.baseline_score,
        "stability": stability(honest.supports).value,
    }
    return {
        **{name: None if math.isnan(value) else value for name, value in figures.items()},
        **{name: [None if math.isnan(value) else value for value in array.tolist()] for name, array in scores.items()},
    }
