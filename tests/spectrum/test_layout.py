"""Places of the nodes on a map."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

import graphuq as gq
from graphuq.spectrum import CovarianceColumns, Laplacian, PowerPrecision, layout
from graphuq.spectrum.layout import correlation_rows, node_layout


@pytest.fixture(scope="module")
def digits():
    made = gq.datasets.load_digits()
    graph = gq.graphs.knn_graph(made.data, n_neighbors=10)
    return graph, gq.laplacian_spectrum(graph, n_eigenpairs=120), np.asarray(made.target)


def agreement(places, classes):
    """Share of the nearest neighbours in the plane that have the same class."""
    near = NearestNeighbors(n_neighbors=2).fit(places).kneighbors(return_distance=False)[:, 0]
    return float((classes[near] == classes).mean())


def test_rows_are_correlations(digits):
    """Against the covariance matrix of all nodes, made whole."""
    _, spectrum, _ = digits
    values, vectors = spectrum.eigenvalues[1:101], spectrum.eigenvectors[:, 1:101]
    covariance = vectors @ np.diag((values + values.mean()) ** -2.0) @ vectors.T
    std = np.sqrt(np.diagonal(covariance))
    nodes = np.array([5, 700, 3, 1796])
    rows = correlation_rows(spectrum, nodes)
    expected = (covariance / np.outer(std, std))[np.ix_(nodes, nodes)]
    np.testing.assert_allclose(rows @ rows.T, expected, atol=1e-5)


@pytest.mark.slow
def test_ten_classes_lie_apart(digits):
    """Nearest neighbours of the same class: measured 0.98, and 0.81 at two eigenvectors."""
    _, spectrum, classes = digits
    places = node_layout(spectrum, np.arange(len(classes)))
    assert places.min() == 0
    assert places.max() == 1
    assert agreement(places, classes) > 0.95
    at_eigenvectors = agreement(spectrum.eigenvectors[:, 1:3], classes)
    assert 1 - agreement(places, classes) < (1 - at_eigenvectors) / 4
    np.testing.assert_array_equal(node_layout(spectrum, np.arange(len(classes))), places)


def test_other_nodes_are_placed_among_landmarks(digits, monkeypatch):
    _, spectrum, classes = digits
    monkeypatch.setattr(layout, "MAX_LANDMARKS", 400)
    every = np.arange(len(classes))
    places = node_layout(spectrum, every, first=every[:100])
    assert agreement(places, classes) > 0.95
    order = np.random.default_rng(0)
    order.permutation(len(every))
    landmark = int(order.permutation(every[:100])[0])
    near = correlation_rows(spectrum, every)
    twin = int(np.argsort(near @ near[landmark])[-2])
    assert np.linalg.norm(places[landmark] - places[twin]) < 0.1


@pytest.mark.slow
def test_without_eigenpairs(digits):
    """Columns of a covariance at a hundred labelled nodes are enough."""
    graph, _, classes = digits
    labelled = np.random.default_rng(0).choice(len(classes), 100, replace=False)
    columns = CovarianceColumns.of(Laplacian(graph), PowerPrecision(1.0, 0.01), np.sort(labelled))
    assert agreement(node_layout(columns, np.arange(len(classes))), classes) > 0.85


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_few_nodes(n):
    features = np.random.default_rng(0).normal(size=(12, 2))
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(features, n_neighbors=3), n_eigenpairs=4)
    places = node_layout(spectrum, np.arange(n))
    assert places.shape == (n, 2)
    assert ((places >= 0) & (places <= 1)).all()


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_components_are_apart():
    features = np.concatenate(
        [np.random.default_rng(0).normal(size=(60, 2)) + 100 * k for k in (0, 1)]
    )
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(features, n_neighbors=5), n_eigenpairs=10)
    assert spectrum.n_components == 2
    assert agreement(node_layout(spectrum, np.arange(120)), np.arange(120) // 60) == 1
