"""Small components of a graph, solved each by itself, against one dense factorisation."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import DisconnectedGraphWarning
from graphuq.spectrum import solve

pytestmark = pytest.mark.filterwarnings(f"ignore::{DisconnectedGraphWarning.__module__}."
                                        f"{DisconnectedGraphWarning.__name__}")  # fmt: skip


def graph_of(sizes, is_dense=False):
    """Return a graph of components of these sizes, the nodes of which are in random order."""
    rng, blocks = np.random.default_rng(0), []
    for size in sizes:
        weights = rng.uniform(0.5, 1.0, (size, size)) * (rng.uniform(size=(size, size)) < 6 / size)
        weights[np.arange(size - 1), np.arange(1, size)] = 1.0  # a path joins them
        upper = np.triu(weights, 1)
        blocks.append(upper + upper.T)
    order = rng.permutation(sum(sizes))
    weights = sparse.block_diag([*map(sparse.csr_array, blocks)]).toarray()[np.ix_(order, order)]
    return gq.graphs.from_adjacency(weights if is_dense else sparse.csr_array(weights))


def covariance(spectrum):
    """Return a function of the Laplacian, which does not depend on the basis of eigenvectors."""
    vectors = spectrum.eigenvectors
    return (vectors * np.exp(-spectrum.eigenvalues)) @ vectors.T


@pytest.mark.parametrize("sizes", [[5, 3, 3, 1, 70, 2, 90], [3] * 10, [64, 65, 1], [1, 1, 2]])
@pytest.mark.parametrize("laplacian", ["symmetric", "unnormalized"])
@pytest.mark.parametrize("is_dense", [True, False])
def test_pairs_are_those_of_a_dense_factorisation(sizes, laplacian, is_dense):
    graph = graph_of(sizes, is_dense)
    for n_pairs in (None, graph.n_nodes):
        found = gq.laplacian_spectrum(graph, laplacian, n_pairs)
        whole = gq.laplacian_spectrum(graph, laplacian, found.n_eigenpairs, solver="dense")
        np.testing.assert_allclose(found.eigenvalues, whole.eigenvalues, atol=1e-12)
        np.testing.assert_allclose(covariance(found), covariance(whole), atol=1e-12)
        assert found.residuals.max() < 1e-12


def test_the_random_walk_has_pairs_of_its_own_scale():
    graph = graph_of([4, 3, 70])
    found = gq.laplacian_spectrum(graph, "random-walk")
    whole = gq.laplacian_spectrum(graph, "random-walk", found.n_eigenpairs, solver="dense")
    np.testing.assert_allclose(covariance(found), covariance(whole), atol=1e-12)
    np.testing.assert_array_equal(found.node_scale, whole.node_scale)


def test_lanczos_is_given_the_large_components_alone(monkeypatch):
    """Hundreds of triangles share an eigenvalue, for which blocks of Lanczos would double."""
    given = []
    original = solve.lanczos.nonnull_pairs

    def nonnull_pairs(laplacian, n_pairs, *settings):
        given.append((laplacian.n_nodes, n_pairs))
        return original(laplacian, n_pairs, *settings)

    monkeypatch.setattr(solve.lanczos, "nonnull_pairs", nonnull_pairs)
    graph = graph_of([1600] + [3] * 200)
    found = gq.laplacian_spectrum(graph, n_eigenpairs=240, tolerance=1e-6)
    assert given == [(1600, 40)]  # of 241 pairs, one more than asked for, 201 are null
    assert found.settings["solver"] == "lanczos"
    whole = gq.laplacian_spectrum(graph, n_eigenpairs=240, solver="dense")
    np.testing.assert_allclose(found.eigenvalues, whole.eigenvalues, atol=1e-8)
