"""Missing cells take the value of the nearest row, as in the paper."""

from __future__ import annotations

import numpy as np

from subswarm.core.types import FloatArray

__all__ = ["impute_nearest"]


def impute_nearest(X: FloatArray, donors: FloatArray | None = None) -> FloatArray:
    """X with each missing cell (NaN) filled from the nearest row that has a value in that column.

    The rows to fill from are those of ``donors``, or of X itself.

    The distance is Euclidean over the columns both rows have, scaled up for the ones they lack, on the
    features as they are. Labels play no part. A column without any value becomes zero throughout.

    Examples
    --------
    >>> import numpy as np
    >>> impute_nearest(np.array([[1.0, 7.0], [1.1, np.nan], [9.0, 3.0]]))[1].tolist()
    [1.1, 7.0]
    """
    if not np.isnan(X).any():
        return X
    from sklearn.impute import KNNImputer

    imputer = KNNImputer(n_neighbors=1, keep_empty_features=True).fit(X if donors is None else donors)
    filled: FloatArray = imputer.transform(X)
    return filled
