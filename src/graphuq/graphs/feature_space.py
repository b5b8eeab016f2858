"""How rows that are not in the graph connect to it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.errors import require
from graphuq.graphs.neighbors import all_distances, check_features, nearest_neighbors
from graphuq.graphs.weights import WeightFunction


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """The features of a graph's nodes and the rule that made its weights.

    Attributes
    ----------
    features : numpy.ndarray, shape (N, d)
    weight : WeightFunction
    local_scales : numpy.ndarray, shape (N,)
        Distance of each node to its K-th neighbour.
    n_neighbors : int
        K: how many neighbours define the local scale, and the edges unless ``complete``.
    complete : bool
        Whether a row connects to every node.
    """

    features: Float[np.ndarray, "N d"]
    weight: WeightFunction
    local_scales: Float[np.ndarray, " N"]
    n_neighbors: int
    complete: bool

    def connect(self, queries: Float[np.ndarray, "M d"]) -> sparse.csr_array:
        """Weights of edges from new rows to the nodes.

        Parameters
        ----------
        queries : numpy.ndarray, shape (M, d)

        Returns
        -------
        scipy.sparse.csr_array, shape (M, N)
        """
        queries = check_features(queries, "X")
        n_nodes, width = self.features.shape
        require(
            queries.shape[1] == width,
            "X",
            f"{queries.shape[1]} features",
            f"the graph was made from {width}",
        )
        if self.complete:
            distances = all_distances(self.features, self.weight.metric, queries)
            own_scale = np.partition(distances, self.n_neighbors - 1, axis=1)
            scale_rows = own_scale[:, self.n_neighbors - 1][:, None]
            return sparse.csr_array(
                self.weight.weight(distances, scale_rows, self.local_scales[None, :])
            )
        distances, indices = nearest_neighbors(
            self.features, self.n_neighbors, self.weight.metric, queries
        )
        weights = self.weight.weight(distances, distances[:, -1:], self.local_scales[indices])
        rows = np.repeat(np.arange(len(queries)), self.n_neighbors)
        return sparse.csr_array(
            (weights.ravel(), (rows, indices.ravel())), shape=(len(queries), n_nodes)
        )

    def find(self, queries: Float[np.ndarray, "M d"]) -> Int[np.ndarray, " M"]:
        """Index of the node with exactly these features (the first), or -1."""
        known: dict[bytes, int] = {}
        for index in range(len(self.features) - 1, -1, -1):
            known[self.features[index].tobytes()] = index
        rows = np.ascontiguousarray(queries, dtype=np.float64)
        return np.array([known.get(row.tobytes(), -1) for row in rows], dtype=np.int64)
