"""Crossing a wall: the JAX and Numba functions agree and conserve energy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from graphuq.inference.exact_hamiltonian import trajectories, walls


@pytest.mark.parametrize("rise", [-np.inf, -2.0, 0.0, 0.4, 30.0, np.inf])
@pytest.mark.parametrize("rate", [-3.0, -0.8, -1e-3])
def test_crossing_a_wall_in_both_languages(rate, rise):
    norm = 1.7
    with jax.enable_x64(True):
        new_rate, crosses = walls.cross_wall(*map(jnp.asarray, (rate, rise, norm)))
    assert (float(new_rate), bool(crosses)) == trajectories.cross_wall(rate, rise, norm)
    if not crosses:
        assert float(new_rate) == -rate
        assert rise > rate**2 / (2 * norm)
    elif np.isfinite(rise):
        # The kinetic energy along the normal, rate² / (2 |normal|²), pays for the rise.
        assert float(new_rate) ** 2 / (2 * norm) + rise == pytest.approx(rate**2 / (2 * norm))
