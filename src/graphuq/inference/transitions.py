"""One step of a Markov chain that JAX compiles, and the acceptance rules that several share."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Bool, Float

from graphuq.inference.base import WhiteTarget
from graphuq.utils.part import Part
from graphuq.utils.with_jax import Array, PRNGKeyArray, jax, jnp


class State(NamedTuple):
    """What the next step of a chain needs."""

    white: Float[Array, " n"]
    log_likelihood: Float[Array, ""]


class Info(NamedTuple):
    """What diagnostics need to know about a step."""

    acceptance_probability: Float[Array, ""]
    accepted: Bool[Array, ""]


class TransitionKernel(Part):
    """One step of a Markov chain, and what adapts it.

    A subclass has a ``step_size`` in (0, `max_step_size`]. Warm-up adapts it until the mean
    acceptance probability is `target_acceptance`.
    """

    if TYPE_CHECKING:  # fields of each subclass

        @property
        def step_size(self) -> Any:
            """Step size, or one for each block."""

        @property
        def target_acceptance(self) -> float:
            """Mean acceptance probability that warm-up aims at."""

    @property
    def max_step_size(self) -> float | Float[Array, " b"]:
        """Largest step size that warm-up may choose."""
        return 1.0

    @property
    def block_target_acceptance(self) -> Any:
        """Target acceptance of each step size, one number if there is one."""
        return self.target_acceptance

    def bind(self, target: Any) -> "TransitionKernel":
        """Return the kernel with as many step sizes as this target needs."""
        return self

    def prepare(self, target: Any) -> Any:
        """Return the target with what all steps share; called once per block of steps."""
        return target

    def init(self, white: Float[Array, " n"], target: WhiteTarget) -> State:
        """Return the state at a point."""
        return State(white, target.log_likelihood(white))

    def moves(self, target: Any, dtype: Any) -> "CompiledSteps | None":
        """Return steps of all chains compiled by the kernel itself, or None to leave it to JAX."""
        return None

    def reported_state(self, state: State) -> State:
        """Return the part of a state that is kept as a draw."""
        return state

    @abstractmethod
    def step(self, key: PRNGKeyArray, state: State, target: WhiteTarget) -> tuple[State, Info]:
        """Return the next state of the chain."""


@runtime_checkable
class CompiledSteps(Protocol):
    """Steps of many chains that are not compiled by JAX."""

    def start(self, rngs: Any) -> State:
        """Return starting points, one per generator: shapes (C, n) and (C,)."""
        ...

    def __call__(
        self, rngs: Any, states: State, step_size: float, n_steps: int
    ) -> tuple[State, Array]:
        """Return the states after each step, (C, S, n) and (C, S), and which were accepted."""
        ...


def metropolis(
    key: PRNGKeyArray,
    current: State,
    proposal: State,
    log_proposal_ratio: Float[Array, ""] | float = 0.0,
) -> tuple[State, Info]:
    """Accept the proposal with probability ``min(1, exp(Φ(u) − Φ(u')))`` (Bertozzi, Alg. 1).

    A proposal that does not leave the prior invariant adds ``log_proposal_ratio``. A proposal
    with likelihood NaN is rejected.
    """
    log_ratio = proposal.log_likelihood - current.log_likelihood + log_proposal_ratio
    probability = jnp.exp(jnp.minimum(jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio), 0.0))
    accepted = jax.random.uniform(key, dtype=probability.dtype) < probability
    state = State(
        *(jnp.where(accepted, new, old) for new, old in zip(proposal, current, strict=True))
    )
    return state, Info(probability, accepted)


def swap_replicas(
    uniform: Array, first: int, powers: Array, white: Array, value: Array
) -> tuple[Array, Array]:
    """Return replicas and their log likelihoods after neighbours offered to swap (Geyer 1991).

    Pairs are (first, first + 1), (first + 2, first + 3), …, each with one uniform number. A pair
    (k, l) swaps with probability ``min(1, exp((b_k − b_l)(log L_l − log L_k)))``.
    """
    lower = first + 2 * jnp.arange(len(uniform))
    log_ratio = (powers[lower] - powers[lower + 1]) * (value[lower + 1] - value[lower])
    accepted = jnp.log(uniform) < log_ratio  # false for NaN
    order = jnp.arange(len(powers))
    order = order.at[lower].add(accepted.astype(order.dtype))
    order = order.at[lower + 1].add(-accepted.astype(order.dtype))
    return white[order], value[order]
