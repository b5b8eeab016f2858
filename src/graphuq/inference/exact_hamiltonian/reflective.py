"""Hamiltonian moves that reflect from walls, in coordinates where the posterior is round."""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from graphuq.errors import require
from graphuq.inference.base import FACTOR_NUMBERS, Approximation, Info, State, metropolis
from graphuq.inference.kernel import Kernel
from graphuq.posterior.posterior import Posterior

MAX_TRAJECTORIES = 50  # of a trajectory, which is then shorter


class ReflectiveHamiltonian(Kernel):
    r"""Fly straight between the walls ``u_j = 0`` of a step likelihood; reflect or cross there.

    In white coordinates many labels leave a field of few modes a cone so thin that
    `ExactHamiltonian`, which turns on the prior's ellipses, meets its walls ten thousand times a
    trajectory. In coordinates where expectation propagation's Gaussian is round it meets some
    dozens. There the prior is no longer white: its pull comes in kicks between straight flights,
    as in leapfrog, and a trajectory's error in energy is made good by an acceptance (Afshar &
    Domke 2015, algorithm 1; walls as in Pakman & Paninski 2014).

    Parameters
    ----------
    step_size : float, default 0.3
        Time of one straight flight, in (0, 1]; tuned in warm-up.
    length : float, default 1.5
        Time of a trajectory, rounded up to whole flights, of which there are at most 50.
    max_events : int, default 50
        Walls met in a trajectory, in multiples of the number of labels, beyond which it is
        given up and the chain stays where it is.
    target_acceptance : float, default 0.8
    reference : Approximation, optional
        Whose Gaussian says which coordinates are round: ``ExpectationPropagation()``. Without
        one they are the prior's, where `ExactHamiltonian` needs no acceptance.
    """

    step_size: float | Float[Array, ""] = 0.3
    length: float = 1.5
    max_events: int = 50
    target_acceptance: float = 0.8
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = False
    requires_step: ClassVar[bool] = True
    default_warmup: ClassVar[int] = 200
    default_thin: ClassVar[int] = 1

    def __check_init__(self) -> None:
        require(self.max_events >= 1, "max_events", f"{self.max_events}", "use 1 or more")
        require(self.length > 0, "length", f"{self.length!r}", "use a time above 0")
        if isinstance(self.step_size, float | int):
            require(
                0 < self.step_size <= 1, "step_size", f"{self.step_size!r}", "use a time in (0, 1]"
            )

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the method cannot sample this posterior and what to do instead, or None."""
        reason = super().refusal(posterior)
        if reason is not None:
            return reason
        likelihood, n_labels = posterior.likelihood, len(posterior.observed_labels)
        if not likelihood.is_step or likelihood.is_multiclass:
            reason = "a likelihood of two levels for two classes, such as LevelSet"
        elif posterior.dimension * n_labels > FACTOR_NUMBERS:
            reason = f"fewer than {n_labels} labels in {posterior.dimension} dimensions"
        return reason and f"ReflectiveHamiltonian needs {reason}; use ExactHamiltonian()"

    def prepare(self, target: Any) -> Any:
        """The walls, as numbers."""
        return _Walls.of(target)

    def step(self, key: PRNGKeyArray, state: State, target: Any) -> tuple[State, Info]:
        """One trajectory, accepted or not."""
        walls: _Walls = target
        key_momentum, key_jitter, key_accept = jax.random.split(key, 3)
        dtype = state.white.dtype
        momentum = jax.random.normal(key_momentum, state.white.shape, dtype)
        time = self.step_size * jax.random.uniform(key_jitter, (), dtype, 0.8, 1.0)
        n_flights = jnp.minimum(jnp.ceil(self.length / self.step_size), MAX_TRAJECTORIES)
        most = self.max_events * len(walls.labels)

        def flight(_: Any, carry: tuple[_Flight, Array]) -> tuple[_Flight, Array]:
            at, kicked = carry[0], carry[0].momentum + 0.5 * time * walls.pull(carry[0].white)
            at = at._replace(
                momentum=kicked,
                height=jnp.maximum(at.side * walls.at_labelled(at.white), 0.0),
                rate=at.side * (walls.factor @ kicked),
                remaining=time,
            )
            at = jax.lax.while_loop(
                lambda at: (at.remaining > 0) & (at.n_events < most),
                lambda at: _to_next_wall(at, walls),
                at,
            )
            kicked = at.momentum + 0.5 * time * walls.pull(at.white)
            return at._replace(momentum=kicked), carry[1] & (at.remaining <= 0)

        u = walls.at_labelled(state.white)
        side = jnp.where(u >= 0, 1.0, -1.0).astype(dtype)
        # On a wall, rounding may say otherwise; but where it is impossible, the chain is not.
        possible = jnp.isfinite(state.log_likelihood) & (walls.rise == jnp.inf)
        side = jnp.where(possible, walls.labels, side)
        start = _Flight(state.white, momentum, u, u, side, time, jnp.asarray(0))
        end, arrived = jax.lax.fori_loop(
            0, n_flights.astype(jnp.int32), flight, (start, jnp.asarray(True))
        )
        value = walls.log_likelihood(end.white, end.side)
        proposal = State(end.white, jnp.where(arrived, value, -jnp.inf))
        energy = 0.5 * ((state.white**2).sum() + (momentum**2).sum())
        energy -= 0.5 * ((end.white**2).sum() + (end.momentum**2).sum())
        moved, info = metropolis(key_accept, state, proposal, energy)
        lost = arrived & (state.log_likelihood == -jnp.inf)  # where anything is as good
        return State(
            *(jnp.where(lost, new, old) for new, old in zip(proposal, moved, strict=True))
        ), info


class _Walls(eqx.Module):
    """Where the likelihood steps, how far, and the prior's density between: ``x = m + r z``."""

    factor: Array  # (J, n): of z → u, but for the constant
    constant: Array  # (J,)
    mean: Array  # (n,): m
    root: Array  # (n,): r
    labels: Array  # (J,): ±1
    right: Array  # (J,): log probability of a label on its own side
    wrong: Array  # (J,): the same on the other
    rise: Array  # (J,): of the potential from a label's own side to the other

    @classmethod
    def of(cls, target: Any) -> "_Walls":
        zero = jnp.zeros(target.dimension, target.labels.dtype)
        mean = target.to_target(zero)
        root = target.to_target(zero + 1) - mean
        constant = target.at_labelled(zero)
        unit = jnp.eye(target.dimension, dtype=zero.dtype)
        factor = jax.vmap(target.at_labelled, out_axes=1)(unit) - constant[:, None]
        right, wrong = target.likelihood.log_levels(target.labels)
        return cls(factor, constant, mean, root, target.labels, right, wrong, right - wrong)

    def at_labelled(self, z: Float[Array, " n"]) -> Float[Array, " J"]:
        """The field at the labels."""
        return self.factor @ z + self.constant

    def pull(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        """Gradient of the prior's log density."""
        return -self.root * (self.mean + self.root * z)

    def log_likelihood(self, z: Float[Array, " n"], side: Float[Array, " J"]) -> Float[Array, ""]:
        """Log density over the standard normal's, by the sides of walls, known without rounding."""
        value = jnp.where(side == self.labels, self.right, self.wrong).sum()
        return value + 0.5 * ((z**2).sum() - ((self.mean + self.root * z) ** 2).sum())


class _Flight(NamedTuple):
    """A point on its way."""

    white: Array  # (n,)
    momentum: Array  # (n,)
    height: Array  # (J,): side · u
    rate: Array  # (J,): of the height
    side: Array  # (J,): of each wall, ±1
    remaining: Array  # time
    n_events: Array


def _to_next_wall(at: _Flight, walls: _Walls) -> _Flight:
    times = jnp.where(at.rate < 0, at.height / -at.rate, jnp.inf)
    j = jnp.argmin(times)
    met = times[j] < at.remaining
    time = jnp.minimum(times[j], at.remaining)
    height = jnp.maximum(at.height + time * at.rate, 0.0)

    normal, side, speed = walls.factor[j], at.side[j], at.rate[j]
    row = walls.factor @ normal
    rise = side * walls.labels[j] * walls.rise[j]
    rise = jnp.where(rise == -jnp.inf, 0.0, rise)  # from nowhere: any finite gain will do
    kinetic = speed**2 - 2 * rise * row[j]
    crosses = met & (kinetic > 0)
    new_speed = jnp.where(crosses, -jnp.sqrt(jnp.maximum(kinetic, 0.0)), -speed)
    kick = jnp.where(met, side * (new_speed - speed) / row[j], 0.0)
    rate = at.rate + kick * at.side * row
    turned = jnp.where(crosses, -1.0, 1.0).astype(height.dtype)
    return _Flight(
        white=at.white + time * at.momentum,
        momentum=at.momentum + kick * normal,
        height=height.at[j].set(jnp.where(met, 0.0, height[j])),
        rate=rate.at[j].multiply(turned),
        side=at.side.at[j].multiply(turned),
        remaining=jnp.where(met, at.remaining - time, 0.0),
        n_events=at.n_events + 1,
    )
