"""Files of graphs that NetworkX reads: GraphML, GML and GEXF."""

from pathlib import Path
from typing import Any

from graphuq.errors import require
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import reading, require_file

GRAPH_SUFFIXES = (".graphml", ".gml", ".gexf")


def read_networkx(path: Path) -> Any:
    """Return the graph of a file as one of NetworkX.

    Raises
    ------
    StorageError, InvalidInput
        If the file cannot be read, or has no nodes.
    MissingPackage
        If NetworkX is not installed (extra ``graphuq[networks]``).
    """
    require_extra("networks")
    import networkx

    require_file(path)
    kind = path.suffix.lower()
    with reading(path, f"{kind[1:]} file"):
        if kind == ".gml":
            try:
                found = networkx.read_gml(path)
            except networkx.NetworkXError:  # nodes without labels, or with equal ones
                found = networkx.read_gml(path, label=None)
        else:
            read = networkx.read_graphml if kind == ".graphml" else networkx.read_gexf
            found = read(path)
    require(len(found) > 0, "file", f"'{path.name}' has no nodes", "give a graph with nodes")
    return found
