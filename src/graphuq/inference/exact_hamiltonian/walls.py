"""Crossing of a wall of a step likelihood, in JAX; `trajectories.cross_wall` is the Numba text."""

from jaxtyping import Bool, Float

from graphuq.utils.with_jax import Array, jnp


def cross_wall(
    rate: Float[Array, ""], rise: Float[Array, ""], squared_norm: Float[Array, ""]
) -> tuple[Float[Array, ""], Bool[Array, ""]]:
    """Return the rate after a wall, and whether the wall is crossed (else reflected).

    The momentum across the wall pays for the rise of the potential, so that energy is conserved
    (Pakman & Paninski 2014, §3; Afshar & Domke 2015, algorithm 1).

    Parameters
    ----------
    rate : array, shape ()
        Rate of the height above the wall before it is met, below 0.
    rise : array, shape ()
        Rise of the potential across the wall. A rise of −∞, from likelihood zero, counts as 0:
        any finite gain will do.
    squared_norm : array, shape ()
        Squared length of the normal of the wall.
    """
    rise = jnp.where(rise == -jnp.inf, 0.0, rise)
    kinetic = rate**2 - 2 * rise * squared_norm
    crosses = kinetic > 0
    return jnp.where(crosses, -jnp.sqrt(jnp.maximum(kinetic, 0.0)), -rate), crosses
