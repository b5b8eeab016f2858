"""Refusals of wrong parts: each names the argument, the value and the function to call instead."""

from scipy import sparse

from graphuq.errors import InvalidInput
from graphuq.graphs import Graph
from graphuq.utils.checks import describe


def check_graph(graph: object) -> None:
    """Raise `InvalidInput` unless ``graph`` is a `Graph`; the remedy depends on what it is."""
    if isinstance(graph, Graph):
        return
    if hasattr(graph, "eigenvectors"):
        remedy = "it has its eigenpairs already; pass the graph it was computed from"
    elif isinstance(getattr(graph, "graph", None), Graph):
        remedy = "pass its graph, laplacian.graph"
    elif sparse.issparse(graph) or (hasattr(graph, "adjacency") and hasattr(graph, "nodes")):
        remedy = "make a graph first, gq.graphs.from_adjacency(W)"
    else:
        remedy = (
            "make a graph first, gq.graphs.knn_graph(X) from features or "
            "gq.graphs.from_adjacency(W) from a matrix of weights"
        )
    raise InvalidInput("graph", f"{describe(graph)} is not a Graph", remedy)


def check_spectrum(spectrum: object) -> None:
    """Raise `InvalidInput` unless ``spectrum`` has eigenvectors."""
    if not hasattr(spectrum, "eigenvectors"):
        raise InvalidInput(
            "spectrum",
            f"{describe(spectrum)} is not a Spectrum",
            "compute one, gq.laplacian_spectrum(graph)",
        )


def check_not_graph(features: object) -> None:
    """Raise `InvalidInput` if ``features`` is a graph or is made from one."""
    is_graph = isinstance(features, Graph)
    if is_graph or isinstance(getattr(features, "graph", None), Graph):
        where = "graph" if is_graph else "laplacian.graph"
        raise InvalidInput(
            "X",
            f"{describe(features)} is not an array of features",
            f"pass the features, or use gq.laplacian_spectrum({where})",
        )
    if hasattr(features, "eigenvectors"):
        raise InvalidInput(
            "X", f"{describe(features)} is not an array of features", "pass the features"
        )
