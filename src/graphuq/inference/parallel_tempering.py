"""Parallel tempering: replicas at powers of the likelihood that exchange their states."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts, require
from graphuq.inference.base import Approximation, WhiteTarget
from graphuq.inference.kernel import Kernel
from graphuq.inference.transitions import Info, State, swap_replicas
from graphuq.utils.checks import check_fields
from graphuq.utils.part import Part, unchecked
from graphuq.utils.with_jax import Array, PRNGKeyArray, jax, jnp


class _Flattened(Part):
    """A target with its likelihood raised to a power."""

    target: Any
    power: Array

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return int(self.target.dimension)

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Return the log likelihood times the power."""
        value: Array = self.power * self.target.log_likelihood(white)
        return value


class ParallelTempering(Kernel):
    r"""Replicas at powers ``b_k = (k / (K − 1))^e`` of the likelihood, from 0 (the prior) to 1.

    In each step the replica of power 0 is drawn from the prior and every other one takes a step
    of ``kernel``. Then neighbours swap with probability
    ``min(1, exp((b_k − b_l)(log L_l − log L_k)))``, first even pairs, then odd ones (Geyer
    1991). Chains travel between modes through the prior, which suits posteriors with several
    modes such as Ginzburg-Landau's. A step costs K times a step of the kernel.

    Parameters
    ----------
    kernel : Kernel
        Kernel that moves a replica: ``EllipticalSlice()``, ``Hamiltonian()`` or ``PCN()``.
    n_replicas : int, default 24
        K ≥ 2. Neighbours must overlap, which takes about ``√dimension`` replicas.
    exponent : float, default 3.0
        e > 0. A larger exponent gives more replicas of small power.
    step_size : float, default 0.1
        Step size of the replica of power 1 in (0, 1], as a share of the kernel's largest. That
        of power b is ``1/√b`` times as large, at most 1. Adapted in warm-up.
    target_acceptance : float, default 0.8
        Target of the replica of power 1, whose acceptance diagnostics report.
    reference : Approximation, optional
        Approximation whose Gaussian takes the place of the prior. If it covers all modes, fewer
        replicas are enough.
    """

    kernel: Kernel
    n_replicas: int = 24
    exponent: float = 3.0
    step_size: float | Float[Array, ""] = 0.1
    target_acceptance: float = 0.8
    reference: Approximation | None = None
    default_warmup: ClassVar[int] = 500
    default_thin: ClassVar[int] = 5

    def __check_init__(self) -> None:
        check_fields(self)
        require(self.n_replicas >= 2, "n_replicas", f"{self.n_replicas}", "use 2 or more")
        if isinstance(self.exponent, float | int):
            require(self.exponent > 0, "exponent", f"{self.exponent!r}", "use a positive exponent")
        if isinstance(self.step_size, float | int):
            require(
                0 < self.step_size <= 1, "step_size", f"{self.step_size!r}", "use a share in (0, 1]"
            )
        if self.kernel.reference is not None:
            raise IncompatibleParts(
                f"{self.kernel} has a reference of its own; give it to parallel tempering instead"
            )
        if self.kernel.requires_step:
            raise IncompatibleParts(
                f"{self.kernel} cannot sample a power of the likelihood; use "
                "EllipticalSlice() or PCN()"
            )

    @property
    def requires_gradient(self) -> bool:  # type: ignore[override]
        """Whether the kernel requires a gradient."""
        return self.kernel.requires_gradient

    @property
    def powers(self) -> Float[np.ndarray, " K"]:
        """Powers b_k of the replicas, in increasing order."""
        return np.linspace(0.0, 1.0, self.n_replicas) ** np.asarray(self.exponent)

    def init(self, white: Float[Array, " n"], target: WhiteTarget) -> State:
        """Return the state with all replicas at one point; later steps separate them."""
        state = State(white, target.log_likelihood(white))
        return State(*(jnp.stack([leaf] * self.n_replicas) for leaf in state))

    def reported_state(self, state: State) -> State:
        """Return the replica of power 1."""
        return State(*(leaf[-1] for leaf in state))

    def step(self, key: PRNGKeyArray, state: State, target: WhiteTarget) -> tuple[State, Info]:
        """Return the state after a step of every replica and two rounds of swaps."""
        key_prior, key_move, key_even, key_odd = jax.random.split(key, 4)
        dtype = state.white.dtype
        powers = (jnp.arange(self.n_replicas) / (self.n_replicas - 1)).astype(
            dtype
        ) ** self.exponent
        fresh = jax.random.normal(key_prior, state.white.shape[1:], dtype)

        def move(key: PRNGKeyArray, power: Array, white: Array, value: Array) -> Any:
            share = jnp.minimum(self.step_size / jnp.sqrt(power), 1.0)
            largest = self.kernel.max_step_size
            kernel = unchecked(self.kernel, {"step_size": share * largest})
            return kernel.step(key, State(white, power * value), _Flattened(target, power))

        keys = jax.random.split(key_move, self.n_replicas - 1)
        moved, info = jax.vmap(move)(keys, powers[1:], state.white[1:], state.log_likelihood[1:])
        white = jnp.concatenate([fresh[None], moved.white])
        value = jnp.concatenate(
            [target.log_likelihood(fresh)[None], moved.log_likelihood / powers[1:]]
        )
        for key_swap, first in ((key_even, 0), (key_odd, 1)):
            n_pairs = (self.n_replicas - first) // 2
            uniform = jax.random.uniform(key_swap, (n_pairs,), dtype)
            white, value = swap_replicas(uniform, first, powers, white, value)
        return State(white, value), Info(info.acceptance_probability[-1], info.accepted[-1])
