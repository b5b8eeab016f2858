"""Signs of edges: nodes that are alike or opposed; see docs/theory/graphs.md, "Signed edges"."""

from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from graphuq.errors import require

Weights: TypeAlias = "sparse.csr_array | np.ndarray"


def has_signs(weights: Weights) -> bool:
    """Return whether a weight is negative."""
    values = weights if isinstance(weights, np.ndarray) else weights.data
    return bool((values < 0).any())


def sides_of(weights: Weights, components: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return the side of each node: ±1 in a balanced component, 0 in any other.

    A component is balanced if its nodes fall into two sides, with positive weights within a side
    and negative ones between them (Harary 1953). The first node of a component has +1.

    Notes
    -----
    Each node gets a second copy. A positive weight joins the copies of the same number, a negative
    one those of different numbers. A component is balanced if its copies fall into two parts.
    """
    n_nodes = len(components)
    if not has_signs(weights):
        return np.ones(n_nodes)
    alike, opposed = sparse.csr_array(weights > 0), sparse.csr_array(weights < 0)
    copies = sparse.block_array([[alike, opposed], [opposed, alike]], format="csr")
    part = connected_components(copies, directed=False)[1]
    first = np.unique(components, return_index=True)[1][components]  # of each node's component
    sides = np.where(part[:n_nodes] == part[first], 1.0, -1.0)
    return np.where(part[first] == part[first + n_nodes], 0.0, sides)


def require_two_classes(is_signed: bool, n_classes: float) -> None:
    """Raise `InvalidInput` if there may be more than two classes on a graph with signs."""
    require(
        not is_signed or n_classes <= 2,
        "graph",
        f"negative weights beside {n_classes:g} classes, of which an opposed node may have any "
        "other one",
        "leave edges of negative weight out, as W.maximum(0) does for a sparse matrix, or ask for "
        "two classes",
    )


def require_no_signs(weights: Weights, reason: str) -> None:
    """Raise `InvalidInput`, with a reason, if a weight is negative."""
    require(
        not has_signs(weights),
        "graph",
        f"negative weights, and {reason}",
        "leave edges of negative weight out, as W.maximum(0) does for a sparse matrix",
    )
