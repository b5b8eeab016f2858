"""Files of a graph with attributes of its nodes: GraphML, GML and GEXF, by NetworkX."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphuq.cli.columns import check_column, refuse_given
from graphuq.cli.tables import Table
from graphuq.graphs import from_adjacency
from graphuq.graphs.graph_files import read_networkx
from graphuq.graphs.graph_objects import edges_of
from graphuq.utils.checks import text_array

Edge = tuple[str, str, Any]


def read_graph_file(path: Path, options: Mapping[str, Any]) -> Table:
    """Read a graph, and the classes of its nodes if an attribute of them has these.

    Parameters
    ----------
    path : path
    options : dict
        ``label_column`` and ``truth_column`` are names of attributes of nodes. The other options
        have no meaning for a graph, and none may be given.

    Returns
    -------
    Table
        The weights as features, and the names of the nodes as ids.

    Raises
    ------
    InvalidInput, StorageError
        If the file cannot be read, an attribute is missing, or an option has no meaning.
    """
    named = ("label_column", "truth_column")
    others = {name: value for name, value in options.items() if name not in named}
    refuse_given(others, f"'{path.name}'", "leave it out")
    found = read_networkx(path)
    attributes = sorted({str(name) for _, values in found.nodes(data=True) for name in values})
    columns = {}
    for option in named:
        if (name := options[option]) is not None:
            check_column(name, attributes, "name an attribute of the nodes, or give --labels FILE")
            values = [values.get(name) for _, values in found.nodes(data=True)]
            texts = ("" if v is None else str(v).strip() for v in values)
            columns[option] = text_array(texts, f"attribute {name!r}")
    graph = from_adjacency(found)
    ids = text_array((str(node) for node in found.nodes), f"'{path.name}'")
    unused = [name for name in attributes if name not in [options[n] for n in named]]
    line = f"{path.name}: {len(ids)} nodes, {found.number_of_edges()} edges"
    line += f"; attributes that are not used: {', '.join(unused)}" if unused else ""
    settings = {"file": path.name, "rows": len(ids)}
    return Table(graph.weights, ids, columns.get("label_column"), columns.get("truth_column"), [],
                 settings=settings, line=line)  # fmt: skip


def edges_of_file(path: Path) -> list[Edge]:
    """Return the edges of a graph: the names of both nodes, and the weight, by default 1."""
    found = read_networkx(path)
    nodes, edges = list(found.nodes), edges_of(found, "weight", "file")
    ends = zip(edges.source.tolist(), edges.target.tolist(), edges.weight.tolist(), strict=True)
    return [(str(nodes[a]), str(nodes[b]), weight) for a, b, weight in ends]
