"""Principal components of features: the scores of all rows, and their variances."""

from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.linalg import eigh, qr, svd
from sklearn.utils.extmath import randomized_svd

from graphuq.errors import require
from graphuq.graphs.features import check_features, row_blocks
from graphuq.graphs.inputs import Features, MatrixLike
from graphuq.graphs.weights import WeightFunction, feature_scales
from graphuq.utils.checks import require_integer
from graphuq.utils.concurrency import cached_property

MAX_COMPONENTS = 100  # components that are kept
EXACT_WIDTH = 1_000  # features up to which components are those of the covariance, to rounding
CONSTANT = 1e-20  # variance, relative to the mean square, up to which a feature is constant
SMALLEST = 1e-6  # variance, relative to the largest, below which a component is rounding error
MANY_FEATURES = 100  # more than these have neighbours by their main components
MAIN_COMPONENTS = 50  # of which neighbours are found; as scanpy has for genes
MAX_ROWS = 20_000  # rows from which the main components are found
OVERSAMPLED, N_POWERS = 10, 7  # of the randomised method: columns, and powers of the covariance


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


class Moments(NamedTuple):
    """Mean and covariance of rows, which can be summed over parts of a table.

    Attributes
    ----------
    centre : numpy.ndarray, shape (d,)
    covariance : numpy.ndarray, shape (d, d)
    """

    centre: Float[np.ndarray, " d"]
    covariance: Float[np.ndarray, "d d"]

    def of_columns(self, kept: Bool[np.ndarray, " d"]) -> "Moments":
        """Return the moments of some columns."""
        return Moments(self.centre[kept], self.covariance[np.ix_(kept, kept)])


class Axes(NamedTuple):
    """Directions of principal components: ``scores = (rows − centre) @ directions``.

    Attributes
    ----------
    centre : numpy.ndarray, shape (d,)
    directions : numpy.ndarray, shape (d, r)
    variances : numpy.ndarray, shape (r,)
        Mean squares of the scores, the largest first.
    """

    centre: Float[np.ndarray, " d"]
    directions: Float[np.ndarray, "d r"]
    variances: Float[np.ndarray, " r"]

    def to_arrays(self) -> dict[str, Any]:
        """Return variables of a file, of which `from_arrays` makes the axes again."""
        dims: tuple[Any, ...] = ("feature", ("feature", "axis"), "axis")
        return {f"axes_{n}": (dims[i], self[i]) for i, n in enumerate(self._fields)}

    @staticmethod
    def from_arrays(stored: Any) -> "Axes | None":
        """Return the axes in a file, or None if there are none."""
        found = [stored[f"axes_{n}"].to_numpy() for n in Axes._fields if f"axes_{n}" in stored]
        return Axes(*found) if found else None

    def scores(self, rows: Any) -> Float[np.ndarray, "N r"]:
        """Return the scores of rows with these axes."""
        scores = np.empty((rows.shape[0], self.directions.shape[1]))
        for part in row_blocks(*rows.shape):
            scores[part] = (_dense(rows[part]) - self.centre) @ self.directions
        return scores


def rows_of_axes(n_rows: int) -> Int[np.ndarray, " R"]:
    """Return the rows from which the main axes are found: at most 20,000, evenly spaced."""
    return np.arange(0, n_rows, max(1, -(-n_rows // MAX_ROWS)))


def main_axes(
    features: Features, weight: WeightFunction, n_components: int | Literal["auto"] | None
) -> Axes | None:
    """Return orthonormal axes of the main components, in which neighbours are found.

    Distances of many features add up noise of all of them, which hides who is near. Axes are those
    of at most 20,000 rows, evenly spaced. With more than 1,000 features they are approximate.

    Parameters
    ----------
    features : numpy.ndarray or scipy.sparse.csr_array, shape (N, d)
    weight : WeightFunction
    n_components : int, "auto" or None
        "auto" is 50 for more than 100 dense features with Euclidean distances and without scales
        of their own, else None.

    Returns
    -------
    Axes or None
        None if neighbours are those of the features themselves.

    Raises
    ------
    InvalidInput
        If the number is not an integer from 1 to d, or features are sparse or have another metric.
    """
    is_sparse, width = sparse.issparse(features), features.shape[1]
    suits = weight.metric == "euclidean" and not is_sparse
    if isinstance(n_components, str) and n_components == "auto":
        many = suits and width > MANY_FEATURES and feature_scales(weight) is None
        n_components = MAIN_COMPONENTS if many else None
    if n_components is None:
        return None
    require_integer("n_components", n_components, 1, width)
    require(
        suits,
        "n_components",
        f"{n_components} of {'sparse features' if is_sparse else f'the metric {weight.metric!r}'}",
        "leave it out, or give dense features with Euclidean distances",
    )
    from sklearn.decomposition import PCA

    rows = np.asarray(features[rows_of_axes(len(features))], dtype=np.float64)
    solver = "covariance_eigh" if width <= EXACT_WIDTH else "auto"
    found = PCA(min(int(n_components), *rows.shape), svd_solver=solver, random_state=0).fit(rows)
    return Axes(found.mean_, found.components_.T, found.explained_variance_)


def principal_axes(moments: Moments, *, standardised: bool = False) -> Axes:
    """Return the axes of up to 100 principal components of rows with these moments."""
    centre, squares = moments.centre, np.diag(moments.covariance)
    used = squares > CONSTANT * (squares + centre**2)
    if not used.any():
        return Axes(centre, np.zeros((len(centre), 0)), np.zeros(0))
    scale = np.sqrt(squares[used] if standardised else np.full(used.sum(), squares.max()))
    scaled = moments.covariance[np.ix_(used, used)] / np.outer(scale, scale)
    variances, vectors = eigh((scaled + scaled.T) / 2)
    variances, vectors = variances[::-1][:MAX_COMPONENTS], vectors[:, ::-1][:, :MAX_COMPONENTS]
    kept = variances > SMALLEST * variances[0]
    directions = np.zeros((len(centre), int(kept.sum())))
    directions[used] = vectors[:, kept] / scale[:, None]
    return Axes(centre, directions, np.asarray(variances[kept]))


class PrincipalComponents:
    """Up to 100 principal components of a table, with or without standardised features.

    Both are those of the same moments, which are computed once.

    Parameters
    ----------
    features : array_like or sparse matrix, shape (N, d)
        Sparse ones stay sparse.
    centred : bool, default True
        Whether the mean of the rows is subtracted.

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers.

    Notes
    -----
    With more than 1,000 features they are approximate (Halko, Martinsson & Tropp 2011).
    """

    def __init__(self, features: MatrixLike, *, centred: bool = True) -> None:
        self.features: Any = check_features(features, "features")
        self.centred = centred

    def of(self, *, standardised: bool) -> Principal:
        """Return the components; standardised features are divided by their deviations before."""
        if self.features.shape[1] > EXACT_WIDTH:
            return _approximate(self.features, standardised, self.centred)
        axes = principal_axes(self.moments, standardised=standardised)
        return Principal(_with_signs(axes.scores(self.features)), axes.variances)

    @cached_property
    def moments(self) -> Moments:
        """Mean and covariance of the rows; about zero if they are not centred."""
        return _moments(self.features, self.centred)


def _moments(matrix: Any, centred: bool) -> Moments:
    """Return the moments of rows, about their mean or about zero."""
    (n_rows, width), centre = matrix.shape, _centre(matrix, centred)
    covariance = np.zeros((width, width))
    for part in row_blocks(n_rows, width):
        rows = _dense(matrix[part]) - centre
        covariance += rows.T @ rows / n_rows
    return Moments(centre, covariance)


def _approximate(matrix: Any, standardised: bool, centred: bool) -> Principal:
    n_rows, centre = matrix.shape[0], _centre(matrix, centred)
    squares = _mean_squares(matrix, centre)
    used = squares > CONSTANT * (squares + centre**2)
    if not used.any():
        return Principal(np.zeros((n_rows, 0)), np.zeros(0))
    factors = np.zeros(len(centre))
    factors[used] = 1 / np.sqrt(squares[used] if standardised else squares.max())
    rank = min(MAX_COMPONENTS, *matrix.shape)
    if sparse.issparse(matrix):
        scaled = sparse.csr_array(matrix @ sparse.diags_array(factors))
        left, values = _left_vectors(scaled, centre * factors, rank)
    else:
        left, values, _ = randomized_svd((matrix - centre) * factors, rank, random_state=0)
    scores, variances = left * values, values**2 / n_rows
    kept = variances > SMALLEST * variances[0]
    return Principal(_with_signs(scores[:, kept]), np.asarray(variances[kept]))


def _centre(matrix: Any, centred: bool) -> Float[np.ndarray, " d"]:
    """Return the mean of the rows, or zero."""
    if not centred:
        return np.zeros(matrix.shape[1])
    return np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()


def _mean_squares(matrix: Any, centre: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    """Return the mean square of each column about its centre."""
    n_rows, width = matrix.shape
    if sparse.issparse(matrix):
        rows = sparse.csr_array(matrix)
        counts = np.bincount(rows.indices, minlength=width)
        of_stored = np.bincount(rows.indices, (rows.data - centre[rows.indices]) ** 2, width)
        return (of_stored + (n_rows - counts) * centre**2) / n_rows
    squares = np.zeros(width)
    for part in row_blocks(n_rows, width):
        squares += ((matrix[part] - centre) ** 2).sum(axis=0) / n_rows
    return squares


def _left_vectors(
    matrix: sparse.csr_array, centre: Float[np.ndarray, " d"], rank: int
) -> tuple[Float[np.ndarray, "N r"], Float[np.ndarray, " r"]]:
    """Return leading left singular vectors and values of sparse rows minus a centre.

    This is the randomised method, since scikit-learn's has no centre (Halko, Martinsson & Tropp
    2011, algorithm 5.1).
    """
    width = min(rank + OVERSAMPLED, *matrix.shape)
    basis = np.random.default_rng(0).normal(size=(matrix.shape[1], width))
    for _ in range(N_POWERS + 1):
        range_ = qr(matrix @ basis - centre @ basis, mode="economic")[0]
        basis = matrix.T @ range_ - np.outer(centre, range_.sum(axis=0))
    turn, values, _ = svd(basis.T, full_matrices=False)
    return range_ @ turn[:, :rank], values[:rank]


def _dense(rows: Any) -> Float[np.ndarray, "n d"]:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


def _with_signs(scores: Float[np.ndarray, "N r"]) -> Float[np.ndarray, "N r"]:
    """Turn scores so that the entry of largest magnitude is positive in each column."""
    scores = np.ascontiguousarray(scores)
    scores *= np.where(-scores.min(axis=0) > scores.max(axis=0), -1.0, 1.0)
    return scores
