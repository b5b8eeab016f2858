"""Maximum a posteriori: the most probable field, as a point."""

import time
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.inference.answers import Point
from graphuq.inference.base import Approximation, SiteTarget
from graphuq.likelihoods import Likelihood, Probit
from graphuq.utils.arrays import with_dtype
from graphuq.utils.newton import minimize_by_newton

HALVINGS = 40  # of a step that does not come closer
GROWTH = 1.5  # of the flow's step, after one that needed no halving
SLOPE = 1e-4  # share of the promised descent that a step must deliver (Armijo)


class MAP(Approximation):
    r"""Minimise ``|x|²/2 − log p(y | u(x))`` (Bertozzi et al. 2018, §4.4).

    For probit the minimiser is unique (their proposition 1); Ginzburg-Landau may have many, and
    the start decides which is found. Level set, atomic noise and noise-free have none: to
    shrink u towards 0 changes no sign and raises the prior density for ever.

    Parameters
    ----------
    solver : {"newton", "flow"}, default "newton"
        ``"newton"``: quadratic models of each label's term, solved exactly, with line search.
        ``"flow"``: linearly implicit gradient flow in the eigenbasis (their Algorithm 4, with P of
        MATH §5); of first order, but it follows the paper to the minimiser that it would find.
    start : Likelihood or {"zero", "random"}, optional
        A likelihood: start at its minimiser for the same labels. ``"random"``: a draw from the
        prior. By default zero, and `Probit` for a likelihood that speaks of every node.
    step_size : float, default 0.1
        Of the flow, > 0, to start with: it grows while the objective falls as promised.
    max_iterations : int, default 100_000
    tolerance : float, default 1e-9
        Converged once no component of the gradient in white coordinates exceeds this.
    seed : int, default 0
        Of the random start.
    """

    solver: str = "newton"
    start: Likelihood | str | None = None
    step_size: float = 0.1
    max_iterations: int = 100_000
    tolerance: float = 1e-9
    seed: int = 0
    requires_gradient: ClassVar[bool] = False

    def __check_init__(self) -> None:
        if self.solver not in ("newton", "flow"):
            raise InvalidInput("solver", f"{self.solver!r} is unknown", "use newton or flow")
        if isinstance(self.start, str) and self.start not in ("zero", "random"):
            raise InvalidInput(
                "start", f"{self.start!r} is unknown", "use zero, random, or a likelihood"
            )
        require(self.step_size > 0, "step_size", f"{self.step_size!r}", "use a positive step")
        require(
            self.max_iterations >= 1, "max_iterations", f"{self.max_iterations}", "use 1 or more"
        )
        require(self.tolerance > 0, "tolerance", f"{self.tolerance!r}", "use a positive bound")

    def fit(self, target: SiteTarget) -> Point:
        """Minimise.

        Raises
        ------
        IncompatibleParts
            If the posterior has no maximum, or the flow is asked for with a tail.
        InvalidInput
            If no stationary point is reached.
        """
        if not target.likelihood.has_gradient:
            raise IncompatibleParts(
                f"{target.likelihood} has no maximum a posteriori: to shrink the field towards 0 "
                "changes no label's probability and raises the prior density for ever; sample, or "
                "use ExpectationPropagation()"
            )
        if target.likelihood.is_multiclass:
            raise IncompatibleParts(
                f"MAP is of two classes, {target.likelihood} of several; use Laplace(), whose "
                "mean is the maximum"
            )
        if self.solver == "flow" and not target.field.is_low_rank:
            raise IncompatibleParts(
                "the gradient flow runs in the kept eigenbasis and this field has a tail; use "
                "solver='newton'"
            )
        began = time.perf_counter()
        with jax.enable_x64(True):
            target = with_dtype(target, jnp.float64)
            tolerance = jnp.asarray(self.tolerance)
            white = self._start(target, tolerance)
            if self.solver == "newton":
                found = _newton(target, white, self.max_iterations, tolerance)
            else:
                step_size = jnp.asarray(self.step_size)
                found = _flow(target, white, step_size, self.max_iterations, tolerance)
            white, n_iterations, slope = found
            objective = -float(target.log_density(white))
            seen, labelled = target.field.seen(white), target.field.at_labelled(white)
        require(
            float(slope) <= self.tolerance,
            "inference",
            f"{self!r} reached no stationary point in {int(n_iterations)} iterations (gradient "
            f"{float(slope):.1g})",
            "raise max_iterations or tolerance",
        )
        return Point(
            seen=np.asarray(seen),
            labelled=np.asarray(labelled),
            objective=objective,
            n_iterations=int(n_iterations),
            seconds=time.perf_counter() - began,
            description=f"maximum a posteriori, {int(n_iterations)} iterations ({self.solver})",
        )

    def _start(self, target: Any, tolerance: Array) -> Array:
        start = self.start
        if start is None:
            start = Probit() if target.likelihood.uses_all_nodes else "zero"
        zero = jnp.zeros(target.dimension)
        if start == "zero":
            return zero
        if start == "random":
            return jax.random.normal(jax.random.key(self.seed), zero.shape, zero.dtype)
        other = eqx.tree_at(lambda t: t.likelihood, target, with_dtype(start, jnp.float64))
        white, _, _ = _newton(other, zero, self.max_iterations, tolerance)
        return white


@eqx.filter_jit
def _newton(
    target: Any, white: Array, max_iterations: int, tolerance: Array
) -> tuple[Array, Array, Array]:
    """White coordinates of the minimiser, iterations, and the gradient that is left.

    A Newton step is the mean of the field given sites that match each term's curvature: no
    matrix of J×J where ℓ is smaller (Rasmussen & Williams 2006, §3.4). Where curvature makes no
    Gaussian, its negative part is left out: still a descent.
    """

    def objective(white: Array) -> Array:
        return -target.log_density(white)

    def proposal(u: Array, slope: Array, curvature: Array) -> Array:
        conditioned = target.field.condition(curvature, curvature * u + slope)
        return target.field.white(conditioned.mean, conditioned.white_mean)

    def step(white: Array, g: Array) -> Array:
        u = target.field.at_labelled(white)

        def total(u: Array) -> Array:
            return target.likelihood.log_prob(u, target.labels).sum()

        slope, minus_curvature = jax.jvp(jax.grad(total), (u,), (jnp.ones_like(u),))
        full = proposal(u, slope, -minus_curvature)
        convex = proposal(u, slope, jnp.maximum(-minus_curvature, 0.0))
        usable = jnp.isfinite(full).all() & (g @ (full - white) < 0)
        return jnp.where(usable, full, convex) - white

    found = minimize_by_newton(
        objective, jax.grad(objective), step, white, max_iterations, tolerance
    )
    return found.x, found.n_iterations, jnp.abs(found.residual).max()


@eqx.filter_jit
def _flow(
    target: Any, white: Array, step_size: Array, max_iterations: int, tolerance: Array
) -> tuple[Array, Array, Array]:
    """The same by ``a ← (a − β ∇Φ) / (1 + β / s²)`` in the coefficients a of the series.

    In standardised coefficients ``ξ = a / s``, of which x is a rotation's part, that reads
    ``ξ ← (s² ξ − β ∇_ξ Φ) / (s² + β)``.
    """
    field = target.field
    kept = field.mode_variance > 0
    variance = jnp.where(kept, field.mode_variance, 1.0)
    turn = jnp.where(kept[:, None], field.coefficient_map / jnp.sqrt(variance)[:, None], 0.0)

    def objective(xi: Array) -> Array:
        return 0.5 * (xi**2).sum() - target.log_likelihood(xi @ turn)

    gradient = jax.grad(objective)

    def improve(xi: Array, step_size: Array) -> tuple[Array, Array]:
        g = gradient(xi)
        # (s² ξ − β (g − ξ)) / (s² + β) − ξ: downhill for every β
        direction = -step_size * g / (variance + step_size)
        xi, length = _line_search(objective, xi, direction, g @ direction)
        return xi, step_size * jnp.where(length == 1, GROWTH, 0.5)

    xi, n_iterations, slope = _until_flat(
        improve, turn @ white, step_size, gradient, max_iterations, tolerance
    )
    return xi @ turn, n_iterations, slope


def _until_flat(
    improve: Any,
    start: Array,
    step_size: Array,
    gradient: Any,
    max_iterations: int,
    tolerance: Array,
) -> tuple[Array, Array, Array]:
    def steep(carry: Any) -> Any:
        _, _, n_iterations, slope = carry
        return (n_iterations < max_iterations) & (slope > tolerance)

    def again(carry: Any) -> Any:
        at, step_size, n_iterations, _ = carry
        at, step_size = improve(at, step_size)
        return at, step_size, n_iterations + 1, jnp.abs(gradient(at)).max()

    slope = jnp.abs(gradient(start)).max()
    at, _, n_iterations, slope = jax.lax.while_loop(
        steep, again, (start, step_size, jnp.asarray(0), slope)
    )
    return at, n_iterations, slope


def _line_search(
    objective: Any, start: Array, direction: Array, descent: Float[Array, ""]
) -> tuple[Array, Array]:
    """The first of 1, ½, ¼, … along the direction that descends as promised, and which.

    Near the minimum, where no descent is visible through rounding, the slope is judged instead
    (Hager & Zhang 2005, (4.3)).
    """
    value = objective(start)
    rounding = 1e-12 * (1 + jnp.abs(value))
    value_and_slope = jax.value_and_grad(lambda t: objective(start + t * direction))

    def too_far(carry: Any) -> Any:
        length, n_halvings = carry
        reached, slope = value_and_slope(length)
        descends = reached <= value + SLOPE * length * descent
        flat = (reached <= value + rounding) & (slope <= (2 * SLOPE - 1) * descent)
        return ~(descends | flat) & (n_halvings < HALVINGS)

    length, n_halvings = jax.lax.while_loop(
        too_far, lambda carry: (carry[0] / 2, carry[1] + 1), (jnp.ones_like(value), 0)
    )
    length = jnp.where(n_halvings < HALVINGS, length, 0.0)
    return start + length * direction, length
