"""Blocks of a graph that is given: other graphs of its nodes, and features of these."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from graphuq.graphs import Graph, SelfTuning, knn_graph
from graphuq.graphs.node_graph import FEATURES
from graphuq.spectrum.feature_block import FeatureBlock, has_varying_rows
from graphuq.spectrum.powers import POWER, THIRD
from graphuq.spectrum.smoothed import SmoothedFeatures, columns_of
from graphuq.spectrum.solve import laplacian_spectrum
from graphuq.spectrum.spectrum import Spectrum
from graphuq.spectrum.whitened import MAX_ROWS, N_NEIGHBORS, SHARPNESS, functions_of
from graphuq.utils.concurrency import cached_property
from graphuq.utils.user_warnings import held_warnings

FEATURE_GRAPH = "feature graph"
NODE_BLOCKS = "node_blocks"  # among the settings of a spectrum: names of these blocks
RESTARTS = (0.05, 0.1, 0.2)  # of the random walks, as published for graphs of citations


@dataclass(frozen=True, eq=False, repr=False)
class OtherGraph:
    """Block of eigenpairs of another graph of the same nodes.

    Attributes
    ----------
    name : str
    graph : Graph
    laplacian : str
    n_eigenpairs : int, optional
        See `laplacian_spectrum`.
    """

    name: str
    graph: Graph
    laplacian: str = "symmetric"
    n_eigenpairs: int | None = None

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenpairs of the graph."""
        return laplacian_spectrum(self.graph, self.laplacian, self.n_eigenpairs)

    @cached_property
    def values(self) -> Float[np.ndarray, "N l"]:
        """Eigenvectors as functions on the nodes."""
        return functions_of(self.spectrum)


@dataclass(frozen=True, eq=False, repr=False)
class FeatureGraph(FeatureBlock):
    """Block of eigenpairs of a graph that joins the nodes whose features have the largest cosines.

    Attributes
    ----------
    features : sparse matrix, shape (N, d)
        A row of zeros has no neighbours.
    laplacian : str, default "symmetric"
        See `laplacian_spectrum`.
    """

    laplacian: str = "symmetric"
    name = FEATURE_GRAPH

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenpairs of the graph."""
        n_neighbors = min(N_NEIGHBORS, np.shape(self.features)[0] - 1)
        with held_warnings():  # it is one of several parts
            weights = SelfTuning(SHARPNESS, metric="cosine")
            graph = knn_graph(self.features, n_neighbors, weights=weights)
            return laplacian_spectrum(graph, self.laplacian)

    @cached_property
    def values(self) -> Float[np.ndarray, "N l"]:
        """Eigenvectors as functions on the nodes."""
        return functions_of(self.spectrum)


def node_blocks(graph: Graph, laplacian: str, n_eigenpairs: int | None) -> list[Any]:
    """Return the blocks of a graph of `graphuq.graphs.node_graph`, none of any other."""
    blocks: list[Any] = [
        OtherGraph(name, other, laplacian, n_eigenpairs) for name, other in graph.others.items()
    ]
    features: Any = graph.features
    if not graph.has_node_features or not has_varying_rows(features):
        return blocks
    if sparse.issparse(features) and graph.n_nodes <= MAX_ROWS:
        blocks.append(FeatureGraph(features, laplacian))
    columns: Any = columns_of(features)  # once for all blocks
    if sparse.issparse(features):  # rows of zeros stay known as such
        columns = sparse.csr_array(columns)
    blocks.append(SmoothedFeatures(columns, graph, 1.0, FEATURES))
    for power in (THIRD, POWER):
        name = f"{FEATURES}, power {power}"
        blocks.append(SmoothedFeatures(columns, graph, 1.0, name, power))
    for name, own in {graph.settings["name"]: graph, **graph.others}.items():
        over = f"{FEATURES} over {name}"
        blocks += [SmoothedFeatures(columns, own, a, f"{over}, {a:g}") for a in RESTARTS]
    return blocks


def informed(blocks: Sequence[Any], nodes: Int[np.ndarray, " J"]) -> Bool[np.ndarray, " N"] | bool:
    """Return which nodes some blocks inform, given labels at a few: False without any block.

    These are nodes in the component of a labelled node, and nodes with features.
    """
    found: Any = False
    for block in blocks:
        spectrum = getattr(block, "spectrum", None)
        if spectrum is None:
            found = found | np.asarray(block.values)[:, :-1].any(axis=1)  # the last is the constant
        else:
            found = found | np.isin(spectrum.components, spectrum.components[nodes])
    return found
