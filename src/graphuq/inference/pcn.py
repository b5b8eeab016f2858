"""The preconditioned Crank-Nicolson sampler."""

from typing import ClassVar

from jaxtyping import Float

from graphuq.errors import require
from graphuq.inference.base import Approximation, WhiteTarget
from graphuq.inference.kernel import Kernel
from graphuq.inference.transitions import Info, State, metropolis
from graphuq.utils.checks import check_fields
from graphuq.utils.with_jax import Array, PRNGKeyArray, jax, jnp


class PCN(Kernel):
    r"""Proposals ξ' = √(1−β²) ξ + β ζ, ζ ~ N(0, I) (Bertozzi et al. 2018, Algorithms 1-3).

    They leave the white prior invariant. The acceptance probability therefore does not involve
    the prior, and β need not shrink as the graph grows (Cotter, Roberts, Stuart & White 2013).

    Parameters
    ----------
    step_size : float, default 0.3
        β in (0, 1]. Warm-up starts from it; without warm-up it is used as it is.
    target_acceptance : float, default 0.3
        Mean acceptance probability, in (0, 1), to which warm-up tunes β.
    reference : Approximation, optional
        Approximation whose Gaussian takes the place of the prior. The posterior is the same;
        with many labels of small noise far fewer steps are needed.
    """

    step_size: float | Float[Array, ""] = 0.3
    target_acceptance: float = 0.3
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = False

    def __check_init__(self) -> None:
        check_fields(self)
        if isinstance(self.step_size, float | int):
            require(0 < self.step_size <= 1, "step_size", f"{self.step_size!r}", "use β in (0, 1]")

    def step(self, key: PRNGKeyArray, state: State, target: WhiteTarget) -> tuple[State, Info]:
        """Return the next state of the chain."""
        key_move, key_accept = jax.random.split(key)
        noise = jax.random.normal(key_move, state.white.shape, state.white.dtype)
        white = jnp.sqrt(1 - self.step_size**2) * state.white + self.step_size * noise
        return metropolis(key_accept, state, State(white, target.log_likelihood(white)))
