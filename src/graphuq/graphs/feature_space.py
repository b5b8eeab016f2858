"""How rows that are not in the graph connect to it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int, UInt
from scipy import sparse

from graphuq.errors import require
from graphuq.graphs.features import check_features, in_scale, row_blocks
from graphuq.graphs.neighbors import all_distances, nearest_neighbors, neighbors_within
from graphuq.graphs.weights import WeightFunction
from graphuq.utils.serialization import from_json, to_json

RULES = ("mean", "nearest", "combination")
RIDGE = 1e-3  # of the combination's normal equations, relative to their trace (Roweis & Saul 2000)


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """The features of a graph's nodes and the rule that made its weights.

    Attributes
    ----------
    features : numpy.ndarray or scipy.sparse.csr_array, shape (N, d)
        Scaled as the weight function says.
    weight : WeightFunction
    local_scales : numpy.ndarray, shape (N,)
        Distance of each node to its K-th neighbour.
    n_neighbors : int
        K: how many neighbours define the local scale, and the edges of a graph of neighbours.
    complete : bool
        Whether a row connects to every node.
    radius : float or None
        Whether it connects to all nodes within this distance.
    neighbors : numpy.ndarray of int, shape (N, K), or None
        Which nodes each has chosen, of a graph of nearest neighbours: what further nodes change.
    """

    features: Any
    weight: Any
    local_scales: Float[np.ndarray, " N"]
    n_neighbors: int
    complete: bool
    radius: float | None = None
    neighbors: Int[np.ndarray, "N k"] | None = None

    @staticmethod
    def of(
        features: Any,
        weight: Any,
        local_scales: Float[np.ndarray, " N"] | None = None,
        n_neighbors: int = 1,
        complete: bool = False,
        radius: float | None = None,
        neighbors: Int[np.ndarray, "N k"] | None = None,
    ) -> "FeatureSpace | None":
        """None of distances: a new row would be more than a row of them."""
        if weight.metric == "precomputed":
            return None
        scales = np.ones(features.shape[0]) if local_scales is None else local_scales
        lists = None if neighbors is None else neighbors.astype(np.int32)
        return FeatureSpace(features, weight, scales, n_neighbors, complete, radius, lists)

    def to_dataset(self) -> xr.Dataset:
        """Return the features, sparse ones as their three arrays, and the rule of the weights.

        Raises
        ------
        StorageError
            If the weight function is a class that cannot be found again by its name.
        """
        stored = xr.Dataset({"local_scales": ("node", self.local_scales)})
        if sparse.issparse(self.features):
            rows = sparse.csr_array(self.features)
            stored["feature_values"] = ("entry", rows.data)
            stored["feature_columns"] = ("entry", rows.indices)
            stored["feature_rows"] = ("row_end", rows.indptr)
        else:
            stored["features"] = (("node", "feature"), self.features)
        if self.neighbors is not None:
            stored["neighbors"] = (("node", "neighbor"), self.neighbors)
        return stored.assign_attrs(
            weight=to_json(self.weight, "weights"),
            n_neighbors=self.n_neighbors,
            complete=int(self.complete),
            radius=-1.0 if self.radius is None else self.radius,
            width=self.features.shape[1],
        )

    @staticmethod
    def from_dataset(stored: xr.Dataset) -> "FeatureSpace":
        """Return the feature space that `to_dataset` took apart.

        Raises
        ------
        StorageError
            If the class of the weight function cannot be found.
        """
        features: Any
        if "features" in stored:
            features = stored["features"].to_numpy()
        else:
            names = ("feature_values", "feature_columns", "feature_rows")
            shape = (stored.sizes["node"], int(stored.attrs["width"]))
            arrays = tuple(stored[name].to_numpy() for name in names)
            features = sparse.csr_array(arrays, shape=shape)
        radius = float(stored.attrs.get("radius", -1.0))
        return FeatureSpace(
            features=features,
            weight=from_json(stored.attrs["weight"], WeightFunction, "graphuq.graphs"),
            local_scales=stored["local_scales"].to_numpy(),
            n_neighbors=int(stored.attrs["n_neighbors"]),
            complete=bool(stored.attrs["complete"]),
            radius=None if radius < 0 else radius,
            neighbors=stored["neighbors"].to_numpy() if "neighbors" in stored else None,
        )

    def connect(self, queries: Any, rule: str = "mean") -> sparse.csr_array:
        """Weights from new rows to the nodes, of which their field is the weighted mean.

        Parameters
        ----------
        queries : numpy.ndarray or sparse matrix, shape (M, d)
        rule : {"mean", "nearest", "combination"}, default "mean"
            "mean": the edges that the graph would give them. "nearest": 1 for the nearest node
            (Zhu, Lafferty & Ghahramani 2003, (8)). "combination": the point nearest to the row in
            the plane through its K nearest nodes, as a combination of them (their §5, of K nodes
            instead of all; the weights of Roweis & Saul 2000, which add to one and may be
            negative).

        Returns
        -------
        scipy.sparse.csr_array, shape (M, N)
        """
        require(rule in RULES, "rule", f"{rule!r} is unknown", f"use one of {', '.join(RULES)}")
        queries, n_nodes = self.in_space(queries), self.features.shape[0]
        if rule != "mean":
            k = 1 if rule == "nearest" else min(max(self.n_neighbors, 5), n_nodes)
            indices = nearest_neighbors(self.features, k, self.weight.metric, queries).indices
            weights = np.ones(indices.shape) if k == 1 else self._combined(queries, indices)
        elif self.radius is not None:
            near = neighbors_within(self.features, self.radius, self.weight.metric, queries)
            ones = np.ones_like(near.data)
            near.data = self.weight.weight(near.data, ones, ones)
            return near
        elif self.complete:
            distances = all_distances(self.features, self.weight.metric, queries)
            own_scale = np.partition(distances, self.n_neighbors - 1, axis=1)
            scale_rows = own_scale[:, self.n_neighbors - 1][:, None]
            return sparse.csr_array(
                self.weight.weight(distances, scale_rows, self.local_scales[None, :])
            )
        else:
            distances, indices, _ = nearest_neighbors(
                self.features, self.n_neighbors, self.weight.metric, queries
            )
            weights = self.weight.weight(distances, distances[:, -1:], self.local_scales[indices])
        rows = np.repeat(np.arange(queries.shape[0]), indices.shape[1])
        return sparse.csr_array(
            (weights.ravel(), (rows, indices.ravel())), shape=(queries.shape[0], n_nodes)
        )

    def in_space(self, queries: Any) -> Any:
        """Rows outside the graph, checked, and scaled as its nodes are."""
        queries, width = check_features(queries, "X"), self.features.shape[1]
        require(
            queries.shape[1] == width,
            "X",
            f"{queries.shape[1]} features",
            f"the graph was made from {width}",
        )
        return in_scale(queries, self.weight)

    def _combined(self, queries: Any, indices: Int[np.ndarray, "M k"]) -> Float[np.ndarray, "M k"]:
        """Weights that add to one and come nearest to each query."""
        weights = np.empty(indices.shape)
        for row, own in enumerate(indices):
            near, query = self.features[own], queries[[row]]
            apart = (
                (near - query) if not sparse.issparse(near) else near.toarray() - (query.toarray())
            )
            gram = apart @ apart.T
            gram[np.diag_indices(len(own))] += RIDGE * max(np.trace(gram), 1e-300)
            solution = np.linalg.solve(gram, np.ones(len(own)))
            weights[row] = solution / solution.sum()
        return weights

    def find(self, queries: Any) -> Int[np.ndarray, " M"]:
        """Index of the node with exactly these features (the first), or -1."""
        rows = self.in_space(queries)
        own, asked = _fingerprints(self.features), _fingerprints(rows)
        order = np.argsort(own, kind="stable")
        place = np.minimum(np.searchsorted(own[order], asked), len(own) - 1)
        found = order[place]
        for part in row_blocks(*rows.shape):
            same = own[found[part]] == asked[part]
            candidates = np.flatnonzero(same) + part.start
            equal = _equal_rows(self.features[found[candidates]], rows[candidates])
            found[part][~same] = -1
            found[candidates[~equal]] = -1
        return found.astype(np.int64)


def _fingerprints(features: Any) -> UInt[np.ndarray, " R"]:
    """A number a row, the same for equal rows and hardly ever for others."""
    factors = np.random.default_rng(0).integers(1, 2**63, features.shape[1]).astype(np.uint64) | 1
    if sparse.issparse(features):
        bits = _mixed(features.data) * factors[features.indices]
        rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
        sums = np.zeros(features.shape[0], np.uint64)
        np.add.at(sums, rows, bits)
        return sums
    sums = np.empty(len(features), np.uint64)
    for part in row_blocks(*features.shape):
        sums[part] = (_mixed(features[part]) * factors).sum(axis=1)
    return sums


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """The bits of numbers, those that whole numbers leave empty filled up; −0 is 0."""
    bits = (np.asarray(numbers, np.float64) + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))


def _equal_rows(a: Any, b: Any) -> np.ndarray:
    if sparse.issparse(a):
        return np.asarray(abs(a - b).sum(axis=1)).ravel() == 0
    return np.asarray((a == b).all(axis=1))
