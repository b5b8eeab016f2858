"""The labelled-node forms against exact Gaussian algebra and against the N-dimensional form."""

import jax
import numpy as np
import pytest
from reference import covariance

import graphuq as gq
from conftest import random_adjacency
from graphuq.posterior.field import NoisyField
from graphuq.results.summaries import Rows, conditional_moments

N_NODES = 20
CASES = [  # (ℓ, λ̄, J): every branch of the square root
    (20, None, 3),
    (8, None, 3),
    (8, None, 12),
    (8, 0.9, 3),
    (8, 0.9, 12),
    (8, 0.9, 20),
    (20, None, 20),
]


def build(n_eigenpairs, tail, n_labelled, laplacian="symmetric"):
    weights = random_adjacency(N_NODES, seed=1)
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(weights), laplacian, n_eigenpairs, tail_eigenvalue=tail or False
    )
    labelled = np.random.default_rng(0).permutation(N_NODES)[:n_labelled]
    posterior = gq.Posterior(
        spectrum,
        gq.priors.InverseLaplacian(),
        gq.likelihoods.Probit(0.5),
        labelled,
        np.where(np.arange(n_labelled) % 2, 1, -1),
    )
    return posterior, covariance(weights, n_eigenpairs, tail, laplacian)


def as_matrix(field):
    """Return the linear map from white coordinates to the labelled nodes."""
    with jax.enable_x64(True):
        return np.asarray(jax.vmap(field.at_labelled)(np.eye(field.dimension))).T


@pytest.mark.parametrize("laplacian", ["symmetric", "unnormalized", "random-walk"])
@pytest.mark.parametrize(("n_eigenpairs", "tail", "n_labelled"), CASES)
def test_covariance_at_labelled_nodes(n_eigenpairs, tail, n_labelled, laplacian):
    posterior, prior = build(n_eigenpairs, tail, n_labelled, laplacian)
    labelled = posterior.labelled
    truth = prior[np.ix_(labelled, labelled)]
    for target in (posterior.target, posterior.node_target):
        root = as_matrix(target.field)
        np.testing.assert_allclose(root @ root.T, truth, atol=1e-10)


@pytest.mark.parametrize(("n_eigenpairs", "tail", "n_labelled"), CASES)
def test_the_map_as_a_matrix(n_eigenpairs, tail, n_labelled):
    posterior, _ = build(n_eigenpairs, tail, n_labelled)
    noisy = NoisyField(posterior.field, 0.3, n_labelled)
    for field in (posterior.field, noisy, posterior.node_target.field):
        with jax.enable_x64(True):
            np.testing.assert_allclose(field.matrix(), as_matrix(field), atol=1e-14)


@pytest.mark.parametrize(("n_eigenpairs", "tail", "n_labelled"), CASES)
def test_dimension_is_at_most_the_number_of_labels(n_eigenpairs, tail, n_labelled):
    posterior, _ = build(n_eigenpairs, tail, n_labelled)
    modes = n_labelled if tail else n_eigenpairs - 1
    assert posterior.dimension <= min(n_labelled, modes)
    assert posterior.node_target.dimension == N_NODES + n_eigenpairs


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk"])
@pytest.mark.parametrize(("n_eigenpairs", "tail", "n_labelled"), CASES)
def test_conditional_moments(n_eigenpairs, tail, n_labelled, laplacian):
    """Mean and deviation of every node given u_L agree with the textbook formula."""
    posterior, prior = build(n_eigenpairs, tail, n_labelled, laplacian)
    spectrum, labelled = posterior.spectrum, posterior.labelled
    white = np.random.default_rng(5).normal(size=(4, posterior.dimension))
    position = np.full(N_NODES, -1)
    position[labelled] = np.arange(n_labelled)
    rows = Rows(spectrum.eigenvectors, spectrum.node_scale, position)
    with jax.enable_x64(True):
        mean, std = conditional_moments(posterior.field, white, rows)
    at_labelled = white @ as_matrix(posterior.field).T
    gain = prior[:, labelled] @ np.linalg.pinv(
        prior[np.ix_(labelled, labelled)], rcond=1e-10, hermitian=True
    )
    np.testing.assert_allclose(mean, gain @ at_labelled.T, atol=1e-6)
    variance = np.diag(prior) - np.einsum("nj,nj->n", gain, prior[:, labelled])
    np.testing.assert_allclose(std**2, np.maximum(variance, 0), atol=1e-7)


@pytest.mark.parametrize("laplacian", ["symmetric", "unnormalized", "random-walk"])
@pytest.mark.parametrize(("n_eigenpairs", "tail"), [(20, None), (8, None), (8, 0.9)])
def test_prior_draws_have_mean_square_one_per_node(n_eigenpairs, tail, laplacian):
    posterior, _ = build(n_eigenpairs, tail, 3, laplacian)
    field = posterior.node_target.field
    white = np.random.default_rng(0).normal(size=(20_000, field.dimension))
    with jax.enable_x64(True):
        squares = (np.asarray(jax.vmap(field.at_nodes)(white)) ** 2).sum(axis=1)
    standard_error = squares.std() / np.sqrt(len(squares))
    assert standard_error < 0.02 * N_NODES
    assert abs(squares.mean() - N_NODES) < 4 * standard_error


@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.slow
def test_both_chains_have_equal_label_means(tail):
    """Label means of the papers' N-dimensional chain and the labelled-node chain agree."""
    from graphuq.inference.chains import run_chains

    posterior, _ = build(8, 0.9 if tail else None, 4)
    options = {"n_samples": 1500, "n_chains": 16, "thin": 10, "n_warmup": 1000}
    nodes = run_chains(posterior.node_target, gq.inference.PCN(), rng=3, **options)
    with jax.enable_x64(True):
        flat = nodes.white.reshape(-1, nodes.white.shape[-1])
        u = np.asarray(jax.vmap(posterior.node_target.field.at_nodes)(flat))
    signs = np.where(u >= 0, 1.0, -1.0).reshape(16, 1500, N_NODES).mean(axis=1)
    node_error = signs.std(axis=0, ddof=1) / 4
    result = gq.infer(posterior, gq.inference.PCN(), rng=4, **options)
    error = np.hypot(node_error, gq.results.label_mcse(result))
    assert error.max() < 0.04
    assert np.all(np.abs(signs.mean(axis=0) - gq.results.label_mean(result)) < 4.5 * error)
