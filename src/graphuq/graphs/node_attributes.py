"""Features that a graph object of another library holds for its nodes.

They are attributes of nodes (NetworkX, igraph), ``x`` (PyTorch Geometric), ``ndata`` (DGL), or
``X`` and ``obsm`` (AnnData).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from graphuq.errors import require
from graphuq.graphs.graph_objects import array_of_tensor, kind_of_graph
from graphuq.graphs.inputs import Features

N_SHOWN = 5  # attributes that a message names


def named_features(graph: Any, names: str | Sequence[str]) -> Features:
    """Return attributes of the nodes of a graph object as columns, in the order of its nodes.

    Parameters
    ----------
    graph : graph object of another library
    names : str or sequence of str
        Each is a number, or a vector of the same length, for every node.

    Returns
    -------
    numpy.ndarray, or scipy.sparse.csr_array if one of them is sparse, shape (N, d)

    Raises
    ------
    InvalidInput
        If the object has no such attribute, or it is no number at some node.
    """
    library = kind_of_graph(graph)
    asked = [names] if isinstance(names, str) else list(names)
    require(
        library is not None,
        "features",
        f"{names!r} of a {type(graph).__name__}, which has no attributes of nodes",
        "give a matrix, one row a node",
    )
    assert library is not None
    found, columns = _READERS[library](graph, asked), []
    for name in asked:
        values = _numbers(found.get(name))
        require(
            values is not None,
            "features",
            f"{name!r} is not a number, or a vector of one length, at every node",
            f"use one of {numeric_attributes(graph)}, or give a matrix, one row a node",
        )
        columns.append(values)
    if any(map(sparse.issparse, columns)):
        return sparse.csr_array(sparse.hstack([sparse.csr_array(one) for one in columns]))
    return np.column_stack(columns)


def numeric_attributes(graph: Any) -> list[str]:
    """Return the names of the attributes that `named_features` can read, if any."""
    library = kind_of_graph(graph)
    if library is None:
        return []
    found = _READERS[library](graph, ())
    return [str(name) for name, values in found.items() if _numbers(values) is not None]


def unused_attributes(graphs: Iterable[Any]) -> str | None:
    """Return a sentence on attributes of graph objects that make no features, None without any."""
    for graph in graphs:
        if names := numeric_attributes(graph):
            more = ", …" if len(names) > N_SHOWN else ""
            return (
                f"nodes of the {kind_of_graph(graph)} graph have "
                f"{', '.join(map(repr, names[:N_SHOWN]))}{more}, not used: "
                f"gq.graphs.node_graph(graph, {names[0]!r}) makes features of it, and "
                "gq.graphs.from_adjacency(graph) takes the edges alone"
            )
    return None


def _numbers(values: Any) -> Any:
    """Return real numbers, one or a vector for each node, or None for anything else."""
    if sparse.issparse(values):
        return values
    try:
        array = array_of_tensor(values)
    except ValueError:  # vectors of several lengths
        return None
    return array if array.ndim in (1, 2) and array.dtype.kind in "biuf" else None


def _networkx_attributes(graph: Any, names: Sequence[str]) -> dict[str, Any]:
    nodes = [own for _, own in graph.nodes(data=True)]
    found = names or dict.fromkeys(name for own in nodes for name in own)
    return {name: [own.get(name) for own in nodes] for name in found}


def _igraph_attributes(graph: Any, names: Sequence[str]) -> dict[str, Any]:
    found = [name for name in graph.vs.attributes() if name in names or not names]
    return {name: graph.vs[name] for name in found if name != "name"}


def _geometric_attributes(graph: Any, names: Sequence[str]) -> dict[str, Any]:
    found = {name: getattr(graph, name, None) for name in names or ("x",)}
    return {name: values for name, values in found.items() if values is not None}


def _dgl_attributes(graph: Any, names: Sequence[str]) -> dict[str, Any]:
    found = {name: array_of_tensor(values) for name, values in graph.ndata.items()}
    if names:
        return found
    # Whole numbers are classes, and masks of the training nodes.
    return {name: values for name, values in found.items() if values.dtype.kind == "f"}


def _annotated_attributes(graph: Any, names: Sequence[str]) -> dict[str, Any]:
    found = {"X": getattr(graph, "X", None)} | dict(graph.obsm)
    if names:
        return found
    # Entries of bool say which rows a modality of a MuData object has.
    kinds = {
        name: getattr(getattr(values, "dtype", None), "kind", "") for name, values in found.items()
    }
    return {name: values for name, values in found.items() if kinds[name] != "b"}


_READERS: dict[str, Callable[[Any, Sequence[str]], dict[str, Any]]] = {
    "NetworkX": _networkx_attributes,
    "igraph": _igraph_attributes,
    "PyTorch Geometric": _geometric_attributes,
    "DGL": _dgl_attributes,
    "AnnData": _annotated_attributes,
}
