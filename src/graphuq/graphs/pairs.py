"""Pairs of nodes and their distances, from which a weight function makes a graph.

Both classes are pytrees, so that JAX can differentiate the weights with respect to the parameters
of a weight function.
"""

from types import ModuleType

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from graphuq.graphs.weights import WeightFunction, feature_scales
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.part import Part, part_field


class NodePairs(Part):
    """Undirected edges of a sparse graph, each stored once.

    Attributes
    ----------
    n_nodes : int
        Number of nodes N.
    rows, columns : numpy.ndarray of int, shape (E,)
        The two ends of each edge, the smaller index first.
    distance : numpy.ndarray, shape (E,)
        Distance between the ends.
    mutual : numpy.ndarray of bool, shape (E,)
        Whether each end has the other among its neighbours.
    local_scales : numpy.ndarray, shape (N,)
        Distance of each node to its K-th neighbour; ones if the weights do not use it.
    features : numpy.ndarray, shape (N, d), or None
        Features before scaling, if the weight function has one scale per feature. Distances then
        depend on the scales and are computed from the features.
    """

    n_nodes: int = part_field(static=True)
    rows: Int[Array, " E"]
    columns: Int[Array, " E"]
    distance: Float[Array, " E"]
    mutual: Bool[Array, " E"]
    local_scales: Float[Array, " N"]
    features: Float[Array, "N d"] | None = None

    @staticmethod
    def of_neighbors(
        distances: Float[np.ndarray, "N k"],
        indices: Int[np.ndarray, "N k"],
        features: Float[Array, "N d"] | None = None,
    ) -> "NodePairs":
        """Pair each node with its k nearest neighbours."""
        n_nodes, k = indices.shape
        pointers = np.arange(n_nodes + 1) * k
        shape = (n_nodes, n_nodes)
        stored = sparse.csr_array((distances.ravel(), indices.ravel(), pointers), shape=shape)
        return NodePairs.of_directed(stored, distances[:, -1], features)

    @staticmethod
    def of_directed(
        distances: sparse.csr_array,
        local_scales: Float[Array, " N"] | None = None,
        features: Float[Array, "N d"] | None = None,
    ) -> "NodePairs":
        """Pair the nodes between which a distance is stored in at least one direction.

        Distances of nodes to themselves are ignored.
        """
        n_nodes = distances.shape[0]
        rows = np.repeat(np.arange(n_nodes), np.diff(distances.indptr))
        columns, distance = distances.indices.astype(np.int64), distances.data
        different = rows != columns
        rows, columns, distance = rows[different], columns[different], distance[different]
        key = np.minimum(rows, columns) * n_nodes + np.maximum(rows, columns)
        unique, first, counts = np.unique(key, return_index=True, return_counts=True)
        return NodePairs(
            n_nodes=n_nodes,
            rows=unique // n_nodes,
            columns=unique % n_nodes,
            distance=distance[first],
            mutual=counts > 1,
            local_scales=np.ones(n_nodes) if local_scales is None else local_scales,
            features=features,
        )

    def weights(self, weight: WeightFunction) -> Float[Array, " E"]:
        """Return the weight of each edge."""
        scales = self.local_scales
        distance = self.distance
        if self.features is not None:
            xp, x = _scaled_features(self.features, weight)
            squares = ((x[self.rows] - x[self.columns]) ** 2).sum(axis=1)
            distance = _safe_root(squares, xp)
        values: Array = weight.weight(distance, scales[self.rows], scales[self.columns])
        return values

    def degrees(self, values: Float[Array, " E"]) -> Float[Array, " N"]:
        """Return the row sums of the weights, which are an array of JAX."""
        from graphuq.utils.with_jax import jnp

        zero = jnp.zeros(self.n_nodes, values.dtype)
        return zero.at[self.rows].add(values).at[self.columns].add(values)

    def scaled(self, values: Float[Array, " E"], root: Float[Array, " N"]) -> Float[Array, " E"]:
        """Multiply each weight by a factor of each of its two nodes."""
        return values * root[self.rows] * root[self.columns]

    def adjacency(self, values: Float[np.ndarray, " E"]) -> sparse.csr_array:
        """Return the symmetric matrix of the edges' weights."""
        ends = np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows])
        shape = (self.n_nodes, self.n_nodes)
        return sparse.csr_array((np.concatenate([values, values]), ends), shape=shape)


class AllNodePairs(Part):
    """Pairs of all nodes, as matrices.

    Attributes
    ----------
    distance : numpy.ndarray, shape (N, N)
        Distances between all nodes.
    local_scales : numpy.ndarray, shape (N,)
        Distance of each node to its K-th neighbour, as in `NodePairs`.
    features : numpy.ndarray, shape (N, d), or None
        Features before scaling, as in `NodePairs`.
    """

    distance: Float[Array, "N N"]
    local_scales: Float[Array, " N"]
    features: Float[Array, "N d"] | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return int(self.distance.shape[0])

    def weights(self, weight: WeightFunction) -> Float[Array, "N N"]:
        """Return the matrix of weights, with zero diagonal."""
        distance, scales = self.distance, self.local_scales
        if self.features is not None:
            xp, x = _scaled_features(self.features, weight)
            lengths = (x**2).sum(axis=1)
            squares = lengths[:, None] + lengths[None, :] - 2 * x @ x.T
            distance = _safe_root(xp.maximum(squares, 0.0), xp)
        values: Array = weight.weight(distance, scales[:, None], scales[None, :])
        return values * (1 - array_namespace(values).eye(self.n_nodes))

    def degrees(self, values: Float[Array, "N N"]) -> Float[Array, " N"]:
        """Return the row sums of the weights."""
        return values.sum(axis=1)

    def scaled(self, values: Float[Array, "N N"], root: Float[Array, " N"]) -> Float[Array, "N N"]:
        """Multiply each weight by a factor of each of its two nodes."""
        return root[:, None] * values * root[None, :]

    def adjacency(self, values: Float[np.ndarray, "N N"]) -> Float[np.ndarray, "N N"]:
        """Return the weights, which are a matrix already."""
        return values


def _scaled_features(
    features: Float[Array, "N d"], weight: WeightFunction
) -> tuple[ModuleType, Float[Array, "N d"]]:
    """Return the namespace of the features, and the features divided by the weight's scales."""
    xp = array_namespace(features)
    return xp, features / xp.asarray(feature_scales(weight))[None, :]


def _safe_root(squares: Array, xp: ModuleType) -> Array:
    """Return the square root, with derivative 0 at 0."""
    positive = squares > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, squares, 1.0)), 0.0)
