"""Similarity graphs, made from features, distances, weights or a known shape."""

from graphuq.graphs.adjacency import from_adjacency, from_edges
from graphuq.graphs.builder import GraphBuilder, with_features
from graphuq.graphs.complete import complete_graph
from graphuq.graphs.distances import from_distances
from graphuq.graphs.epsilon import Epsilon, epsilon_graph
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.graph import Graph
from graphuq.graphs.hyperedges import from_hyperedges
from graphuq.graphs.knn import grown_graph, knn_graph
from graphuq.graphs.node_graph import node_graph
from graphuq.graphs.pixels import pixel_graph
from graphuq.graphs.reweighted import poisson_reweighted
from graphuq.graphs.structured import grid_graph, path_graph, ring_graph, small_world_graph
from graphuq.graphs.weights import (
    Cosine,
    GaussianWeights,
    SelfTuning,
    TanhWeights,
    Unweighted,
)

__all__ = [
    "Cosine",
    "Epsilon",
    "FeatureSpace",
    "GaussianWeights",
    "Graph",
    "GraphBuilder",
    "SelfTuning",
    "TanhWeights",
    "Unweighted",
    "complete_graph",
    "epsilon_graph",
    "from_adjacency",
    "from_distances",
    "from_edges",
    "from_hyperedges",
    "grid_graph",
    "grown_graph",
    "knn_graph",
    "node_graph",
    "path_graph",
    "pixel_graph",
    "poisson_reweighted",
    "ring_graph",
    "small_world_graph",
    "with_features",
]
