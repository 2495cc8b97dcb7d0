"""Values that no sensible caller passes, and some that one does: the pools that `inputs` draws from."""

from __future__ import annotations

import array
import copy
import datetime
import decimal
import fractions
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score, f1_score, make_scorer, mean_squared_error, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, PredefinedSplit, RepeatedKFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from .case import UserError, pick

try:
    import polars as pl
except ModuleNotFoundError:

    class _NoPolars:
        """In place of polars: the cases that use it are left out."""

        def __getattr__(self, name: str) -> Any:
            raise ModuleNotFoundError("polars is not installed", name="polars")

    pl: Any = _NoPolars()  # type: ignore[no-redef]

__all__ = ["any_cv", "any_estimator", "any_scoring", "any_table", "any_target", "any_value", "any_weights", "word"]

Maker = Callable[[np.random.Generator], Any]


def any_value(rng: np.random.Generator) -> Any:
    """One value of any type, never one that another case may have changed."""
    value = pick(rng, _VALUES)(rng)
    return copy.copy(value) if isinstance(value, list | dict | set | np.ndarray) else value


def word(rng: np.random.Generator) -> str:
    """One text, as it may stand on a command line."""
    return str(pick(rng, _WORDS))


def any_table(rng: np.random.Generator) -> Any:
    """Something for X, often of shape (12, 4)."""
    if rng.random() < 0.1:
        return any_value(rng)
    return pick(rng, _TABLES)(rng)


def any_target(rng: np.random.Generator) -> Any:
    """Something for y, often of length 12."""
    if rng.random() < 0.1:
        return any_value(rng)
    return pick(rng, _TARGETS)(rng)


def any_weights(rng: np.random.Generator) -> Any:
    """Something for groups or sample_weight."""
    return pick(rng, (any_value, any_target, lambda r: r.random(12), lambda r: -r.random(12), lambda r: r.random(5)))(
        rng
    )


def any_estimator(rng: np.random.Generator) -> Any:
    """Something for estimator; half of them work."""
    return pick(rng, _ESTIMATORS)(rng)


def any_cv(rng: np.random.Generator) -> Any:
    """Something for cv."""
    return pick(rng, _SPLITS)(rng)


def any_scoring(rng: np.random.Generator) -> Any:
    """Something for scoring."""
    return pick(rng, _SCORERS)(rng)


def _made_of(rng: np.random.Generator) -> Any:
    """What ``make_scorer`` makes of a metric, a function of the user's, and settings."""
    function = pick(
        rng, (accuracy_score, f1_score, roc_auc_score, mean_squared_error, raising, lambda *_: any_value(rng))
    )
    settings = {pick(rng, ("average", "pos_label", "labels", "multi_class", "beta", "zero_division")): any_value(rng)}
    response = pick(rng, ("predict", "predict_proba", "decision_function"))
    return make_scorer(function, response_method=response, **pick(rng, ({}, settings)))


def raising(*_: Any, **__: Any) -> Any:
    """A callable of the user's that fails."""
    raise UserError("the user's own callable failed")


class _Contrary:
    """An object whose every conversion fails with the user's own error."""

    __len__ = __iter__ = __array__ = __bool__ = __float__ = __int__ = __index__ = __eq__ = raising  # type: ignore[assignment]
    __hash__ = object.__hash__


class _FailsToFit(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, X: Any, y: Any) -> Any:
        raise UserError("this estimator cannot be fitted")


class _Constant(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that predicts whatever it was given, of whatever shape."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def fit(self, X: Any, y: Any) -> Any:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return self.answer


class _OwnScore(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose own score is whatever it was given."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def score(self, X: Any, y: Any) -> Any:
        return self.answer


class _Duck:
    """Has fit and nothing else that scikit-learn needs."""

    def fit(self, X: Any, y: Any) -> Any:
        return self


def _numbers(rng: np.random.Generator) -> Any:
    return rng.normal(size=(12, 4))


def _with(value: Any) -> Maker:
    def make(rng: np.random.Generator) -> Any:
        X = _numbers(rng)
        X[rng.integers(12), rng.integers(4)] = value
        return X

    return make


def _frame(column: Maker) -> Maker:
    def make(rng: np.random.Generator) -> Any:
        return pd.DataFrame(_numbers(rng), columns=list("abcd")).assign(b=column(rng))

    return make


def _polars(column: Maker) -> Maker:
    def make(rng: np.random.Generator) -> Any:
        return pl.DataFrame({"a": rng.normal(size=12), "b": column(rng), "c": np.arange(12)})

    return make


def _constant(value: Any) -> Maker:
    return lambda rng: value


def _selfish(rng: np.random.Generator) -> Any:
    inner: list[Any] = []
    inner.append(inner)
    return inner


_SIMPLE: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, -1, -7, 2**31, 2**63, 2**64, 10**12, 10**400, -(10**400), 0.5, 1.5, -0.0, 1e308,
    5e-324, float("nan"), float("inf"), -float("inf"), 1j, "", " ", "abc", "1", "nan", "2d-upso", "auto", "é\x00\ud800",
    "x" * 3000, b"bytes", [], (), {}, set(), [None], [1, 2], [0, 0], [-1], [99], ["a"], [[1], [2, 3]], (1, (2, 3)),
    {"a": 1}, {1: 2}, frozenset({1}), range(3), slice(3), Ellipsis, NotImplemented, object(), int, repr, print,
    fractions.Fraction(1, 3), decimal.Decimal("NaN"), decimal.Decimal("1e400"), decimal.Decimal(2),
    datetime.datetime(2020, 1, 1), datetime.timedelta(1), np.int8(2), np.uint64(2**64 - 1), np.float16(0.5),
    np.float64("nan"), np.longdouble(2), np.bool_(True), np.complex128(1j), np.datetime64("NaT", "s"), np.str_("a"),
    np.array(3), np.array([]), np.array([1, 0]), np.array([True, False]), np.array([[1.0]]), np.array(["a"]),
    np.array([None]), np.array([1, "a", None], dtype=object), np.zeros((0, 4)), np.zeros((2, 0)), np.zeros((2, 2, 2)),
    np.ma.masked, pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), pd.Series([1, 2]), pd.DataFrame(),
    raising, _Contrary(), UserError, array.array("d", [1.0]), memoryview(b"ab"),
)  # fmt: skip
_VALUES: tuple[Maker, ...] = (
    *(_constant(value) for value in _SIMPLE),
    lambda rng: pl.Series([1]),
    _selfish,
    lambda rng: iter((1, 2)),
    lambda rng: np.random.default_rng(0),
    lambda rng: np.random.RandomState(0),
    lambda rng: rng.normal(size=int(rng.integers(1, 6))),
    lambda rng: int(rng.integers(-5, 20)),
    lambda rng: float(rng.normal() * 10.0 ** rng.integers(-300, 300)),
)
_WORDS: tuple[str, ...] = (
    "", " ", "0", "1", "2", "3", "-1", "1.5", "nan", "inf", "-inf", "1e999", "9" * 400, "-" + "9" * 400, "abc", "é",
    "\t", "a,b", "a=b", "=", "a=", "=1", "particles=3", "particles=null", "particles=[1]", "batch=4", "batch=1e400",
    "batch=NaN", "[", "{}", "null", "true", "None", "wine", "digits", "nb", "knn", "linear", "accuracy", "r2",
    "neg_log_loss", "best", "one-se", "mrmr:2", "mrmr:0", "mrmr:-1", "mrmr:²", "mrmr:x", "anova-f:1", ":3",
    "classification", "regression", "auto", "y", "a", "b", "c", "text", "estimator", "fast", "torch", "cuda",
    "2d-elite", "random", "sfs", "..", "/", ".", "missing.csv", "nowhere/x.json", "small.csv", "--", "-", "--help",
    "{'a': 1}", "x" * 5000, "\x1b[31m", "%s", "$HOME", "1,2", "1;2", "0x10", "1_000", "٣", "१", "２",
)  # fmt: skip
_TABLES: tuple[Maker, ...] = (
    _numbers,
    _numbers,
    *(_with(value) for value in (np.nan, np.inf, -np.inf, 1e308, 5e-324, -1e-310)),
    lambda rng: np.full((12, 4), 1e308) * rng.choice([-1.0, 1.0], size=(12, 4)),
    lambda rng: np.zeros((12, 4)),
    lambda rng: _numbers(rng).astype(np.float16),
    lambda rng: _numbers(rng).astype(np.float32),
    lambda rng: _numbers(rng).astype(np.longdouble),
    lambda rng: _numbers(rng).astype(np.longdouble) * np.longdouble("1e4000"),
    lambda rng: rng.integers(-9, 9, size=(12, 4)).astype(np.int8),
    lambda rng: rng.integers(0, 9, size=(12, 4)).astype(np.uint64) + np.uint64(2**63),
    lambda rng: rng.random((12, 4)) < 0.5,
    lambda rng: _numbers(rng) * 1j,
    lambda rng: _numbers(rng).astype(object),
    lambda rng: np.array([[1, "a", None, 2.0]] * 12, dtype=object),
    lambda rng: np.array([[1, 10**400, 2, 3]] * 12, dtype=object),
    lambda rng: np.array([[1, [2], {}, 3]] * 12, dtype=object),
    lambda rng: np.array([[1, 1j, 2, 3]] * 12, dtype=object),
    lambda rng: np.array([[decimal.Decimal(1), fractions.Fraction(1, 3), True, pd.NA]] * 12, dtype=object),
    lambda rng: np.array([[datetime.date(2020, 1, 1), 1, 2, 3]] * 12, dtype=object),
    lambda rng: _numbers(rng).astype(str),
    lambda rng: _numbers(rng).astype("S"),
    lambda rng: np.full((12, 4), "text"),
    lambda rng: np.full((12, 4), np.datetime64("2020-01-01")),
    lambda rng: np.full((12, 4), np.timedelta64(3, "D")),
    lambda rng: np.zeros((12, 4), dtype=[("a", float), ("b", int)]),
    lambda rng: np.zeros(12, dtype=[("a", float), ("b", int)]),
    lambda rng: np.ma.masked_array(_numbers(rng), mask=rng.random((12, 4)) < 0.2),
    lambda rng: np.asmatrix(_numbers(rng)),
    lambda rng: np.asfortranarray(_numbers(rng)),
    lambda rng: _numbers(rng)[::-1, ::-1],
    lambda rng: np.broadcast_to(rng.normal(size=4), (12, 4)),
    lambda rng: _numbers(rng).tolist(),
    lambda rng: [tuple(row) for row in _numbers(rng)],
    lambda rng: [*_numbers(rng).tolist()[:-1], [1.0]],
    lambda rng: rng.normal(size=12),
    lambda rng: rng.normal(size=(12, 4, 1)),
    lambda rng: rng.normal(size=(int(rng.integers(0, 4)), int(rng.integers(0, 4)))),
    lambda rng: rng.normal(size=(12, 0)),
    lambda rng: rng.normal(size=(12, 1)),
    lambda rng: sparse.csr_matrix(_numbers(rng)),
    lambda rng: sparse.coo_array(_numbers(rng)),
    lambda rng: pd.DataFrame(_numbers(rng)),
    lambda rng: pd.DataFrame(_numbers(rng), columns=["a", "a", "b", "c"]),
    lambda rng: pd.DataFrame(_numbers(rng), columns=["a", 1, None, 2.5]),
    lambda rng: pd.DataFrame(_numbers(rng), columns=pd.MultiIndex.from_product([["a", "b"], [1, 2]])),
    lambda rng: pd.DataFrame(_numbers(rng), columns=["", " ", "\n", "$x_1$"]),
    lambda rng: pd.DataFrame(_numbers(rng), index=pd.date_range("2020", periods=12)),
    lambda rng: pd.DataFrame({"a": [1] * 12}),
    lambda rng: pd.DataFrame(index=range(12)),
    lambda rng: pd.DataFrame(_numbers(rng)).iloc[:0],
    *(
        _frame(column)
        for column in (
            lambda rng: pd.array(rng.integers(0, 9, 12), dtype="Int64"),
            lambda rng: pd.array([None, *range(11)], dtype="Int64"),
            lambda rng: pd.array([None, *[0.5] * 11], dtype="Float64"),
            lambda rng: pd.array([True, None] * 6, dtype="boolean"),
            lambda rng: pd.Categorical(["x", "y"] * 6),
            lambda rng: pd.Categorical([1, 2] * 6),
            lambda rng: pd.array(["x", "y"] * 6, dtype="string"),
            lambda rng: ["1", "2"] * 6,
            lambda rng: [None, "2"] * 6,
            lambda rng: pd.date_range("2020", periods=12),
            lambda rng: pd.date_range("2020", periods=12, tz="UTC"),
            lambda rng: pd.timedelta_range("1D", periods=12),
            lambda rng: pd.period_range("2020", periods=12, freq="D"),
            lambda rng: pd.interval_range(0, 12),
            lambda rng: pd.arrays.SparseArray(rng.integers(0, 2, 12)),
            lambda rng: [[1]] * 12,
            lambda rng: rng.normal(size=12) * 1j,
            lambda rng: [10**400] * 12,
            lambda rng: pd.array([1] * 12, dtype="int64[pyarrow]"),
            lambda rng: pd.array(["x"] * 12, dtype="string[pyarrow]"),
        )
    ),
    *(
        _polars(column)
        for column in (
            lambda rng: rng.normal(size=12),
            lambda rng: pl.Series([None, *range(11)]),
            lambda rng: pl.Series([None] * 12),
            lambda rng: pl.Series([[1, 2]] * 12),
            lambda rng: pl.Series([{"x": 1}] * 12),
            lambda rng: pl.Series(["x", "y"] * 6),
            lambda rng: pl.Series(["x", "y"] * 6, dtype=pl.Categorical),
            lambda rng: pl.Series([datetime.date(2020, 1, 1)] * 12),
            lambda rng: pl.Series([datetime.timedelta(1)] * 12),
            lambda rng: pl.Series([decimal.Decimal("1.5")] * 12),
            lambda rng: pl.Series([True, False] * 6),
            lambda rng: pl.Series([b"x"] * 12),
            lambda rng: pl.Series([object()] * 12, dtype=pl.Object),
            lambda rng: pl.Series(range(12), dtype=pl.UInt8),
        )
    ),
    lambda rng: pl.DataFrame(_numbers(rng)),
    lambda rng: pl.DataFrame(_numbers(rng)).lazy(),
    lambda rng: pl.DataFrame(),
    lambda rng: pd.Series(rng.normal(size=12)),
    lambda rng: pl.Series(rng.normal(size=12)),
    lambda rng: {"a": rng.normal(size=12), "b": rng.normal(size=12)},
    lambda rng: (row for row in _numbers(rng)),
    lambda rng: memoryview(_numbers(rng)),
    lambda rng: pd.Index(range(12)),
)
_TARGETS: tuple[Maker, ...] = (
    lambda rng: np.arange(12) % 2,
    lambda rng: np.arange(12) % 3,
    lambda rng: np.arange(12) < 6,
    lambda rng: rng.normal(size=12),
    lambda rng: rng.integers(0, 2, size=12).tolist(),
    lambda rng: np.array(["a", "b"] * 6),
    lambda rng: np.array(["a", "b"] * 6, dtype=object),
    lambda rng: np.array([b"a", b"b"] * 6),
    lambda rng: np.array([1, "b"] * 6, dtype=object),
    lambda rng: np.array([None, "b"] * 6, dtype=object),
    lambda rng: np.array([np.nan, 1.0] * 6),
    lambda rng: np.array([np.inf, 1.0] * 6),
    lambda rng: np.array([1j, 1.0] * 6),
    lambda rng: np.array([10**400, 1] * 6, dtype=object),
    lambda rng: np.array([(1, 2), (3,)] * 6, dtype=object),
    lambda rng: np.array([decimal.Decimal(1), decimal.Decimal(2)] * 6, dtype=object),
    lambda rng: np.array([True, 0] * 6, dtype=object),
    lambda rng: np.zeros(12),
    lambda rng: np.arange(12),
    lambda rng: np.arange(11) % 2,
    lambda rng: np.arange(13) % 2,
    lambda rng: (np.arange(12) % 2)[:, None],
    lambda rng: rng.integers(0, 2, size=(12, 2)),
    lambda rng: rng.normal(size=(12, 2)),
    lambda rng: rng.normal(size=(2, 6, 1)),
    lambda rng: np.array([]),
    lambda rng: np.array(3),
    lambda rng: np.full(12, np.datetime64("2020-01-01")) + np.arange(12) % 2,
    lambda rng: np.arange(12).astype("timedelta64[D]") % np.timedelta64(2, "D"),
    lambda rng: np.zeros(12, dtype=[("a", float)]),
    lambda rng: np.ma.masked_array(np.arange(12) % 2, mask=np.arange(12) == 3),
    lambda rng: sparse.csr_matrix(np.arange(12) % 2),
    lambda rng: [[0], [1, 2]] * 6,
    lambda rng: iter([0, 1] * 6),
    lambda rng: pd.Series(["a", "b"] * 6),
    lambda rng: pd.Series(["a", None] * 6),
    lambda rng: pd.Series([0, 1] * 6, index=range(12, 0, -1)),
    lambda rng: pd.Series(pd.Categorical(["a", "b"] * 6, categories=["b", "a", "c"])),
    lambda rng: pd.Series([0, 1] * 6, dtype="Int64"),
    lambda rng: pd.Series([0, None] * 6, dtype="Int64"),
    lambda rng: pd.Series([True, None] * 6, dtype="boolean"),
    lambda rng: pd.Series(["a", "b"] * 6, dtype="string"),
    lambda rng: pd.Series(pd.date_range("2020", periods=12)),
    lambda rng: pd.DataFrame({"y": [0, 1] * 6}),
    lambda rng: pl.Series([0, 1] * 6),
    lambda rng: pl.Series(["a", "b"] * 6),
    lambda rng: pl.Series([None, 1] * 6),
    lambda rng: pl.Series([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)] * 6),
    lambda rng: pl.DataFrame({"y": [0, 1] * 6}),
    lambda rng: "abababababab",
    lambda rng: {"a": 1},
    lambda rng: np.arange(12) * 1e-320,
    lambda rng: rng.normal(size=12) * 1e308,
    lambda rng: np.array([2**63, 1] * 6, dtype=np.uint64),
    lambda rng: np.array(["1", "2"] * 6),
)
_ESTIMATORS: tuple[Maker, ...] = (
    *[lambda rng: GaussianNB()] * 4,
    *[lambda rng: KNeighborsClassifier(1)] * 2,
    lambda rng: make_pipeline(StandardScaler(), KNeighborsClassifier(2)),
    lambda rng: KNeighborsRegressor(2),
    lambda rng: DecisionTreeClassifier(max_depth=1),
    lambda rng: DummyClassifier(),
    lambda rng: Ridge(),
    lambda rng: pick(rng, (LogisticRegression(), LinearDiscriminantAnalysis(), RidgeClassifier(), LinearRegression())),
    lambda rng: make_pipeline(StandardScaler(), pick(rng, (LogisticRegression(), RidgeClassifier(), Ridge()))),
    lambda rng: pick(rng, (Ridge, RidgeClassifier))(any_value(rng), solver=pick(rng, ("auto", "svd", any_value(rng)))),
    lambda rng: pick(rng, (Ridge, LinearRegression, RidgeClassifier))(fit_intercept=any_value(rng)),
    lambda rng: RidgeClassifier(class_weight=pick(rng, (any_value(rng), {0: any_value(rng)}))),
    lambda rng: LogisticRegression(C=any_value(rng), class_weight=pick(rng, (None, any_value(rng)))),
    lambda rng: LogisticRegression(solver=any_value(rng), max_iter=pick(rng, (1, 5, any_value(rng)))),
    lambda rng: LinearDiscriminantAnalysis(solver=pick(rng, ("svd", "lsqr", any_value(rng))), shrinkage=any_value(rng)),
    lambda rng: LinearDiscriminantAnalysis(priors=any_value(rng), tol=pick(rng, (1e-4, any_value(rng)))),
    lambda rng: GaussianNB(var_smoothing=any_value(rng)),
    lambda rng: GaussianNB(priors=any_value(rng)),
    lambda rng: KNeighborsClassifier(any_value(rng)),
    lambda rng: KNeighborsClassifier(1, weights=any_value(rng)),
    lambda rng: KNeighborsClassifier(1, metric=any_value(rng)),
    lambda rng: KNeighborsClassifier(1, p=any_value(rng)),
    lambda rng: KNeighborsClassifier(50),
    lambda rng: make_pipeline(StandardScaler(with_mean=any_value(rng)), GaussianNB()),
    lambda rng: make_pipeline(StandardScaler(), None, GaussianNB()),
    lambda rng: make_pipeline(StandardScaler()),
    lambda rng: StandardScaler(),
    lambda rng: GaussianNB,
    lambda rng: _FailsToFit(),
    lambda rng: _Constant(any_value(rng)),
    lambda rng: _OwnScore(any_value(rng)),
    lambda rng: _Duck(),
    any_value,
)
_SPLITS: tuple[Maker, ...] = (
    *[lambda rng: 2] * 3,
    lambda rng: int(rng.integers(-1, 15)),
    any_value,
    lambda rng: KFold(int(rng.integers(2, 20))),
    lambda rng: GroupKFold(2),
    lambda rng: LeaveOneOut(),
    lambda rng: RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
    lambda rng: TimeSeriesSplit(3),
    lambda rng: PredefinedSplit([0, 1] * 6),
    lambda rng: PredefinedSplit([-1] * 12),
    lambda rng: [(np.arange(6), np.arange(6, 12))],
    lambda rng: [(np.arange(6), np.arange(6, 14))],
    lambda rng: [(np.arange(6), [])],
    lambda rng: [(np.arange(-3, 6), [7])],
    lambda rng: [([0.5, 1.5], [7.2])],
    lambda rng: [(["a"], ["b"])],
    lambda rng: [([None], [1])],
    lambda rng: [([[0, 1]], [[2, 3]])],
    lambda rng: [(np.arange(12) < 6, np.arange(12) >= 6)],
    lambda rng: [(np.arange(5) < 3, np.arange(12) >= 6)],
    lambda rng: [(range(6), range(6, 12)), 3],
    lambda rng: [(range(6), range(6, 12), 3)],
    lambda rng: [([0, 1, 2**70], [3])],
    lambda rng: [([0, 2, 4], [1, 3])],
    lambda rng: [any_value(rng)],
    lambda rng: [(any_value(rng), any_value(rng))],
    lambda rng: ((np.arange(6), np.arange(6, 12)) for _ in range(2)),
    lambda rng: type("Splits", (), {"split": raising, "get_n_splits": raising})(),
    lambda rng: KFold,
)
_SCORERS: tuple[Maker, ...] = (
    *[_constant(name) for name in ("accuracy", "f1_macro", "roc_auc", "r2", "neg_log_loss", "neg_mean_squared_error")],
    *[_constant(name) for name in ("roc_auc_ovr", "f1", "max_error", "homogeneity_score", "explained_variance", "no")],
    any_value,
    any_value,
    lambda rng: raising,
    *[lambda rng: (lambda answer: lambda model, X, y: answer)(any_value(rng))] * 3,
    lambda rng: lambda: 1.0,
    lambda rng: ["accuracy", "f1_macro"],
    lambda rng: ["accuracy", any_value(rng)],
    lambda rng: {"a": "accuracy"},
    lambda rng: {"a": "accuracy", "b": any_scoring(rng)},
    lambda rng: {"a": raising, pick(rng, ("b", "", 1)): "r2"},
    lambda rng: _made_of(rng),
    lambda rng: _made_of(rng),
)
