"""Values of columns, from the smallest to the largest, and rows far outside of them."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from graphuq.graphs.features import row_blocks


class ColumnRanges(NamedTuple):
    """Ranges of the columns of a matrix, and how far two of its rows are apart.

    Attributes
    ----------
    low, high : numpy.ndarray, shape (d,)
        Smallest and largest value of each column.
    distance : float
        Root mean square distance of two random rows.
    """

    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    distance: float

    @classmethod
    def of(cls, rows: Float[np.ndarray, "N d"]) -> "ColumnRanges":
        """Return the ranges of the columns of a matrix, which is read a block at a time."""
        parts = list(row_blocks(*rows.shape))
        middle = np.asarray(rows[parts[0]].mean(axis=0), dtype=np.float64)
        squares = sum(((rows[part] - middle) ** 2).sum(axis=0) for part in parts)
        mean = sum((rows[part] - middle).sum(axis=0) for part in parts) / len(rows)
        variances = squares / len(rows) - mean**2
        low = np.min([rows[part].min(axis=0) for part in parts], axis=0)
        high = np.max([rows[part].max(axis=0) for part in parts], axis=0)
        return cls(low, high, float(np.sqrt(2 * max(variances.sum(), 0.0))))

    def beyond(self, rows: Float[np.ndarray, "M d"]) -> Bool[np.ndarray, "M d"]:
        """Return which values alone put their row farther away than rows are from each other.

        Such a value is outside the range of its column by more than the width of the range, and by
        more than the mean distance of two rows.
        """
        excess = np.maximum(self.low - rows, rows - self.high)
        return excess > np.maximum(self.high - self.low, self.distance)
