"""Class probabilities of Gaussian fields, against draws and closed forms."""

import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from graphuq.inference.label_leads import LabelLeads, Leads
from graphuq.results.diagnostics import node_rows
from graphuq.results.summaries import summarize
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
    """Without exact factors of labels, three classes are exact but for the error of the draws."""
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
    gaussian = summarize(
        answer._replace(leads=None), posterior.field, rows, posterior.likelihood.link
    )
    assert (np.abs(gaussian.label_mean - shares.mean(axis=1)) < bound + 5 * error).all()
    deviation = u.std(axis=1)
    np.testing.assert_allclose(result.latent_std[part], deviation, rtol=5 / np.sqrt(2 * n_draws))
    assert (gq.results.label_mcse(result) == 0).all()


@pytest.mark.parametrize("n_rows", [5, 6])  # fewer nodes than labels, and not
def test_covariances_of_leads_are_those_of_the_joint_matrix(n_rows):
    """The matrix has coordinates of all classes, and the noisy value of the own class."""
    rng = np.random.default_rng(0)
    n_classes, r, n_labels = 4, 3, 6
    root = rng.normal(size=(n_classes * r, n_classes * r))
    covariance, factor = root @ root.T, rng.normal(size=(n_labels, r))
    codes = np.array([0, 1, 2, 0, 1, 1])  # the last class has no label
    weights = rng.uniform(0.5, 2.0, size=(n_labels, n_classes))
    nothing = np.zeros((n_labels, n_classes))
    leads = Leads(codes, nothing, weights, nothing, 1.0)
    blocks = covariance.reshape(n_classes, r, n_classes, r)
    found = LabelLeads.of(blocks, leads, factor, n_rows)
    assert (found.every is None) == (n_rows < n_labels)
    loadings, top = rng.normal(size=(5, r)), np.array([0, 1, 2, 1, 3])
    at = found.at(loadings, top)
    for i, t in enumerate(top):
        if t == 3:
            assert np.isnan(at.covariance[i]).all()
            continue
        own = np.flatnonzero(codes == t)
        tells = (factor[own] @ loadings[i]) ** 2 / (factor[own] ** 2).sum(axis=1)
        j = own[tells.argmax()]
        fields = np.kron(np.eye(n_classes), factor[j])  # of the label, from all coordinates
        share = weights[j] / weights[j].sum()
        here = np.kron(np.eye(n_classes), loadings[i])
        for k in range(n_classes):
            lead = share @ fields - fields[k]
            variance = lead @ covariance @ lead + 1 / weights[j].sum()
            np.testing.assert_allclose(at.variance[i, k], variance, atol=1e-10)
            ahead = here[t] - here[k]
            np.testing.assert_allclose(at.covariance[i, k], ahead @ covariance @ lead, atol=1e-10)


def test_exact_factors_of_the_nearest_label_bring_probabilities_to_those_of_chains(tmp_path):
    """Where fields are large beside the noise, Gaussians are far off."""
    target = posterior_of(5, random_labels=False)
    target = gq.Posterior(
        target.spectrum, gq.priors.Matern(tau=0.3, alpha=3.0), gq.likelihoods.Probit(0.05, 5),
        target.labelled, target.labels,
    )  # fmt: skip
    nodes = np.setdiff1d(np.arange(200), target.labelled)
    rows, link = node_rows(target)[nodes], target.likelihood.link
    chains = gq.infer(target, "collapsed-gibbs", n_samples=2_000)
    result = gq.infer(target, "expectation-propagation")
    plain = summarize(result.answer._replace(leads=None), target.field, rows, link).label_mean
    exact = chains.probabilities[nodes]
    before, after = (np.abs(p - exact).mean() for p in (plain, result.probabilities[nodes]))
    assert after < 0.75 * before
    result.save(tmp_path / "result.nc")
    again = gq.results.load(tmp_path / "result.nc")
    np.testing.assert_array_equal(again.probabilities, result.probabilities)
    some = summarize(again.answer, target.field, rows, link).label_mean
    np.testing.assert_allclose(some, result.probabilities[nodes], atol=1e-6)
