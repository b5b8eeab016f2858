"""Laws of every prior: E|u|² = N on any graph, and nothing but finite deviations."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from conftest import random_adjacency
from graphuq.priors import Prior

ALL_PRIORS = [
    gq.priors.InverseLaplacian(),
    gq.priors.InverseLaplacian(constant=True),
]


def graphs():
    yield gq.graphs.from_adjacency(random_adjacency(20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks = [random_adjacency(8, seed=s) for s in range(3)]
        yield gq.graphs.from_adjacency(sparse.block_diag(blocks, format="csr"))


@pytest.mark.parametrize("prior", ALL_PRIORS, ids=repr)
@pytest.mark.parametrize("laplacian", ["symmetric", "unnormalized", "random-walk"])
@pytest.mark.parametrize("tail", [False, True, "mean", 0.5])
@pytest.mark.parametrize("n_eigenpairs", [6, 20])
def test_one_a_node(prior, laplacian, tail, n_eigenpairs):
    for graph in graphs():
        spectrum = gq.laplacian_spectrum(graph, laplacian, n_eigenpairs, tail=tail)
        std = prior.spectral_std(spectrum)
        q, scale = spectrum.eigenvectors, spectrum.node_scale[:, None]
        covariance = (
            scale * ((q * std.modes**2) @ q.T + std.tail**2 * (np.eye(len(q)) - q @ q.T)) * scale.T
        )
        assert np.trace(covariance) == pytest.approx(graph.n_nodes)
        assert np.isfinite(std.modes).all()
        assert (std.modes >= 0).all()


def test_every_exported_prior_is_under_the_law():
    exported = {
        value
        for name in gq.priors.__all__
        for value in [getattr(gq.priors, name)]
        if issubclass(value, Prior) and value is not Prior
    }
    assert exported == {type(prior) for prior in ALL_PRIORS}
