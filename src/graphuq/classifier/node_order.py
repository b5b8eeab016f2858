"""Nodes of a given graph in the order of the rows: matched by names, where both have them."""

from collections.abc import Mapping
from typing import Any

from graphuq.errors import GraphuqWarning, require
from graphuq.graphs import Graph
from graphuq.graphs.node_attributes import unused_attributes
from graphuq.graphs.node_graph import is_graph
from graphuq.graphs.node_names import in_order, is_shuffled, order_of_names
from graphuq.utils.user_warnings import warn_user


def in_order_of_rows(graph: Any, X: Any, y: Any) -> Any:
    """Return a graph with its nodes in the order of the rows of X, or of y without X.

    Names of rows are those of the index of a DataFrame or a Series of pandas.

    Parameters
    ----------
    graph : Graph, str or GraphBuilder
        Only a `Graph` has an order of its own.
    X : array_like, DataFrame or None
    y : array_like, Series or mapping of names to labels

    Raises
    ------
    InvalidInput
        If both have names, and these are not the same; or if nodes are numbered from 0 in another
        order than theirs, and rows have no names.
    """
    rows = y if X is None else X
    if not isinstance(graph, Graph) or not _has_length(rows, graph.n_nodes):
        return graph  # refused elsewhere, if it is a graph
    indices = {name: _names_of_rows(values) for name, values in (("X", X), ("y", y))}
    named = {name: own for name, own in indices.items() if len(own) == graph.n_nodes}
    numbers = list(range(graph.n_nodes))
    own = next((one for one in named.items() if one[1] != numbers), None)
    own = own or next(iter(named.items()), None)
    if own is not None:
        order = order_of_names(graph, own[1], own[0], "its rows")
        return graph if order is None else in_order(graph, order)
    by_name = X is None and isinstance(y, Mapping)
    require(
        by_name or not is_shuffled(graph),
        "y" if X is None else "X",
        "rows without names, beside a graph whose nodes are numbered from 0 in another order",
        "give a DataFrame or Series whose index has the numbers of the nodes"
        + (", or a dict from nodes to labels" if X is None else ""),
    )
    return graph


def same_order(graph: Graph, y: Any, argument: str = "y") -> Graph:
    """Return a graph that is the data itself, if y has its order.

    Raises
    ------
    InvalidInput
        If y has names in another order, or as for `in_order_of_rows`.
    """
    moved = in_order_of_rows(graph, None, y)
    require(
        moved is graph,
        argument,
        "its index has the names of the nodes in another order",
        f"give {argument}.loc[list of the nodes of the graph], or {argument}.to_dict()",
    )
    return graph


def warn_of_unused_attributes(graph: Any) -> None:
    """Warn if graph objects of other libraries have features that are not used."""
    graphs = list(graph.values()) if isinstance(graph, Mapping) else graph
    one = is_graph(graph) or not isinstance(graphs, list | tuple)
    sentence = unused_attributes([graph] if one else graphs)
    if sentence is not None:
        warn_user(f"graph: {sentence}", GraphuqWarning)


def _has_length(rows: Any, n: int) -> bool:
    """Return whether labels or features are n rows, or labels by name."""
    if isinstance(rows, Mapping):
        return True
    shape = getattr(rows, "shape", None)
    return (shape[0] if shape else len(rows) if isinstance(rows, list | tuple) else 0) == n


def _names_of_rows(values: Any) -> list[Any]:
    """Return the index of a table or series of pandas, nothing of anything else."""
    index: Any = getattr(values, "index", None)
    return list(index) if hasattr(index, "equals") else []
