"""Values of columns, from the smallest to the largest, and rows far outside of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from graphuq.graphs.features import row_blocks


class ColumnRanges(NamedTuple):
    """Ranges of the columns of a matrix, and how far its rows are from their mean.

    Attributes
    ----------
    n_rows : int
    low, high, mean : numpy.ndarray, shape (d,)
        Smallest, largest and mean value of each column.
    squares : float
        Sum of the squared distances of all rows from their mean.
    """

    n_rows: int
    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    mean: Float[np.ndarray, " d"]
    squares: float

    @classmethod
    def of(cls, rows: Float[np.ndarray, "N d"]) -> "ColumnRanges":
        """Return the ranges of the columns of a matrix, which is read a block at a time."""
        return cls.joined([cls._of_block(rows[part]) for part in row_blocks(*rows.shape)])

    @classmethod
    def _of_block(cls, rows: Float[np.ndarray, "N d"]) -> "ColumnRanges":
        mean = rows.mean(axis=0, dtype=np.float64)
        squares = float(((rows - mean) ** 2).sum())
        return cls(len(rows), rows.min(axis=0), rows.max(axis=0), mean, squares)

    @classmethod
    def joined(cls, parts: Sequence["ColumnRanges"]) -> "ColumnRanges":
        """Return the ranges of all rows of several matrices."""
        sizes, lows, highs, means, squares = (np.array(some) for some in zip(*parts, strict=True))
        mean = sizes @ means / sizes.sum()
        between = float((sizes @ (means - mean) ** 2).sum())
        total = float(squares.sum()) + between
        return cls(int(sizes.sum()), lows.min(axis=0), highs.max(axis=0), mean, total)

    @property
    def distance(self) -> float:
        """Root mean square distance of two random rows."""
        return float(np.sqrt(2 * self.squares / self.n_rows))

    def beyond(self, rows: Float[np.ndarray, "M d"]) -> Bool[np.ndarray, "M d"]:
        """Return which values alone put their row farther away than rows are from each other.

        Such a value is outside the range of its column by more than the width of the range, and by
        more than the mean distance of two rows.
        """
        excess = np.maximum(self.low - rows, rows - self.high)
        return excess > np.maximum(self.high - self.low, self.distance)
