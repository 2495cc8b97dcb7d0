"""Imputation of missing cells from the nearest row, as in the paper."""

from __future__ import annotations

import numpy as np

from subswarm._types import FloatArray
from subswarm.errors import DataError

__all__ = ["impute_nearest"]


def impute_nearest(X: FloatArray, donors: FloatArray | None = None) -> FloatArray:
    """Fill each missing cell (NaN) from the nearest row that has a value in that column.

    The rows to fill from are those of ``donors``, or of X itself. The distance is Euclidean over the columns that both
    rows have, scaled up for the missing ones, on unscaled features. Labels are not used. A column without any value
    becomes zero.

    Examples
    --------
    >>> import numpy as np
    >>> impute_nearest(np.array([[1.0, 7.0], [1.1, np.nan], [9.0, 3.0]]))[1].tolist()
    [1.1, 7.0]
    """
    if not np.isnan(X).any():
        return X
    largest = max(float(np.nanmax(np.abs(table), initial=0)) for table in (X, X if donors is None else donors))
    if 4 * largest * largest * X.shape[1] == np.inf:
        raise DataError(
            f"missing cells cannot be filled from the nearest row: distances between rows overflow with numbers as "
            f"large as {largest:.3g}. Rescale or drop these columns."
        )
    from sklearn.impute import KNNImputer

    imputer = KNNImputer(n_neighbors=1, keep_empty_features=True).fit(X if donors is None else donors)
    filled: FloatArray = imputer.transform(X)
    return filled
