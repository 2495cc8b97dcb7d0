"""Models that the command line and studies know by name.

Models that use distances or penalties get standardised columns.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from subswarm._checks import check_choice, import_named, shown, suggest
from subswarm._types import Estimator
from subswarm.engines.boosters import Booster
from subswarm.engines.normal_cdf.model import NormalCDFBayes
from subswarm.errors import MissingExtraError, SettingError

__all__ = ["MODELS", "TAKING_CATEGORIES", "TAKING_MISSING_VALUES", "make_model"]

TAKING_CATEGORIES = ("lightgbm", "xgboost", "catboost", "hist-gradient-boosting")
"""Models that get columns of text as categories."""

TAKING_MISSING_VALUES = (*TAKING_CATEGORIES, "forest", "extra-trees")
"""Models that get missing values as they are."""


def _booster(library: str, kind: str, **settings: object) -> Callable[[], Estimator]:
    """Return a function that makes a booster of one thread that prints nothing."""

    def make() -> Estimator:
        try:
            model: Estimator = getattr(import_module(library), kind)(**settings)
        except ImportError as error:
            raise MissingExtraError(
                f"model {library!r} needs the package {library}; install it with `pip install {library}`."
            ) from error
        return Booster(model)

    return make


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
    "extra-trees": (
        "forest of extremely randomised trees",
        {"classification": ExtraTreesClassifier, "regression": ExtraTreesRegressor},
    ),
    "hist-gradient-boosting": (
        "gradient boosting of scikit-learn, with columns of text as categories",
        {
            "classification": lambda: HistGradientBoostingClassifier(categorical_features="from_dtype"),
            "regression": lambda: HistGradientBoostingRegressor(categorical_features="from_dtype"),
        },
    ),
    "lightgbm": (
        "gradient boosting of LightGBM, with columns of text as categories",
        {
            "classification": _booster("lightgbm", "LGBMClassifier", n_jobs=1, verbose=-1),
            "regression": _booster("lightgbm", "LGBMRegressor", n_jobs=1, verbose=-1),
        },
    ),
    "xgboost": (
        "gradient boosting of XGBoost, with columns of text as categories",
        {
            "classification": _booster("xgboost", "XGBClassifier", n_jobs=1, verbosity=0, enable_categorical=True),
            "regression": _booster("xgboost", "XGBRegressor", n_jobs=1, verbosity=0, enable_categorical=True),
        },
    ),
    "catboost": (
        "gradient boosting of CatBoost, with columns of text as categories",
        {
            "classification": _booster(
                "catboost", "CatBoostClassifier", thread_count=1, verbose=False, allow_writing_files=False
            ),
            "regression": _booster(
                "catboost", "CatBoostRegressor", thread_count=1, verbose=False, allow_writing_files=False
            ),
        },
    ),
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
