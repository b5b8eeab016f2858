"""Posteriors and likelihoods that are known in closed form."""

import jax
import numpy as np
import pytest

import graphuq as gq
from graphuq.inference.chains import run_chains
from graphuq.posterior.field import LowRankField
from graphuq.posterior.target import Target


@pytest.mark.parametrize("noise_std", [0.2, 0.5, 2.0])
def test_one_node_with_one_label(noise_std):
    """The label mean of u ~ N(0, 1) with label +1 and noise γ is (2/π) arctan(1/γ)."""
    field = LowRankField(np.ones((1, 1)), np.ones((1, 1)), np.ones(1), 0.0)
    target = Target(field, gq.likelihoods.Probit(noise_std), np.ones(1))
    draws = run_chains(target, gq.inference.PCN(), n_samples=2000, n_chains=32, thin=5, rng=0)
    chain_means = np.where(draws.white[..., 0] >= 0, 1.0, -1.0).mean(axis=1)
    standard_error = chain_means.std(ddof=1) / np.sqrt(len(chain_means))
    assert standard_error < 0.01
    truth = 2 / np.pi * np.arctan(1 / noise_std)
    assert abs(chain_means.mean() - truth) < 4 * standard_error


def test_log_likelihoods_by_the_papers_formulas():
    from scipy.stats import norm

    u, y = np.array([0.3, -2.0, 0.0]), np.array([1.0, 1.0, -1.0])
    with jax.enable_x64(True):
        arrays = jax.numpy.asarray(u), jax.numpy.asarray(y)
        probit = np.asarray(gq.likelihoods.Probit(0.7).log_prob(*arrays))
        level_set = np.asarray(gq.likelihoods.LevelSet(0.7).log_prob(*arrays))
    np.testing.assert_allclose(probit, norm.logcdf(y * u / 0.7), rtol=1e-12)
    np.testing.assert_allclose(level_set - level_set[0], [0, -2 / 0.49, -2 / 0.49], rtol=1e-12)
    assert np.exp(level_set[:2]).sum() == pytest.approx(1)  # a right and a wrong label


def test_probit_is_exact_far_in_the_tail():
    """The value is log Φ(−100) = −5005.5…, although Φ(−100) underflows."""
    from scipy.stats import norm

    with jax.enable_x64(True):
        value = gq.likelihoods.Probit(0.1).log_prob(jax.numpy.asarray([-10.0]), jax.numpy.ones(1))
    np.testing.assert_allclose(np.asarray(value), norm.logcdf(-100.0), rtol=1e-12)


def test_credible_interval_of_a_gaussian():
    """The posterior under wide noise is nearly the prior: 95 % of u_j are within ±1.96."""
    graph = gq.graphs.from_adjacency(np.ones((6, 6)) - np.eye(6))
    spectrum = gq.laplacian_spectrum(graph)
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(1e3), [0, 1], [1, -1]
    )
    result = gq.infer(posterior, gq.inference.PCN(), n_samples=2000, n_chains=16, thin=5, rng=0)
    # K_6 without its constant: u = sqrt(6/5) (I − 11ᵀ/6) z, of variance 1 at each node.
    interval = gq.credible_interval(result, 0.95)
    np.testing.assert_allclose(interval, [[-1.96, 1.96]] * 6, atol=0.15)
    np.testing.assert_allclose(result.latent_std, 1.0, atol=0.03)
