"""Functions of the features at rows that are no nodes.

The mean over neighbours flattens a function of the features: in eight columns, neighbours of a row
are nearer to the centre than the row is. A file holds the values at the nodes alone. From these
and the features, the coefficients of a block that is linear are found by least squares, and those
of exponential functions are computed again. Values at the nodes show whether that is right.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh

from graphuq.graphs.inputs import Features
from graphuq.graphs.principal import rows_of_axes
from graphuq.graphs.variables import SMALLEST_DEVIATION
from graphuq.spectrum.exponential import EXPONENTIAL, ExponentialColumns, ExponentialFunctions
from graphuq.spectrum.few_variables import columns_of_scales

MAX_SIDE = 1_000  # rows or features, whichever are fewer, up to which coefficients are found
MAX_NUMBERS = 20_000_000  # in the features of these rows: 160 MB
SMALLEST = 1e-10  # variance of a direction, relative to the largest, below which it is left out
TOLERANCE = 1e-5  # difference at the nodes, relative to the largest value, up to which it is exact


class LinearColumns(NamedTuple):
    """Columns that are linear in the features of a row.

    Attributes
    ----------
    mean : numpy.ndarray, shape (m,)
    centre : numpy.ndarray, shape (d,)
    slopes : numpy.ndarray, shape (d, m)
    """

    mean: Float[np.ndarray, " m"]
    centre: Float[np.ndarray, " d"]
    slopes: Float[np.ndarray, "d m"]

    def at(self, rows: Float[np.ndarray, "M d"]) -> Float[np.ndarray, "M m"]:
        """Return the columns of rows."""
        return self.mean + (rows - self.centre) @ self.slopes


Columns = LinearColumns | ExponentialColumns


def functions_of_rows(features: Features, blocks: Iterable[Any]) -> dict[str, Columns]:
    """Return, by the names of blocks, functions of rows that have the values of the blocks.

    Blocks that are no functions of the features, such as eigenpairs of a graph, are left out. So
    are all of more than 1,000 rows with more than 1,000 features.

    Parameters
    ----------
    features : numpy.ndarray or scipy.sparse.csr_array, shape (N, d)
        Those of the nodes.
    blocks : sequence
        Those of a `graphuq.Basis`.

    Examples
    --------
    >>> import graphuq as gq
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> block = gq.WhitenedLinear(X[:50])
    >>> known = functions_of_rows(X[:50], [block])["whitened linear"]
    >>> bool(np.allclose(known.at(X[:50]), block.values)), known.at(X[50:]).shape
    (True, (10, 4))
    """
    n_rows, width = features.shape
    of_rows = [block for block in blocks if getattr(block, "spectrum", None) is None]
    known = [block for block in of_rows if len(block.values) == n_rows]
    chosen = rows_of_axes(n_rows)
    if not known or min(n_rows, width) > MAX_SIDE or len(chosen) * width > MAX_NUMBERS:
        return {}
    rows = dense(features[chosen])
    least_squares, found = LeastSquares(rows), {}
    for block in known:
        values = block.values[chosen]
        own: Columns | None = least_squares.columns(values)
        if block.name == EXPONENTIAL:
            own = ExponentialFunctions(features).columns
        elif getattr(block, "scales", None) is not None:
            own = columns_of_scales(features, block.scales)
        if own is not None and _agree(own.at(rows), values):
            found[block.name] = own
    return found


def _agree(found: np.ndarray, values: np.ndarray) -> bool:
    same_shape = found.shape == values.shape
    return same_shape and bool(np.abs(found - values).max() <= TOLERANCE * np.abs(values).max())


class LeastSquares:
    """Linear functions of least squares from values at rows.

    Of several it is that of the smallest coefficients of standardised features.
    """

    def __init__(self, rows: Float[np.ndarray, "n d"]) -> None:
        largest = np.abs(rows).max(axis=0, initial=0.0)
        deviation = rows.std(axis=0)
        varies = deviation > SMALLEST_DEVIATION * largest
        self.centre, self.scale = rows.mean(axis=0), np.where(varies, deviation, np.inf)
        self.standard = (rows - self.centre) / self.scale
        n_rows, width = rows.shape
        self.is_wide = n_rows < width
        turned = self.standard.T if self.is_wide else self.standard
        variances, vectors = eigh(turned.T @ turned)
        kept = variances > SMALLEST * variances[-1]
        self.inverse = vectors[:, kept] / variances[kept] @ vectors[:, kept].T

    def columns(self, values: Float[np.ndarray, "n m"]) -> LinearColumns:
        """Return the functions of values at the rows."""
        mean = values.mean(axis=0)
        rest = values - mean
        if self.is_wide:
            slopes = self.standard.T @ (self.inverse @ rest)
        else:
            slopes = self.inverse @ (self.standard.T @ rest)
        return LinearColumns(mean, self.centre, slopes / self.scale[:, None])


def dense(rows: Features) -> Float[np.ndarray, "M d"]:
    """Return rows as an array."""
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), np.float64)
