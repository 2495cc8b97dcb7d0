"""Scorers that the engines compute for whole batches: every function, with the settings people give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.metrics as sk
from sklearn.metrics import make_scorer

from .case import pick

__all__ = ["scorer_of_classes", "scorer_of_numbers", "uses_labels"]

_NUMBERS = ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_absolute_error"]
_NUMBERS += ["neg_median_absolute_error", "explained_variance", "neg_max_error", "neg_mean_absolute_percentage_error"]
_NUMBERS += ["neg_mean_squared_log_error", "neg_root_mean_squared_log_error"]


def scorer_of_classes(rng: np.random.Generator, y: Any, *, shares: bool) -> Any:
    """A scorer of predicted classes, or with ``shares`` of probabilities or decision values."""
    classes = np.unique(y).tolist()
    return _of_shares(rng, classes) if shares else _of_labels(rng, classes)


def scorer_of_numbers(rng: np.random.Generator) -> Any:
    """A scorer of predicted numbers."""
    if rng.random() < 0.1:
        return make_scorer(sk.mean_pinball_loss, greater_is_better=False, alpha=float(rng.uniform(0.1, 0.9)))
    return pick(rng, _NUMBERS)


def uses_labels(scoring: Any) -> bool:
    """Whether a resolved scorer asks for predictions, and not for probabilities or decision values."""
    return getattr(scoring.scorer, "_response_method", "predict") == "predict"


def _of_labels(rng: np.random.Generator, classes: list[Any]) -> Any:
    kind = pick(rng, ("balanced", "matthews", "kappa", *["average"] * 5, "own"))
    if kind == "balanced":
        return make_scorer(sk.balanced_accuracy_score, adjusted=bool(rng.random() < 0.5))
    if kind == "matthews":
        return "matthews_corrcoef"
    if kind == "kappa":
        return make_scorer(sk.cohen_kappa_score, weights=pick(rng, (None, None, None, "linear")))
    if kind == "own":
        return make_scorer(_share_of_right_answers_squared)
    function = pick(rng, (sk.precision_score, sk.recall_score, sk.jaccard_score, sk.f1_score, sk.fbeta_score))
    settings: dict[str, Any] = {"average": pick(rng, ("macro", "micro", "weighted", "binary"))}
    settings["zero_division"] = pick(rng, ("warn", 0.0, 1.0, *([] if function is sk.jaccard_score else [np.nan])))
    if function is sk.fbeta_score:
        settings["beta"] = pick(rng, (0.5, 2.0, 1e-3))
    if settings["average"] == "binary":
        settings["pos_label"] = pick(rng, classes)
    elif rng.random() < 0.3:
        order = rng.permutation(len(classes))[: int(rng.integers(1, len(classes) + 1))]
        settings["labels"] = [classes[place] for place in order]
    return make_scorer(function, **settings)


def _of_shares(rng: np.random.Generator, classes: list[Any]) -> Any:
    both = ("decision_function", "predict_proba")
    if len(classes) == 2:
        positive = pick(rng, classes)
        return pick(
            rng,
            (
                "roc_auc",
                "neg_log_loss",
                make_scorer(sk.average_precision_score, response_method=both, pos_label=positive),
                make_scorer(
                    sk.brier_score_loss, greater_is_better=False, response_method="predict_proba", pos_label=positive
                ),
                make_scorer(sk.roc_auc_score, response_method="predict_proba"),
                make_scorer(_mean_of_largest, response_method="predict_proba"),
            ),
        )
    return pick(
        rng,
        (
            "roc_auc_ovr",
            "roc_auc_ovo",
            "roc_auc_ovr_weighted",
            "roc_auc_ovo_weighted",
            "neg_log_loss",
            "average_precision",
            make_scorer(sk.log_loss, greater_is_better=False, response_method="predict_proba", labels=list(classes)),
            make_scorer(
                sk.top_k_accuracy_score,
                response_method="predict_proba",
                k=int(rng.integers(1, 4)),
                **pick(rng, ({}, {"labels": list(classes)})),
            ),
            make_scorer(_mean_of_largest, response_method="predict_proba"),
        ),
    )


def _share_of_right_answers_squared(truth: Any, answers: Any) -> float:
    return float((truth == answers).mean() ** 2)


def _mean_of_largest(truth: Any, shares: Any) -> float:
    return float(np.max(shares, axis=-1).mean()) if np.ndim(shares) > 1 else float(np.mean(shares))
