"""Damped Newton iteration, traced by JAX."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from jaxtyping import Bool, Float, Int

from graphuq.utils.with_jax import Array, jax, jnp

MAX_HALVINGS = 30  # largest number per step; without descent after that, the iteration ends
ROUNDING = 1e-11  # relative increase of the objective that counts as rounding error

Vector: TypeAlias = Float[Array, " n"]


class NewtonResult(NamedTuple):
    """Result of `minimize_by_newton`.

    Attributes
    ----------
    x : array, shape (n,)
        Last point.
    value : array, shape ()
        Objective there.
    residual : array, shape (n,)
        Residual there; its largest component exceeds the tolerance if the iteration failed.
    n_iterations : array, shape ()
    """

    x: Vector
    value: Float[Array, ""]
    residual: Vector
    n_iterations: Int[Array, ""]


def minimize_by_newton(
    objective: Callable[[Vector], Float[Array, ""]],
    residual: Callable[[Vector], Vector],
    step: Callable[[Vector, Vector], Vector],
    start: Vector,
    max_iterations: int,
    tolerance: float | Float[Array, ""],
) -> NewtonResult:
    """Minimise by Newton steps, each halved until the objective does not increase.

    Parameters
    ----------
    objective : callable
        Function of x to minimise.
    residual : callable
        Function of x that is zero at the minimum, such as the gradient.
    step : callable
        Newton step from x, given x and the residual there.
    start : array, shape (n,)
    max_iterations : int
    tolerance : float
        Converged once no component of the residual exceeds this.
    """

    def unfinished(carry: tuple[NewtonResult, Bool[Array, ""]]) -> Bool[Array, ""]:
        at, moved = carry
        large = jnp.abs(at.residual).max() > tolerance
        return (at.n_iterations < max_iterations) & large & moved

    def improve(
        carry: tuple[NewtonResult, Bool[Array, ""]],
    ) -> tuple[NewtonResult, Bool[Array, ""]]:
        at, _ = carry
        direction = step(at.x, at.residual)
        highest = at.value + ROUNDING * (1 + jnp.abs(at.value))

        def too_far(search: tuple[Array, Array, Array]) -> Array:
            _, reached, n_halvings = search
            return ~(reached <= highest) & (n_halvings < MAX_HALVINGS)

        def halve(search: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            length, _, n_halvings = search
            return length / 2, objective(at.x + length / 2 * direction), n_halvings + 1

        first = jnp.ones_like(at.value), objective(at.x + direction), jnp.asarray(0)
        length, reached, n_halvings = jax.lax.while_loop(too_far, halve, first)
        moved = n_halvings < MAX_HALVINGS
        x = jnp.where(moved, at.x + length * direction, at.x)
        value = jnp.where(moved, reached, at.value)
        return NewtonResult(x, value, residual(x), at.n_iterations + 1), moved

    first = NewtonResult(start, objective(start), residual(start), jnp.asarray(0))
    result: NewtonResult = jax.lax.while_loop(unfinished, improve, (first, jnp.asarray(True)))[0]
    return result
