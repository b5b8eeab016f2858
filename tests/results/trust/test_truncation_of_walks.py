"""The truncation certificate on a random-walk Laplacian, against dense matrices alone."""

import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from conftest import random_adjacency
from graphuq.results.trust.truncation import _first_order

N_NODES, KEPT = 30, 8
WEIGHTS = random_adjacency(N_NODES, seed=2)
WEIGHTS[:6, :6] *= 12  # so that degrees differ by a factor of ten
LABELLED, LABELS = np.array([0, 4, 11, 19, 26]), np.array([1.0, -1, 1, -1, 1])
FREE = np.setdiff1d(np.arange(N_NODES), LABELLED)
TAU, ALPHA, NOISE = 0.4, 2.0, 0.5


def dense(laplacian):
    """Return eigenvalues, rows of all eigenvectors, Matérn variances, and κ of the kept modes."""
    degrees = WEIGHTS.sum(axis=1)
    matrix = np.eye(N_NODES) - WEIGHTS / np.sqrt(np.outer(degrees, degrees))
    values, vectors = np.linalg.eigh(matrix)
    if laplacian == "random-walk":  # right eigenvectors of I − D^(−1) W
        vectors = np.sqrt(degrees.mean() / degrees)[:, None] * vectors
    variances = (values + TAU**2) ** -ALPHA
    energy = (vectors**2).sum(axis=0)
    return values, vectors, variances, N_NODES / (variances[1:KEPT] @ energy[1:KEPT])


def gaussian_given_labels(covariance):
    """Return means and variances of u given noisy values at the labelled nodes."""
    across = covariance[:, LABELLED]
    gain = np.linalg.solve(across[LABELLED] + NOISE**2 * np.eye(len(LABELS)), across.T).T
    return gain @ LABELS, np.diag(covariance - gain @ across.T)


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk"])
def test_moves_are_those_of_the_variance_of_the_directions_left_out(laplacian):
    """Unlabelled nodes gain ``t_i = s̄² Σ_j (scale_i q_ji)²`` over the eigenvectors left out."""
    values, vectors, variances, level = dense(laplacian)
    kept = vectors[:, 1:KEPT]
    mean, variance = gaussian_given_labels(level * (kept * variances[1:KEPT]) @ kept.T)
    omitted = (vectors[:, KEPT:] ** 2).sum(axis=1)
    graph = gq.graphs.from_adjacency(WEIGHTS)
    spectrum = gq.laplacian_spectrum(graph, laplacian, n_eigenpairs=KEPT)
    likelihood = gq.likelihoods.GaussianNoise(NOISE)
    prior = gq.priors.Matern(TAU, ALPHA, include_constant=False)
    posterior = gq.Posterior(spectrum, prior, likelihood, LABELLED, LABELS)
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    eigenvalues = values[KEPT:].mean(), values[KEPT - 1]
    effect = gq.truncation_effect(result)
    np.testing.assert_array_equal(effect.nodes, FREE)
    np.testing.assert_allclose((effect.mean_eigenvalue, effect.last_eigenvalue), eigenvalues)
    moves = _first_order(result, FREE, eigenvalues)
    for found, eigenvalue in zip(moves, eigenvalues, strict=True):
        tail = level * (eigenvalue + TAU**2) ** -ALPHA
        before, after = (
            2 * norm.cdf(mean / np.sqrt(variance + added)) - 1 for added in (0.0, tail * omitted)
        )
        expected = np.abs(after - before)[FREE]
        assert expected.max() > 0.05
        np.testing.assert_allclose(found, expected, atol=1e-6)
