"""Pareto-smoothed weights against ArviZ and known tails."""

import arviz
import numpy as np
import pytest

from graphuq.utils.pareto import fit_pareto, smooth_weights


@pytest.mark.skipif(not hasattr(arviz, "psislw"), reason="ArviZ 1 moved the function")
def test_weights_equal_those_of_arviz():
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(6, 1000)) * np.array([0.3, 1, 2, 3, 4, 6])[:, None]
    found = smooth_weights(logs)
    weights, shape = arviz.psislw(logs.copy())
    np.testing.assert_allclose(found.shape, shape, rtol=1e-8)
    np.testing.assert_allclose(found.log_weights, weights, atol=1e-8)


@pytest.mark.parametrize("k", [0.2, 0.5, 0.8])
def test_shape_of_a_pareto_distribution(k):
    """The error of 2,000 observations is about (1 + k)/√2000."""
    uniform = np.random.default_rng(1).uniform(size=(20, 2000))
    excess = np.sort((uniform**-k - 1) / k, axis=1)
    shape, scale = fit_pareto(excess)
    assert abs(shape.mean() - k) < 4 * (1 + k) / np.sqrt(2000 * 20) + 0.01
    np.testing.assert_allclose(scale, 1, atol=0.2)


def test_degenerate_weights():
    equal = smooth_weights(np.zeros((2, 100)))
    np.testing.assert_allclose(np.exp(equal.log_weights), 0.01)
    assert (equal.shape == -np.inf).all()
    two_levels = smooth_weights(np.where(np.arange(1000) < 50, 2.0, 0.0)[None])
    np.testing.assert_allclose(np.exp(two_levels.log_weights).sum(), 1)
    assert smooth_weights(np.zeros((1, 8))).shape[0] == np.inf
