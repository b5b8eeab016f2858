"""The Ginzburg-Landau posterior against quadrature, and modes that only tempering reaches."""

import numpy as np
import pytest

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import NotConvergedWarning

WEIGHTS = random_adjacency(9, seed=5)
LABELLED, LABELS = [0, 4], [1, -1]


def build(epsilon, noise_std, n_eigenpairs=4, tail=False, weights=WEIGHTS):
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(weights), n_eigenpairs=n_eigenpairs, tail_eigenvalue=tail
    )
    likelihood = gq.likelihoods.GinzburgLandau(epsilon, noise_std)
    return gq.Posterior(spectrum, gq.priors.InverseLaplacian(), likelihood, LABELLED, LABELS)


def by_quadrature(weights, n_modes, epsilon, noise_std, n_points=121, width=5.0):
    """Return label mean, mean and deviation of u on a grid of the series' coefficients."""
    u, energy = fields_on_a_grid(weights, n_modes, noise_std, n_points, width)
    energy = energy + ((u**2 - 1) ** 2).sum(axis=1) / (4 * epsilon)
    weight = np.exp(energy.min() - energy)
    weight /= weight.sum()
    mean = weight @ u
    return weight @ np.sign(u), mean, np.sqrt(weight @ (u - mean) ** 2)


def fields_on_a_grid(weights, n_modes, noise_std, n_points, width=5.0):
    """Return fields on a grid of coefficients, and their energy without the wells."""
    n_nodes = len(weights)
    degrees = weights.sum(axis=1)
    operator = np.eye(n_nodes) - weights / np.sqrt(np.outer(degrees, degrees))
    eigenvalues, q = np.linalg.eigh(operator)
    inverse = 1 / eigenvalues[1 : n_modes + 1]
    std = np.sqrt(n_nodes * inverse / inverse.sum())
    axis = np.linspace(-width, width, n_points)
    grid = np.stack(np.meshgrid(*[axis] * n_modes, indexing="ij"), axis=-1).reshape(-1, n_modes)
    u = grid @ (q[:, 1 : n_modes + 1] * std).T
    misfit = ((u[:, LABELLED] - LABELS) ** 2).sum(axis=1) / (2 * noise_std**2)
    return u, (grid**2).sum(axis=1) / 2 + misfit


KERNELS = [
    gq.inference.PCN(),
    gq.inference.Hamiltonian(),
    pytest.param(
        gq.inference.ParallelTempering(gq.inference.EllipticalSlice(), n_replicas=8),
        marks=pytest.mark.slow,
    ),
    pytest.param(
        gq.inference.ParallelTempering(gq.inference.Hamiltonian(), n_replicas=8),
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_against_quadrature(kernel):
    label_mean, mean, std = by_quadrature(WEIGHTS, 3, 2.0, 0.8)
    result = gq.infer(build(2.0, 0.8), kernel, n_samples=1500, n_chains=32, thin=5, rng=1)
    error = gq.results.label_mcse(result)
    assert error.max() < 0.02
    assert np.all(np.abs(gq.results.label_mean(result) - label_mean) < 4 * error + 1e-4)
    u = gq.results.latent_draws(result, np.arange(9)).reshape(9, result.answer.n_chains, -1)
    for power, truth in ((1, mean), (2, mean**2 + std**2)):
        by_chain = (u**power).mean(axis=2)  # chains are independent: their spread is the error
        error = by_chain.std(axis=1, ddof=1) / np.sqrt(by_chain.shape[1])
        assert np.all(np.abs(by_chain.mean(axis=1) - truth) < 4.5 * error + 1e-3)


@pytest.mark.slow
def test_the_depth_of_the_wells_is_learnt():
    """ε with a log-uniform prior agrees with quadrature over ε and the field."""
    log_epsilon = np.linspace(np.log(0.3), np.log(6.0), 61)

    def by_quadrature(n_points):
        u, energy = fields_on_a_grid(WEIGHTS, 3, 0.8, n_points=n_points)
        wells = ((u**2 - 1) ** 2).sum(axis=1) / 4
        logs = np.stack([-energy - wells / np.exp(t) - len(WEIGHTS) / 2 * t for t in log_epsilon])
        weight = np.exp(logs - logs.max())
        weight[[0, -1]] /= 2  # trapezoidal rule
        by_epsilon = weight.sum(axis=1) / weight.sum()
        return by_epsilon, weight.sum(axis=0) @ np.sign(u) / weight.sum()

    by_epsilon, label_mean = by_quadrature(101)
    # Signs jump between grid points; the error of a coarser grid bounds that of this one.
    rough = np.abs(by_quadrature(61)[1] - label_mean)
    mean = by_epsilon @ log_epsilon
    spread = np.sqrt(by_epsilon @ (log_epsilon - mean) ** 2)
    result = gq.infer(build(gq.LogUniform(0.3, 6.0), 0.8), n_samples=2500, n_chains=32, rng=1)
    drawn = np.log(result.hyperparameters["epsilon"])
    for power, truth in ((1, mean), (2, mean**2 + spread**2)):
        by_chain = (drawn**power).mean(axis=1)
        error = by_chain.std(ddof=1) / np.sqrt(len(by_chain))
        assert error < 0.02
        assert abs(by_chain.mean() - truth) < 4 * error + 1e-3
    assert abs(mean - np.log(0.3 * 6.0) / 2) > 0.1  # not the mean of the prior
    assert rough.max() < 0.02
    assert np.all(
        np.abs(gq.results.label_mean(result) - label_mean)
        < 4 * gq.results.label_mcse(result) + rough
    )


@pytest.mark.slow
def test_a_tail_at_the_last_eigenvalue_changes_nothing():
    """A tail at the last eigenvalue changes the coordinates, not the distribution of the field."""
    full = build(2.0, 0.8, n_eigenpairs=9)
    tail = build(2.0, 0.8, n_eigenpairs=8, tail=float(full.spectrum.eigenvalues[-1]))
    assert (full.dimension, tail.dimension) == (8, 9)
    first, second = (
        gq.infer(p, gq.inference.Hamiltonian(), n_samples=800, n_chains=32, thin=3, rng=2)
        for p in (full, tail)
    )
    error = np.hypot(gq.results.label_mcse(first), gq.results.label_mcse(second))
    assert error.max() < 0.03
    assert np.all(
        np.abs(gq.results.label_mean(first) - gq.results.label_mean(second)) < 4.5 * error
    )


@pytest.mark.slow
def test_only_tempering_reaches_all_modes():
    """A plain chain stays in one mode of deep wells, and its R-hat exceeds 1.5."""
    label_mean, _, _ = by_quadrature(WEIGHTS, 3, 0.05, 2.0, n_points=161)
    posterior = build(0.05, 2.0)
    with pytest.warns(NotConvergedWarning):
        stuck = gq.infer(posterior, gq.inference.Hamiltonian(), n_samples=1000, n_chains=16, rng=0)
    assert stuck.diagnostics.rhat > 1.5
    tempered = gq.infer(
        posterior,
        gq.inference.ParallelTempering(gq.inference.Hamiltonian(), n_replicas=16),
        n_samples=3000,
        n_chains=16,
        rng=0,
    )
    assert tempered.diagnostics.rhat < 1.01
    assert np.all(
        np.abs(gq.results.label_mean(tempered) - label_mean)
        < 4 * gq.results.label_mcse(tempered) + 2e-3
    )
    assert np.abs(gq.results.label_mean(stuck) - label_mean).max() > 0.05


@pytest.mark.slow
def test_small_noise_limit():
    """Probit and level set as γ → 0, and atomic noise as p = q → 1, become noise-free."""
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=6)

    def label_mean(likelihood):
        prior = gq.priors.InverseLaplacian()
        posterior = gq.Posterior(spectrum, prior, likelihood, [0, 2, 4, 7], [1, -1, -1, 1])
        result = gq.infer(posterior, n_samples=1000, n_chains=32, rng=0)
        return gq.results.label_mean(result), gq.results.label_mcse(result)

    limit, limit_error = label_mean(gq.likelihoods.NoiseFree())
    distances = []
    for small, large in (
        (gq.likelihoods.Probit(1e-3), gq.likelihoods.Probit(0.5)),
        (gq.likelihoods.LevelSet(0.2), gq.likelihoods.LevelSet(2.0)),
        (gq.likelihoods.AtomicNoise(1 - 1e-6, 1 - 1e-6), gq.likelihoods.AtomicNoise(0.8, 0.8)),
    ):
        mean, error = label_mean(small)
        assert np.all(np.abs(mean - limit) < 4.5 * np.hypot(error, limit_error) + 2e-3)
        distances.append(np.abs(label_mean(large)[0] - limit).max())
    assert min(distances) > 0.05


@pytest.mark.slow
def test_the_papers_stop_rule_uses_every_node():
    posterior = build(10.0, 1.0)
    stop = gq.CumulativeMean(tolerance=0.2, every=500)
    with pytest.warns(NotConvergedWarning):
        result = gq.infer(posterior, gq.inference.PCN(), n_samples=500, n_chains=1, stop=stop)
    assert result.diagnostics.stopped_by.startswith("the running mean moved by")
