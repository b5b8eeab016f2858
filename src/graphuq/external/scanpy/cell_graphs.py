"""Graphs of cells: of their expression, and of their places in a tissue."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy import sparse

from graphuq.errors import DisconnectedGraphWarning, require
from graphuq.external.scanpy.cells import cell_graph, representation
from graphuq.external.scanpy.places import EXPRESSION, SPACE, space_graph
from graphuq.graphs import Graph, SelfTuning, from_adjacency, knn_graph
from graphuq.utils.user_warnings import held_warnings

JOINT = f"{EXPRESSION} and {SPACE}"  # name of the graph with the edges of both
SPACE_SHARE = 1.0  # weight of the edges in space in the joint graph; docs/archive/choices.md
N_NEIGHBORS, SHARPNESS = 15, 4.0  # of a graph of expression, as of `GraphClassifier`


@dataclass(frozen=True)
class CellGraphs:
    """Which parts of an AnnData object make the graphs; see `label_cells`."""

    neighbors_key: str | None = None
    use_rep: str | None = None
    spatial_key: str | None = "auto"
    library_key: str | None = "auto"

    def check(self) -> None:
        """Raise `InvalidInput` if a stored graph and features are both named."""
        require(
            self.neighbors_key is None or self.use_rep is None,
            "use_rep",
            f"{self.use_rep!r} beside neighbors_key={self.neighbors_key!r}",
            "give one of the two",
        )

    def of(self, adata: Any) -> tuple[Graph | Mapping[str, Graph] | None, Any, str]:
        """Return the graph or graphs, features of the cells or None, and where these are from.

        The graph is None if the classifier makes it of the features.
        """
        space = space_graph(adata, self.spatial_key, self.library_key)
        X = None if self.use_rep is None else representation(adata, self.use_rep)
        source = f"neighbours of {self.neighbors_key or 'neighbors'}"
        if X is not None:
            source = f"nearest neighbours in {self.use_rep}"
        if space is None:
            return (cell_graph(adata, self.neighbors_key) if X is None else None), X, source
        with held_warnings(DisconnectedGraphWarning):  # places may join what expression does not
            if X is None:
                expression = cell_graph(adata, self.neighbors_key)
            else:
                n_neighbors = min(N_NEIGHBORS, X.shape[0] - 1)
                expression = knn_graph(X, n_neighbors, weights=SelfTuning(SHARPNESS))
        graphs = {JOINT: _joint(expression, space), EXPRESSION: expression, SPACE: space}
        return graphs, None, f"{source}, and places"


def _joint(expression: Graph, space: Graph) -> Graph:
    """Return the sum of two graphs, each divided by the mean weight of a node.

    Functions of the features of the expression, if it has some, are parts beside it.
    """
    total = sparse.csr_array(expression.weights) / expression.degrees.mean()
    total += SPACE_SHARE * sparse.csr_array(space.weights) / space.degrees.mean()
    joint = from_adjacency(sparse.csr_array(total))
    names, space_of_features = expression.names, expression.feature_space
    return dataclasses.replace(joint, names=names, feature_space=space_of_features)
