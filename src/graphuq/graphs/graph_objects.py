"""Edges of graph objects of other libraries, none of which is imported.

An object is recognised by its attributes, so that it may also be a subclass or a graph of another
library with the same interface.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.errors import GraphuqWarning, InvalidInput, require
from graphuq.graphs.annotated import stored_connectivities
from graphuq.utils.checks import is_number
from graphuq.utils.user_warnings import warn_user

ONE_KIND = "the model has one kind of node"
WEIGHT = "weight"  # attribute of an edge
SIGN = "sign"  # attribute of an edge that joins nodes that are alike, or opposed
SIGNS = {"+": 1.0, "-": -1.0}


class Edges(NamedTuple):
    """Edges between N nodes.

    Attributes
    ----------
    source, target : numpy.ndarray of int, shape (E,)
    weight : numpy.ndarray, shape (E,)
        Weights of parallel edges are added.
    n_nodes : int
    is_directed : bool
        False if each edge is stored once and counts in both directions.
    names : numpy.ndarray, shape (N,), or None
        Names of the nodes, None if they are numbered from 0.
    """

    source: Int[np.ndarray, " E"]
    target: Int[np.ndarray, " E"]
    weight: Float[np.ndarray, " E"]
    n_nodes: int
    is_directed: bool
    names: np.ndarray | None = None

    def matrix(self) -> sparse.csr_array:
        """Return the weights from source to target; symmetric for an undirected graph."""
        shape = (self.n_nodes, self.n_nodes)
        forward = sparse.csr_array((self.weight, (self.source, self.target)), shape=shape)
        if self.is_directed:
            return forward
        return sparse.csr_array(forward + forward.T)


def kind_of_graph(value: Any) -> str | None:
    """Return the library that a graph object comes from, or None for anything else."""
    for library, (attributes, _) in _READERS.items():
        if all(hasattr(value, name) for name in attributes):
            return library
    return None


def edges_of(graph: Any, weight: str | None, argument: str) -> Edges:
    """Return the edges of a graph object that `kind_of_graph` recognises.

    Parameters
    ----------
    graph : object
    weight : str or None
        Name of the attribute that holds weights of edges; None for weights 1.
    argument : str
        Name of the graph in errors.

    Raises
    ------
    InvalidInput
        If nodes are of several kinds, or the weights are not one number an edge.
    """
    library = kind_of_graph(graph)
    assert library is not None
    if weight is not None and library in _NUMBERS:
        _require_weights(_NUMBERS[library](graph), weight, argument)
    return _READERS[library][1](graph, weight, argument)


def _networkx_edges(graph: Any, weight: str | None, argument: str) -> Edges:
    nodes = list(graph.nodes)
    place = {node: index for index, node in enumerate(nodes)}
    rows = list(graph.edges(data=weight, default=1)) if weight else [(*e, 1) for e in graph.edges()]
    ends = np.array([(place[row[0]], place[row[1]]) for row in rows], dtype=np.int64)
    source, target = ends.reshape(-1, 2).T
    numbers = _weights([row[2] for row in rows], len(rows), argument, f"edge attribute {weight!r}")
    if weight not in (None, SIGN):
        signs = [row[-1] for row in graph.edges(data=SIGN, default=None)]
        numbers = _signed(numbers, signs, argument)
    return Edges(source, target, numbers, len(nodes), bool(graph.is_directed()), _names(nodes))


def _igraph_edges(graph: Any, weight: str | None, argument: str) -> Edges:
    source, target = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2).T
    given = weight is not None and weight in graph.es.attributes()
    values = graph.es[weight] if given else None
    numbers = _weights(values, len(source), argument, f"edge attribute {weight!r}")
    if weight not in (None, SIGN) and SIGN in graph.es.attributes():
        numbers = _signed(numbers, graph.es[SIGN], argument)
    names = _names(list(graph.vs["name"])) if "name" in graph.vs.attributes() else None
    return Edges(source, target, numbers, graph.vcount(), bool(graph.is_directed()), names)


def _geometric_edges(graph: Any, weight: str | None, argument: str) -> Edges:
    require(
        not hasattr(graph, "node_types") or len(graph.node_types) == 1,
        argument,
        "nodes of several types",
        f"call its to_homogeneous() first: {ONE_KIND}",
    )
    index = getattr(graph, "edge_index", None)
    require(
        index is not None,
        argument,
        "no edge_index",
        "set data.edge_index, or pass its adjacency matrix as a SciPy matrix",
    )
    source, target = array_of_tensor(index).astype(np.int64)
    found = None
    for name in () if weight is None else (weight, "edge_weight", "edge_attr"):
        found = getattr(graph, name, None) if found is None else found
    values = None if found is None else array_of_tensor(found)
    numbers = _weights(values, len(source), argument, "edge_attr")
    return Edges(source, target, numbers, int(graph.num_nodes), True)


def _dgl_edges(graph: Any, weight: str | None, argument: str) -> Edges:
    require(
        len(graph.ntypes) == 1 and len(graph.etypes) == 1,
        argument,
        f"nodes of types {list(graph.ntypes)} and edges of types {list(graph.etypes)}",
        f"call dgl.to_homogeneous(graph) first: {ONE_KIND}",
    )
    source, target = (array_of_tensor(ends).astype(np.int64) for ends in graph.edges())
    given = weight is not None and weight in graph.edata
    values = array_of_tensor(graph.edata[weight]) if given else None
    numbers = _weights(values, len(source), argument, f"edata[{weight!r}]")
    return Edges(source, target, numbers, int(graph.num_nodes()), True)


def _annotated_edges(graph: Any, weight: str | None, argument: str) -> Edges:
    matrix = sparse.coo_array(stored_connectivities(graph))
    numbers = np.ones(matrix.nnz) if weight is None else matrix.data.astype(np.float64)
    names = _names(list(graph.obs_names))
    return Edges(matrix.row, matrix.col, numbers, matrix.shape[0], True, names)


_READERS: dict[str, tuple[Sequence[str], Callable[[Any, str | None, str], Edges]]] = {
    "NetworkX": (("adjacency", "nodes", "is_directed"), _networkx_edges),
    "igraph": (("vcount", "get_edgelist", "es"), _igraph_edges),
    "PyTorch Geometric": (("edge_index", "num_nodes"), _geometric_edges),
    "DGL": (("edata", "ndata", "num_nodes"), _dgl_edges),
    "AnnData": (("obs_names", "obsm", "obsp", "uns"), _annotated_edges),
}


def _networkx_numbers(graph: Any) -> dict[str, bool]:
    """Return the attributes of edges, and whether all edges have a number there."""
    found: dict[str, int] = {}
    for *_, values in graph.edges(data=True):
        for name, value in values.items():
            found[name] = found.get(name, 0) + is_number(value)
    return {name: n == graph.number_of_edges() for name, n in found.items()}


def _igraph_numbers(graph: Any) -> dict[str, bool]:
    return {name: all(map(is_number, graph.es[name])) for name in graph.es.attributes()}


_NUMBERS: dict[str, Callable[[Any], dict[str, bool]]] = {
    "NetworkX": _networkx_numbers,
    "igraph": _igraph_numbers,
}


def _require_weights(attributes: dict[str, bool], weight: str, argument: str) -> None:
    """Refuse weights that no edge has, and warn of numbers that may be meant as weights."""
    if weight in attributes or SIGN in attributes:
        return
    numbers = [str(name) for name, is_numeric in attributes.items() if is_numeric]
    others = f"; its numbers are {', '.join(numbers)}" if numbers else ""
    remedy = "name an attribute that edges have, or give weight=None"
    require(weight == WEIGHT, argument, f"no edge has {weight!r}{others}", remedy)
    if numbers:
        warn_user(
            f"{argument}: edges have no {WEIGHT!r}, and all count the same{others}; to use them "
            f"rename them, or give from_adjacency(graph, weight={numbers[0]!r}); weight=None is "
            "silent",
            GraphuqWarning,
        )


def array_of_tensor(tensor: Any) -> np.ndarray:
    """Return a tensor of any device as an array."""
    for step in ("detach", "cpu", "numpy"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    return np.asarray(tensor)


def _weights(values: Any, n_edges: int, argument: str, source: str) -> Float[np.ndarray, " E"]:
    """Return one weight an edge; 1 if there are none."""
    if values is None:
        return np.ones(n_edges)
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            argument, f"{source} is not numeric ({error})", "give numbers, or weight=None"
        ) from None
    require(
        numbers.size == n_edges,
        argument,
        f"{source} of shape {numbers.shape} for {n_edges} edges",
        "give one weight an edge, or weight=None to count each edge as 1",
    )
    return numbers.ravel()


def _signed(
    numbers: Float[np.ndarray, " E"], signs: Sequence[Any], argument: str
) -> Float[np.ndarray, " E"]:
    """Return weights with the signs of the edges, where these have one.

    A weight that is negative already has its sign.
    """
    factors, known = np.ones(len(numbers)), np.zeros(len(numbers), dtype=bool)
    for k, sign in enumerate(signs):
        if sign is not None:
            found = SIGNS.get(sign, np.nan) if isinstance(sign, str) else sign
            require(
                found in (-1, 1),
                argument,
                f"edge attribute 'sign' is {sign!r}",
                "use 1 and -1, or '+' and '-', or name the weights by weight=",
            )
            factors[k], known[k] = float(found), True
    wrong = np.flatnonzero((numbers < 0) & (factors > 0) & known)
    require(
        len(wrong) == 0,
        argument,
        f"the weight {numbers[wrong[:1]].tolist()} of an edge of positive sign",
        "give weights or signs, or name the weights by weight=",
    )
    return np.asarray(np.abs(numbers) * np.where(factors < 0, -1.0, np.sign(numbers)))


def name_array(names: Sequence[Any]) -> np.ndarray:
    """Return names as an array of objects, in which a tuple is one name.

    Raises
    ------
    InvalidInput
        If two names differ in their type alone, such as 1 and "1": one node would be two.
    """
    texts = {name for name in names if isinstance(name, str)}
    twice = next((n for n in names if not isinstance(n, str) and str(n) in texts), None)
    require(
        twice is None,
        "nodes",
        f"the names {twice!r} and {str(twice)!r}, which are two nodes",
        "write all names as texts, or all as numbers",
    )
    array = np.empty(len(names), dtype=object)
    for index, name in enumerate(names):
        array[index] = name
    return array


def _names(nodes: Sequence[Any]) -> np.ndarray | None:
    """Return names of nodes; None if they are numbers from 0 in order."""
    return None if list(nodes) == list(range(len(nodes))) else name_array(nodes)
