"""Nested expectation propagation against simulation, binary sites and exact Gaussians."""

import jax
import numpy as np
import pytest
import scipy.linalg
from scipy.special import ndtr

from graphuq.evidence.criteria import ObservedPrior
from graphuq.inference import expectation_propagation as ep
from graphuq.inference.nested_answer import starting_sites
from graphuq.inference.nested_low_rank import fit_low_rank_sites
from graphuq.inference.nested_sites import draw_shifts, fit_sites
from graphuq.inference.nested_start import StartingSites
from graphuq.likelihoods import Probit
from graphuq.posterior.field import ClassDifferenceField, ClassField, CovarianceField
from graphuq.posterior.field.labelled import LowRankField
from graphuq.posterior.target import Target

N_DRAWS = 1_000_000


def random_covariance(n, seed=0, rank=None):
    """Return a covariance of n values, of unit variance on average."""
    factor = np.random.default_rng(seed).normal(size=(n, rank or n)) / np.sqrt(rank or n)
    return factor @ factor.T


def label_weights(u, z, labels, noise_std):
    """Return unbiased estimates ``∏_j ∏_{k ≠ y} Φ(z_j + (u_y − u_k)/γ)`` of p(labels | u)."""
    weights = np.ones(len(u))
    for j, y in enumerate(labels):
        for k in range(u.shape[2]):
            if k != y:
                weights *= ndtr(z[:, j] + (u[:, j, y] - u[:, j, k]) / noise_std)
    return weights


def gaussian_given(sites, covariance_of_all):
    """Return mean (N, K) and covariance (N K, N K) at all nodes by a dense inverse.

    The first J nodes are labelled. Sites are written as precisions W_j of the K fields.
    """
    n_labels, n_classes = sites.weights.shape
    n = len(covariance_of_all)
    prior = np.kron(covariance_of_all, np.eye(n_classes))
    precision, shift = np.zeros((n, n_classes, n, n_classes)), np.zeros((n, n_classes))
    for j, w in enumerate(sites.weights):
        precision[j, :, j] = np.diag(w) - np.outer(w, w) / w.sum()
    shift[:n_labels] = sites.pull
    system = np.eye(n * n_classes) + prior @ precision.reshape(n * n_classes, -1)
    posterior = np.linalg.solve(system, prior)
    return (posterior @ shift.ravel()).reshape(n, n_classes), posterior


def test_factors_and_pull():
    """The factors of the result are those of its own sites."""
    prior = random_covariance(6)
    [sites] = fit_sites(prior[None], np.array([0, 1, 2, 2, 1, 0]), 3, 0.3)
    assert sites.converged
    for w, gain in zip(sites.weights.T, sites.gains, strict=True):
        np.testing.assert_allclose(gain, np.linalg.inv(np.diag(1 / w) + prior), atol=1e-8)
    inverse = sites.inner_root.T @ sites.inner_root
    np.testing.assert_allclose(inverse @ sites.gains.sum(axis=0), np.eye(6), atol=1e-8)
    np.testing.assert_allclose(sites.pull.sum(axis=1), 0, atol=1e-10)
    np.testing.assert_allclose(sites.weights[[0, 5], 0], 0.3**-2)
    assert (sites.shifts[[0, 5], 0] == 0).all()


@pytest.mark.parametrize("noise_std", [0.2, 1.0])
@pytest.mark.parametrize("labels", [[1], [0, 2], [1, 1]])
def test_against_simulation(labels, noise_std):
    """Evidence, moments and class probabilities agree with weighted draws of the prior.

    The bounds add four Monte-Carlo errors to the error of the approximation, measured here. With
    little noise the posterior is skewed, and probabilities of a Gaussian are off by up to 0.015.
    """
    rng, n_labels = np.random.default_rng(5), len(labels)
    prior = random_covariance(n_labels + 1, seed=3) + 0.5  # the last node has no label
    root = np.linalg.cholesky(prior)
    u = np.einsum("ij,sjk->sik", root, rng.standard_normal((N_DRAWS, n_labels + 1, 3)))
    weights = label_weights(u, rng.standard_normal((N_DRAWS, n_labels)), labels, noise_std)

    at_labels = prior[None, :n_labels, :n_labels]
    [sites] = fit_sites(at_labels, np.array(labels), 3, noise_std, tolerance=1e-8)
    mean, covariance = gaussian_given(sites, prior)
    error = weights.std() / weights.mean() / np.sqrt(N_DRAWS)
    assert sites.log_evidence == pytest.approx(np.log(weights.mean()), abs=0.004 + 4 * error)

    shares = weights / weights.sum()
    truth = np.einsum("s,sik->ik", shares, u)
    mcse = np.sqrt(np.einsum("s,sik->ik", shares**2, (u - truth) ** 2))
    assert (np.abs(mean - truth) < 0.01 + 4 * mcse).all()

    k = 3 * n_labels + np.arange(3)
    at_node = rng.multivariate_normal(mean[-1], covariance[np.ix_(k, k)], size=N_DRAWS)
    found = np.bincount(at_node.argmax(axis=1), minlength=3) / N_DRAWS
    exact = np.bincount(u[:, -1].argmax(axis=1), shares, minlength=3)
    error = np.sqrt((shares**2).sum()) + 1 / np.sqrt(N_DRAWS)  # at most twice the exact one
    np.testing.assert_allclose(found, exact, atol=0.015 + 4 * 0.5 * error)


@pytest.mark.parametrize("noise_std", [0.1, 0.7])
def test_two_classes_are_one_field(noise_std):
    """Two fields give the evidence and the difference of one field with the same numbers."""
    prior, codes = random_covariance(7, seed=1), np.array([0, 1, 1, 0, 1, 0, 0])
    [sites] = fit_sites(prior[None], codes, 2, noise_std, max_sweeps=300, tolerance=1e-9)
    target = ObservedPrior(CovarianceField(prior), Probit(noise_std), 2.0 * codes - 1)
    found = ep.iterate_sites(target, 1.0, 500, 1e-10)
    assert sites.log_evidence == pytest.approx(ep.log_evidence(target, found), abs=1e-7)
    mean, _ = gaussian_given(sites, prior)
    np.testing.assert_allclose((mean[:, 1] - mean[:, 0]) / np.sqrt(2), found.given.mean, atol=1e-6)
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    moved = StartingSites(sites.weights[order], sites.shifts[order]).in_order(order)
    np.testing.assert_allclose(moved.of_one_field(codes), found.sites, rtol=1e-5)


@pytest.mark.parametrize("rank", [2, None])
def test_draws_have_the_moments_of_the_gaussian(rank):
    """Matheron's rule gives the mean and covariance of a dense inverse, at all nodes."""
    rng, n_draws, n_labels = np.random.default_rng(8), 200_000, 4
    prior = random_covariance(6, seed=4, rank=rank)
    block = prior[:n_labels, :n_labels]
    [sites] = fit_sites(block[None], np.array([0, 1, 2, 1]), 3, 0.4)
    values, vectors = np.linalg.eigh(prior)
    root = vectors * np.sqrt(np.maximum(values, 0))
    u = np.einsum("ij,sjk->sik", root, rng.standard_normal((n_draws, 6, 3)))
    alpha = draw_shifts(sites, rng, u[:, :n_labels])
    assert alpha.shape == (n_draws, n_labels, 3)
    draws = (u + np.einsum("ij,sjk->sik", prior[:, :n_labels], alpha)).reshape(n_draws, -1)
    mean, covariance = gaussian_given(sites, prior)
    std = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(
        np.abs(draws.mean(axis=0) - mean.ravel()), 5 * std / np.sqrt(n_draws)
    )
    error = np.outer(std, std) * np.sqrt(2 / n_draws)
    np.testing.assert_array_less(np.abs(np.cov(draws.T) - covariance), 5 * error)


def test_little_noise_and_many_classes_converge():
    prior = random_covariance(40, seed=2, rank=12)
    codes = np.random.default_rng(0).integers(0, 10, 40)
    [sites] = fit_sites(prior[None], codes, 10, 0.05)
    assert sites.converged
    assert sites.n_sweeps < 60
    [once] = fit_sites(prior[None], codes, 10, 0.05, max_sweeps=1)
    assert not once.converged
    assert once.n_sweeps == 1
    assert fit_sites(-prior[None] * 1e3, codes, 10, 0.05) == [None]


def leads(factor, labels, n_classes, noise_std, shared_std=None):
    """Return the target of class differences, with another standard deviation of shared noise."""
    n_labels, r = factor.shape
    field = LowRankField(factor, np.eye(r), np.ones(r), 0.0)
    noise = noise_std if shared_std is None else shared_std
    differences = ClassDifferenceField.of(
        ClassField(field, n_classes), np.array(labels, float), noise
    )
    return Target(differences, Probit(noise_std), np.ones(n_labels * (n_classes - 1)))


@pytest.mark.parametrize("noise_std", [1e-4, 0.05, 0.5])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_both_forms_agree(n_classes, noise_std):
    """Sites, evidence, means and covariances equal those in white coordinates of all classes."""
    rng = np.random.default_rng(n_classes)
    factor = rng.normal(size=(15, 8)) / np.sqrt(8)
    u = factor @ rng.normal(size=(8, n_classes))
    labels = (u + noise_std * rng.normal(size=u.shape)).argmax(axis=1)
    [sites] = fit_sites((factor @ factor.T)[None], labels, n_classes, noise_std, 500, 1e-7)
    target = leads(factor, labels, n_classes, noise_std)
    found = ep.iterate_sites(target, 1.0, 500, 1e-8)
    assert sites.converged
    assert found.change <= 1e-8
    others = np.arange(n_classes) != labels[:, None]
    scale = np.maximum(found.sites[0], 1.0)
    np.testing.assert_allclose(sites.weights[others] / scale, found.sites[0] / scale, atol=1e-4)
    np.testing.assert_allclose(sites.shifts[others] / scale, found.sites[1] / scale, atol=1e-4)
    assert sites.log_evidence == pytest.approx(ep.log_evidence(target, found), abs=1e-6)
    mean, covariance = gaussian_given(sites, factor @ factor.T)
    white = found.given.white_mean.reshape(n_classes, -1)
    np.testing.assert_allclose(factor @ white.T, mean, atol=1e-4)
    root = np.kron(np.eye(n_classes), factor)
    by_class = (root @ found.given.white_covariance @ root.T).reshape(n_classes, 15, n_classes, 15)
    by_label = covariance.reshape(15, n_classes, 15, n_classes).transpose(1, 0, 3, 2)
    np.testing.assert_allclose(by_class, by_label, atol=1e-4)


@pytest.mark.parametrize(("n_labels", "rank"), [(15, 8), (150, 8), (6, 6), (6, 15)])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("noise_std", [0.05, 0.5])
def test_low_rank_sites_are_those_of_the_labels(n_labels, rank, n_classes, noise_std):
    """Products of thin matrices give the sites, evidence, means and covariance of J × J ones."""
    rng = np.random.default_rng(n_classes)
    factor = rng.normal(size=(n_labels, rank)) / np.sqrt(rank)
    u = factor @ rng.normal(size=(rank, n_classes))
    labels = (u + 0.1 * rng.normal(size=u.shape)).argmax(axis=1)
    [sites] = fit_sites((factor @ factor.T)[None], labels, n_classes, noise_std, 1000, 1e-8)
    found = fit_low_rank_sites(factor, labels, n_classes, noise_std, 1000, 1e-8)
    assert sites.converged
    assert found.converged
    assert found.n_sweeps < sites.n_sweeps + 10
    scale = np.maximum(sites.weights, 1.0)
    np.testing.assert_allclose(found.weights / scale, sites.weights / scale, atol=1e-5)
    np.testing.assert_allclose(found.shifts / scale, sites.shifts / scale, atol=1e-5)
    assert found.log_evidence == pytest.approx(sites.log_evidence, rel=1e-8, abs=1e-6)
    if n_labels > 15:
        return
    mean, covariance = gaussian_given(sites, factor @ factor.T)
    np.testing.assert_allclose(factor @ found.white_mean.T, mean, atol=1e-5)
    common = np.einsum("kja,ia->kji", found.common, factor)
    by_class = np.einsum("kji,ljm->iklm", common, common).transpose(0, 1, 3, 2)  # (J, K, J, K)
    for k, root in enumerate(found.roots):
        by_class[:, k, :, k] += factor @ root.T @ root @ factor.T
    np.testing.assert_allclose(by_class, covariance.reshape(by_class.shape), atol=1e-5)


def test_low_rank_sites_start_from_those_before():
    rng = np.random.default_rng(0)
    factor, labels = rng.normal(size=(60, 20)) / np.sqrt(20), rng.integers(0, 4, 60)
    first = fit_low_rank_sites(factor, labels, 4, 0.5, 500, 1e-8)
    again = fit_low_rank_sites(factor, labels, 4, 0.5, 500, 1e-6, first)
    assert again.n_sweeps == 1
    once = fit_low_rank_sites(factor, labels, 4, 0.5, 1, 1e-8)
    assert not once.converged
    assert once.n_sweeps == 1


def test_moments_of_leads_and_normalizer():
    """Means, variances and the normaliser agree with a dense Gaussian of fields and noise."""
    rng, n_classes, noise_std, labels = np.random.default_rng(3), 4, 0.6, np.array([2, 0, 3])
    factor = rng.normal(size=(3, 2))
    tau, nu = rng.uniform(0.1, 3, 9), rng.normal(size=9)
    with jax.enable_x64(True):
        found = leads(factor, labels, n_classes, noise_std).field.condition(tau, nu)
    design = np.zeros((9, n_classes * 2 + 3))  # of white coordinates, then noises
    for row, (j, k) in enumerate((j, k) for j in range(3) for k in range(4) if k != labels[j]):
        design[row, 2 * labels[j] : 2 * labels[j] + 2] = factor[j]
        design[row, 2 * k : 2 * k + 2] = -factor[j]
        design[row, 8 + j] = noise_std
    posterior = np.linalg.inv(np.eye(11) + design.T @ (tau[:, None] * design))
    mean = posterior @ design.T @ nu
    np.testing.assert_allclose(found.mean, design @ mean, atol=1e-10)
    np.testing.assert_allclose(found.variance, np.diag(design @ posterior @ design.T), atol=1e-10)
    np.testing.assert_allclose(found.white_mean, mean[:8], atol=1e-10)
    np.testing.assert_allclose(found.white_covariance, posterior[:8, :8], atol=1e-10)
    normalizer = 0.5 * nu @ design @ mean + 0.5 * np.linalg.slogdet(posterior)[1]
    assert float(found.log_normalizer) == pytest.approx(normalizer, abs=1e-10)


@pytest.mark.parametrize("noise_std", [0.5, 2.0])
def test_closer_to_the_truth_than_independent_pairs(noise_std):
    """Sharing the noise makes evidence and means better than pairs of variance 2γ²."""
    rng, labels, n_classes = np.random.default_rng(6), [0, 1, 0], 4
    factor = np.linalg.cholesky(random_covariance(3, seed=7) + 0.5)
    u = np.einsum("ij,sjk->sik", factor, rng.standard_normal((N_DRAWS, 3, n_classes)))
    weights = label_weights(u, rng.standard_normal((N_DRAWS, 3)), labels, noise_std)
    truth = np.einsum("s,sik->ik", weights / weights.sum(), u)
    errors = []
    for target in (
        leads(factor, labels, n_classes, noise_std),
        leads(factor, labels, n_classes, np.sqrt(2) * noise_std, shared_std=1e-5),
    ):
        found = ep.iterate_sites(target, 1.0, 500, 1e-6)
        mean = factor @ found.given.white_mean.reshape(n_classes, -1).T
        evidence = ep.log_evidence(target, found) - np.log(weights.mean())
        errors.append([np.abs(mean - truth).max(), abs(evidence)])
    assert errors[0][0] < 0.02
    assert errors[0][1] < 0.02
    assert errors[1][0] > 3 * errors[0][0]
    assert errors[1][1] > 3 * errors[0][1]


def test_sites_of_the_first_labels_are_a_start():
    """The fixed point is the same, and fewer sweeps reach it."""
    prior, codes = random_covariance(30, rank=12), np.arange(30) % 3
    prior[np.diag_indices(30)] += 1e-6
    [first] = fit_sites(prior[:28, :28][None], codes[:28], 3, 0.3, tolerance=1e-8)
    [cold] = fit_sites(prior[None], codes, 3, 0.3, tolerance=1e-8)
    [warm] = fit_sites(prior[None], codes, 3, 0.3, tolerance=1e-8, start=first)
    np.testing.assert_allclose(warm.weights, cold.weights, rtol=1e-5)
    assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-6)
    assert warm.n_sweeps < cold.n_sweeps


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("n_labels", [6, 20])
def test_both_forms_of_expectation_propagation_agree(n_labels, monkeypatch):
    """Sweeps at the labels and sweeps in white coordinates have the same Gaussian."""
    factor = np.random.default_rng(1).normal(size=(n_labels, 12))
    field = ClassField(LowRankField(factor, np.zeros((12, 12)), np.ones(12), 0.0), 3)
    target = Target(field, Probit(0.5, 3), np.arange(n_labels) % 3 * 1.0)
    method = ep.ExpectationPropagation(tolerance=1e-6)
    at_labels = method.fit(target)
    monkeypatch.setattr(ep, "nested_answer", lambda *arguments: None)
    in_coordinates = method.fit(target)
    assert at_labels.log_evidence == pytest.approx(in_coordinates.log_evidence, abs=1e-6)
    for name in ("white_mean", "white_covariance", "labelled_mean", "labelled_variance"):
        pair = getattr(at_labels, name), getattr(in_coordinates, name)
        np.testing.assert_allclose(*pair, atol=1e-4)
    for name in ("class_weights", "class_shift"):
        pair = getattr(at_labels, name), getattr(in_coordinates, name)
        np.testing.assert_allclose(*pair, rtol=1e-3, atol=1e-4)


def test_sites_are_found_again_from_an_answer():
    """Precisions and shifts of the K fields at a label are those of one star of sites only."""
    codes = np.arange(12) % 4
    [sites] = fit_sites(random_covariance(12)[None], codes, 4, 0.7)
    found = starting_sites(sites.weights, sites.pull, codes)
    np.testing.assert_allclose(found.weights, sites.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.shifts, sites.shifts, rtol=1e-6, atol=1e-9)


def test_several_covariances_at_once():
    """Each has the sites that it has alone, after its own number of sweeps; a bad one has none."""
    covariances = np.stack([scale * random_covariance(8) for scale in (0.1, 1.0, -1e3, 30.0)])
    codes = np.arange(8) % 3
    found = fit_sites(covariances, codes, 3, 0.5)
    assert found[2] is None
    assert len({sites.n_sweeps for sites in found if sites}) > 1
    for covariance, sites in zip(covariances, found, strict=True):
        if sites is not None:
            [alone] = fit_sites(covariance[None], codes, 3, 0.5)
            assert alone.n_sweeps == sites.n_sweeps
            np.testing.assert_allclose(sites.weights, alone.weights, atol=1e-10)
            assert sites.log_evidence == pytest.approx(alone.log_evidence, abs=1e-10)
            # log ∫ N(u; 0, G) exp(bᵀ u − uᵀ W u/2) du, with dense matrices.
            w = [np.diag(row) - np.outer(row, row) / row.sum() for row in sites.weights]
            precision = scipy.linalg.block_diag(*w)
            b, prior = sites.pull.ravel(), np.kron(covariance, np.eye(3))
            system = np.eye(24) + prior @ precision
            expected = 0.5 * b @ np.linalg.solve(system, prior @ b)
            expected -= 0.5 * np.linalg.slogdet(system)[1]
            assert sites.log_normalizer == pytest.approx(expected, abs=1e-8)
