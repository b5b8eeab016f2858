"""The damped Newton iteration on functions with known minima."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from graphuq.utils.newton import minimize_by_newton


def minimum(objective, start, max_iterations=100):
    """Newton's method with exact derivatives."""
    gradient = jax.grad(objective)

    def step(x, g):
        return -jnp.linalg.solve(jax.hessian(objective)(x), g)

    return minimize_by_newton(objective, gradient, step, start, max_iterations, 1e-10)


def test_one_step_on_a_quadratic():
    with jax.enable_x64(True):
        found = minimum(lambda x: 2 * (x[0] - 3) ** 2 + (x[1] + 1) ** 2, jnp.zeros(2))
    assert int(found.n_iterations) == 1
    np.testing.assert_allclose(found.x, [3.0, -1.0])


@pytest.mark.parametrize("start", [-8.0, 0.5, 30.0])
def test_halving_where_full_steps_diverge(start):
    """log cosh: from beyond 1.09 undamped Newton steps grow without bound."""
    with jax.enable_x64(True):
        found = minimum(
            lambda x: jnp.log(jnp.cosh(x[0] - 1.0)) + 1e-3 * x[0] ** 2, jnp.array([start])
        )
        assert abs(found.residual[0]) < 1e-10
        assert jnp.tanh(found.x[0] - 1) == pytest.approx(-2e-3 * float(found.x[0]), abs=1e-9)


def test_it_stops_where_no_step_descends():
    with jax.enable_x64(True):
        found = minimize_by_newton(
            lambda x: (x**2).sum(),
            jax.grad(lambda x: (x**2).sum()),
            lambda x, g: x,
            jnp.ones(1),
            9,
            0.0,
        )
    assert int(found.n_iterations) == 1
    np.testing.assert_array_equal(found.x, [1.0])
