"""log Φ against 30 digits."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from graphuq.utils.special_functions import log_normal_cdf

POINTS = np.concatenate([-np.logspace(3, -6, 60), [0.0], np.logspace(-6, 1, 40)])


def truth(x):
    with mpmath.workdps(30):
        return float(mpmath.log(mpmath.erfc(-mpmath.mpf(float(x)) / mpmath.sqrt(2)) / 2))


@pytest.mark.parametrize(("dtype", "bound"), [(np.float64, 3e-14), (np.float32, 2e-6)])
def test_value_and_slope(dtype, bound):
    with jax.enable_x64(True):
        x = jnp.asarray(POINTS[POINTS < 5], dtype)
        value = np.asarray(log_normal_cdf(x), dtype=np.float64)
        slope = np.asarray(jax.vmap(jax.grad(log_normal_cdf))(x), dtype=np.float64)
    exact = np.asarray(x, dtype=np.float64)
    values = np.array([truth(p) for p in exact])
    np.testing.assert_allclose(value, values, rtol=bound)
    # φ/Φ from the exact logarithm; its own rounding grows with the size of what cancels.
    slopes = np.exp(-0.5 * exact**2 - np.log(2 * np.pi) / 2 - values)
    kept = np.abs(values) < 1e3
    np.testing.assert_allclose(slope[kept], slopes[kept], rtol=bound * 2e3)


def test_far_right_is_minus_the_tail():
    """log Φ(8) = −6.2e-16, where 1 − Φ(8) has been rounded away in Φ."""
    with jax.enable_x64(True):
        value = float(log_normal_cdf(jnp.asarray(8.0)))
    assert value == pytest.approx(truth(8.0), rel=1e-12)
