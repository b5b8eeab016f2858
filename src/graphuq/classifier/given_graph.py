"""Checks of a `Graph` that the user passes to the classifier instead of a word."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples

from graphuq.classifier.types import Table
from graphuq.errors import require
from graphuq.graphs import Graph
from graphuq.graphs.feature_space import FeatureSpace

TOLERANCE = 1e-5  # relative; single precision of the same features


def check_given_graph(graph: Graph, X: Table | None, construction: dict[str, Any]) -> int:
    """Check rows and parameters beside a given graph, and return the width of rows to predict.

    Parameters
    ----------
    graph : Graph
    X : array_like, shape (N, d), or None
        Rows of the nodes. If the graph was made from features, they must be those features.
    construction : dict
        Parameters of the classifier that build a graph; each must have its default.

    Returns
    -------
    int
        Number of features d if the graph was made from features, otherwise number of nodes N.

    Raises
    ------
    InvalidInput
        If X has other rows than the graph, or a parameter would have no effect.
    """
    defaults = {"n_neighbors": "auto", "weights": "auto"}
    for name, value in construction.items():
        default = defaults.get(name)
        same = value is None if default is None else isinstance(value, str) and value == default
        require(
            same, name, f"{value!r} beside {graph!r}", "leave it out: the graph is ready, or pass "
            "graph='knn' to build another"
        )  # fmt: skip
    if X is not None:
        n_rows = _num_samples(X)
        require(
            n_rows == graph.n_nodes,
            "X",
            f"{n_rows} rows, and the graph has {graph.n_nodes} nodes",
            "give one row a node, or None; a cross-validation, which leaves rows out, needs "
            "features or graph='precomputed'",
        )
    space = graph.feature_space
    if space is None:
        return graph.n_nodes
    if X is not None:
        require(
            _same_features(space, X),
            "X",
            "differs from the features that the graph was made from",
            "give those features, or None",
        )
    return int(space.features.shape[1])


def require_rows(X: Table | None, graph: str) -> None:
    """Raise `InvalidInput` if there is no X beside the name of a graph."""
    require(
        X is not None,
        "X",
        f"None beside graph={graph!r}",
        "give one row of features a node, or pass a Graph as graph",
    )


def _same_features(space: FeatureSpace, X: Table) -> bool:
    """Return whether rows of the user are those of the graph, after its scaling."""
    rows = space.in_space(X if sparse.issparse(X) else np.asarray(X))
    if sparse.issparse(rows) or sparse.issparse(space.features):
        difference = abs(sparse.csr_array(rows) - sparse.csr_array(space.features)).max()
        return bool(difference <= TOLERANCE * abs(space.features).max())
    return bool(np.allclose(rows, space.features, rtol=TOLERANCE))
