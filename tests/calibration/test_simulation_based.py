"""Simulation-based calibration (Talts et al. 2018): ranks of the truth are uniform.

Truth from the prior, labels from the likelihood, then the rank of u and of the label probability
at unlabelled nodes among the draws. Slow: hundreds of whole runs.
"""

import numpy as np
import pytest
from scipy import stats

import graphuq as gq
from conftest import random_adjacency
from graphuq.inference.chains import run_chains
from graphuq.summaries import Rows, conditional_moments

N_NODES, N_RUNS, N_RANKS = 20, 300, 19
LABELLED = np.array([0, 4, 8, 12, 16])
NODES = np.array([2, 10])


def simulate_labels(likelihood, u, rng):
    if isinstance(likelihood, gq.likelihoods.Probit):
        return np.sign(u + likelihood.noise_std * rng.normal(size=len(u)))
    # Level-set with labels ±1: p(y | u) ∝ exp(−|y − sign u|² / 2γ²)
    wrong = 1 / (1 + np.exp(2 / likelihood.noise_std**2))
    return np.sign(u) * np.where(rng.uniform(size=len(u)) < wrong, -1, 1)


def ranks(likelihood, assumed, tail, kernel=None):
    """Ranks from 0 to 19 of u at two nodes over many simulated data sets."""
    graph = gq.graphs.from_adjacency(random_adjacency(N_NODES, seed=6))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=10, tail=tail)
    prior = gq.priors.InverseLaplacian()
    std = prior.spectral_std(spectrum)
    rng = np.random.default_rng(0)
    out = []
    while len(out) < N_RUNS:
        z = rng.normal(size=N_NODES)
        q = spectrum.eigenvectors
        u = q @ (std.modes * rng.normal(size=10)) + std.tail * (z - q @ (q.T @ z))
        labels = simulate_labels(likelihood, u[LABELLED], rng)
        posterior = gq.Posterior(spectrum, prior, assumed, LABELLED, [1, 1, 1, 1, -1])
        object.__setattr__(posterior, "labels", labels)  # one class only may occur, too
        draws = run_chains(
            posterior.target,
            kernel or gq.inference.PCN(),
            n_samples=N_RANKS,
            n_chains=1,
            n_warmup=4000,
            thin=80,
            seed=len(out),
        )
        rows = Rows(q[NODES], np.ones(2), np.full(2, -1))
        mean, sd = conditional_moments(posterior.field, draws.white[0], rows)
        complete = mean + sd[:, None] * rng.normal(size=mean.shape)
        out.append((complete < u[NODES, None]).sum(axis=1))
    return np.array(out)


def p_values(found):
    counts = np.array([np.bincount(column, minlength=N_RANKS + 1) for column in found.T])
    return [stats.chisquare(row.reshape(5, 4).sum(axis=1)).pvalue for row in counts]


@pytest.mark.slow
@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize(
    "likelihood", [gq.likelihoods.Probit(0.5), gq.likelihoods.LevelSet(1.0)], ids=repr
)
def test_ranks_are_uniform(likelihood, tail):
    # Four tests of two nodes: at this bound one false alarm in a thousand suites.
    assert min(p_values(ranks(likelihood, likelihood, tail))) > 1e-3 / 8


@pytest.mark.slow
def test_wrong_noise_is_noticed():
    """Negative control: labels are far noisier than the model believes."""
    found = ranks(gq.likelihoods.Probit(3.0), gq.likelihoods.Probit(0.1), tail=False)
    assert min(p_values(found)) < 1e-3 / 8


@pytest.mark.slow
@pytest.mark.parametrize("tail", [False, True])
def test_ranks_are_uniform_by_hamiltonian(tail):
    likelihood = gq.likelihoods.Probit(0.5)
    found = ranks(likelihood, likelihood, tail, gq.inference.Hamiltonian())
    assert min(p_values(found)) > 1e-3 / 8
