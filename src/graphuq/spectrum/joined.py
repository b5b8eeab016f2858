"""Columns of two values that tear a graph apart, and a graph without them.

Two values of a standardised column, such as male and female, are two standard deviations apart or
more. If the other columns vary less within a class, neighbours nearly always have the same value,
and the graph falls into two parts, each of which needs labels of all classes. A second graph does
without such columns. Which of the two is right, the labels tell.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from scipy import sparse

from graphuq.graphs.inputs import MatrixLike
from graphuq.spectrum.spectrum import Spectrum
from graphuq.spectrum.whitened import WhitenedGraph, functions_of, has_whitened_graph

JOINED_GRAPH = "joined graph"
SMOOTH = 0.05  # eigenvalue, of the mean degree 1, up to which an eigenvector is that of a part
EXPLAINED = 0.9  # share of the variance of a column that parts of the graph explain if it tears
RARE = 0.05  # share of rows with the rarer value, below which few rows are torn off
MIN_OTHERS = 2  # columns that are left for the graph


@dataclass(frozen=True, eq=False, repr=False)
class JoinedGraph(WhitenedGraph):
    """Block of eigenpairs of a `WhitenedGraph` of the columns that do not tear the graph apart.

    Attributes and errors are those of `WhitenedGraph`; `columns_that_tear` says which columns are
    left out.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> X[:, 2] = X[:, 2] > 0
    >>> gq.JoinedGraph(X[:, :2]).spectrum.n_eigenpairs
    60
    """

    name = JOINED_GRAPH


def columns_that_tear(spectrum: Spectrum, features: MatrixLike) -> Bool[np.ndarray, " d"]:
    """Return which columns have two values that the smoothest eigenvectors tell apart.

    None do if fewer than two other columns are left, or there is no second graph at all.

    Parameters
    ----------
    spectrum : Spectrum
    features : array_like or sparse matrix, shape (N, d)
    """
    tears = np.zeros(np.shape(features)[1], dtype=bool)
    if sparse.issparse(features) or not has_whitened_graph(features):
        return tears
    rows = np.asarray(features)
    low, high = rows.min(axis=0), rows.max(axis=0)
    two = ((rows == low) | (rows == high)).all(axis=0) & (low < high)
    share = (rows[:, two] == high[two]).mean(axis=0)
    places = np.flatnonzero(two)[np.minimum(share, 1 - share) >= RARE]
    if not len(places):
        return tears
    unnormalized = spectrum.settings["laplacian"] == "unnormalized"
    unit = spectrum.degrees.mean() if unnormalized else 1.0
    smooth = functions_of(spectrum)[:, spectrum.eigenvalues <= SMOOTH * unit]
    smooth = np.hstack([smooth, np.ones((len(smooth), 1))])
    columns = rows[:, places] - rows[:, places].mean(axis=0)
    left = columns - smooth @ np.linalg.lstsq(smooth, columns, rcond=None)[0]
    tears[places] = (left**2).sum(axis=0) <= (1 - EXPLAINED) * (columns**2).sum(axis=0)
    return tears if (~tears).sum() >= MIN_OTHERS else np.zeros_like(tears)
