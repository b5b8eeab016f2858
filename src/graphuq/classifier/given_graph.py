"""Checks of what the classifier fits: rows of X, a `Graph`, or a graph object."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples, validate_data

from graphuq.classifier.feature_scales import warn_of_unequal_scales
from graphuq.classifier.node_order import (
    in_order_of_rows,
    same_order,
    warn_of_unused_attributes,
)
from graphuq.classifier.types import Table
from graphuq.errors import InvalidInput, require
from graphuq.graphs import Graph, Unweighted, from_adjacency, node_graph
from graphuq.graphs.containers import is_frame, is_polars, plain_table
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.graph_objects import kind_of_graph
from graphuq.graphs.inputs import check_kind, check_no_gaps, dense_if_full
from graphuq.graphs.neighbor_lists import is_neighbor_lists, matrix_of_lists
from graphuq.graphs.node_graph import GRAPH
from graphuq.utils.near_names import did_you_mean

TOLERANCE = 1e-5  # relative; single precision of the same features


def checked_rows(classifier: Any, graph: Any, X: Any, y: Any) -> tuple[Any, Any, int]:
    """Return the word, builder or `Graph` to fit, X, and the number of nodes.

    Sets ``n_features_in_`` of the classifier, as scikit-learn's validation does.

    Parameters
    ----------
    classifier : GraphClassifier
    graph : str, GraphBuilder or Graph
        Its parameter ``graph``.
    X : array_like, sparse matrix, graph object or None
    y : array_like or mapping
        Labels, whose names of rows may say in which order the nodes are.

    Raises
    ------
    InvalidInput
        If X or a parameter does not fit the graph, or names of rows are not those of its nodes.

    Warns
    -----
    GraphuqWarning
        If a graph of another library has features of its nodes, and X is None.

    Notes
    -----
    A graph that was not made from features takes X as features of its nodes; see `node_graph`.
    """
    graph = in_order_of_rows(graph, X, y)
    if isinstance(graph, Graph):
        names = ("n_neighbors", "weights", "metric")
        construction = {name: getattr(classifier, name) for name in names}
        check_construction(graph, X, construction)
        if X is not None and (graph.feature_space is None or graph.others):
            graph = _beside_features(classifier, graph, X)
        classifier.n_features_in_ = check_given_graph(graph, X)
        if X is None:
            warn_of_unused_attributes(classifier.graph)
        return graph, X, graph.n_nodes
    is_given = isinstance(graph, str) and graph == "precomputed"
    made = graph_of(X) if is_given else None
    if made is not None:
        same_order(made, y)
        warn_of_unused_attributes(X)
        classifier.n_features_in_ = check_given_graph(made, None)
        return made, None, made.n_nodes
    if isinstance(classifier.metric, str) and classifier.metric == "precomputed":
        X = matrix_of_lists(X, "X") if is_neighbor_lists(X) else X
    require_rows(X, graph)
    rows: Any = _features(classifier, X, not is_given)  # the graph checks weights itself
    return graph, rows, rows.shape[0]


def library_of(X: Any) -> str | None:
    """Return the library that a graph comes from, or None for rows."""
    return "graphuq" if isinstance(X, Graph) else kind_of_graph(X)


def graph_of(X: Any) -> Graph | None:
    """Return X as a `Graph` if it is one, of graphuq or of another library, or None for rows."""
    if isinstance(X, Graph):
        return X
    return None if kind_of_graph(X) is None else from_adjacency(X)


def rows_to_predict(estimator: Any, X: Any) -> Any:
    """Return X, or the weights from each node of a graph to all nodes.

    Raises
    ------
    InvalidInput
        If X is a graph, and the estimator predicts rows of features.
    """
    graph = graph_of(X)
    if graph is None:
        return X
    require(
        estimator._feature_space is None,
        "X",
        f"{graph!r}, where rows of features are predicted",
        "give features; predictions of the nodes are in transduction_",
    )
    return graph.weights


def labels_of_names(y: Any, graph: Any, argument: str = "y") -> Any:
    """Return one label a node, None where unknown, if ``y`` maps names of nodes to labels.

    Raises
    ------
    InvalidInput
        If ``y`` is a mapping without a graph, or a name is not a node.
    """
    if not isinstance(y, Mapping):
        return y
    require(
        isinstance(graph, Graph),
        argument,
        "a mapping beside a matrix",
        "give one label a row, or pass a graph as X or graph",
    )
    assert isinstance(graph, Graph)
    labels: list[Any] = [None] * graph.n_nodes
    rows = numbers_of_names(list(y), graph, argument)
    for row, label in zip(rows, y.values(), strict=True):
        labels[row] = label
    return labels


def numbers_of_names(given: Sequence[Any], graph: Graph, argument: str) -> list[int]:
    """Return the numbers of nodes that are given by their names.

    Raises
    ------
    InvalidInput
        If a name is not a node.
    """
    names = range(graph.n_nodes) if graph.names is None else graph.names
    place = {name: index for index, name in enumerate(names)}
    unknown = [name for name in given if name not in place]
    if unknown:
        remedy = did_you_mean(unknown[0], names, "use names as in graph.names")
        raise InvalidInput(argument, f"{unknown[0]!r} is not a node", remedy)
    return [place[name] for name in given]


def check_construction(graph: Graph, X: Table | None, construction: dict[str, Any]) -> None:
    """Check parameters beside a given graph, and that X is no graph and has one row a node.

    Parameters
    ----------
    graph : Graph
    X : array_like, shape (N, d), or None
    construction : dict
        Parameters of the classifier that build a graph; each must have its default.

    Raises
    ------
    InvalidInput
        If X is a graph or has another number of rows, or a parameter would have no effect.
    """
    defaults = {"n_neighbors": "auto", "weights": "auto"}
    for name, value in construction.items():
        default = defaults.get(name)
        same = value is None if default is None else isinstance(value, str) and value == default
        require(
            same, name, f"{value!r} beside {graph!r}", "leave it out: the graph is ready, or pass "
            "graph='knn' to build another"
        )  # fmt: skip
    require(
        library_of(X) is None,
        "X",
        f"a {library_of(X)} graph beside graph={graph!r}",
        "give features of the nodes or None, or use graph='precomputed', whose X may be a graph",
    )
    if X is not None:
        n_rows = _num_samples(X)
        require(
            n_rows == graph.n_nodes,
            "X",
            f"{n_rows} rows, and the graph has {graph.n_nodes} nodes",
            "give one row a node, or None; a cross-validation, which leaves rows out, needs "
            "features or graph='precomputed'",
        )


def check_given_graph(graph: Graph, X: Table | None) -> int:
    """Check features beside a given graph, and return the width of rows to predict.

    Parameters
    ----------
    graph : Graph
    X : array_like, shape (N, d), or None
        Rows of the nodes. If the graph has features, they must be those.

    Returns
    -------
    int
        Number of features d if the graph has features, otherwise number of nodes N.

    Raises
    ------
    InvalidInput
        If X has other rows than the graph.
    """
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


def _beside_features(classifier: Any, graph: Graph, X: Table) -> Graph:
    """Return a given graph with X as features of its nodes.

    Raises
    ------
    InvalidInput
        If X is no features, or the estimator uses none.
    """
    require(
        getattr(classifier, "uses_node_features", False),
        "X",
        f"features beside {graph!r}, which {type(classifier).__name__} does not use",
        "give None, or graph='knn' to make a graph of the features",
    )
    rows = _features(classifier, X)
    weights = graph.weights
    same = rows.shape == weights.shape and abs(rows - weights).max() == 0
    require(not same, "X", f"the weights of {graph!r}", "give features of the nodes, or None")
    warn_of_unequal_scales(rows, Unweighted(), getattr(classifier, "feature_names_in_", None))
    return node_graph({graph.settings.get("name", GRAPH): graph} | dict(graph.others), rows)


def _features(classifier: Any, X: Table, is_finite: bool = True) -> Any:
    """Return X as a matrix of numbers, after checks of the user's kind of table."""
    X = plain_table(X, "X")
    check_kind(X, "X")
    if is_frame(X) or is_polars(X):
        check_no_gaps(X, "X")
    rows = validate_data(
        classifier,
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_min_samples=2,
        ensure_all_finite=is_finite,
    )
    return dense_if_full(rows)


def require_rows(X: Table | None, graph: Any) -> None:
    """Raise `InvalidInput` unless X is rows of features beside the name of a graph."""
    require(
        library_of(X) is None,
        "X",
        f"a {library_of(X)} graph beside graph={graph!r}",
        "use graph='precomputed', whose X may be a graph, or give features, such as adata.obsm",
    )
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
