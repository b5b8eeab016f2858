"""Neighbours as searches of other packages return them."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

import graphuq as gq
from graphuq.errors import InvalidInput

N, K = 60, 8
CLASSES = np.arange(N) % 2
X = np.random.default_rng(0).normal(size=(N, 3)) + 2 * CLASSES[:, None]
DISTANCES, INDICES = NearestNeighbors(n_neighbors=K + 1).fit(X).kneighbors(X)
LISTS = INDICES, DISTANCES


def same(first, second):
    np.testing.assert_allclose(first.weights.toarray(), second.weights.toarray(), atol=1e-12)


def test_lists_are_the_sparse_matrix_of_the_same_neighbours():
    expected = gq.graphs.from_distances(kneighbors_graph(X, K, mode="distance"))
    for lists in (LISTS, LISTS[::-1], (INDICES[:, 1:], DISTANCES[:, 1:].astype(np.float32))):
        found = gq.graphs.from_distances(lists)
        np.testing.assert_allclose(found.weights.toarray(), expected.weights.toarray(), atol=1e-5)
    same(gq.graphs.knn_graph(LISTS, K, metric="precomputed"), expected)
    y = np.where(np.arange(N) < 10, CLASSES, -1)
    classifier = gq.GraphClassifier(
        metric="precomputed", n_neighbors=K, inference="expectation-propagation"
    )
    by_lists = classifier.fit(LISTS, y).label_distributions_
    by_matrix = classifier.fit(kneighbors_graph(X, K, mode="distance"), y).label_distributions_
    np.testing.assert_allclose(by_lists, by_matrix, atol=1e-9)


def test_neighbours_that_were_not_found_are_left_out():
    """Searches write −1 there, and a distance that means nothing."""
    indices, distances = INDICES.copy(), DISTANCES.copy()
    indices[:, -2:], distances[:, -2:] = -1, np.inf
    expected = gq.graphs.from_distances(kneighbors_graph(X, K - 2, mode="distance"))
    same(gq.graphs.from_distances((indices, distances)), expected)


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ((INDICES, DISTANCES[:, 1:]), r"\(60, 9\) and \(60, 8\)"),
        ((DISTANCES, DISTANCES), "types float64 and float64"),
        ((INDICES + N, DISTANCES), "row number 119 among 60 rows"),
        ((INDICES, -DISTANCES), "negative, NaN or infinite"),
        ((np.where(INDICES > 0, 5, INDICES), DISTANCES), "listed twice"),
    ],
)
def test_lists_that_contradict_themselves_are_refused(lists, said):
    with pytest.raises(InvalidInput, match=rf"^distances: .*{said}"):
        gq.graphs.from_distances(lists)


def test_other_metrics_name_a_way():
    with pytest.raises(InvalidInput, match=r"'correlation' is unknown.*X - X\.mean\(axis=1"):
        gq.graphs.knn_graph(X, K, metric="correlation")
    rows = np.random.default_rng(1).normal(size=(30, 5))
    centred = rows - rows.mean(axis=1, keepdims=True)
    graph = gq.graphs.knn_graph(centred, 5, weights="cosine")
    joined = graph.weights.toarray() > 0
    ordered = np.argsort(-np.corrcoef(rows), axis=1)[:, 1:6]
    assert joined[np.arange(30)[:, None], ordered].all()


def test_a_query_before_any_label_says_what_to_do():
    with pytest.raises(NotFittedError, match="Before any label choose rows at random"):
        gq.GraphClassifier().query(3)
