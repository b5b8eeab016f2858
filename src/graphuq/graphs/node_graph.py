"""One graph of graphs on the same nodes, and of features that these nodes have beside edges."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from scipy import sparse

from graphuq.errors import require
from graphuq.graphs.adjacency import from_adjacency
from graphuq.graphs.feature_space import NodeFeatures
from graphuq.graphs.graph import Graph
from graphuq.graphs.graph_objects import kind_of_graph
from graphuq.graphs.inputs import MatrixLike
from graphuq.graphs.node_attributes import named_features
from graphuq.graphs.node_names import in_order, order_of_names

GRAPH, FEATURES = "graph", "features"  # names of a single graph, and of the features


def node_graph(graphs: Any, features: MatrixLike | str | Sequence[str] | None = None) -> Graph:
    """Return a graph that has other graphs of its nodes beside it, or features, or both.

    The features make no edges. They, and the other graphs, are parts of the default model of
    `GraphClassifier`; see docs/nodes.md.

    Parameters
    ----------
    graphs : graph, sequence of graphs, or mapping of names to graphs
        A graph is a `Graph`, a SciPy sparse matrix of weights, or what `from_adjacency` takes of
        other libraries. All have the same nodes: those with names are put in the order of the
        first, others have it. A sequence has the names "graph 1", "graph 2", ….
    features : array_like or sparse matrix, shape (N, d), or str or sequence of str, optional
        Finite features, one row a node, in the order of the nodes. Or names of attributes that the
        first graph object has for its nodes: of nodes (NetworkX, igraph), such as "x" (PyTorch
        Geometric), of ``ndata`` (DGL), or "X" or a key of ``obsm`` (AnnData).

    Returns
    -------
    Graph
        The first graph, with the others in ``others``.

    Raises
    ------
    InvalidInput
        If there is no graph, graphs differ in their nodes, names are not different texts,
        features are not finite numbers, one row a node, or the first graph has no such attribute.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> ring = gq.graphs.ring_graph(6)
    >>> both = gq.graphs.node_graph({"ring": ring, "path": gq.graphs.path_graph(6)}, np.eye(6))
    >>> both, list(both.others), both.features.shape
    (Graph(6 nodes, 6 edges, 1 component), ['path'], (6, 6))
    """
    named = _named(graphs)
    require(len(named) > 0, "graph", "no graph", "give at least one")
    own = {name: _graph(graph) for name, graph in named.items()}
    first = next(iter(own.values()))
    for name, graph in own.items():
        require(
            graph.n_nodes == first.n_nodes,
            "graph",
            f"{graph.n_nodes} nodes of {name!r} beside {first.n_nodes}",
            "give graphs of the same nodes",
        )
        order = order_of_names(graph, first.node_names, "graph", f"the nodes of {name!r}")
        own[name] = graph if order is None else in_order(graph, order)
    names = next((graph.names for graph in own.values() if graph.names is not None), None)
    if _are_names(features):
        features = named_features(next(iter(named.values())), features)  # type: ignore[arg-type]
    given = list(own)
    return dataclasses.replace(
        first,
        names=names,
        feature_space=first.feature_space if features is None else NodeFeatures.of_nodes(features),
        settings={**first.settings, "name": given[0]},
        others={name: own[name] for name in given[1:]},
    )


def is_graph(value: Any) -> bool:
    """Return whether a value is a graph of any kind that `node_graph` takes, and not of several."""
    return isinstance(value, Graph) or sparse.issparse(value) or kind_of_graph(value) is not None


def are_graphs(value: Any) -> bool:
    """Return whether a value is a sequence, or a mapping, of nothing but graphs."""
    if isinstance(value, str) or is_graph(value) or not isinstance(value, Mapping | Sequence):
        return False
    values = list(value.values()) if isinstance(value, Mapping) else list(value)
    return len(values) > 0 and all(map(is_graph, values))


def _are_names(features: Any) -> bool:
    """Return whether features are names of attributes."""
    several = isinstance(features, Sequence) and len(features) > 0
    return isinstance(features, str) or (several and all(isinstance(f, str) for f in features))


def _named(graphs: Any) -> dict[str, Any]:
    """Return graphs with their names."""
    if is_graph(graphs):
        return {GRAPH: graphs}
    require(
        are_graphs(graphs),
        "graph",
        f"a {type(graphs).__name__}",
        "give a graph, a list of graphs, or a dictionary of names and graphs",
    )
    if not isinstance(graphs, Mapping):
        return {f"{GRAPH} {k}": graph for k, graph in enumerate(graphs, start=1)}
    for name in graphs:
        require(
            isinstance(name, str) and name.strip() != "",
            "graph",
            f"the name {name!r}",
            "name each graph by a text",
        )
    return dict(graphs)


def _graph(graph: Any) -> Graph:
    """Return a graph of any kind as one `Graph`, without those that are beside it."""
    made = graph if isinstance(graph, Graph) else from_adjacency(graph)
    return dataclasses.replace(made, others={}) if made.others else made
