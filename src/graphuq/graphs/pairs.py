"""Pairs of nodes and how far they are apart: a graph before it has weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Pairs:
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
    """

    n_nodes: int
    rows: Int[np.ndarray, " E"]
    columns: Int[np.ndarray, " E"]
    distance: Float[np.ndarray, " E"]
    mutual: Bool[np.ndarray, " E"]
    local_scales: Float[np.ndarray, " N"]

    @staticmethod
    def of_neighbors(
        distances: Float[np.ndarray, "N k"], indices: Int[np.ndarray, "N k"]
    ) -> "Pairs":
        """Each node and its K nearest neighbours."""
        n_nodes, k = indices.shape
        pointers = np.arange(n_nodes + 1) * k
        shape = (n_nodes, n_nodes)
        near = sparse.csr_array((distances.ravel(), indices.ravel(), pointers), shape=shape)
        return Pairs.of_directed(near, distances[:, -1])

    @staticmethod
    def of_directed(near: sparse.csr_array, local_scales: Any = None) -> "Pairs":
        """Stored distances, those of nodes to themselves left out."""
        n_nodes = near.shape[0]
        rows = np.repeat(np.arange(n_nodes), np.diff(near.indptr))
        columns, distance = near.indices.astype(np.int64), near.data
        apart = rows != columns
        rows, columns, distance = rows[apart], columns[apart], distance[apart]
        key = np.minimum(rows, columns) * n_nodes + np.maximum(rows, columns)
        unique, first, counts = np.unique(key, return_index=True, return_counts=True)
        return Pairs(
            n_nodes=n_nodes,
            rows=unique // n_nodes,
            columns=unique % n_nodes,
            distance=distance[first],
            mutual=counts > 1,
            local_scales=np.ones(n_nodes) if local_scales is None else local_scales,
        )

    def weights(self, weight: Any) -> Float[np.ndarray, " E"]:
        """Weight of each edge."""
        scales = self.local_scales
        values: np.ndarray = weight.weight(self.distance, scales[self.rows], scales[self.columns])
        return values

    def adjacency(self, values: Float[np.ndarray, " E"]) -> sparse.csr_array:
        """Symmetric weights, by edge."""
        ends = np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows])
        shape = (self.n_nodes, self.n_nodes)
        return sparse.csr_array((np.concatenate([values, values]), ends), shape=shape)
