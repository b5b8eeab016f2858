"""Parts of whitened moves: forces, the metric, and divergent trajectories."""

import numpy as np
import pytest
from scipy.special import erfcx, log_ndtr

import graphuq as gq
from graphuq.inference.reversible_jump import hmc, log_cdf
from graphuq.inference.reversible_jump.gibbs import GibbsUpdates
from graphuq.inference.reversible_jump.hmc import HMCUpdates
from graphuq.inference.reversible_jump.mass_matrix import Factor, geometric_mean_root

N = 24


@pytest.mark.parametrize("order", ["C", "F"])
def test_functions_of_margins(order):
    values = np.linspace(-45, 15, 6_000).reshape(3_000, 2).copy(order)
    slope = np.sqrt(2 / np.pi) / erfcx(-values / np.sqrt(2))
    np.testing.assert_allclose(log_cdf.log_cdf(values), log_ndtr(values), atol=1e-18)
    np.testing.assert_allclose(log_cdf.label_slope(values), slope, atol=1e-17)
    quick = log_cdf.quick_slope(values)
    np.testing.assert_allclose(quick[values > -40], slope[values > -40], atol=2e-5)
    np.testing.assert_allclose(quick, slope, rtol=1e-3, atol=1e-5)  # linear extrapolation below −40


def positive(seed, n=6):
    half = np.random.default_rng(seed).normal(size=(n, 2 * n))
    return half @ half.T / n


def test_the_metric_is_the_geometric_mean():
    curvature, covariance = positive(0), positive(1)
    root = geometric_mean_root(curvature, covariance, 1e9)
    np.testing.assert_allclose(np.triu(root, 1), 0)
    precision = root @ root.T
    np.testing.assert_allclose(precision @ covariance @ precision, curvature, rtol=1e-6)


def test_the_metric_is_the_curvature_without_draws_or_for_a_gaussian():
    curvature = positive(0)
    for covariance, n_draws in ((positive(1), 0.0), (np.linalg.inv(curvature), 50.0)):
        root = geometric_mean_root(curvature, covariance, n_draws)
        np.testing.assert_allclose(root @ root.T, curvature, rtol=1e-10)


def test_a_diagonal_metric_is_the_same():
    curvature, covariance = np.array([1.0, 4.0, 9.0]), np.array([2.0, 0.1, 5.0])
    dense = geometric_mean_root(np.diag(curvature), np.diag(covariance), 7.0)
    np.testing.assert_allclose(np.diag(geometric_mean_root(curvature, covariance, 7.0)), dense)


def test_leading_blocks_are_factors_of_shorter_series():
    root = np.linalg.cholesky(positive(2))
    mean, g = np.arange(6.0), np.random.default_rng(3).normal(size=(6, 2))
    factor = Factor.of(root, mean).first(4)
    x = factor.transposed_times(g[:4])
    np.testing.assert_allclose(x, root[:4, :4].T @ g[:4])
    np.testing.assert_allclose(factor.solve_transposed(x), g[:4])
    np.testing.assert_allclose(factor.solve(root[:4, :4] @ x), x)
    np.testing.assert_allclose(Factor.of(root, mean).centre[:, 0], root.T @ mean)


def test_divergent_trajectories_are_refused(monkeypatch):
    """Divergent trajectories are refused without overflow."""
    monkeypatch.setattr(hmc, "MAX_LENGTH", 3_000.0)
    path = gq.laplacian_spectrum(gq.graphs.path_graph(N), "unnormalized")
    labelled = np.arange(0, N, 2)
    labels = np.where(labelled < N // 2, 1, -1)
    posterior = gq.Posterior(
        path, gq.priors.RandomSeries(), gq.likelihoods.Probit(1.0), labelled, labels
    )
    moves = GibbsUpdates(posterior.series, "window", None, "auto", True, True)
    whitened = HMCUpdates(posterior.series, moves.rows, moves.noisy_nodes)
    rng = np.random.default_rng(0)
    tuning = whitened.start()._replace(log_step=np.log(30.0))
    state = moves.start(rng, 4)
    for _ in range(5):
        moved, probability = whitened.trajectory(rng, state, tuning)
        assert (probability == 0).any()
        for before, after in zip(state, moved, strict=True):
            assert np.isfinite(after).all()
            np.testing.assert_array_equal(
                after[..., probability == 0], before[..., probability == 0]
            )
