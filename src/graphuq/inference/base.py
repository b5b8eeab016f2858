"""What a sampler is: ``init`` and ``step``; and the one acceptance rule that all share."""

from abc import abstractmethod
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray


@runtime_checkable
class WhiteTarget(Protocol):
    """A standard normal prior times a likelihood, as samplers see it."""

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        ...

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Log likelihood, up to a constant."""
        ...


class State(NamedTuple):
    """What the next step needs."""

    white: Float[Array, " n"]
    log_likelihood: Float[Array, ""]


class Info(NamedTuple):
    """What diagnostics need."""

    acceptance_probability: Float[Array, ""]
    accepted: Bool[Array, ""]


class Kernel(eqx.Module):
    """A Markov kernel that leaves the posterior invariant.

    Subclasses are small immutable values with a ``step_size`` in (0, `max_step_size`], which
    the driver adapts in warm-up so that the acceptance probability is `target_acceptance`.
    """

    step_size: eqx.AbstractVar[float | Float[Array, ""]]
    target_acceptance: eqx.AbstractVar[float]
    max_step_size: ClassVar[float]
    requires_gradient: ClassVar[bool]

    def init(self, white: Float[Array, " n"], target: WhiteTarget) -> State:
        """State at a given point."""
        return State(white, target.log_likelihood(white))

    @abstractmethod
    def step(self, key: PRNGKeyArray, state: State, target: WhiteTarget) -> tuple[State, Info]:
        """One step of the chain."""


def metropolis(key: PRNGKeyArray, current: State, proposal: State) -> tuple[State, Info]:
    """Accept the proposal with probability ``min(1, exp(Φ(u) − Φ(u')))`` (Bertozzi, Alg. 1).

    For proposals that leave the prior invariant. A proposal whose likelihood is NaN is rejected.
    """
    log_ratio = proposal.log_likelihood - current.log_likelihood
    probability = jnp.exp(jnp.minimum(jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio), 0.0))
    accepted = jax.random.uniform(key, dtype=probability.dtype) < probability
    state = State(
        *(jnp.where(accepted, new, old) for new, old in zip(proposal, current, strict=True))
    )
    return state, Info(probability, accepted)
