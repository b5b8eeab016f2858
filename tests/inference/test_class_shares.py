"""Weights for labels that were drawn class by class: exact numbers on graphs of a few nodes."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import graphuq as gq
from conftest import random_adjacency
from graphuq.inference.model_average.class_shares import ClassShares

# Two nodes are of class 1 with these probabilities, so that the shares are 0.4 and 0.6.
PROBABILITIES = 0.3, 0.9
FIELD = 2.5 * ndtri(np.array(PROBABILITIES))


def weight(n_zero, n_one, field=FIELD):
    shares = ClassShares(field[:, None], np.array([n_zero, n_one], float), noise_std=2.5)
    return float(np.exp(shares.log_weights(np.ones((1, 1)))[0]))


@pytest.mark.parametrize(
    ("n_zero", "n_one", "expected"),
    [
        (1, 1, 1.0),
        (2, 1, 1 / 0.4),
        (1, 2, 1 / 0.6),
        (2, 3, 1 / (0.4 * 0.6**2)),
        (3, 7, 1 / (0.4**2 * 0.6**6)),
        (7, 1, 1 / 0.4**6),
        (1, 20, 1 / 0.6**6),  # no power is above six
        (0.5, 2.5, 1 / 0.6**1.5),  # sums of weights; with less than one label a class has none
    ],
)
def test_weight_has_a_power_of_one_label_less_than_there_are(n_zero, n_one, expected):
    assert weight(n_zero, n_one) == pytest.approx(expected, rel=1e-5)  # single precision


def test_small_shares_weigh_as_a_twentieth():
    field = 2.5 * ndtri(np.array([0.001, 0.003]))  # class 1 has the share 0.002
    assert weight(1, 3, field) == pytest.approx(0.05**-2, rel=1e-5)  # single precision
    assert weight(3, 1, field) == pytest.approx(0.998**-2, rel=1e-5)  # single precision


def test_nodes_have_their_scale_and_labels_their_weights():
    """Shares are means over all nodes of ``Φ(u_i / γ)``, with ``u = D^(−1/2) Q c`` up to a unit."""
    adjacency = random_adjacency(9, seed=1)
    graph = gq.graphs.from_adjacency(adjacency)
    spectrum = gq.laplacian_spectrum(graph, "random-walk", n_eigenpairs=4)
    degrees = adjacency.sum(axis=1)
    assert degrees.max() > 2 * degrees.min()
    terms = [gq.models.Term(scale, gq.priors.Matern()) for scale in (1.0, 2.0)]
    posterior = gq.Posterior(
        spectrum,
        gq.models.Mixture(terms, gq.Categorical([0.5, 0.5])),
        gq.likelihoods.Probit(0.8, random_labels=True),
        labelled=[0, 2, 3, 5, 8],
        labels=[1, -1, 1, 1, -1],
        label_weights=[1.0, 0.5, 2.0, 1.5, 3.0],
        label_design="by-class",
    )
    coefficients = np.random.default_rng(0).normal(size=(6, 4))
    u = coefficients @ spectrum.eigenvectors.T * np.sqrt(degrees.mean() / degrees)
    one = ndtr(u / 0.8).mean(axis=1)
    assert ((one > 0.05) & (one < 0.95)).all()
    expected = -3.5 * np.log(one) - 2.5 * np.log(1 - one)  # weights add to 4.5 and 3.5
    found = ClassShares.of(posterior).log_weights(coefficients)
    np.testing.assert_allclose(found, expected, rtol=1e-5)  # single precision
