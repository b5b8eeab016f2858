"""Features that are whitened, so that correlated columns do not count several times.

Distances of standardised columns add up what correlated columns have in common, and hide the
difference between them: two species of crabs differ by the ratio of their measurements, not by
their size. Whitening divides each principal component by its standard deviation. Distances are then
those of Mahalanobis (1936).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import sparse

from graphuq.errors import require
from graphuq.graphs import SelfTuning, knn_graph
from graphuq.graphs.inputs import MatrixLike
from graphuq.graphs.principal import PrincipalComponents
from graphuq.spectrum.feature_block import FeatureBlock, with_constant
from graphuq.spectrum.solve import laplacian_spectrum
from graphuq.spectrum.spectrum import Spectrum
from graphuq.utils.concurrency import cached_property
from graphuq.utils.user_warnings import held_warnings

WHITENED_GRAPH, WHITENED_LINEAR = "whitened graph", "whitened linear"
FLOOR = 0.01  # of the mean variance, which is added to each, so that noise is not blown up
MAX_ROWS = 20_000  # of which a second graph is made
N_NEIGHBORS, SHARPNESS = 15, 4.0  # as `GraphClassifier` has them


def whitened(components: PrincipalComponents) -> Float[np.ndarray, "N r"]:
    """Return components of standardised features, each of nearly unit variance.

    Those of less than a millionth of the largest variance are left out.
    """
    scores, variances = components.of(standardised=True)
    scores *= whitening_weights(variances)
    return scores


def whitening_weights(variances: Float[np.ndarray, " r"]) -> Float[np.ndarray, " r"]:
    """Return the factor of the scores of each principal component."""
    return np.asarray(1 / np.sqrt(variances + FLOOR * variances.sum() / max(1, len(variances))))


def has_whitened_graph(features: MatrixLike) -> bool:
    """Return whether there are two or more dense features, and not too many rows."""
    n_rows, width = np.shape(features)
    return not sparse.issparse(features) and width > 1 and n_rows <= MAX_ROWS


@dataclass(frozen=True, eq=False, repr=False)
class WhitenedLinear(FeatureBlock):
    """Block of linear functions of whitened features, and a constant.

    A field of this block is a discriminant with a covariance that all classes share: it is to
    linear discriminant analysis (Fisher 1936) what a probit is to two Gaussians.

    Attributes
    ----------
    features : array_like or sparse matrix, shape (N, d)

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> X[:, 2] = X[:, 0] + 0.1 * X[:, 1]
    >>> gq.WhitenedLinear(X).values.shape  # two directions, and the constant
    (50, 3)
    """

    name = WHITENED_LINEAR

    @cached_property
    def values(self) -> Float[np.ndarray, "N m"]:
        """Columns, none if all rows are equal."""
        return with_constant(whitened(self.components))


@dataclass(frozen=True, eq=False, repr=False)
class WhitenedGraph(FeatureBlock):
    """Block of eigenpairs of a second graph, of nearest neighbours in whitened features.

    Attributes
    ----------
    features : array_like, shape (N, d)
    laplacian : str, default "symmetric"
        See `laplacian_spectrum`.

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> gq.WhitenedGraph(X).spectrum.n_eigenpairs
    50
    """

    laplacian: str = "symmetric"
    name = WHITENED_GRAPH

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenpairs of the second graph."""
        rows = whitened(self.components)
        require(
            rows.shape[1] > 0,
            "X",
            "columns that differ by less than the rounding of their size",
            "subtract their mean from each, before they lose digits",
        )
        n_neighbors = min(N_NEIGHBORS, len(rows) - 1)
        with held_warnings():  # it is one of several parts
            graph = knn_graph(rows, n_neighbors, weights=SelfTuning(SHARPNESS))
            return laplacian_spectrum(graph, self.laplacian)

    @cached_property
    def values(self) -> Float[np.ndarray, "N l"]:
        """Eigenvectors as functions on the nodes."""
        return functions_of(self.spectrum)


def functions_of(spectrum: Spectrum) -> Float[np.ndarray, "N l"]:
    """Return eigenvectors as functions on the nodes."""
    return np.asarray(spectrum.eigenvectors) * spectrum.node_scale[:, None]
