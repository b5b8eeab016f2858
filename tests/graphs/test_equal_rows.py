"""Graphs of tables in which many rows are equal."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

import graphuq as gq
from graphuq.errors import DisconnectedGraphWarning
from graphuq.graphs.equal_rows import among_distinct_rows
from graphuq.graphs.neighbors import nearest_neighbors


def table(sizes, seed=0):
    """Return shuffled rows, `sizes[i]` of which are equal to each other, and their groups."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(sizes), 3))[group], group


def lists(features, k, metric="euclidean"):
    nearest = nearest_neighbors(features, k, metric)
    return among_distinct_rows(features, nearest, metric, always=True)


@pytest.mark.parametrize("k", [1, 2, 5, 15])
@pytest.mark.parametrize("sizes", [[40] * 30, [1, 2, 3, 5, 8, 13, 21] * 6, [30, 1, 1], [90, 9, 4]])
def test_lists_against_all_distances(sizes, k):
    features, group = table(sizes)
    found = lists(features, k)
    distances = np.linalg.norm(features[:, None] - features, axis=2)
    rows = np.arange(len(features))[:, None]
    np.testing.assert_allclose(found.distances, distances[rows, found.indices], atol=1e-12)
    for i, row in enumerate(found.indices):
        assert len({i, *row}) == k + 1  # k different rows
        of_others = np.unique(group, return_index=True)[1][np.arange(len(sizes)) != group[i]]
        others = row[group[row] != group[i]]
        if len(sizes) > k:  # equal rows fill at most half of the list, each other group counts once
            assert k - len(others) == min(k // 2, sizes[group[i]] - 1)
            nearest = np.sort(distances[i, of_others])[: len(others)]
            np.testing.assert_allclose(np.sort(distances[i, others]), nearest)
        else:
            assert len(set(group[others])) == min(k - k // 2, len(sizes) - 1) or len(others) == k


def test_the_graph_does_not_fall_apart():
    features, _ = table([40] * 30)
    graph = gq.graphs.knn_graph(features, 15)
    assert connected_components(graph.weights)[0] == 1
    assert graph.settings["distinct"] is True
    distances = np.linalg.norm(features[:, None] - features, axis=2)
    with pytest.warns(DisconnectedGraphWarning, match="has 30 connected components"):
        gq.graphs.knn_graph(distances, 15, metric="precomputed")  # plain nearest neighbours


def test_few_equal_rows_change_nothing():
    features, _ = table([3] * 60)
    graph = gq.graphs.knn_graph(features, 10)
    distances = np.linalg.norm(features[:, None] - features, axis=2)
    plain = gq.graphs.knn_graph(distances, 10, metric="precomputed")
    assert "distinct" not in graph.settings
    assert "distinct" in gq.graphs.knn_graph(features, 7).settings
    np.testing.assert_allclose(np.sort(graph.weights.data), np.sort(plain.weights.data), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_a_table_of_one_row():
    assert "distinct" not in gq.graphs.knn_graph(np.ones((12, 2)), 3).settings


def test_equal_rows_are_close_in_a_large_group():
    """With steps 1, 2, 3, 4 and 5 alone the eigenvalue is that of a ring, 0.0014."""
    features, _ = table([300] * 12)
    graph = gq.graphs.knn_graph(features, 10, "unweighted")
    assert gq.laplacian_spectrum(graph, n_eigenpairs=3).eigenvalues[1] > 0.02


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_rows(metric):
    features, _ = table([12] * 20)
    rows = sparse.csr_array(features)
    dense, found = lists(features, 7, metric), lists(rows, 7, metric)
    np.testing.assert_allclose(found.distances, dense.distances, atol=1e-7)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("seed", range(5))
def test_distances_of_equal_rows_that_rounding_makes_positive(metric, seed):
    rng = np.random.default_rng(seed)
    features = 10 + rng.normal(size=(60, 30))
    features[:9] = features[0]
    weights = gq.graphs.SelfTuning(metric=metric)
    for rows in (features, sparse.csr_array(features)):
        assert "distinct" in gq.graphs.knn_graph(rows, 7, weights).settings
    assert "distinct" not in gq.graphs.knn_graph(features[8:], 7, weights).settings


@pytest.mark.parametrize("old", [30, 200])
def test_added_rows(old):
    features, _ = table([20] * 15)
    graph = gq.graphs.grown_graph(gq.graphs.knn_graph(features[:old], 6), features[old:])
    whole = gq.graphs.knn_graph(features, 6)
    assert abs(graph.weights - whole.weights).max() < 1e-12
    assert graph.settings == whole.settings
