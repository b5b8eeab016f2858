"""Nested expectation propagation without each label, against fits that never saw it."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.inference import nested_left_out
from graphuq.inference.nested_coordinates import fit_coordinate_sites
from graphuq.inference.nested_left_out import fields_without_each
from graphuq.inference.nested_low_rank import fit_low_rank_sites
from graphuq.inference.nested_shared import fit_shared_sites
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


def line_problem(n_labels=40, n_classes=4):
    """Return labels along a line, one in eight of which contradicts the others."""
    rng = np.random.default_rng(5)
    x = rng.uniform(size=n_labels)
    labels = np.minimum((x * n_classes).astype(int), n_classes - 1)
    labels[::8] = rng.integers(0, n_classes, len(labels[::8]))
    return x, np.linalg.cholesky(9 * np.exp(-np.abs(x[:, None] - x) / 0.3)), labels


def test_groups_hold_each_label_once_far_from_each_other_and_never_a_whole_class():
    x, factor, labels = line_problem()
    groups = list(nested_left_out.far_groups(factor, labels))
    assert len(groups) == nested_left_out.N_GROUPS
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(40))
    assert {len(group) for group in groups} == {4}
    for group in groups:
        assert all((labels[group] == k).sum() < (labels == k).sum() for k in range(4))

    def gap(group):
        return np.diff(np.sort(x[group])).min()

    rng = np.random.default_rng(0)
    by_chance = [gap(part) for _ in range(100) for part in rng.permutation(40).reshape(10, 4)]
    assert np.median([gap(group) for group in groups]) > 1.5 * np.median(by_chance)


def test_labels_left_out_in_groups_are_nearly_those_left_out_alone(monkeypatch):
    """Bounds are those of the reported use: a tenth of a deviation on average."""
    _, factor, labels = line_problem()
    (sites,) = fit_sites((factor @ factor.T)[None], labels, 4, 0.5)
    start = StartingSites(sites.weights, sites.shifts)
    mean, covariance = fields_without_each(factor, labels, 4, 0.5, start)
    monkeypatch.setattr(nested_left_out, "N_GROUPS", len(labels))
    alone, spread = fields_without_each(factor, labels, 4, 0.5, start)
    std = np.sqrt(np.diagonal(spread, axis1=1, axis2=2))
    assert np.abs((mean - alone) / std).mean() < 0.1
    ratio = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)) / std
    assert np.abs(ratio - 1).mean() < 0.05


@pytest.mark.parametrize("n_classes", [3, 40])
def test_covariances_at_rows_are_blocks_of_the_covariance_of_coordinates(n_classes):
    rng = np.random.default_rng(0)
    factor, labels = rng.normal(size=(45, 6)), np.arange(45) % n_classes
    settings = labels, n_classes, 0.5, 100, 1e-3
    for fit in (fit_low_rank_sites, fit_shared_sites, fit_coordinate_sites):
        sites = fit(factor, *settings)
        full = np.asarray(sites.covariance).reshape(n_classes, 6, n_classes, 6)
        expected = np.einsum("bi,kilj,bj->bkl", factor[:3], full, factor[:3])
        np.testing.assert_allclose(sites.covariances_at(factor[:3]), expected, atol=1e-5)
