"""NodePairs of nodes and how far they are apart: a graph before it has weights.

Pytrees, whose weights JAX differentiates in the parameters of a weight function.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from graphuq.utils.arrays import Array, array_namespace


class NodePairs(eqx.Module):
    """The undirected edges of a sparse graph, each once.

    Attributes
    ----------
    n_nodes : int
    rows, columns : numpy.ndarray of int, shape (E,)
        The two ends, the smaller index first.
    distance : numpy.ndarray, shape (E,)
    mutual : numpy.ndarray of bool, shape (E,)
        Whether each end has the other among its neighbours.
    local_scales : numpy.ndarray, shape (N,)
        Distance of each node to its K-th neighbour; ones where nobody asks.
    features : numpy.ndarray, shape (N, d), or None
        Unscaled, where a weight function has a scale for each and distances change with it.
    """

    n_nodes: int = eqx.field(static=True)
    rows: Int[Array, " E"]
    columns: Int[Array, " E"]
    distance: Float[Array, " E"]
    mutual: Bool[Array, " E"]
    local_scales: Float[Array, " N"]
    features: Float[Array, "N d"] | None = None

    @staticmethod
    def of_neighbors(
        distances: Float[np.ndarray, "N k"], indices: Int[np.ndarray, "N k"], features: Any = None
    ) -> "NodePairs":
        """Each node and its K nearest neighbours."""
        n_nodes, k = indices.shape
        pointers = np.arange(n_nodes + 1) * k
        shape = (n_nodes, n_nodes)
        near = sparse.csr_array((distances.ravel(), indices.ravel(), pointers), shape=shape)
        return NodePairs.of_directed(near, distances[:, -1], features)

    @staticmethod
    def of_directed(near: sparse.csr_array, local_scales: Any = None, features: Any = None) -> Any:
        """Stored distances, those of nodes to themselves left out."""
        n_nodes = near.shape[0]
        rows = np.repeat(np.arange(n_nodes), np.diff(near.indptr))
        columns, distance = near.indices.astype(np.int64), near.data
        apart = rows != columns
        rows, columns, distance = rows[apart], columns[apart], distance[apart]
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

    def weights(self, weight: Any) -> Float[Array, " E"]:
        """Weight of each edge."""
        scales = self.local_scales
        distance = self.distance
        if self.features is not None:
            xp, by = _kind_and_scales(self.features, weight)
            x = self.features / by[None, :]
            squares = ((x[self.rows] - x[self.columns]) ** 2).sum(axis=1)
            distance = _root(squares, xp)
        values: Array = weight.weight(distance, scales[self.rows], scales[self.columns])
        return values

    def degrees(self, values: Float[Array, " E"]) -> Float[Array, " N"]:
        """Row sums of the weights."""
        zero = jnp.zeros(self.n_nodes, values.dtype)
        return zero.at[self.rows].add(values).at[self.columns].add(values)

    def scaled(self, values: Float[Array, " E"], root: Float[Array, " N"]) -> Float[Array, " E"]:
        """Weights times a number of each end."""
        return values * root[self.rows] * root[self.columns]

    def adjacency(self, values: Float[np.ndarray, " E"]) -> sparse.csr_array:
        """Symmetric weights, by edge."""
        ends = np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows])
        shape = (self.n_nodes, self.n_nodes)
        return sparse.csr_array((np.concatenate([values, values]), ends), shape=shape)


class AllNodePairs(eqx.Module):
    """Every two nodes, as matrices.

    Attributes
    ----------
    distance : numpy.ndarray, shape (N, N)
    local_scales : numpy.ndarray, shape (N,)
    features : numpy.ndarray, shape (N, d), or None
        As `NodePairs` has them.
    """

    distance: Float[Array, "N N"]
    local_scales: Float[Array, " N"]
    features: Float[Array, "N d"] | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return int(self.distance.shape[0])

    def weights(self, weight: Any) -> Float[Array, "N N"]:
        """Weights, 0 on the diagonal."""
        distance, scales = self.distance, self.local_scales
        if self.features is not None:
            xp, by = _kind_and_scales(self.features, weight)
            x = self.features / by[None, :]
            lengths = (x**2).sum(axis=1)
            squares = lengths[:, None] + lengths[None, :] - 2 * x @ x.T
            distance = _root(xp.maximum(squares, 0.0), xp)
        values: Array = weight.weight(distance, scales[:, None], scales[None, :])
        return values * (1 - array_namespace(values).eye(self.n_nodes))

    def degrees(self, values: Float[Array, "N N"]) -> Float[Array, " N"]:
        """Row sums of the weights."""
        return values.sum(axis=1)

    def scaled(self, values: Float[Array, "N N"], root: Float[Array, " N"]) -> Float[Array, "N N"]:
        """Weights times a number of each end."""
        return root[:, None] * values * root[None, :]

    def adjacency(self, values: Float[np.ndarray, "N N"]) -> Float[np.ndarray, "N N"]:
        """The weights."""
        return values


def _kind_and_scales(features: Any, weight: Any) -> tuple[Any, Any]:
    xp = array_namespace(features)
    return xp, xp.asarray(weight.feature_scales)


def _root(squares: Any, xp: Any) -> Any:
    """Square root, whose derivative is 0 where it is."""
    positive = squares > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, squares, 1.0)), 0.0)
