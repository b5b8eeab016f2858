"""Principal components of features: the scores of all rows, and their variances."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.linalg import eigh
from sklearn.utils.extmath import randomized_svd

from graphuq.graphs.features import check_features, row_blocks
from graphuq.graphs.inputs import MatrixLike

MAX_COMPONENTS = 100  # components that are kept
MAX_WIDTH = 500  # features up to which all components are computed, without approximation
CONSTANT = 1e-20  # variance, relative to the mean square, up to which a feature is constant
SMALLEST = 1e-6  # variance, relative to the largest, below which a component is rounding error


class Principal(NamedTuple):
    """Principal components, the largest first.

    Attributes
    ----------
    scores : numpy.ndarray, shape (N, r)
        Coordinates of each row, none if all rows are equal.
    variances : numpy.ndarray, shape (r,)
        Mean squares of the columns of ``scores``.
    """

    scores: Float[np.ndarray, "N r"]
    variances: Float[np.ndarray, " r"]


def principal_components(
    features: MatrixLike, *, standardised: bool = False, centred: bool = True
) -> Principal:
    """Return up to 100 principal components of features.

    Parameters
    ----------
    features : array_like or sparse matrix, shape (N, d)
        Dense ones are centred; sparse ones are not, and so stay sparse.
    standardised : bool, default False
        Whether each feature is first divided by its standard deviation, so that units have no
        influence.
    centred : bool, default True
        Whether dense features are centred.

    Notes
    -----
    With more than 500 features they are approximate (Halko, Martinsson & Tropp 2011).
    """
    matrix: Any = check_features(features, "features")
    is_sparse, (n_rows, width) = sparse.issparse(matrix), matrix.shape
    squares, centre = np.zeros(width), np.zeros(width)
    if is_sparse:
        squares = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel()
    else:
        if centred:
            centre = np.asarray(matrix.mean(axis=0, dtype=np.float64))
        for part in row_blocks(n_rows, width):
            squares += ((matrix[part] - centre) ** 2).sum(axis=0) / n_rows
    used = squares > CONSTANT * (squares + centre**2)
    scale = np.sqrt(squares[used] if standardised else squares.max(initial=0.0))
    if not used.any():
        return Principal(np.zeros((n_rows, 0)), np.zeros(0))
    if width > MAX_WIDTH:
        factors = np.zeros(width)
        factors[used] = 1 / scale
        scaled = matrix @ sparse.diags_array(factors) if is_sparse else (matrix - centre) * factors
        rank = min(MAX_COMPONENTS, *matrix.shape)
        left, values, _ = randomized_svd(scaled, rank, random_state=0)
        scores, variances = left * values, values**2 / n_rows
    else:

        def scaled_rows() -> Iterator[Float[np.ndarray, "n w"]]:
            for part in row_blocks(n_rows, width):
                rows = matrix[part].toarray() if is_sparse else matrix[part]
                yield (rows[:, used] - centre[used]) / scale

        variances, vectors = eigh(sum(rows.T @ rows for rows in scaled_rows()) / n_rows)
        variances, vectors = variances[::-1], vectors[:, ::-1][:, :MAX_COMPONENTS]
        scores = np.concatenate([rows @ vectors for rows in scaled_rows()])
        variances = variances[:MAX_COMPONENTS]
    kept = variances > SMALLEST * variances[0]
    scores = scores[:, kept]
    signs = np.where(-scores.min(axis=0) > scores.max(axis=0), -1.0, 1.0)
    return Principal(np.ascontiguousarray(scores * signs), np.asarray(variances[kept]))
