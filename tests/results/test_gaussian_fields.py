"""Class probabilities of Gaussian fields, against draws and closed forms."""

import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from graphuq.results.diagnostics import node_rows
from graphuq.results.summaries.base import conditional_moments
from graphuq.results.summaries.gaussian_fields import largest_shares
from graphuq.results.summaries.random_label import class_shares

N_DRAWS = 200_000


def shares_of_draws(u):
    """Return the share of draws, the first axis, in which each class is the largest."""
    return np.bincount(u.argmax(axis=1), minlength=u.shape[1]) / len(u)


@pytest.mark.parametrize("n_classes", [3, 10])
def test_independent_fields_of_unequal_deviations(n_classes):
    rng = np.random.default_rng(0)
    mean = 2 * rng.normal(size=(20, n_classes))
    std = np.exp(rng.normal(size=mean.shape))
    found = largest_shares(mean, std)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    for i in range(20):
        expected = shares_of_draws(mean[i] + std[i] * rng.normal(size=(N_DRAWS, n_classes)))
        error = np.sqrt(np.maximum(expected * (1 - expected), 1e-5) / N_DRAWS)
        assert (np.abs(found[i] - expected) < 5 * error).all()


def test_two_fields_have_a_closed_form():
    rng = np.random.default_rng(1)
    mean, std = 3 * rng.normal(size=(50, 2)), np.exp(rng.normal(size=(50, 2)))
    expected = norm.cdf((mean[:, 1] - mean[:, 0]) / np.hypot(std[:, 0], std[:, 1]))
    np.testing.assert_allclose(largest_shares(mean, std)[:, 1], expected, atol=2e-5)


def test_equal_fields_share_and_points_are_certain():
    nothing = np.zeros((1, 3))
    np.testing.assert_allclose(largest_shares(nothing, nothing), 1 / 3)
    np.testing.assert_allclose(largest_shares(nothing, nothing + 2.0), 1 / 3)
    found = largest_shares(np.array([[0.0, 1.0, 1.0]]), nothing)
    np.testing.assert_allclose(found, [[0.0, 0.5, 0.5]])


@pytest.mark.parametrize("n_classes", [2, 6])
def test_a_known_field_beside_uncertain_ones(n_classes):
    """The probability of a field without deviation is the product of the Φ of the others."""
    rng = np.random.default_rng(2)
    mean, std = rng.normal(size=(50, n_classes)), np.exp(0.5 * rng.normal(size=(50, n_classes)))
    std[:, 0] = 0.0
    expected = norm.cdf((mean[:, :1] - mean[:, 1:]) / std[:, 1:]).prod(axis=1)
    found = largest_shares(mean, std)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def posterior_of(n_classes, random_labels):
    rng = np.random.default_rng(2)
    codes = np.repeat(np.arange(n_classes), 40)
    features = rng.normal(size=(len(codes), 2)) + 3.0 * codes[:, None] * [1, 0.3]
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(features, 8), n_eigenpairs=25)
    labelled = np.arange(0, len(codes), 9)
    likelihood = gq.likelihoods.Probit(0.5, n_classes, random_labels=random_labels)
    prior = gq.priors.Matern(tau=0.3, alpha=3.0)
    return gq.Posterior(spectrum, prior, likelihood, labelled, codes[labelled])


@pytest.mark.parametrize(
    ("n_classes", "random_labels", "bound"), [(3, False, 0.0), (3, True, 0.0), (6, True, 0.015)]
)
def test_a_gaussian_of_dependent_classes_agrees_with_its_draws(n_classes, random_labels, bound):
    """Three classes are exact but for the error of the draws; six are close."""
    posterior = posterior_of(n_classes, random_labels)
    result = gq.infer(posterior, "expectation-propagation")
    answer = result.answer
    root = np.linalg.cholesky(answer.white_covariance)
    n_draws = 20_000
    z = np.random.default_rng(3).normal(size=(n_draws, len(root)))
    part = np.arange(0, len(result.has_evidence), 5)
    rows = node_rows(posterior)[part]
    mean, std = conditional_moments(posterior.field, answer.white_mean + z @ root.T, rows)
    u = mean + std[:, None, None] * np.random.default_rng(4).normal(size=mean.shape)
    shares = class_shares(u, posterior.likelihood.link)
    error = shares.std(axis=1) / np.sqrt(n_draws) + 1e-4
    assert error.max() < 0.005
    assert (
        np.abs(gq.results.label_mean(result)[part] - shares.mean(axis=1)) < bound + 5 * error
    ).all()
    deviation = u.std(axis=1)
    np.testing.assert_allclose(result.latent_std[part], deviation, rtol=5 / np.sqrt(2 * n_draws))
    assert (gq.results.label_mcse(result) == 0).all()
