"""Recognises scikit-learn's scorers and returns the same metric for a whole batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from numbers import Integral, Real

import numpy as np
import sklearn.metrics as sk
from sklearn import get_config
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline

from subswarm._types import AnyArray, BoolArray, Estimator
from subswarm.engines.data import FoldedData, Int64Array, Scoring
from subswarm.engines.metrics import labels, values
from subswarm.engines.metrics.base import BatchMetric, FixedPredictions, Needs
from subswarm.engines.metrics.probabilities import BrierScore, LogLoss, TopK
from subswarm.engines.metrics.ranking import BinaryRanking, MulticlassRanking, has_all_classes
from subswarm.engines.recipe import class_codes

__all__ = ["batch_metric", "needed_predictions"]

_Named = type(sk.get_scorer("accuracy"))
_AVERAGES = ("macro", "micro", "weighted")


class _UnknownError(Exception):
    """The scorer has a setting that is not implemented, or that scikit-learn refuses."""


@dataclass(frozen=True, eq=False)
class _Target:
    """What a metric is built from.

    Attributes
    ----------
    method : the method of the estimator whose result scikit-learn passes to the metric
    has_decision : whether the estimator has a ``decision_function``
    classes, truth : the sorted classes and the position of each row's class; empty for regression
    """

    data: FoldedData
    method: str
    has_decision: bool
    classes: AnyArray
    truth: Int64Array

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def position_of(self, label: object) -> int:
        """Return the position of a label among the classes, -1 if it is not one of them."""
        found = [place for place, own in enumerate(self.classes.tolist()) if own == label]
        return found[0] if found else -1

    def has_classes_in_order(self, given: object) -> bool:
        """Return whether ``labels`` are all classes in order; without labels this is False."""
        return given is not None and np.array_equal(np.asarray(given), self.classes)


_Builder = Callable[..., BatchMetric]


def batch_metric(scoring: Scoring, estimator: Estimator, data: FoldedData) -> BatchMetric | None:
    """Return the metric of a scorer for a whole batch, or None if the scorer or one of its settings is not known.

    Known are scikit-learn's scorers by name, the estimator's own ``score`` (accuracy or R²), and what ``make_scorer``
    returns for their functions. ``estimator`` tells which of its methods the scorer calls.
    """
    try:
        function, settings, sign, methods = _parts_of(scoring, estimator)
        builder, is_for_classes = _BUILDERS[function]
        if data.y.ndim != 1 or is_for_classes != is_classifier(estimator) or _may_route(data):
            return None
        known = class_codes(data) if is_for_classes else (np.empty(0), np.empty(0, dtype=np.int64))
        if known is None or (is_for_classes and (len(known[0]) < 2 or known[0].dtype.kind not in "biufUSO")):
            return None
        has_decision = hasattr(estimator, "decision_function")
        method = next((name for name in methods if hasattr(estimator, name)), None)
        if method is None:
            return None
        metric = builder(_Target(data, method, has_decision, *known), **settings)
    except (KeyError, TypeError, _UnknownError):
        return None
    metric.sign = float(sign)
    if is_for_classes:
        metric.refused = _folds_without_positive_class(scoring, function, settings, method, data)
    return metric


def _folds_without_positive_class(
    scoring: Scoring, function: object, settings: Mapping[str, object], method: str, data: FoldedData
) -> BoolArray | None:
    """Return the folds that scikit-learn's scorer refuses because the model does not know ``pos_label``, or None.

    Functions such as ``f1_score`` have 1 as default, which ``make_scorer`` passes on for every ``average``.
    """
    default = signature(function).parameters.get("pos_label")  # type: ignore[arg-type]
    pos_label = settings.get("pos_label", None if default is None else default.default)
    if pos_label is None:
        return None
    refused = np.zeros(data.n_folds, dtype=bool)
    known: dict[str, bool] = {}
    for f, fold in enumerate(data.folds):
        classes = np.unique(data.y[fold.train])
        if pos_label in classes.tolist():
            continue
        key = repr(classes.tolist())
        if key not in known:
            shares = None if method == "predict" else np.eye(len(classes))
            known[key] = _is_refused(scoring, FixedPredictions(classes, classes, shares))
        refused[f] = known[key]
    return refused if refused.any() else None


def _is_refused(scoring: Scoring, model: FixedPredictions) -> bool:
    """Return whether the scorer raises an error for a model that is right about one row of each class."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scoring.scorer(model, np.zeros((len(model.classes), 1)), model.classes)
    except ValueError:
        return True
    return False


def needed_predictions(scoring: Scoring, estimator: Estimator, data: FoldedData) -> Needs | None:
    """Return which predictions an engine must have for a scorer; None if only scikit-learn itself can score by it.

    A scorer that `batch_metric` does not know, but that ``make_scorer`` has made, uses nothing but predictions, and can
    be called on those of the engine.
    """
    metric = batch_metric(scoring, estimator, data)
    if metric is not None:
        return metric.needs
    try:
        _, _, _, methods = _parts_of(scoring, estimator)
    except _UnknownError:
        return None
    method = next((name for name in methods if hasattr(estimator, name)), None)
    if _may_route(data) or data.y.ndim != 1 or not (is_classifier(estimator) or is_regressor(estimator)):
        return None
    if method == "predict":
        return "labels" if is_classifier(estimator) else "values"
    return "probabilities" if method == "predict_proba" and is_classifier(estimator) else None


def _parts_of(scoring: Scoring, estimator: Estimator) -> tuple[object, Mapping[str, object], int, tuple[str, ...]]:
    """Return a scorer's function, settings and sign, and the methods of which it calls the first that there is."""
    scorer: object = scoring.scorer
    if type(scorer) is _Named:
        if hasattr(scorer, "_metadata_request"):
            raise _UnknownError
        function, settings, sign, methods = (
            vars(scorer)[name] for name in ("_score_func", "_kwargs", "_sign", "_response_method")
        )
        return function, settings, sign, (methods,) if isinstance(methods, str) else tuple(methods)
    if scoring.given is None and type(scorer) is type(sk.check_scoring(estimator)):
        own_score = getattr(type(_last_step(estimator)), "score", None)
        if is_classifier(estimator) and own_score in (ClassifierMixin.score, KNeighborsClassifier.score):
            return sk.accuracy_score, {}, 1, ("predict",)
        if is_regressor(estimator) and own_score in (RegressorMixin.score, KNeighborsRegressor.score):
            return sk.r2_score, {}, 1, ("predict",)
    raise _UnknownError


def _may_route(data: FoldedData) -> bool:
    """Return whether the scorer may get metadata, such as weights; without metadata routing only ``fit`` gets them."""
    return bool(data.params) and bool(get_config()["enable_metadata_routing"])


def _last_step(estimator: object) -> object:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _need(condition: bool) -> None:
    if not condition:
        raise _UnknownError


def _labels(target: _Target, formula: labels.Formula) -> BatchMetric:
    _need(target.method == "predict")
    return labels.LabelMetric(target.data, target.classes, target.truth, formula)


def _accuracy(target: _Target, *, normalize: object = True) -> BatchMetric:
    _need(normalize is True)
    return _labels(target, labels.accuracy)


def _balanced_accuracy(target: _Target, *, adjusted: object = False) -> BatchMetric:
    _need(isinstance(adjusted, bool))
    return _labels(target, partial(labels.balanced_accuracy, adjusted=bool(adjusted)))


def _matthews(target: _Target) -> BatchMetric:
    return _labels(target, labels.matthews_corrcoef)


def _kappa(target: _Target, *, weights: object = None) -> BatchMetric:
    _need(weights is None)
    return _labels(target, labels.cohen_kappa)


def _averaged(
    target: _Target,
    *,
    ratio: Callable[[labels.Counts], labels.Ratio],
    labels: object = None,
    pos_label: object = 1,
    average: object = "binary",
    zero_division: object = "warn",
) -> BatchMetric:
    return _labels(target, _average_of(target, ratio, labels, pos_label, average, zero_division))


def _average_of(
    target: _Target,
    ratio: Callable[[labels.Counts], labels.Ratio],
    given: object,
    pos_label: object,
    average: object,
    zero_division: object,
) -> labels.Averaged:
    if isinstance(zero_division, str):
        _need(zero_division == "warn")
        value = 0.0
    else:
        _need(isinstance(zero_division, Real) and not isinstance(zero_division, bool))
        value = float(zero_division)  # type: ignore[arg-type]
        _need(value in (0.0, 1.0) or (bool(np.isnan(value)) and ratio is not labels.jaccard))
    if average == "binary":
        place = target.position_of(pos_label)
        _need(target.n_classes == 2 and place >= 0)
        return labels.Averaged(ratio, "binary", (place,), value)
    _need(average in _AVERAGES)
    places = None
    if given is not None:
        chosen = np.asarray(given)
        _need(chosen.ndim == 1 and len(chosen) > 0 and len(np.unique(chosen)) == len(chosen))
        places = tuple(target.position_of(label) for label in chosen.tolist())
        _need(min(places) >= 0)
    return labels.Averaged(ratio, str(average), places, value)


def _f1(target: _Target, **settings: object) -> BatchMetric:
    return _fbeta(target, beta=1.0, **settings)


def _fbeta(target: _Target, *, beta: object, **settings: object) -> BatchMetric:
    _need(isinstance(beta, Real) and 0 < float(beta) < np.inf)
    return _averaged(target, ratio=partial(labels.f_score, beta=float(beta)), **settings)  # type: ignore[arg-type]


def _needs_order(target: _Target) -> Needs:
    """Return "scores" if those of the engine are in the order of what the scorer gets, with the same ties."""
    return "scores" if target.method == "decision_function" or not target.has_decision else "probabilities"


def _roc_auc(
    target: _Target,
    *,
    average: object = "macro",
    max_fpr: object = None,
    multi_class: object = "raise",
    labels: object = None,
) -> BatchMetric:
    _need(max_fpr is None and target.method != "predict" and average in _AVERAGES)
    if target.n_classes == 2:
        return BinaryRanking(_needs_order(target), target.data, target.truth, precision=False)
    _need(target.method == "predict_proba" and multi_class in ("ovr", "ovo") and average != "micro")
    _need(labels is None or target.has_classes_in_order(labels))
    return MulticlassRanking(
        target.data,
        target.truth,
        target.n_classes,
        precision=False,
        pairs=multi_class == "ovo",
        weighted=average == "weighted",
    )


def _average_precision(target: _Target, *, average: object = "macro", pos_label: object = 1) -> BatchMetric:
    _need(target.method != "predict" and average in _AVERAGES)
    if target.n_classes == 2:
        place = target.position_of(pos_label)
        _need(place >= 0)
        needs = _needs_order(target)
        flipped = place == 0 and target.method == "decision_function"
        if place == 0 and not flipped:
            needs = "probabilities"
        return BinaryRanking(
            needs, target.data, target.truth, precision=True, positive=place, column=place, flipped=flipped
        )
    _need(target.method == "predict_proba" and average != "micro" and pos_label == 1)
    return MulticlassRanking(
        target.data, target.truth, target.n_classes, precision=True, pairs=False, weighted=average == "weighted"
    )


def _log_loss(target: _Target, *, normalize: object = True, labels: object = None) -> BatchMetric:
    _need(normalize is True and target.method == "predict_proba")
    _need(labels is None or target.has_classes_in_order(labels))
    usable = has_all_classes(target.data, target.truth, target.n_classes, tests=labels is None)
    return LogLoss(target.data, target.truth, target.n_classes, usable)


def _brier(
    target: _Target, *, pos_label: object = None, labels: object = None, scale_by_half: object = "auto"
) -> BatchMetric:
    by_rows = "scale_by_half" in signature(sk.brier_score_loss).parameters
    _need(target.method == "predict_proba" and (by_rows or target.n_classes == 2))
    _need(labels is None or (by_rows and target.has_classes_in_order(labels)))
    _need(scale_by_half == "auto" or isinstance(scale_by_half, bool))
    positive = 1
    if target.n_classes == 2:
        if pos_label is None:
            _need(target.classes.dtype.kind in "biuf")
        else:
            positive = target.position_of(pos_label)
            _need(positive >= 0)
    else:
        _need(pos_label is None)
    usable = has_all_classes(target.data, target.truth, target.n_classes, tests=labels is None or target.n_classes == 2)
    halved = scale_by_half is True or (scale_by_half == "auto" and target.n_classes == 2)
    return BrierScore(
        target.data,
        target.truth,
        target.n_classes,
        usable,
        positive=positive,
        by_rows=by_rows,
        scale=0.5 if by_rows and halved else 1.0,
    )


def _top_k(target: _Target, *, k: object = 2, normalize: object = True, labels: object = None) -> BatchMetric:
    _need(target.method == "predict_proba" and normalize is True)
    _need(isinstance(k, Integral) and int(k) >= 1)
    _need(labels is None or target.has_classes_in_order(labels))
    usable = has_all_classes(target.data, target.truth, target.n_classes, tests=labels is None)
    return TopK(target.data, target.truth, target.n_classes, usable, k=int(k))  # type: ignore[call-overload]


def _value(
    target: _Target,
    *,
    formula: values.ValueFormula,
    root: bool = False,
    multioutput: object = "uniform_average",
    force_finite: object = True,
) -> BatchMetric:
    _need(target.method == "predict" and multioutput == "uniform_average" and force_finite is True)
    return values.ValueMetric(target.data, formula, root=root)


def _numbers(formula: values.ValueFormula, *, root: bool = False) -> tuple[_Builder, bool]:
    return partial(_value, formula=formula, root=root), False


_BUILDERS: dict[object, tuple[_Builder, bool]] = {
    sk.accuracy_score: (_accuracy, True),
    sk.balanced_accuracy_score: (_balanced_accuracy, True),
    sk.matthews_corrcoef: (_matthews, True),
    sk.cohen_kappa_score: (_kappa, True),
    sk.precision_score: (partial(_averaged, ratio=labels.precision), True),
    sk.recall_score: (partial(_averaged, ratio=labels.recall), True),
    sk.jaccard_score: (partial(_averaged, ratio=labels.jaccard), True),
    sk.f1_score: (_f1, True),
    sk.fbeta_score: (_fbeta, True),
    sk.roc_auc_score: (_roc_auc, True),
    sk.average_precision_score: (_average_precision, True),
    sk.log_loss: (_log_loss, True),
    sk.brier_score_loss: (_brier, True),
    sk.top_k_accuracy_score: (_top_k, True),
    sk.r2_score: _numbers(values.r2),
    sk.explained_variance_score: _numbers(values.explained_variance),
    sk.mean_squared_error: _numbers(values.mean_squared_error),
    sk.root_mean_squared_error: _numbers(values.mean_squared_error, root=True),
    sk.mean_absolute_error: _numbers(values.mean_absolute_error),
    sk.mean_absolute_percentage_error: _numbers(values.mean_absolute_percentage_error),
    sk.median_absolute_error: _numbers(values.median_absolute_error),
    sk.max_error: _numbers(values.max_error),
    sk.mean_squared_log_error: _numbers(values.mean_squared_log_error),
    sk.root_mean_squared_log_error: _numbers(values.mean_squared_log_error, root=True),
}
"""Functions of `sklearn.metrics`: how to build the metric from a target and settings, and whether it is for classes."""
