"""Nested expectation propagation: against exact samples, dense algebra and the binary method."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.inference.nested_sites import draw_shifts, fit_sites


def covariance(n_labels, seed):
    root = np.random.default_rng(seed).normal(size=(n_labels, n_labels + 3))
    return root @ root.T / n_labels


def dense_posterior(G, sites):
    """Return mean and covariance of the K fields, classes first, and the log normaliser."""
    (n_labels, n_classes), w = sites.weights.shape, sites.weights
    W = np.zeros((n_classes, n_labels, n_classes, n_labels))
    for j in range(n_labels):
        W[:, j, :, j] = np.diag(w[j]) - np.outer(w[j], w[j]) / w[j].sum()
    W = W.reshape(n_classes * n_labels, -1)
    prior = np.kron(np.eye(n_classes), G)
    posterior = np.linalg.inv(np.linalg.inv(prior) + W)
    mean = posterior @ sites.pull.T.ravel()
    log_det = np.linalg.slogdet(np.eye(len(W)) + prior @ W)[1]
    return mean, posterior, 0.5 * (sites.pull.T.ravel() @ mean - log_det)


@pytest.mark.parametrize(("n_classes", "noise_std"), [(3, 0.5), (3, 2.0), (5, 1.0)])
def test_evidence_and_means_are_near_the_truth(n_classes, noise_std):
    G, labels = covariance(3, seed=1), np.array([0, 1, 0])
    sites = fit_sites(G, labels, n_classes, noise_std, tolerance=1e-8)
    rng = np.random.default_rng(0)
    total, means, n = 0.0, 0.0, 0
    for _ in range(10):
        u = np.linalg.cholesky(G) @ rng.normal(size=(100_000, 3, n_classes))
        fits = (u + noise_std * rng.normal(size=u.shape)).argmax(axis=2) == labels
        kept = u[fits.all(axis=1)]
        total, means, n = total + len(kept), means + kept.sum(axis=0), n + len(u)
    error = 4 / np.sqrt(total)  # four Monte-Carlo standard errors
    assert abs(sites.log_evidence - np.log(total / n)) < error + 0.02
    mean = dense_posterior(G, sites)[0].reshape(n_classes, 3).T
    np.testing.assert_allclose(mean, means / total, atol=error + 0.03)


def test_normalizer_and_draws_are_those_of_the_dense_gaussian():
    G, rng = covariance(6, seed=2), np.random.default_rng(3)
    sites = fit_sites(G, rng.integers(4, size=6), 4, 0.3)
    mean, posterior, log_normalizer = dense_posterior(G, sites)
    assert sites.log_normalizer == pytest.approx(log_normalizer, rel=1e-8)
    n = 20_000
    prior = np.linalg.cholesky(G) @ rng.normal(size=(n, 6, 4))
    u = prior + G @ draw_shifts(sites, rng, prior)
    flat = u.transpose(0, 2, 1).reshape(n, -1)
    std = np.sqrt(np.diag(posterior))
    assert np.abs((flat.mean(axis=0) - mean) / std).max() < 5 / np.sqrt(n)
    scaled = np.cov(flat.T) / np.outer(std, std) - posterior / np.outer(std, std)
    assert np.abs(scaled).max() < 5 * np.sqrt(2 / n)


def test_sites_integrate_to_the_evidence():
    G, rng = covariance(3, seed=4), np.random.default_rng(5)
    sites = fit_sites(G, np.array([0, 2, 1]), 3, 1.0)
    u = np.linalg.cholesky(G) @ rng.normal(size=(400_000, 3, 3))
    values = np.exp(sites.log_sites(u))
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - np.exp(sites.log_evidence)) < 4 * error


def test_two_classes_are_the_binary_method():
    moons = gq.datasets.two_moons(60, n_features=2)
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features), n_eigenpairs=20)
    labelled, signs = np.array([0, 5, 30, 50]), np.array([-1, -1, 1, 1])
    prior = gq.priors.Matern()
    posterior = gq.Posterior(spectrum, prior, gq.likelihoods.Probit(0.3), labelled, signs)
    binary = gq.infer(posterior, gq.inference.ExpectationPropagation(tolerance=1e-8))
    factor = spectrum.eigenvectors[labelled] * prior.spectral_std(spectrum).modes
    G = factor @ factor.T
    sites = fit_sites(G, (signs > 0).astype(int), 2, 0.3, tolerance=1e-8)
    mean = dense_posterior(G + 1e-12 * np.eye(4), sites)[0]
    assert sites.log_evidence == pytest.approx(binary.log_evidence, abs=1e-6)
    np.testing.assert_allclose(
        (mean[4:] - mean[:4]) / np.sqrt(2), binary.latent_mean[labelled], atol=1e-5
    )


def test_without_fixed_point_the_evidence_is_zero():
    sites = fit_sites(covariance(5, seed=1), np.array([0, 1, 2, 0, 1]), 3, 0.1, max_sweeps=1)
    assert sites.log_evidence == -np.inf
    singular = fit_sites(np.full((2, 2), np.nan), np.array([0, 1]), 2, 1.0)
    assert singular.log_evidence == -np.inf
