"""Features of nodes that are smoothed over a graph.

A node is like its neighbours, and so are its features, of which it may have few. Personalised
PageRank (Page et al. 1999) takes for each node the mean of the features of the nodes that a random
walk reaches which returns with probability a at each step: ``H = a (I − (1 − a) S)⁻¹ X``, with S
the normalised weights ``D^{-1/2} W D^{-1/2}``. Graph networks smooth what they compute of features
in this way (Gasteiger, Bojchevski & Günnemann 2019). Here the columns of the covariance are.

``I − (1 − a) S = (1 − a) (L + c I)`` with ``c = a / (1 − a)`` and the symmetric Laplacian L, so
that the same systems are solved as for a regularised Laplacian.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from graphuq.errors import require
from graphuq.graphs import Graph
from graphuq.graphs.inputs import Features
from graphuq.graphs.principal import PrincipalComponents
from graphuq.spectrum.feature_block import FeatureBlock, with_constant
from graphuq.spectrum.laplacian import Laplacian
from graphuq.spectrum.powers import power_weights
from graphuq.spectrum.precision import Precision
from graphuq.utils.checks import require_integer
from graphuq.utils.concurrency import cached_property

POWER = 2  # p; docs/archive/choices.md
MAX_NUMBERS, N_DIRECTIONS = 1_000_000, 300  # of features; directions in place of larger ones
TOLERANCE = 1e-6  # relative residual of the smoothed features


@dataclass(frozen=True, eq=False, repr=False)
class SmoothedFeatures(FeatureBlock):
    """Block of linear functions of smoothed features, and a constant.

    Features are centred, smoothed, centred again over the nodes that have any, and each row is
    divided by its length, so that nodes of few and of many words have the same variance. Of these
    rows H the covariance is ``1 + c (H Hᵀ)^p``, half of which is the constant. A row of zeros has
    the constant alone.

    Attributes
    ----------
    features : array_like or sparse matrix, shape (N, d)
        They are centred, and sparse rows of zeros are not. More than a million numbers are
        reduced to 300 directions, of the largest singular values.
    graph : Graph
        Of N nodes.
    restart : float, default 0.1
        a, in (0, 1]. 1: the features themselves.
    name : str, default "smoothed features"
    power : int, default 2
        p, from 1 on. Large powers leave the directions in which rows vary most.

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers, one a node, or a number is out of range.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.ring_graph(50)
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> gq.SmoothedFeatures(X, graph, restart=0.2).values.shape  # three directions, the constant
    (50, 4)
    """

    graph: Graph
    restart: float = 0.1
    name: str = "smoothed features"
    power: int = POWER

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.restart <= 1, "restart", f"{self.restart!r}", "use a number in (0, 1]")
        require_integer("power", self.power, minimum=1)
        n_rows = np.shape(self.features)[0]
        require(
            n_rows == self.graph.n_nodes,
            "features",
            f"{n_rows} rows, and the graph has {self.graph.n_nodes} nodes",
            "give one row a node",
        )

    @cached_property
    def values(self) -> Float[np.ndarray, "N m"]:
        """Columns F with ``F Fᵀ`` the covariance, none if no row is different from the others."""
        rows = unit_rows(smoothed(columns_of(self.features), self.graph, self.restart))
        scores, variances = PrincipalComponents(rows, centred=False).of(standardised=False)
        weights = power_weights(variances, self.power)
        return with_constant(scores[:, weights > 0] * weights[weights > 0])


def columns_of(features: Features) -> Float[np.ndarray, "N m"]:
    """Return centred features as a dense matrix, of the main directions if it is a large one.

    Sparse rows of zeros, such as texts without a known word, are left out of the mean and stay.
    """
    rows: Any = features
    is_sparse = sparse.issparse(rows)
    if np.prod(features.shape) > MAX_NUMBERS and features.shape[1] > N_DIRECTIONS:
        left, values, _ = randomized_svd(features, N_DIRECTIONS, random_state=0)
        rows = left * values
    elif is_sparse:
        rows = rows.toarray()
    given: Any = features
    present = np.diff(given.indptr) > 0 if is_sparse else np.ones(len(rows), dtype=bool)
    columns = np.asarray(rows, dtype=np.float64)
    if not present.any():
        return columns
    return np.where(present[:, None], columns - columns[present].mean(axis=0), 0.0)


def smoothed(
    columns: Float[np.ndarray, "N m"], graph: Graph, restart: float
) -> Float[np.ndarray, "N m"]:
    """Return ``a (I − (1 − a) S)⁻¹ X``; an isolated node keeps its own features."""
    if restart == 1:
        return columns
    shift = restart / (1 - restart)
    precision = Precision(Laplacian(graph), shift, factorize=False, tolerance=TOLERANCE)
    return shift * precision.solve(columns)


def unit_rows(rows: Float[np.ndarray, "N m"]) -> Float[np.ndarray, "N m"]:
    """Return rows less their mean, of length 1; rows of zeros, which the mean leaves out, stay."""
    present = (rows != 0).any(axis=1)
    if not present.any():
        return rows
    centred = np.where(present[:, None], rows - rows[present].mean(axis=0), 0.0)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    known = length > 1e-12 * length.max()
    return np.where(known, centred / np.where(known, length, 1.0), 0.0)
