"""Nested expectation propagation without each label, against fits that never saw it."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.inference.nested_left_out import fields_without_each
from graphuq.inference.nested_sites import fit_sites
from graphuq.inference.nested_start import StartingSites


def problem(n_classes, n_labels=7, seed=0):
    """Return a factor and labels, the first of which contradicts the others."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=n_labels))
    labels = np.minimum((x * n_classes).astype(int), n_classes - 1)
    labels[0] = n_classes - 1
    covariance = 9 * np.exp(-np.abs(x[:, None] - x) / 0.5)
    return np.linalg.cholesky(covariance), labels


def by_dense_matrices(factor, labels, n_classes, noise_std, j):
    """Return mean and covariance at label j, from the sites of a fit to the other labels."""
    n, others = len(labels), np.delete(np.arange(len(labels)), j)
    covariance = factor @ factor.T
    (sites,) = fit_sites(
        covariance[None][:, others][:, :, others], labels[others], n_classes, noise_std, 500, 1e-9
    )
    prior = np.kron(np.eye(n_classes), covariance)
    precision, shift = np.zeros((n_classes * n, n_classes * n)), np.zeros((n_classes, n))
    for i, place in enumerate(others):
        w = sites.weights[i]
        at = np.arange(n_classes) * n + place
        precision[np.ix_(at, at)] = np.diag(w) - np.outer(w, w) / w.sum()
        shift[:, place] = sites.pull[i]
    posterior = prior @ np.linalg.inv(np.eye(len(prior)) + precision @ prior)
    at = np.arange(n_classes) * n + j
    return (posterior @ shift.ravel())[at], posterior[np.ix_(at, at)]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("noise_std", [0.3, 1.0])
def test_fields_are_those_of_fits_without_the_label(n_classes, noise_std):
    factor, labels = problem(n_classes)
    mean, covariance = fields_without_each(factor, labels, n_classes, noise_std)
    for j in range(len(labels)):
        expected = by_dense_matrices(factor, labels, n_classes, noise_std, j)
        scale = np.sqrt(np.diag(expected[1]))
        assert (np.abs(mean[j] - expected[0]) / scale).max() < 0.02
        np.testing.assert_allclose(covariance[j], expected[1], atol=0.02 * scale.max() ** 2)


def test_sites_of_all_labels_are_a_start_that_changes_nothing():
    factor, labels = problem(3)
    (sites,) = fit_sites((factor @ factor.T)[None], labels, 3, 0.5)
    cold = fields_without_each(factor, labels, 3, 0.5)
    warm = fields_without_each(factor, labels, 3, 0.5, StartingSites(sites.weights, sites.shifts))
    for one, other in zip(cold, warm, strict=True):
        np.testing.assert_allclose(one, other, atol=0.1)


def test_a_label_that_contradicts_its_neighbours_is_as_improbable_as_without_it(monkeypatch):
    """A cavity gives it 0.15 more than that."""
    rng = np.random.default_rng(3)
    codes = np.repeat([0, 1, 2], 40)
    rows = rng.normal(size=(120, 2)) + 3.0 * np.eye(3)[codes][:, :2]
    labelled = np.concatenate([np.flatnonzero(codes == k)[:4] for k in range(3)])
    given = codes[labelled].copy()
    given[0] = 2
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(rows, 8), n_eigenpairs=40)
    prior, method = gq.priors.Matern(0.3, 3.0), gq.inference.ExpectationPropagation()
    likelihood = gq.likelihoods.Probit(0.2, 3)
    result = gq.infer(gq.Posterior(spectrum, prior, likelihood, labelled, given), method)
    found = gq.leave_one_out(result).of_class[np.arange(12), given]
    expected = []
    for j in range(12):
        kept = np.arange(12) != j
        posterior = gq.Posterior(spectrum, prior, likelihood, labelled[kept], given[kept])
        expected.append(gq.infer(posterior, method).probabilities[labelled[j], given[j]])
    assert np.abs(found - expected).max() < 0.03
    monkeypatch.setattr("graphuq.results.cavities.MAX_AGAIN", 0)
    again = gq.infer(gq.Posterior(spectrum, prior, likelihood, labelled, given), method)
    cavity = gq.leave_one_out(again).of_class[np.arange(12), given]
    assert cavity[0] > expected[0] + 0.15
