"""Digests: equal for equal values in any process, different for different values."""

from __future__ import annotations

import datetime
import enum
import functools
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, f1_score, fbeta_score, make_scorer
from sklearn.model_selection import RandomizedSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from subswarm._fingerprint import digest


def scaled_by(factor):
    def scaled(x):
        return x * factor

    return scaled


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Point:
    x: float
    y: float

    def moved(self, by):
        return self.x + by


class Slotted:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


def many_priors(last):
    return np.append(np.full(2000, 0.0001), last)


PAIRS = {
    "float": (0.1, np.nextafter(0.1, 1).item()),
    "zero": (0.0, -0.0),
    "type of number": (1, 1.0),
    "bool": (1, True),
    "text": ("a", "b"),
    "text and bytes": ("a", b"a"),
    "None": (None, "None"),
    "list and tuple": ([1, 2], (1, 2)),
    "nesting": ([1, [2]], [[1], 2]),
    "split text": (["ab", "c"], ["a", "bc"]),
    "dict": ({"a": 1}, {"a": 2}),
    "set": ({1, 2}, {1, 3}),
    "array": (np.arange(5000.0), np.append(np.arange(4999.0), 0)),
    "dtype": (np.zeros(3, np.float32), np.zeros(3, np.float64)),
    "shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "object array": (np.array(["a", None], object), np.array(["a", 0], object)),
    "masked array": (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 0])),
    "record": (np.array([(1, 2.0)], "i1,f8"), np.array([(1, 3.0)], "i1,f8")),
    "function": (accuracy_score, f1_score),
    "lambda": (lambda x: x + 1, lambda x: x + 2),
    "nested code": (lambda: [i * 2 for i in (1, 2)], lambda: [i * 3 for i in (1, 2)]),
    "names": (lambda x: x.a, lambda x: x.b),
    "defaults": (lambda x=1: x, lambda x=2: x),
    "keyword defaults": (lambda *, x=1: x, lambda *, x=2: x),
    "closure": (scaled_by(2), scaled_by(3)),
    "partial": (functools.partial(pow, 2), functools.partial(pow, 3)),
    "partial keywords": (functools.partial(round, ndigits=1), functools.partial(round, ndigits=2)),
    "bound method": (Point(1.0, 2.0).moved, Point(3.0, 2.0).moved),
    "builtin": (len, abs),
    "builtin method": ("a".upper, "b".upper),
    "ufunc": (np.log, np.log1p),
    "class": (GaussianNB, StandardScaler),
    "enum": (Colour.RED, Colour.BLUE),
    "dataclass": (Point(1.0, 2.0), Point(1.0, 2.5)),
    "slots": (Slotted(1), Slotted(2)),
    "date": (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)),
    "fraction": (Fraction(1, 3), Fraction(2, 3)),
    "pattern": (re.compile("a"), re.compile("b")),
    "range": (range(3), range(4)),
    "generator": (np.random.default_rng(0), np.random.default_rng(1)),
    "random state": (np.random.RandomState(0), np.random.RandomState(1)),
    "bit generator": (np.random.Philox(0), np.random.Philox(1)),
    "frame": (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 3]})),
    "frame index": (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 2]}, index=[1, 2])),
    "series name": (pd.Series([1.0], name="a"), pd.Series([1.0], name="b")),
    "categories": (
        pd.Series(["a"], dtype=pd.CategoricalDtype(["a"])),
        pd.Series(["a"], dtype="category").cat.as_ordered(),
    ),
    "polars": (pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 3]})),
    "polars dtype": (pl.Series("a", [1], pl.Int8), pl.Series("a", [1], pl.Int16)),
    "estimator": (GaussianNB(var_smoothing=1e-9), GaussianNB(var_smoothing=1e-8)),
    "long parameter": (GaussianNB(priors=many_priors(0.8)), GaussianNB(priors=many_priors(0.81))),
    "long list": (GaussianNB(priors=[0.001] * 999 + [0.001]), GaussianNB(priors=[0.001] * 999 + [0.002])),
    "nested estimator": (
        make_pipeline(StandardScaler(), GaussianNB()),
        make_pipeline(StandardScaler(with_mean=False), GaussianNB()),
    ),
    "columns": (
        ColumnTransformer([("a", StandardScaler(), [0, 1])]),
        ColumnTransformer([("a", StandardScaler(), [0, 2])]),
    ),
    "function in an estimator": (FunctionTransformer(scaled_by(2)), FunctionTransformer(scaled_by(3))),
    "scorer function": (make_scorer(accuracy_score), make_scorer(f1_score)),
    "scorer argument": (make_scorer(fbeta_score, beta=1), make_scorer(fbeta_score, beta=2)),
    "scorer sign": (make_scorer(accuracy_score), make_scorer(accuracy_score, greater_is_better=False)),
    "scorer response": (make_scorer(f1_score), make_scorer(f1_score, response_method="decision_function")),
}


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS.keys())
def test_values_that_differ_have_different_digests(one, other):
    assert digest(one) != digest(other)
    assert digest(one) == digest(one)


def test_what_an_estimator_has_fitted_does_not_count_unless_clones_keep_it():
    X, y = np.arange(8.0).reshape(4, 2), np.array([0, 0, 1, 1])
    assert digest(GaussianNB().fit(X, y)) == digest(GaussianNB())
    forests = [RandomForestClassifier(2, random_state=0).fit(table, y) for table in (X, X[:, ::-1] * 3 - 1)]
    assert digest(forests[0]) == digest(forests[1])
    assert digest(FrozenEstimator(forests[0])) != digest(FrozenEstimator(forests[1]))


def test_a_function_that_has_run_often_keeps_its_digest():
    def total(values):
        return sum(value + 1.0 for value in values)

    before = digest(total)
    for _ in range(200):  # enough for the interpreter to specialise its bytecode
        total([1.0, 2.0])
    assert digest(total) == before


def test_the_state_of_the_global_generator_does_not_count():
    search = RandomizedSearchCV(GaussianNB(), {"var_smoothing": stats.loguniform(1e-9, 1)})
    before = digest(search)
    np.random.rand()  # noqa: NPY002
    assert digest(search) == before


def test_the_order_of_sets_and_dictionaries_does_not_count():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest(set("abcdef")) == digest(set("fedcba"))


def test_values_that_contain_themselves_have_a_digest():
    def looped(last):
        items = [1]
        items.append({"again": items, "last": last})
        return items

    assert digest(looped(1)) == digest(looped(1)) != digest(looped(2))

    def countdown(n):
        return n and countdown(n - 1)

    assert digest(countdown) == digest(countdown)


def test_shared_parts_are_read_once():
    nested: list[object] = [1]
    for _ in range(60):
        nested = [nested, nested]  # 2**60 paths lead to the 1
    assert digest(nested) == digest(nested)


def test_deep_nesting_ends():
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert len(digest(nested)) == 64


def test_objects_without_a_readable_state_count_by_type_and_never_by_address():
    class Silent:
        def __reduce_ex__(self, protocol):
            raise TypeError("no")

    class Failing:
        def get_params(self, deep=True):
            raise RuntimeError("no")

    for make in (threading.Lock, Silent, object, Failing, lambda: (i for i in ())):
        kept = [make() for _ in range(3)]  # all alive, so at different addresses
        assert len({digest(value) for value in kept}) == 1


PRINTED = """
import functools, re, sys
import numpy as np, pandas as pd
from sklearn.metrics import f1_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from subswarm._fingerprint import digest

class Scale:
    def __init__(self, words):
        self.words = words
    def __call__(self, x):
        return x if "x" in {"x", "yy", "zzz"} else None

words = {"alpha", "beta", "gamma", "delta"}
print(digest([
    words, {word: {len(word), word} for word in words}, Scale(words), lambda x: x in {"a", "b", "c"},
    make_scorer(f1_score, average="macro"),
    make_pipeline(FunctionTransformer(Scale(words)), SVC(class_weight={"a": 1, "b": 2})),
    functools.partial(re.sub, "a"), pd.DataFrame({"a": ["x", None]}), np.random.default_rng(3),
]))
"""


def test_the_digest_is_the_same_in_another_process_with_another_hash_seed():
    found = {
        subprocess.run(
            [sys.executable, "-c", PRINTED],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 64
