"""Models that the command line and studies know by name.

Models that use distances or penalties get standardised columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from subswarm._checks import check_choice, import_named, shown, suggest
from subswarm._types import Estimator
from subswarm.engines.normal_cdf.model import NormalCDFBayes
from subswarm.errors import SettingError

__all__ = ["MODELS", "make_model"]

MODELS: dict[str, tuple[str, dict[str, Callable[[], Estimator]]]] = {
    "knn": (
        "5 nearest neighbours on standardised columns",
        {
            "classification": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(5)),
            "regression": lambda: make_pipeline(StandardScaler(), KNeighborsRegressor(5)),
        },
    ),
    "knn-raw": (
        "5 nearest neighbours on unscaled columns",
        {"classification": lambda: KNeighborsClassifier(5), "regression": lambda: KNeighborsRegressor(5)},
    ),
    "nb": ("Gaussian naive Bayes", {"classification": GaussianNB}),
    "normal-cdf-nb": (
        "product of normal cumulative probabilities, which is what the paper's naive Bayes appears to be",
        {"classification": NormalCDFBayes},
    ),
    "linear": (
        "logistic or ridge regression on standardised columns",
        {
            "classification": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            "regression": lambda: make_pipeline(StandardScaler(), Ridge()),
        },
    ),
    "logistic": (
        "logistic regression on standardised columns",
        {"classification": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))},
    ),
    "ridge": (
        "ridge regression, or a classifier by ridge regression, on standardised columns",
        {
            "classification": lambda: make_pipeline(StandardScaler(), RidgeClassifier()),
            "regression": lambda: make_pipeline(StandardScaler(), Ridge()),
        },
    ),
    "ridge-classifier": (
        "classifier by ridge regression on standardised columns",
        {"classification": lambda: make_pipeline(StandardScaler(), RidgeClassifier())},
    ),
    "ols": ("linear regression by ordinary least squares", {"regression": LinearRegression}),
    "lda": ("linear discriminant analysis", {"classification": LinearDiscriminantAnalysis}),
    "qda": (
        "quadratic discriminant analysis on standardised columns, regularised by 0.1",
        {"classification": lambda: make_pipeline(StandardScaler(), QuadraticDiscriminantAnalysis(reg_param=0.1))},
    ),
    "nearest-centroid": (
        "class of the nearest centroid, on standardised columns",
        {"classification": lambda: make_pipeline(StandardScaler(), NearestCentroid())},
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


def make_model(name: str, task: str = "classification") -> Estimator:
    """Return the model with this name for "classification" or "regression".

    The name may be the import path of an estimator, of its class or of a function that returns it, such as
    "mypackage.mymodule:make_model".

    Examples
    --------
    >>> make_model("nb")
    GaussianNB()
    """
    if isinstance(name, str) and ":" in name:
        return _import_model(name)
    if name not in MODELS:
        raise SettingError(f"there is no model {name!r}.{suggest(name, MODELS)} The models are {', '.join(MODELS)}.")
    check_choice("task", task, ("classification", "regression"))
    kinds = MODELS[name][1]
    if task not in kinds:
        suitable = [other for other, (_, tasks) in MODELS.items() if task in tasks]
        raise SettingError(f"model {name!r} does not support {task}; use one of {', '.join(suitable)}.")
    return kinds[task]()


def _import_model(path: str) -> Estimator:
    found = import_named(path)
    if not hasattr(found, "fit") or isinstance(found, type):
        if not callable(found):
            raise SettingError(f"{path!r} is {shown(found)}; expected an estimator, its class or a function.")
        try:
            found = found()
        except Exception as error:  # the user's own code
            raise SettingError(f"{path!r} cannot be called without arguments: {error}.") from error
    if not hasattr(found, "fit") or isinstance(found, type):
        raise SettingError(f"{path!r} gives {shown(found)}; expected an estimator with a fit method.")
    return cast(Estimator, found)
