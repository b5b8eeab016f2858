"""Arguments of the wrong kind are refused by name, with the remedy."""

import networkx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

import graphuq as gq
from graphuq.errors import InvalidInput

X = np.random.default_rng(0).normal(size=(30, 3))
GRAPH = gq.graphs.knn_graph(X, 5)
FRAME = pd.DataFrame(X, columns=list("abc"))
knn_graph, from_adjacency, grid_graph = (
    gq.graphs.knn_graph,
    gq.graphs.from_adjacency,
    gq.graphs.grid_graph,
)

FEATURES = {
    "graph": (GRAPH, "X: Graph.* is already a graph; pass features, or use the graph itself"),
    "networkx": (networkx.karate_club_graph(), "X: .*NetworkX graph; convert it by from_adj"),
    "data set": (gq.datasets.two_moons(40, 2), "X: .* is a data set; pass its features"),
    "bunch": (load_iris(), "X: Bunch of length .* is a data set; pass its features, dataset.data"),
    "spectrum": (
        gq.laplacian_spectrum(GRAPH, n_eigenpairs=5),
        "X: an object of type Spectrum is not",
    ),
    "file name": ("features.csv", "X: 'features.csv' is text; load a file first"),
    "nothing": (None, "X: None is not a matrix; give a matrix with one row per node"),
    "number": (3.0, "X: 3.0 is not a matrix"),
    "function": (len, "X: .* is not a matrix"),
    "pair": ((X, X[:, 0]), "X: a pair of a matrix and numbers; give the matrix alone"),
    "vector": (X[:, 0], r"X: 1 dimension.*X.reshape\(-1, 1\)"),
    "images": (np.zeros((5, 4, 4)), r"X: 3 dimension.*X.reshape\(len\(X\), -1\)"),
    "complex": (X + 1j, r"X: not numeric \(complex numbers\)"),
    "sparse complex": (sparse.csr_array(X + 1j), r"X: not numeric \(complex numbers\)"),
    "dates": (np.zeros((5, 2), "M8[s]"), r"X: not numeric \(dates\)"),
    "text column": (
        FRAME.assign(city="Rome", kind="u"),
        "X: column 'city' .* is not numeric, first value 'Rome'; drop it or convert",
    ),
    "category": (FRAME.assign(kind=pd.Categorical(["u", "v"] * 15)), "X: column 'kind'"),
    "date column": (FRAME.assign(day=pd.Timestamp("2020-01-01")), r"X: column 'day' \(datetime"),
    "missing": (
        FRAME.assign(n=pd.array([1, None, *[2] * 28], dtype="Int64")),
        r"X: NaN or infinite values in 1 row\(s\), first row \[1\]",
    ),
    "masked": (np.ma.masked_array(X, mask=np.eye(30, 3)), "X: NaN or infinite values in 3 row"),
}


@pytest.mark.parametrize(("argument", "words"), FEATURES.values(), ids=FEATURES)
@pytest.mark.usefixtures("unchecked_types")
def test_what_is_no_matrix_of_features_is_refused(argument, words):
    for make in (
        knn_graph,
        gq.graphs.complete_graph,
        lambda X: gq.graphs.epsilon_graph(X, 1.0),
        lambda X: gq.graphs.grown_graph(GRAPH, X),
        GRAPH.feature_space.connect,
    ):
        with pytest.raises(InvalidInput, match=words):
            make(argument)


ADJACENCY = {
    "graph": (GRAPH, "adjacency: Graph.* is already a graph"),
    "features": (X, r"adjacency: shape \(30, 3\) is not square; .* for features use knn_graph"),
    "sparse features": (sparse.csr_array(X), "adjacency: shape .* for features use knn_graph"),
    "frame": (FRAME, "adjacency: shape .* for features use knn_graph"),
    "text column": (FRAME.assign(city="Rome"), "adjacency: column 'city'"),
    "data set": (gq.datasets.two_moons(40, 2), "adjacency: .* Dataset is a data set"),
    "nothing": (None, "adjacency: None is not a matrix; give a matrix, one row and one column"),
    "masked": (np.ma.masked_array(np.ones((3, 3)), mask=np.eye(3)), "adjacency: 3 weight.* NaN"),
    "complex": (np.ones((3, 3)) * 1j, r"adjacency: not numeric \(complex"),
}


@pytest.mark.parametrize(("argument", "words"), ADJACENCY.values(), ids=ADJACENCY)
@pytest.mark.usefixtures("unchecked_types")
def test_what_is_no_matrix_of_weights_is_refused(argument, words):
    with pytest.raises(InvalidInput, match=words):
        from_adjacency(argument)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: knn_graph(X, X[:, 0]), r"n_neighbors: ndarray of shape \(30,\) is not an integer"),
        (lambda: knn_graph(X, 5.5), "n_neighbors: 5.5 is not an integer"),
        (lambda: knn_graph(X, "5"), "n_neighbors: '5' is not an integer"),
        (lambda: knn_graph(X, True), "n_neighbors: True is not an integer"),
        (lambda: knn_graph(X, 5, 5), r"weights: 5 is not a weight function; use one of self-tun"),
        (lambda: knn_graph(X, 5, None), "weights: None is not a weight function"),
        (lambda: knn_graph(X, 5, gq.graphs.SelfTuning), "weights: the class SelfTuning is not"),
        (
            lambda: knn_graph(X, 5, lambda d: d),
            r"weights: .* or an instance such as SelfTuning\(\)",
        ),
        (lambda: knn_graph(X, 5, "gaussian", scale="a"), "scale: 'a' is not a number"),
        (lambda: gq.graphs.GaussianWeights(None), "scale: None|scale: nan"),
        (lambda: gq.graphs.GaussianWeights(np.ones((2, 2))), "scale: 2 dimensions"),
        (lambda: gq.graphs.TanhWeights("a", 1.0), "steepness: 'a' is not a number"),
        (lambda: knn_graph(X, 5, progress=True), "progress: True is not a function"),
        (lambda: gq.graphs.epsilon_graph(X, "a"), "radius: 'a' is not a number"),
        (lambda: gq.graphs.epsilon_graph(X, X[:, 0]), r"radius: ndarray of shape \(30,\)"),
        (
            lambda: gq.graphs.grown_graph(X, GRAPH),
            r"graph: ndarray .* call grown_graph\(graph, X\)",
        ),
        (lambda: grid_graph(3), r"shape: 3 is not a sequence; give the number of nodes on each"),
        (lambda: grid_graph("ab"), "shape: 'ab' is not a sequence"),
        (lambda: grid_graph((2.5, 3)), "shape: 2.5 is not an integer"),
        (lambda: gq.graphs.path_graph("a"), "n_nodes: 'a' is not an integer"),
        (lambda: gq.graphs.path_graph(X), "n_nodes: ndarray of shape"),
        (lambda: gq.graphs.ring_graph(2), "n_nodes: 2; use 3 or more"),
        (lambda: gq.graphs.small_world_graph(X), "n_nodes: ndarray of shape"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_other_wrong_arguments_are_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_frames_of_numbers_make_the_graph_of_their_array():
    numbers = FRAME.assign(target=True, data=pd.array(range(30), dtype="Int64"))
    graph = knn_graph(numbers, 5)
    other = knn_graph(np.column_stack([X, np.ones(30), np.arange(30)]), 5)
    assert abs(graph.weights - other.weights).max() == 0
    weights = pd.DataFrame(GRAPH.weights.toarray())
    assert abs(from_adjacency(weights).weights - GRAPH.weights).max() == 0


def test_representations_show_no_arrays():
    assert repr(GRAPH.feature_space) == "FeatureSpace(shape (30, 3), SelfTuning())"
