"""The elliptical slice sampler."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.errors import require
from graphuq.inference.base import Approximation, WhiteTarget
from graphuq.inference.kernel import Kernel
from graphuq.inference.transitions import Info, State
from graphuq.utils.checks import check_fields
from graphuq.utils.with_jax import Array, PRNGKeyArray, jax, jnp


class EllipticalSlice(Kernel):
    r"""Moves along the ellipse ``x cos θ + ζ sin θ`` to a point above a random likelihood level.

    Angles are drawn from a bracket that shrinks towards θ = 0 until a point is found (Murray,
    Adams & MacKay 2010, figure 2). The sampler needs no gradient and no tuning, and always
    moves. A NaN likelihood counts as −∞. From a start of likelihood zero any point of positive
    likelihood is accepted.

    Parameters
    ----------
    step_size : float, default π
        Half the width of the first bracket, in (0, π]. Warm-up leaves it at π.
    max_trials : int, default 100
        Largest number of angles; then the chain stays. A bracket of 2⁻¹⁰⁰ contains only θ = 0.
    target_acceptance : float
        Not used, since nothing is rejected.
    reference : Approximation, optional
        Approximation whose Gaussian takes the place of the prior (Nishihara, Murray & Adams
        2014).
    """

    step_size: float | Float[Array, ""] = float(np.pi)
    max_trials: int = 100
    target_acceptance: float = 0.5
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = False
    default_warmup: ClassVar[int] = 100
    default_thin: ClassVar[int] = 4

    def __check_init__(self) -> None:
        check_fields(self)
        require(self.max_trials >= 1, "max_trials", f"{self.max_trials}", "use 1 or more")
        if isinstance(self.step_size, float | int):
            require(
                0 < self.step_size <= 3.1416,
                "step_size",
                f"{self.step_size!r}",
                "use an angle in (0, π]",
            )

    @property
    def max_step_size(self) -> float:
        """Half a turn to either side, which covers the whole ellipse."""
        return float(np.pi)

    def step(self, key: PRNGKeyArray, state: State, target: WhiteTarget) -> tuple[State, Info]:
        """Return the next state of the chain."""
        key_ellipse, key_level, key_bracket, key_angle = jax.random.split(key, 4)
        dtype = state.white.dtype
        other = jax.random.normal(key_ellipse, state.white.shape, dtype)
        level = state.log_likelihood + jnp.log(jax.random.uniform(key_level, (), dtype))
        width = 2 * self.step_size
        upper = width * jax.random.uniform(key_bracket, (), dtype)

        def outside(carry: Any) -> Any:
            _, found, _, _, n_trials = carry
            return ~found & (n_trials < self.max_trials)

        def shrink(carry: Any) -> Any:
            _, _, lower, upper, n_trials = carry
            draw = jax.random.uniform(jax.random.fold_in(key_angle, n_trials), (), dtype)
            angle = lower + (upper - lower) * draw
            white = jnp.cos(angle) * state.white + jnp.sin(angle) * other
            proposal = State(white, target.log_likelihood(white))
            found = proposal.log_likelihood > level  # false for NaN
            lower, upper = jnp.where(angle < 0, angle, lower), jnp.where(angle < 0, upper, angle)
            return proposal, found, lower, upper, n_trials + 1

        start = (state, jnp.asarray(False), upper - width, upper, jnp.asarray(0))
        proposal, found, _, _, _ = jax.lax.while_loop(outside, shrink, start)
        new = State(*(jnp.where(found, a, b) for a, b in zip(proposal, state, strict=True)))
        return new, Info(found.astype(dtype), found)
