"""Hamiltonian Monte Carlo in which the Gaussian part is solved exactly."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.errors import require
from graphuq.inference.base import Approximation, WhiteTarget
from graphuq.inference.kernel import Kernel
from graphuq.inference.transitions import Info, State, metropolis
from graphuq.utils.checks import check_fields
from graphuq.utils.with_jax import Array, PRNGKeyArray, jax, jnp


class Hamiltonian(Kernel):
    r"""Hamiltonian Monte Carlo by Strang splitting (Beskos, Pinski, Sanz-Serna & Stuart 2011).

    In white coordinates the energy is ``|z|²/2 + |p|²/2 − log L(z)``. Its Gaussian part rotates
    (z, p) by an angle, exactly. Between rotations the gradient of the log likelihood changes p.
    The remaining error in energy is corrected by accepting or rejecting. With a ``reference``
    close to the posterior the gradient is small, and so is the error.

    Parameters
    ----------
    step_size : float, default 0.1
        Angle of one rotation in (0, 1], varied by a fifth at each trajectory. Warm-up adapts it,
        up to a quarter turn for the whole trajectory; a full turn would return to the start.
    n_steps : int, default 10
        Rotations per trajectory.
    target_acceptance : float, default 0.8
        Mean acceptance probability, in (0, 1), to which warm-up tunes the angle.
    reference : Approximation, optional
        Approximation whose Gaussian takes the place of the prior, such as
        ``ExpectationPropagation()``.
    """

    step_size: float | Float[Array, ""] = 0.1
    n_steps: int = 10
    target_acceptance: float = 0.8
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = True
    default_warmup: ClassVar[int] = 300
    default_thin: ClassVar[int] = 1

    def __check_init__(self) -> None:
        check_fields(self)
        require(self.n_steps >= 1, "n_steps", f"{self.n_steps}", "use 1 or more")
        if isinstance(self.step_size, float | int):
            require(
                0 < self.step_size <= 1,
                "step_size",
                f"{self.step_size!r}",
                "use an angle in (0, 1]",
            )

    @property
    def max_step_size(self) -> float:
        """Angle with which a trajectory makes a quarter turn."""
        return float(np.pi) / 2 / self.n_steps

    def step(self, key: PRNGKeyArray, state: State, target: WhiteTarget) -> tuple[State, Info]:
        """Return the state after one trajectory."""
        key_momentum, key_jitter, key_accept = jax.random.split(key, 3)
        dtype = state.white.dtype
        momentum = jax.random.normal(key_momentum, state.white.shape, dtype)
        angle = self.step_size * jax.random.uniform(key_jitter, (), dtype, 0.8, 1.2)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        value_and_gradient = jax.value_and_grad(target.log_likelihood)

        def rotate_and_kick(_: Any, carry: Any) -> Any:
            z, p, gradient, _ = carry
            p = p + 0.5 * angle * gradient
            z, p = cos * z + sin * p, cos * p - sin * z
            value, gradient = value_and_gradient(z)
            return z, p + 0.5 * angle * gradient, gradient, value

        value, gradient = value_and_gradient(state.white)
        z, p, _, value = jax.lax.fori_loop(
            0, self.n_steps, rotate_and_kick, (state.white, momentum, gradient, value)
        )
        proposal = State(z, value)
        gaussian = 0.5 * ((state.white**2 + momentum**2).sum() - (z**2 + p**2).sum())
        return metropolis(key_accept, state, proposal, gaussian)
