"""Starting points of chains, by JAX and NumPy, against exact Gaussian conditioning."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphuq as gq
from conftest import random_adjacency
from graphuq.inference.exact_hamiltonian.trajectories import starts, walls_of
from graphuq.posterior.target import START_NOISE
from graphuq.utils.with_jax import with_dtype

N_STARTS = 4_000


def by_jax(target):
    keys = jax.random.split(jax.random.key(0), N_STARTS)
    with jax.enable_x64(True):
        white = jax.jit(jax.vmap(with_dtype(target, jnp.float64).start))(keys)
        return np.asarray(white), np.asarray(jax.vmap(target.log_likelihood)(white))


def by_numpy(target):
    return starts(walls_of(target, np.float64), [np.random.default_rng(c) for c in range(N_STARTS)])


def build(likelihood, tail, n_labels=12):
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(random_adjacency(20, seed=1)),
        n_eigenpairs=9,
        tail_eigenvalue=tail or False,
    )
    labels = np.where(np.arange(n_labels) % 3, 1, -1)
    return gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), likelihood, np.arange(n_labels), labels
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("made", [by_jax, by_numpy])
@pytest.mark.parametrize("tail", [None, 0.9])
def test_starts_are_conditioned_on_labels_with_noise(made, tail):
    target = build(gq.likelihoods.LevelSet(1.0), tail).target
    white, value = made(target)
    factor = target.field.matrix()
    precision = np.eye(target.dimension) + factor.T @ factor / START_NOISE**2
    covariance = np.linalg.inv(precision)
    mean = covariance @ factor.T @ target.labels / START_NOISE**2
    # Standardised by the exact distribution: mean 0 and variance 1, within 4.5 standard errors.
    z = (white - mean) @ np.linalg.cholesky(precision)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=4.5 / np.sqrt(N_STARTS))
    np.testing.assert_allclose(
        z.T @ z / N_STARTS, np.eye(len(mean)), atol=4.5 * np.sqrt(2 / N_STARTS)
    )
    agree = (white @ factor.T >= 0) == (target.labels > 0)
    np.testing.assert_allclose(
        value, -2.0 * (~agree).sum(axis=1) + 12 * target.likelihood.log_levels(np.ones(1))[0][0]
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("made", [by_jax, by_numpy])
def test_starts_are_possible(made):
    target = build(gq.likelihoods.NoiseFree(), 0.9).target
    white, value = made(target)
    assert (value == 0).all()
    assert (target.labels * (white @ target.field.matrix().T) > 0).all()


def test_labels_that_no_field_fits_stay_wrong(monkeypatch):
    monkeypatch.setattr("graphuq.inference.exact_hamiltonian.trajectories.MAX_REFLECTIONS", 50)
    target = build(gq.likelihoods.NoiseFree(), None, n_labels=20).target  # for 8 modes
    rngs = [np.random.default_rng(c) for c in range(3)]
    white, value = starts(walls_of(target, np.float64), rngs)
    assert np.isfinite(white).all()
    assert (value == -np.inf).all()
