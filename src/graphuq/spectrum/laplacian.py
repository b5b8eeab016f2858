"""Laplacian as an operator, and its null space in closed form."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.errors import InvalidInput, require
from graphuq.graphs import Graph
from graphuq.spectrum.basis import N_NULL
from graphuq.spectrum.checks import check_graph
from graphuq.utils.checks import describe
from graphuq.utils.concurrency import cached_property

LAPLACIANS = ("symmetric", "unnormalized", "random-walk")


@dataclass(frozen=True, eq=False)
class Laplacian:
    """A graph Laplacian, diagonal in an orthonormal basis Q (docs/theory/posterior.md).

    ``"symmetric"``: ``I − D^{-1/2} W D^{-1/2}``, zero on isolated nodes.
    ``"unnormalized"``: ``D − W``.
    ``"random-walk"``: ``I − D^{-1} W``, which shares its eigenvalues with the symmetric one
    and has the right eigenvectors ``D^{-1/2} q_j``. It is represented by the symmetric operator;
    `node_scale` turns the eigenvectors of that into its own.

    Degrees D are sums of ``|W|``; see docs/theory/graphs.md, "Signed edges".
    """

    graph: Graph
    kind: str = "symmetric"
    has_eigenpairs: ClassVar[Literal[False]] = False  # see `NodeBasis`
    blocks: ClassVar[tuple[()]] = ()

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return self.graph.n_nodes

    def __post_init__(self) -> None:
        check_graph(self.graph)
        require(
            isinstance(self.kind, str) and self.kind in LAPLACIANS,
            "laplacian",
            f"{describe(self.kind)} is unknown",
            f"use one of {', '.join(LAPLACIANS)}",
        )
        n_isolated = int((self.graph.degrees == 0).sum())
        if self.kind == "random-walk" and n_isolated:
            raise InvalidInput(
                "laplacian",
                f"'random-walk' with {n_isolated} isolated node(s), whose degree is 0",
                "drop them, or use laplacian='symmetric'",
            )

    @cached_property
    def _inverse_root_degrees(self) -> np.ndarray:
        degrees = self.graph.degrees
        return np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0)

    @property
    def upper_bound(self) -> float:
        """Upper bound of all eigenvalues."""
        if self.kind == "unnormalized":
            return 2 * float(self.graph.degrees.max())
        return 2.0

    @property
    def trace(self) -> float:
        """Sum of all N eigenvalues."""
        degrees = self.graph.degrees
        return float(degrees.sum() if self.kind == "unnormalized" else (degrees > 0).sum())

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        """Apply L to a vector (N,) or to columns (N, k)."""
        column = (slice(None),) + (None,) * (x.ndim - 1)
        if self.kind == "unnormalized":
            return self.graph.degrees[column] * x - self.graph.weights @ x
        inverse_root = self._inverse_root_degrees[column]
        occupied = (self.graph.degrees > 0)[column]
        return occupied * x - inverse_root * (self.graph.weights @ (inverse_root * x))

    def scaled_weights(self, dtype: type) -> sparse.csr_array | Float[np.ndarray, "N N"]:
        """Return the matrix that is subtracted from `diagonal`: ``D^{-1/2} W D^{-1/2}``, or W."""
        weights, root = self.graph.weights, self._inverse_root_degrees
        if self.kind == "unnormalized":
            return weights.astype(dtype)
        if isinstance(weights, np.ndarray):
            return (root[:, None] * weights * root[None, :]).astype(dtype)
        rows: np.ndarray = np.repeat(root.astype(dtype), np.diff(weights.indptr))
        values = weights.data.astype(dtype)
        values *= rows
        values *= root.astype(dtype)[weights.indices]
        return sparse.csr_array((values, weights.indices, weights.indptr), shape=weights.shape)

    def dense(self) -> Float[np.ndarray, "N N"]:
        """Return L as a dense matrix."""
        weights = self.graph.weights
        matrix = -(weights if isinstance(weights, np.ndarray) else weights.toarray())
        if self.kind != "unnormalized":
            matrix *= np.multiply.outer(self._inverse_root_degrees, self._inverse_root_degrees)
        matrix[np.diag_indices(len(matrix))] = self.diagonal
        return matrix

    @cached_property
    def null_profile(self) -> Float[np.ndarray, " N"]:
        """Sum of all null vectors; on component c it is the null vector of c.

        It is ``D^{1/2} s`` (or ``s``), normalised on each component. s is the side of a node, 1
        without negative weights, and 0 in a component that is not balanced and has none.
        """
        graph = self.graph
        profile = np.ones(graph.n_nodes)
        if self.kind != "unnormalized":
            profile = np.sqrt(graph.degrees)
            profile[graph.degrees == 0] = 1.0
        norms = np.sqrt(np.bincount(graph.components, weights=profile**2))
        return graph.sides * profile / norms[graph.components]

    @cached_property
    def n_null(self) -> int:
        """Number of null vectors: one for each component, if it is balanced."""
        return len(np.unique(self.graph.components[self.graph.sides != 0]))

    @property
    def is_signed(self) -> bool:
        """Whether the graph has negative weights."""
        return self.graph.is_signed

    @property
    def signs(self) -> dict[str, int]:
        """Settings of a basis on a graph with negative weights; none on any other graph."""
        return {N_NULL: self.n_null} if self.is_signed else {}

    def null_vectors(self) -> Float[np.ndarray, "N c"]:
        """Return the orthonormal null vectors as columns."""
        nodes = np.flatnonzero(self.graph.sides)
        _, column = np.unique(self.graph.components[nodes], return_inverse=True)
        vectors = np.zeros((self.graph.n_nodes, self.n_null))
        vectors[nodes, column] = self.null_profile[nodes]
        return vectors

    def project_to_null_space(self, x: Float[np.ndarray, "N *k"]) -> Float[np.ndarray, "N *k"]:
        """Project a vector or columns orthogonally onto the null space, in O(N)."""
        components, profile = self.graph.components, self.null_profile
        if x.ndim == 1:
            return profile * np.bincount(components, weights=profile * x)[components]
        if self.graph.n_components == 1:
            return np.multiply.outer(profile, profile @ x)
        coefficients = self._membership @ (profile[:, None] * x)
        return profile[:, None] * coefficients[components]

    @cached_property
    def _membership(self) -> sparse.csr_array:
        """Indicator matrix of the nodes of each component, one row per component."""
        n_nodes, components = self.graph.n_nodes, self.graph.components
        return sparse.csr_array(
            (np.ones(n_nodes), (components, np.arange(n_nodes))),
            shape=(self.graph.n_components, n_nodes),
        )

    @cached_property
    def diagonal(self) -> Float[np.ndarray, " N"]:
        """Diagonal ``L_jj``."""
        degrees = self.graph.degrees
        return degrees if self.kind == "unnormalized" else (degrees > 0).astype(float)

    def on(self, nodes: Int[np.ndarray, " n"]) -> "Laplacian":
        """Return the Laplacian of some nodes, in this order: all nodes of some components."""
        graph, place = self.graph, np.zeros(self.graph.n_nodes, np.int32)
        place[nodes] = np.arange(len(nodes), dtype=np.int32)
        weights = graph.weights[nodes]
        if isinstance(weights, np.ndarray):
            weights = weights[:, nodes]
        else:
            ends = (weights.data, place[weights.indices], weights.indptr)
            weights = sparse.csr_array(ends, shape=(len(nodes), len(nodes)))
        _, components = np.unique(graph.components[nodes], return_inverse=True)
        return Laplacian(Graph(weights, graph.degrees[nodes], components), self.kind)

    def draw(self, n_draws: int, rng: np.random.Generator) -> Float[np.ndarray, "N S"]:
        """Draw from ``N(0, L)``: noise on edges, added at one end and subtracted at the other.

        It is added at both ends of a negative edge.
        """
        upper = sparse.triu(sparse.csr_array(self.graph.weights), 1).tocoo()
        edges = np.arange(len(upper.data))
        root = np.sqrt(np.abs(upper.data))
        shape = (self.graph.n_nodes, len(edges))
        ends = sparse.csr_array((root, (upper.row, edges)), shape=shape) - sparse.csr_array(
            (np.sign(upper.data) * root, (upper.col, edges)), shape=shape
        )
        noise = np.column_stack([ends @ rng.normal(size=len(edges)) for _ in range(n_draws)])
        scale = 1.0 if self.kind == "unnormalized" else self._inverse_root_degrees[:, None]
        return np.asarray(scale * noise)

    @property
    def node_scale(self) -> Float[np.ndarray, " N"]:
        """Factor from the orthonormal basis to this Laplacian's eigenvectors, at each node.

        It is 1, or ``sqrt(mean degree / degree)`` for the random walk.
        """
        degrees = self.graph.degrees
        if self.kind != "random-walk":
            return np.ones(len(degrees))
        return np.sqrt(degrees.mean() / degrees)
