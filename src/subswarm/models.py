"""The models the command line and studies know by name. Distances and penalties get standardised columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from subswarm.core.errors import SettingError
from subswarm.evaluation import NormalCDFBayes

__all__ = ["MODELS", "make_model"]

MODELS: dict[str, tuple[str, dict[str, Callable[[], Any]]]] = {
    "knn": (
        "5 nearest neighbours on standardised columns",
        {
            "classification": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(5)),
            "regression": lambda: make_pipeline(StandardScaler(), KNeighborsRegressor(5)),
        },
    ),
    "knn-raw": (
        "5 nearest neighbours on the columns as they are",
        {"classification": lambda: KNeighborsClassifier(5), "regression": lambda: KNeighborsRegressor(5)},
    ),
    "nb": ("Gaussian naive Bayes", {"classification": GaussianNB}),
    "normal-cdf-nb": (
        "product of normal cumulative probabilities: what the paper's naive Bayes appears to be",
        {"classification": NormalCDFBayes},
    ),
    "linear": (
        "logistic or ridge regression on standardised columns",
        {
            "classification": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            "regression": lambda: make_pipeline(StandardScaler(), Ridge()),
        },
    ),
    "svm": (
        "support vector machine on standardised columns",
        {
            "classification": lambda: make_pipeline(StandardScaler(), SVC()),
            "regression": lambda: make_pipeline(StandardScaler(), SVR()),
        },
    ),
    "tree": ("decision tree", {"classification": DecisionTreeClassifier, "regression": DecisionTreeRegressor}),
    "forest": ("random forest", {"classification": RandomForestClassifier, "regression": RandomForestRegressor}),
}


def make_model(name: str, task: str = "classification") -> Any:
    """The model of this name for "classification" or "regression".

    Examples
    --------
    >>> make_model("nb")
    GaussianNB()
    """
    if name not in MODELS:
        raise SettingError(f"there is no model {name!r}; there are {', '.join(MODELS)}.")
    kinds = MODELS[name][1]
    if task not in kinds:
        able = [other for other, (_, tasks) in MODELS.items() if task in tasks]
        raise SettingError(f"model {name!r} does not do {task}; {', '.join(able)} do.")
    return kinds[task]()
