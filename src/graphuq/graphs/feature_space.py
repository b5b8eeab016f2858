"""Connection of new rows to the nodes of a graph."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float, Int, UInt
from scipy import sparse
from sklearn.preprocessing import normalize

from graphuq.errors import require
from graphuq.graphs.column_ranges import ColumnRanges
from graphuq.graphs.features import (
    between,
    check_features,
    divide_by_scales,
    has_direction,
    row_blocks,
)
from graphuq.graphs.fingerprints import fingerprints
from graphuq.graphs.inputs import Features, MatrixLike, dense_if_full
from graphuq.graphs.neighbors import (
    Neighbors,
    SinglePrecision,
    nearest_neighbors,
    neighbors_within,
)
from graphuq.graphs.principal import Axes
from graphuq.graphs.row_distances import all_distances
from graphuq.graphs.weights import Unweighted, WeightFunction
from graphuq.utils.concurrency import cached_property
from graphuq.utils.extras import require_extra
from graphuq.utils.serialization import from_json, to_json

if TYPE_CHECKING:
    import xarray as xr

RULES = ("mean", "nearest", "combination")
# Added to the Gram matrix of a combination, relative to its trace (Roweis & Saul 2000).
RIDGE = 1e-3
MIN_COMBINED = 5  # smallest number of nodes in a combination
SMALLEST_TRACE = 1e-300  # in place of a trace of 0, so that coincident rows can be solved for


@dataclass(frozen=True, eq=False, repr=False)
class FeatureSpace:
    """Features of a graph's nodes and the rule that made its weights.

    Attributes
    ----------
    features : numpy.ndarray or scipy.sparse.csr_array, shape (N, d)
        Features, divided by the scales of the weight function if it has one per feature.
    weight : WeightFunction
        Rule that maps distances to weights.
    local_scales : numpy.ndarray, shape (N,)
        Distance of each node to its K-th neighbour.
    n_neighbors : int
        Number K of neighbours that define the local scale and the edges of a knn graph.
    complete : bool
        Whether a new row connects to every node.
    radius : float or None
        Distance within which a new row connects to all nodes, or None.
    neighbors : numpy.ndarray of int, shape (N, K), or None
        Nearest neighbours of each node in a knn graph, otherwise None.
    axes : Axes or None
        Principal components in which distances are measured; None for the features themselves.
    """

    features: Features
    weight: WeightFunction
    local_scales: Float[np.ndarray, " N"]
    n_neighbors: int
    complete: bool
    radius: float | None = None
    neighbors: Int[np.ndarray, "N k"] | None = None
    axes: Axes | None = None
    makes_edges: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape {self.features.shape}, {self.weight!r})"

    @staticmethod
    def of(
        features: Features,
        weight: WeightFunction,
        local_scales: Float[np.ndarray, " N"] | None = None,
        n_neighbors: int = 1,
        complete: bool = False,
        radius: float | None = None,
        neighbors: Int[np.ndarray, "N k"] | None = None,
        axes: Axes | None = None,
    ) -> "FeatureSpace | None":
        """Make a feature space, or return None for a graph of distances.

        A new row of distances to the nodes would not suffice to connect a new row. Features are
        copied, unless they are mapped from a file, so that the caller may change them.
        """
        if weight.metric == "precomputed":
            return None
        scales = np.ones(features.shape[0]) if local_scales is None else local_scales
        lists = None if neighbors is None else neighbors.astype(np.int32)
        own = features if _is_mapped(features) else features.copy()
        return FeatureSpace(own, weight, scales, n_neighbors, complete, radius, lists, axes)

    def to_dataset(self) -> "xr.Dataset":
        """Return the features, sparse ones as their three arrays, and the rule of the weights.

        Raises
        ------
        StorageError
            If the weight function is a class that cannot be found again by its name.
        """
        require_extra("files")
        import xarray as xr

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
        if self.axes is not None:
            stored = stored.assign(self.axes.to_arrays())
        return stored.assign_attrs(
            weight=to_json(self.weight, "weights"),
            n_neighbors=self.n_neighbors,
            complete=int(self.complete),
            radius=-1.0 if self.radius is None else self.radius,
            makes_edges=int(self.makes_edges),
            width=self.features.shape[1],
        )

    @staticmethod
    def from_dataset(stored: "xr.Dataset") -> "FeatureSpace":
        """Return the feature space that `to_dataset` took apart.

        Raises
        ------
        StorageError
            If the class of the weight function cannot be found.
        """
        features: Features
        if "features" in stored:
            features = stored["features"].to_numpy()
        else:
            names = ("feature_values", "feature_columns", "feature_rows")
            shape = (stored.sizes["node"], int(stored.attrs["width"]))
            arrays = tuple(stored[name].to_numpy() for name in names)
            features = sparse.csr_array(arrays, shape=shape)
        radius = float(stored.attrs["radius"])
        kind = FeatureSpace if stored.attrs["makes_edges"] else NodeFeatures
        return kind(
            features=features,
            weight=from_json(stored.attrs["weight"], WeightFunction),
            local_scales=stored["local_scales"].to_numpy(),
            n_neighbors=int(stored.attrs["n_neighbors"]),
            complete=bool(stored.attrs["complete"]),
            radius=None if radius < 0 else radius,
            neighbors=stored["neighbors"].to_numpy() if "neighbors" in stored else None,
            axes=Axes.from_arrays(stored),
        )

    def rows_of_nodes(self, n_nodes: int) -> Features | None:
        """Return the features of all nodes, of length 1 for cosines; None if there are fewer."""
        if self.features.shape[0] != n_nodes:
            return None
        return self.unit_rows(self.features)

    def unit_rows(self, rows: Features) -> Features:
        """Return rows of length 1 for cosines, else the rows."""
        return normalize(rows) if self.weight.metric == "cosine" else rows

    def connect(self, queries: MatrixLike, rule: str = "mean") -> sparse.csr_array:
        """Compute the weights from new rows to the nodes.

        The field at a new row is the mean of the nodes' field with these weights.

        Parameters
        ----------
        queries : numpy.ndarray or sparse matrix, shape (M, d)
        rule : {"mean", "nearest", "combination"}, default "mean"
            "mean": the edges that the graph would give to the row. "nearest": weight 1 for the
            nearest node (Zhu, Lafferty & Ghahramani 2003, (8)). "combination": the point nearest
            to the row in the plane through its K nearest nodes, as a combination of these nodes.
            It follows §5 of that paper, with K nodes instead of all. The weights are those of
            Roweis & Saul 2000; they add to one and may be negative.

        Returns
        -------
        scipy.sparse.csr_array, shape (M, N)
            Zeros for a row of zeros, if the graph has cosines.

        Raises
        ------
        InvalidInput
            If the rule is unknown, or the rows are not finite numbers or differ from the nodes in
            their number of features.
        """
        require(rule in RULES, "rule", f"{rule!r} is unknown", f"use one of {', '.join(RULES)}")
        queries, metric = self.measured(self.in_space(queries)), self.weight.metric
        known = has_direction(queries, metric), has_direction(self.points, metric)
        return sparse.csr_array(between(self._connected(queries, rule), *known))

    def _connected(self, queries: Features, rule: str) -> sparse.csr_array:
        """Return the weights of `connect`, also of rows of zeros."""
        n_nodes = self.features.shape[0]
        if rule != "mean":
            k = 1 if rule == "nearest" else min(max(self.n_neighbors, MIN_COMBINED), n_nodes)
            indices = self._nearest(queries, k).indices
            weights = (
                np.ones(indices.shape) if k == 1 else self._combination_weights(queries, indices)
            )
        elif self.radius is not None:
            near = neighbors_within(self.points, self.radius, self.weight.metric, queries)
            ones = np.ones_like(near.data)
            near.data = self.weight.weight(near.data, ones, ones)
            return near
        elif self.complete:
            distances = all_distances(self.points, self.weight.metric, queries)
            ranked = np.partition(distances, self.n_neighbors - 1, axis=1)
            scale_rows = ranked[:, self.n_neighbors - 1][:, None]
            return sparse.csr_array(
                self.weight.weight(distances, scale_rows, self.local_scales[None, :])
            )
        else:
            distances, indices, _ = self._nearest(queries, self.n_neighbors)
            weights = self.weight.weight(distances, distances[:, -1:], self.local_scales[indices])
        rows = np.repeat(np.arange(queries.shape[0]), indices.shape[1])
        return sparse.csr_array(
            (weights.ravel(), (rows, indices.ravel())), shape=(queries.shape[0], n_nodes)
        )

    def _nearest(self, queries: Features, k: int) -> Neighbors:
        """Return the nearest nodes; what the search prepares is kept for the next rows."""
        return nearest_neighbors(
            self.points, k, self.weight.metric, queries, single=lambda: self._single_precision
        )

    @cached_property
    def ranges(self) -> ColumnRanges:
        """Ranges of the columns of dense features."""
        return ColumnRanges.of(self.features)

    @cached_property
    def points(self) -> Features:
        """Points of the nodes between which distances are measured."""
        return self.measured(self.features)

    def measured(self, rows: Features) -> Features:
        """Return the points of rows that are in this space."""
        return rows if self.axes is None else self.axes.scores(rows)

    @cached_property
    def _single_precision(self) -> SinglePrecision:
        return SinglePrecision.of(self.points, self.weight.metric)

    @cached_property
    def _known(self) -> tuple[UInt[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Ascending fingerprints of the nodes, and the node of each."""
        known = fingerprints(self.features)
        order = np.argsort(known, kind="stable")
        return known[order], order

    def in_space(self, queries: MatrixLike) -> Features:
        """Check new rows, and store and scale them like the nodes.

        Raises
        ------
        InvalidInput
            If the rows are not finite numbers or differ from the nodes in their number of
            features.
        """
        rows, width = check_features(queries, "X"), self.features.shape[1]
        require(
            rows.shape[1] == width,
            "X",
            f"{rows.shape[1]} features",
            f"give {width}, as many as the graph was made from",
        )
        if sparse.issparse(self.features):
            rows = sparse.csr_array(rows)
        elif sparse.issparse(rows):
            rows = sparse.csr_array(rows).toarray()
        return divide_by_scales(rows, self.weight)

    def _combination_weights(
        self, queries: Features, indices: Int[np.ndarray, "M k"]
    ) -> Float[np.ndarray, "M k"]:
        """Compute weights that add to one, whose combination of nodes is nearest to each query."""
        weights = np.empty(indices.shape)
        for row, chosen in enumerate(indices):
            difference = _to_dense(self.points[chosen]) - _to_dense(queries[[row]])
            gram = difference @ difference.T
            gram[np.diag_indices(len(chosen))] += RIDGE * max(np.trace(gram), SMALLEST_TRACE)
            solution = np.linalg.solve(gram, np.ones(len(chosen)))
            weights[row] = solution / solution.sum()
        return weights

    def find(self, queries: MatrixLike) -> Int[np.ndarray, " M"]:
        """Return the index of the first node with exactly the features of each row, or −1."""
        rows = self.in_space(queries)
        (known, order), asked = self._known, fingerprints(rows)
        place = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        indices = order[place]
        for part in row_blocks(*rows.shape):
            same = known[place[part]] == asked[part]
            candidates = np.flatnonzero(same) + part.start
            equal = _equal_rows(self.features[indices[candidates]], rows[candidates])
            indices[part][~same] = -1
            indices[candidates[~equal]] = -1
        return indices.astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class NodeFeatures(FeatureSpace):
    """Features of the nodes of a given graph: they make no edges, and join no new rows."""

    makes_edges: ClassVar[bool] = False

    @staticmethod
    def of_nodes(features: MatrixLike) -> "NodeFeatures":
        """Return checked features, one row a node."""
        rows = dense_if_full(check_features(features, "X"))
        return NodeFeatures(rows, Unweighted(), np.ones(rows.shape[0]), 1, False)

    def _connected(self, queries: Features, rule: str) -> sparse.csr_array:
        """Return weight 1 from each row to its node, whatever the rule."""
        nodes, n_nodes = self.find(queries), self.features.shape[0]
        ones, rows = np.ones(len(nodes)), np.arange(len(nodes))
        return sparse.csr_array((ones, (rows, nodes)), shape=(len(nodes), n_nodes))

    def find(self, queries: MatrixLike) -> Int[np.ndarray, " M"]:
        """Return the node of each row: all in their order, or any whose features no other has.

        Raises
        ------
        InvalidInput
            If a row is no node, or has the features of several.
        """
        rows = self.in_space(queries)
        n_nodes = self.features.shape[0]
        if rows.shape[0] == n_nodes and bool(_equal_rows(self.features, rows).all()):
            return np.arange(n_nodes)
        nodes = super().find(rows)
        known = self._known[0]
        asked = fingerprints(rows)
        several = np.searchsorted(known, asked, "right") - np.searchsorted(known, asked) > 1
        new = np.flatnonzero(nodes < 0)
        require(
            len(new) == 0,
            "X",
            f"row {new[:1].tolist()} is no node of the graph, and features make no edges",
            "add its edges to the graph and fit again; gq.graphs.with_features(graph, X) joins new "
            "rows to the nodes of the nearest features",
        )
        shared = np.flatnonzero(several)
        require(
            len(shared) == 0,
            "X",
            f"row {shared[:1].tolist()} has the features of several nodes",
            "give the rows of all nodes in their order, or read transduction_ and "
            "label_distributions_",
        )
        return nodes


def _to_dense(rows: Features) -> np.ndarray:
    return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())


def _equal_rows(a: Features, b: Features) -> np.ndarray:
    """Compare two matrices row by row."""
    if sparse.issparse(a):
        return np.asarray(abs(a - b).sum(axis=1)).ravel() == 0
    return np.asarray((a == b).all(axis=1))


def _is_mapped(array: Any) -> bool:
    """Return whether an array is, or is a view of, a file."""
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False
