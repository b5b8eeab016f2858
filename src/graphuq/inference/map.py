"""Maximum a posteriori: the field of largest posterior density."""

import time
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.inference.answers import Point
from graphuq.inference.base import Approximation, SiteTarget
from graphuq.likelihoods import Likelihood, Probit
from graphuq.utils.checks import check_fields
from graphuq.utils.newton import minimize_by_newton
from graphuq.utils.part import unchecked
from graphuq.utils.with_jax import Array, eqx, jax, jnp, with_dtype

FlowState: TypeAlias = tuple[Array, Array, Array, Array]  # ξ, step size, iterations, slope

MAX_HALVINGS = 40  # halvings of a step of the flow that does not descend
GROWTH = 1.5  # factor of the flow's step size after a step without halving
SLOPE = 1e-4  # share of the linearly predicted descent that a step must reach (Armijo)


class MAP(Approximation):
    r"""Minimise ``|x|²/2 − log p(y | u(x))`` (Bertozzi et al. 2018, §4.4).

    For probit the minimiser is unique (their proposition 1). For Ginzburg-Landau there may be
    several, and the start determines which one is found. Level set, atomic noise and noise-free
    have none: shrinking u towards 0 changes no sign and increases the prior density without limit.
    Minimisers in the wells of K classes lie on kinks, where no gradient vanishes; MAP refuses them.

    Parameters
    ----------
    solver : {"newton", "flow"}, default "newton"
        ``"newton"``: quadratic models of each label's term, solved exactly, with halving of steps.
        ``"flow"``: linearly implicit gradient flow in the eigenbasis (their Algorithm 4, with P of
        docs/theory/expectation_propagation.md, "Maximum a posteriori"). It is a first-order method,
        but it leads to the minimiser that the paper's algorithm finds.
    start : Likelihood or {"zero", "random"}, optional
        A likelihood: start at its minimiser for the same labels. ``"random"``: start at a draw
        from the prior. By default zero; for a likelihood on all nodes, `Probit`.
    step_size : float, default 0.1
        Initial step size of the flow, > 0. It grows while the objective falls as predicted.
    max_iterations : int, default 100_000
    tolerance : float, default 1e-9
        Converged once no component of the gradient in white coordinates exceeds this.
    rng : int, default 0
        Seed of the random start.
    """

    solver: str = "newton"
    start: Likelihood | str | None = None
    step_size: float = 0.1
    max_iterations: int = 100_000
    tolerance: float = 1e-9
    rng: int = 0
    requires_gradient: ClassVar[bool] = False

    def __check_init__(self) -> None:
        check_fields(self)
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
        """Minimise minus the log posterior density.

        Raises
        ------
        IncompatibleParts
            If the posterior has no maximum, is multiclass, has wells and labels without a
            gradient, or has a tail with the flow.
        InvalidInput
            If no stationary point is reached.
        """
        if reason := _refusal(target.likelihood):
            raise IncompatibleParts(reason)
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

    def _start(self, target: SiteTarget, tolerance: Array) -> Array:
        start = self.start
        if start is None:
            start = Probit() if target.likelihood.uses_all_nodes else "zero"
        zero = jnp.zeros(target.field.dimension)
        if start == "zero":
            return zero
        if start == "random":
            return jax.random.normal(jax.random.key(self.rng), zero.shape, zero.dtype)
        other = unchecked(cast(Any, target), {"likelihood": with_dtype(start, jnp.float64)})
        white, _, _ = _newton(other, zero, self.max_iterations, tolerance)
        return white


def _refusal(likelihood: Likelihood) -> str:
    """Return why a likelihood has no maximum that Newton's method or the flow can find, or ""."""
    wells = likelihood.uses_all_nodes
    if wells and likelihood.is_multiclass:
        return (
            f"MAP needs a binary likelihood: the wells of K classes in {likelihood} have kinks, "
            "its maximum may lie on them, and there the gradient does not vanish; sample, with "
            "ParallelTempering()"
        )
    if wells and not likelihood.has_gradient:
        return f"MAP needs a gradient and the labels in {likelihood} have none; sample"
    if not likelihood.has_gradient:
        return (
            f"{likelihood} has no maximum a posteriori: shrinking the field towards 0 changes no "
            "label's probability and increases the prior density without limit; sample, or use "
            "ExpectationPropagation()"
        )
    if likelihood.is_multiclass:
        return (
            f"MAP needs a binary likelihood, and {likelihood} is multiclass; use Laplace(), whose "
            "mean is the maximum"
        )
    return ""


@eqx.filter_jit
def _newton(
    target: SiteTarget, white: Array, max_iterations: int, tolerance: Array
) -> tuple[Array, Array, Array]:
    """Return the white coordinates of the minimiser, the iterations, and the largest slope.

    A Newton step is the mean of the field given sites that match the curvature of each term
    (Rasmussen & Williams 2006, §3.4). It forms no J×J matrix if ℓ is smaller. If the
    curvature makes no Gaussian, its negative part is left out; the step is still a descent.
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
    """Return what `_newton` returns, by ``a ← (a − β ∇Φ) / (1 + β / s²)`` in coefficients a.

    In standardised coefficients ``ξ = a / s``, of which x is part of a rotation, the step is
    ``ξ ← (s² ξ − β ∇_ξ Φ) / (s² + β)``.
    """
    field = target.field
    kept = field.mode_variance > 0
    variance = jnp.where(kept, field.mode_variance, 1.0)
    rotation = jnp.where(kept[:, None], field.coefficient_map / jnp.sqrt(variance)[:, None], 0.0)

    def objective(xi: Array) -> Array:
        return 0.5 * (xi**2).sum() - target.log_likelihood(xi @ rotation)

    gradient = jax.grad(objective)

    def unfinished(carry: FlowState) -> Array:
        _, _, n_iterations, slope = carry
        return (n_iterations < max_iterations) & (slope > tolerance)

    def improve(carry: FlowState) -> FlowState:
        xi, step_size, n_iterations, _ = carry
        g = gradient(xi)
        # (s² ξ − β (g − ξ)) / (s² + β) − ξ is downhill for every β
        direction = -step_size * g / (variance + step_size)
        xi, length = _line_search(objective, xi, direction, g @ direction)
        step_size = step_size * jnp.where(length == 1, GROWTH, 0.5)
        return xi, step_size, n_iterations + 1, jnp.abs(gradient(xi)).max()

    xi = rotation @ white
    start = xi, step_size, jnp.asarray(0), jnp.abs(gradient(xi)).max()
    xi, _, n_iterations, slope = jax.lax.while_loop(unfinished, improve, start)
    return xi @ rotation, n_iterations, slope


def _line_search(
    objective: Callable[[Array], Array], start: Array, direction: Array, descent: Float[Array, ""]
) -> tuple[Array, Array]:
    """Return the point and the first length of 1, ½, ¼, … with sufficient descent.

    Near the minimum, where rounding hides the descent, the slope is tested instead
    (Hager & Zhang 2005, (4.3)).
    """
    value = objective(start)
    rounding = 1e-12 * (1 + jnp.abs(value))
    value_and_slope = jax.value_and_grad(lambda t: objective(start + t * direction))

    def too_far(carry: tuple[Array, Any]) -> Array:
        length, n_halvings = carry
        reached, slope = value_and_slope(length)
        descends = reached <= value + SLOPE * length * descent
        flat = (reached <= value + rounding) & (slope <= (2 * SLOPE - 1) * descent)
        return ~(descends | flat) & (n_halvings < MAX_HALVINGS)

    length, n_halvings = jax.lax.while_loop(
        too_far, lambda carry: (carry[0] / 2, carry[1] + 1), (jnp.ones_like(value), 0)
    )
    length = jnp.where(n_halvings < MAX_HALVINGS, length, 0.0)
    return start + length * direction, length
