"""Chen's Algorithm 2 in NumPy, and its variants, against quadrature."""

import numpy as np
import pytest

import graphuq as gq
from graphuq_papers.base import Context
from graphuq_papers.catalogue import PAPERS
from graphuq_papers.chen.algorithm import ALPHA, TAU, walk
from graphuq_papers.problems import Problem

N_MODES, NOISE = 4, 0.8


def test_all_figures_are_registered():
    assert list(PAPERS["chen"]) == [*(f"figure{k}" for k in range(1, 21)), "updates", "number"]


def test_trials_have_the_seed_of_the_command():
    assert list(Context(quick=True).trials(3, 50)) == [0, 1, 2]
    assert list(Context(quick=True, seed=2).trials(3, 50)) == [6, 7, 8]
    assert list(Context(seed=1).trials(2, 3)) == [3, 4, 5]


@pytest.fixture(scope="module")
def problem():
    graph = gq.graphs.path_graph(12)
    truth = np.where(np.arange(12) < 6, 1.0, -1.0)
    return Problem(gq.laplacian_spectrum(graph, n_eigenpairs=N_MODES), truth)


def expected_log_tau(problem, labelled):
    """Mean of log τ: two labels of a Gaussian field have orthant probabilities in closed form."""
    tau, alpha = (np.linspace(*bounds, 400) for bounds in (TAU, ALPHA))
    eigenvalues = problem.spectrum.eigenvalues
    log_variance = -alpha[None, :, None] * np.log(eigenvalues + tau[:, None, None] ** 2)
    variance = np.exp(log_variance - log_variance.max(axis=2, keepdims=True))
    q = problem.spectrum.eigenvectors[labelled]
    covariance = np.einsum("taj,mj,nj->tamn", variance, q, q)
    a, b = covariance[..., 0, 0], covariance[..., 1, 1]
    correlation = covariance[..., 0, 1] / np.sqrt(a * b) * np.prod(problem.truth[labelled])
    area = np.arcsin(np.clip(correlation, -1, 1)) / (2 * np.pi)
    one, two = np.exp(-2 / NOISE**2), np.exp(-4 / NOISE**2)  # likelihood of one and two errors
    evidence = (1 + two) * (1 / 4 + area) + one * (1 / 2 - 2 * area)
    weights = evidence / evidence.sum()
    return float((weights.sum(axis=1) * np.log(tau)).sum())


@pytest.mark.parametrize(("centred", "block"), [(False, False), (True, False), (False, True)])
def test_walk_agrees_with_quadrature(problem, centred, block):
    labelled = np.array([2, 8])
    means = [
        np.log(
            walk(
                problem, labelled, NOISE, N_MODES, 600, beta=0.5, start=(2.0, 20.0), seed=seed,
                centred=centred, block=block, step_sizes=(6.0, 25.0),
            ).tau[60:]
        ).mean()
        for seed in range(12)
    ]  # fmt: skip
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    exact = expected_log_tau(problem, labelled)
    assert error < 0.15
    assert abs(np.mean(means) - exact) < 4 * error
