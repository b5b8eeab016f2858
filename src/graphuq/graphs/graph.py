"""Immutable weighted graph; every construction ends here and every check of weights is here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from graphuq.errors import DisconnectedGraphWarning, GraphRepairWarning, InvalidInput, require
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.inputs import Features
from graphuq.graphs.signs import Weights, has_signs, sides_of
from graphuq.utils.checks import refuse_zero_bytes
from graphuq.utils.concurrency import cached_property
from graphuq.utils.user_warnings import warn_user

# Asymmetry is measured relative to the largest weight.
ROUNDING_ASYMMETRY = 1e-10  # rounding errors of a symmetric formula; removed without a warning
TOLERATED_ASYMMETRY = 1e-3  # removed with a warning; a larger asymmetry is an error
# Relative to √(d_i d_j); an eigensolver in double precision cannot tell it from a missing edge.
NEGLIGIBLE_WEIGHT = 1e-12
MIN_WEIGHT, MAX_WEIGHT = 1e-100, 1e100  # of the largest weight; products of degrees stay finite


@dataclass(frozen=True, eq=False)
class Graph:
    """Similarity graph on N nodes.

    Use `knn_graph`, `complete_graph`, `epsilon_graph`, `from_adjacency`, `from_edges` or
    `from_distances` to make one.

    Attributes
    ----------
    weights : scipy.sparse.csr_array or numpy.ndarray, shape (N, N)
        Symmetric weights W with zero diagonal. A negative weight says that two nodes are opposed.
    degrees : numpy.ndarray, shape (N,)
        Row sums ``d = |W| 1``.
    components : numpy.ndarray of int, shape (N,)
        Index of the connected component of each node, from 0.
    feature_space : FeatureSpace or None
        Features and rule that connect new rows, or None if weights or distances were given.
    settings : dict
        Kind of the graph and the parameters that it was made with.
    names : numpy.ndarray, shape (N,), or None
        Names of the nodes, None if they are numbered from 0.
    others : dict of str to Graph
        Other graphs of the same nodes, by name; see `node_graph`.
    """

    weights: Weights
    degrees: Float[np.ndarray, " N"]
    components: Int[np.ndarray, " N"]
    feature_space: FeatureSpace | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    names: np.ndarray | None = None
    others: "Mapping[str, Graph]" = field(default_factory=dict)

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.degrees)

    @property
    def node_names(self) -> list[Any]:
        """Names of the nodes, or numbers from 0."""
        return list(range(self.n_nodes)) if self.names is None else list(self.names)

    @property
    def features(self) -> Features | None:
        """Features of all nodes, of length 1 for cosines; None if weights or distances were given.

        They are divided by the scales of the weight function, if it has one per feature.
        """
        space = self.feature_space
        return None if space is None else space.rows_of_nodes(self.n_nodes)

    @property
    def has_node_features(self) -> bool:
        """Whether the nodes have features that did not make the edges; see `node_graph`."""
        return self.feature_space is not None and not self.feature_space.makes_edges

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(self.components.max()) + 1

    @cached_property
    def is_signed(self) -> bool:
        """Whether a weight is negative."""
        return has_signs(self.weights)

    @cached_property
    def sides(self) -> Float[np.ndarray, " N"]:
        """Side of each node, ±1, if the signs split its component in two without exception; or 0.

        Weights are positive within a side and negative between the two. Without negative weights
        all nodes have +1.
        """
        return sides_of(self.weights, self.components)

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        if isinstance(self.weights, np.ndarray):
            return int(np.count_nonzero(self.weights)) // 2
        return int(self.weights.nnz) // 2

    def __repr__(self) -> str:
        return (
            f"Graph({self.n_nodes} nodes, {self.n_edges} edges, "
            f"{self.n_components} component{'s' if self.n_components > 1 else ''})"
        )


def make_graph(
    weights: Weights,
    *,
    argument: str = "weights",
    signed: bool = False,
    feature_space: FeatureSpace | None = None,
    settings: Mapping[str, Any] | None = None,
    names: np.ndarray | None = None,
) -> Graph:
    """Check weights and make a `Graph` of them.

    Parameters
    ----------
    weights : scipy.sparse.csr_array or numpy.ndarray, shape (N, N)
        Similarities. Asymmetry due to rounding is removed without a warning, and asymmetry of at
        most one part in a thousand with a warning. Self-loops are removed with a warning.
    argument : str
        Name of the weights in errors.
    signed : bool, default False
        Whether weights may be negative.
    feature_space : FeatureSpace, optional
        Features and rule that connect new rows to the graph.
    settings : dict, optional
        Kind of the graph and the parameters that it was made with.
    names : numpy.ndarray, shape (N,), optional
        Names of the nodes.

    Raises
    ------
    InvalidInput
        If the weights are not square, finite and symmetric, all are zero, some are negative and
        ``signed`` is false, or those of all pairs are.

    Warns
    -----
    GraphRepairWarning
        If a small asymmetry or self-loops are removed.
    DisconnectedGraphWarning
        If the graph has several connected components.
    """
    refuse_zero_bytes(() if names is None else names, argument)
    shape = weights.shape
    require(
        len(shape) == 2 and shape[0] == shape[1],
        argument,
        f"shape {tuple(shape)} is not square",
        "give one row and one column per node; for features use knn_graph",
    )
    n_nodes = shape[0]
    require(n_nodes >= 2, argument, f"{n_nodes} node(s)", "give at least 2 nodes")
    if isinstance(weights, np.ndarray):
        weights = weights.astype(np.float64)
        data = weights
    else:
        weights = weights.astype(np.float64)
        weights.sum_duplicates()
        data = weights.data
    if not np.isfinite(data).all():
        n_bad = int((~np.isfinite(data)).sum())
        raise InvalidInput(
            argument, f"{n_bad} weight(s) are NaN or infinite", "remove or replace them"
        )
    if not signed and (data < 0).any():
        raise InvalidInput(
            argument,
            f"{int((data < 0).sum())} negative weight(s), the smallest {data.min():.3g}",
            "give similarities >= 0, for example exp(-distance**2)",
        )
    all_opposed = n_nodes > 2 and int((data < 0).sum()) >= n_nodes * (n_nodes - 1)
    require(
        not all_opposed,
        argument,
        "a negative weight for every pair of nodes, which cannot all be opposed",
        "give similarities, for example exp(-distance**2)",
    )
    require(bool(data.any()), argument, "no weight other than 0", "give at least one edge")
    largest = float(np.abs(data).max())
    require(
        MIN_WEIGHT <= largest <= MAX_WEIGHT,
        argument,
        f"the largest weight is {largest:.3g}",
        f"rescale the weights to between {MIN_WEIGHT:g} and {MAX_WEIGHT:g}",
    )

    weights = _without_loops(weights, argument)
    weights = _without_negligible(_symmetric(weights, argument))
    # Of an array of weights, this function would leave out those below 1e-8.
    edges = weights != 0 if isinstance(weights, np.ndarray) else weights
    n_components, components = connected_components(edges, directed=False)
    if n_components > 1:
        sizes = np.bincount(components)
        warn_user(
            f"the graph has {n_components} connected components (largest {sizes.max()} of "
            f"{n_nodes} nodes, {int((sizes == 1).sum())} isolated): labels inform only their own "
            "component, and in a component without labels the posterior is the prior; "
            "use more neighbours, a larger radius or more edges to join components",
            DisconnectedGraphWarning,
        )
    return Graph(
        weights=weights,
        degrees=np.asarray(abs(weights).sum(axis=1), dtype=np.float64).ravel(),
        components=components.astype(np.int64),
        feature_space=feature_space,
        settings=dict(settings or {}),
        names=names,
    )


def _without_loops(weights: Weights, argument: str) -> Weights:
    """Return the weights with zero diagonal, with a warning if it was not zero."""
    n_loops = int(np.count_nonzero(weights.diagonal()))
    if n_loops == 0:
        return weights
    warn_user(
        f"{argument}: {n_loops} self-loop(s) removed, because the models need a zero diagonal",
        GraphRepairWarning,
    )
    if isinstance(weights, np.ndarray):
        weights = weights.copy()
        np.fill_diagonal(weights, 0.0)
        return weights
    weights = sparse.csr_array(weights - sparse.diags_array(weights.diagonal()))
    weights.eliminate_zeros()
    return weights


def _without_negligible(weights: Weights) -> Weights:
    """Drop negligible edges, so that an eigensolver finds the same components as we do."""
    degrees = np.asarray(abs(weights).sum(axis=1)).ravel()
    if isinstance(weights, np.ndarray):
        kept = np.abs(weights) >= NEGLIGIBLE_WEIGHT * np.sqrt(np.multiply.outer(degrees, degrees))
        return weights if kept.all() else np.where(kept, weights, 0.0)
    rows = np.repeat(np.arange(len(degrees)), np.diff(weights.indptr))
    bound = NEGLIGIBLE_WEIGHT * np.sqrt(degrees[rows] * degrees[weights.indices])
    if (negligible := np.abs(weights.data) < bound).any():
        weights = weights.copy()
        weights.data[negligible] = 0.0
        weights.eliminate_zeros()
    return weights


def _symmetric(weights: Weights, argument: str) -> Weights:
    """Return symmetric weights, with a warning or an error if they differ from their transpose."""
    asymmetry = abs(weights - weights.T).max() / abs(weights).max()
    if asymmetry > TOLERATED_ASYMMETRY:
        raise InvalidInput(
            argument,
            f"asymmetric weights (largest difference {asymmetry:.2g} of the largest weight)",
            "pass (W + W.T) / 2 or W.maximum(W.T), as from_adjacency(W, symmetrize='union') does",
        )
    if asymmetry > ROUNDING_ASYMMETRY:
        warn_user(
            f"{argument}: weights differ from their transpose by {asymmetry:.2g} of the "
            "largest weight; (W + W.T) / 2 is used",
            GraphRepairWarning,
        )
    if isinstance(weights, np.ndarray):
        return (weights + weights.T) / 2
    symmetric = sparse.csr_array((weights + weights.T) / 2)
    symmetric.eliminate_zeros()
    symmetric.sort_indices()
    if symmetric.nnz < np.iinfo(np.int32).max:  # 32 bits take half the memory
        symmetric.indices = symmetric.indices.astype(np.int32)
        symmetric.indptr = symmetric.indptr.astype(np.int32)
    return symmetric
