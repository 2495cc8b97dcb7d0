"""Demo tables, which come with scikit-learn."""

from __future__ import annotations

import numpy as np

from subswarm._checks import check_choice
from subswarm.datasets._table import Table

__all__ = ["DEMO_NAMES", "load_demo"]

DEMO_NAMES = ("wine", "breast-cancer", "digits", "diabetes")


def load_demo(name: str) -> Table:
    """Load one of the demo tables "wine", "breast-cancer", "digits" and "diabetes" (a regression).

    Examples
    --------
    >>> load_demo("breast-cancer")
    Table(breast-cancer: 569 rows, 30 features, classification of 'class')
    """
    from sklearn import datasets

    check_choice("name", name, DEMO_NAMES)
    if name == "diabetes":
        bunch = datasets.load_diabetes()
        return Table(
            name=name,
            X=np.asarray(bunch.data, dtype=np.float64),
            y=np.asarray(bunch.target, dtype=np.float64),
            feature_names=tuple(str(feature) for feature in bunch.feature_names),
            feature_groups=[],
            target_name="progression",
            task="regression",
            imputed=0,
        )
    loaders = {
        "wine": datasets.load_wine,
        "breast-cancer": datasets.load_breast_cancer,
        "digits": datasets.load_digits,
    }
    bunch = loaders[name]()
    return Table(
        name=name,
        X=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target_names)[bunch.target],
        feature_names=tuple(str(feature) for feature in bunch.feature_names),
        feature_groups=[],
        target_name="class",
        task="classification",
        imputed=0,
    )
