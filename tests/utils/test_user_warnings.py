"""Warnings name the line of the user, not one inside graphuq."""

import numpy as np
import pytest

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import DisconnectedGraphWarning, NotConvergedWarning


def test_short_chains():
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(random_adjacency(16)))
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(), [0, 5], [1, -1]
    )
    with pytest.warns(NotConvergedWarning) as caught:
        gq.infer(posterior, gq.inference.ExactHamiltonian(), n_samples=8, n_chains=2, n_warmup=0)
    assert {warning.filename for warning in caught} == {__file__}


def test_disconnected_graph():
    features = np.concatenate([np.arange(10.0), 100 + np.arange(10.0)])[:, None]
    with pytest.warns(DisconnectedGraphWarning) as caught:
        gq.graphs.knn_graph(features, 3)
    assert caught[0].filename == __file__
