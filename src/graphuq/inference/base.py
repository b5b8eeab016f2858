"""What a sampler is: ``init`` and ``step``; and the acceptance rules that several share."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from graphuq.inference.answers import GaussianApproximation, Point

FACTOR_NUMBERS = 2**26  # of F, u = F x at the labels, up to which samplers form it: 537 MB


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


@runtime_checkable
class SiteTarget(Protocol):
    """A target whose field can be conditioned on Gaussian sites at its labels."""

    field: Any
    likelihood: Any
    labels: Any

    def log_density(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Log posterior density in white coordinates, up to a constant."""
        ...


class Approximation(eqx.Module):
    """A method that answers with a Gaussian, or a point, instead of draws."""

    requires_gradient: ClassVar[bool]

    @abstractmethod
    def fit(self, target: SiteTarget) -> GaussianApproximation | Point:
        """What stands for the posterior."""


class Sampler(eqx.Module):
    """A method that answers with draws, by Markov chains that leave the posterior invariant.

    Subclasses are small immutable values with a ``reference``, whose Gaussian takes the place of
    the prior where they start from the prior.
    """

    reference: eqx.AbstractVar[Approximation | None]
    requires_gradient: ClassVar[bool]
    requires_step: ClassVar[bool] = False  # a likelihood of two levels, `StepLikelihood`
    default_warmup: ClassVar[int] = 2000  # steps, where the user gives no number
    default_chains: ClassVar[int | None] = None  # the same; None: as many as pay by size
    always_float64: ClassVar[bool] = False  # computes in float64, whatever is asked


@runtime_checkable
class CompiledSteps(Protocol):
    """Steps of many chains, compiled otherwise than by JAX."""

    def start(self, rngs: Sequence[np.random.Generator]) -> State:
        """Where chains begin, one for each generator: (C, n) and (C,)."""
        ...

    def __call__(
        self, rngs: Sequence[np.random.Generator], states: State, step_size: float, n_steps: int
    ) -> tuple[State, Array]:
        """The states after each step, and which were accepted: (C, S, n), (C, S) and (C, S)."""
        ...


class Kernel(Sampler):
    """A Markov kernel: one step, from one state to the next.

    Beside what a `Sampler` has, a ``step_size`` in (0, `max_step_size`], which the driver adapts
    in warm-up so that the acceptance probability is `target_acceptance`.
    """

    step_size: eqx.AbstractVar[float | Float[Array, ""]]
    target_acceptance: eqx.AbstractVar[float]
    default_thin: ClassVar[int] = 20  # steps a kept draw, where the user gives no number

    @property
    def max_step_size(self) -> float:
        """What warm-up does not exceed."""
        return 1.0

    @property
    def wanted_acceptance(self) -> Any:
        """What warm-up tunes each step size to."""
        return self.target_acceptance

    def bind(self, target: Any) -> "Kernel":
        """The kernel, with as many step sizes as it takes to move this target."""
        return self

    def prepare(self, target: Any) -> Any:
        """The target, with whatever all steps share added to it; done once a block of steps."""
        return target

    def init(self, white: Float[Array, " n"], target: WhiteTarget) -> State:
        """State at a given point."""
        return State(white, target.log_likelihood(white))

    def moves(self, target: Any, dtype: Any) -> CompiledSteps | None:
        """All chains' steps, where the kernel compiles them itself; None where JAX is to."""
        return None

    def reported_state(self, state: State) -> State:
        """What is kept of a state: all, but for kernels that carry more than one field."""
        return state

    @abstractmethod
    def step(self, key: PRNGKeyArray, state: State, target: WhiteTarget) -> tuple[State, Info]:
        """One step of the chain."""


def metropolis(
    key: PRNGKeyArray,
    current: State,
    proposal: State,
    log_proposal_ratio: Float[Array, ""] | float = 0.0,
) -> tuple[State, Info]:
    """Accept the proposal with probability ``min(1, exp(Φ(u) − Φ(u')))`` (Bertozzi, Alg. 1).

    For proposals that leave the prior invariant; others say by ``log_proposal_ratio`` how much
    they fail to. A proposal whose likelihood is NaN is rejected.
    """
    log_ratio = proposal.log_likelihood - current.log_likelihood + log_proposal_ratio
    probability = jnp.exp(jnp.minimum(jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio), 0.0))
    accepted = jax.random.uniform(key, dtype=probability.dtype) < probability
    state = State(
        *(jnp.where(accepted, new, old) for new, old in zip(proposal, current, strict=True))
    )
    return state, Info(probability, accepted)


def swapped(
    uniform: Array, first: int, powers: Array, white: Array, value: Array
) -> tuple[Array, Array]:
    """Replicas, each with its log likelihood, after neighbours have offered to swap (Geyer 1991).

    Pairs (first, first + 1), (first + 2, first + 3), … by a uniform number for each: with
    probability ``min(1, exp((b_k − b_l)(log L_l − log L_k)))``.
    """
    lower = first + 2 * jnp.arange(len(uniform))
    log_ratio = (powers[lower] - powers[lower + 1]) * (value[lower + 1] - value[lower])
    accepted = jnp.log(uniform) < log_ratio  # not NaN
    order = jnp.arange(len(powers))
    order = order.at[lower].add(accepted.astype(order.dtype))
    order = order.at[lower + 1].add(-accepted.astype(order.dtype))
    return white[order], value[order]
