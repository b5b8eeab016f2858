"""Exact Hamiltonian moves between the walls of a step likelihood."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from graphuq.errors import require
from graphuq.inference.base import FACTOR_NUMBERS, Approximation, CompiledSteps, Info, State
from graphuq.inference.kernel import Kernel

if TYPE_CHECKING:
    from graphuq.inference.exact_hamiltonian.trajectories import HalfSpaces

GRAM_LABELS = 4096  # up to here FFᵀ is computed once: at most 134 MB


class ExactHamiltonian(Kernel):
    r"""Ride the ellipse ``x cos t + p sin t``, and reflect from or cross the walls ``u_j = 0``.

    Between walls the posterior is the white prior, whose Hamiltonian flow rotates (x, p). The
    field ``u_j(t) = a_j cos t + b_j sin t`` meets its wall at a time in closed form. There the
    potential jumps by Δ, the log ratio of the likelihood's two levels: the momentum across the
    wall pays for it, or, too small, is reflected. Energy is conserved exactly, and nothing is
    ever rejected (Pakman & Paninski 2014, §3 and §4; Afshar & Domke 2015).

    Of a probit the noise is sampled along with the field: given both, each label is certain. Of
    several classes the walls are where another field draws level with the label's own; crossing
    one costs nothing while a third is larger than both. Chains of two classes are compiled by
    Numba (`flights`), in a twentieth of the time that JAX's loops take.

    Parameters
    ----------
    step_size : float, default π/2
        Angle of one trajectory in (0, π/2], jittered by a fifth. Warm-up leaves it at π/2.
    max_events : int, default 50
        Walls met in a trajectory, in multiples of the number of labels, beyond which it is
        given up and the chain stays where it is.
    target_acceptance, reference
        Without use: nothing is rejected, and only the prior's ellipses are exact.
    """

    step_size: float | Float[Array, ""] = float(np.pi) / 2
    max_events: int = 50
    target_acceptance: float = 0.5
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = False
    requires_step: ClassVar[bool] = True
    default_warmup: ClassVar[int] = 50
    default_thin: ClassVar[int] = 1

    def __check_init__(self) -> None:
        require(
            self.reference is None,
            "reference",
            f"{self.reference}: between walls only the prior's own ellipses are exact",
            "leave it out",
        )
        require(self.max_events >= 1, "max_events", f"{self.max_events}", "use 1 or more")
        if isinstance(self.step_size, float | int):
            require(
                0 < self.step_size <= 1.571,
                "step_size",
                f"{self.step_size!r}",
                "use an angle in (0, π/2]",
            )

    @property
    def max_step_size(self) -> float:
        """A quarter turn, after which the prior's autocorrelation is zero."""
        return float(np.pi) / 2

    def prepare(self, target: Any) -> Any:
        """Add what all trajectories share: the walls' normals and their scalar products."""
        several = target.likelihood.is_multiclass
        return (ClassWalledTarget if several else WalledTarget).of(target)

    def moves(self, target: Any, dtype: Any) -> CompiledSteps | None:
        """Trajectories by Numba, for two classes."""
        if (
            target.likelihood.is_multiclass
            or target.dimension * len(target.labels) > FACTOR_NUMBERS
        ):
            return None
        return _Trajectories(
            self.walls(target, dtype), self.max_events * len(target.labels), self.max_step_size
        )

    def walls(self, target: Any, dtype: Any) -> "HalfSpaces":
        """The walls of two classes."""
        from graphuq.inference.exact_hamiltonian.trajectories import (
            walls_of,  # Numba takes a while to import
        )

        return walls_of(target, dtype)

    def step(self, key: PRNGKeyArray, state: State, target: Any) -> tuple[State, Info]:
        """One trajectory."""
        key_momentum, key_jitter = jax.random.split(key)
        dtype = state.white.dtype
        momentum = jax.random.normal(key_momentum, state.white.shape, dtype)
        angle = self.step_size * jax.random.uniform(key_jitter, (), dtype, 0.8, 1.0)
        u, velocity = target.at_labelled(state.white), target.at_labelled(momentum)
        most = self.max_events * u.size
        side = jnp.where(target.margins(u) >= 0, 1.0, -1.0).astype(dtype)
        # On a wall, rounding may say otherwise; but where it is impossible, the chain is not.
        possible = jnp.isfinite(state.log_likelihood)
        side = jnp.where(possible & target.cannot_be_wrong, target.right_side, side)
        start = _Flight(
            white=state.white,
            momentum=momentum,
            u=u,
            velocity=velocity,
            side=side,
            remaining=angle,
            n_events=jnp.asarray(0),
        )
        end = jax.lax.while_loop(
            lambda flight: (flight.remaining > 0) & (flight.n_events < most),
            lambda flight: _to_next_wall(flight, target),
            start,
        )
        arrived = end.remaining <= 0
        # By the sides of walls, which are known without rounding.
        right, wrong = target.target.likelihood.log_levels(target.labels)
        value = jnp.where(target.are_right(end.side), right, wrong).sum()
        new = State(
            jnp.where(arrived, end.white, state.white),
            jnp.where(arrived, value, state.log_likelihood),
        )
        return new, Info(arrived.astype(dtype), arrived)


class _Trajectories(NamedTuple):
    """Chains of two classes, by Numba."""

    walls: "HalfSpaces"
    most: int  # walls met in a trajectory
    longest: float  # angle

    def start(self, rngs: Sequence[np.random.Generator]) -> State:
        from graphuq.inference.exact_hamiltonian.trajectories import starts

        return State(*starts(self.walls, rngs))

    def __call__(
        self, rngs: Sequence[np.random.Generator], states: State, step_size: float, n_steps: int
    ) -> tuple[State, Any]:
        from graphuq.inference.exact_hamiltonian.trajectories import simulate

        shape, dtype = (n_steps, self.walls.factor.shape[1]), self.walls.factor.dtype
        momenta = np.stack([rng.standard_normal(shape, dtype) for rng in rngs])
        step_size = min(step_size, self.longest)
        angles = step_size * np.stack([rng.uniform(0.8, 1.0, n_steps) for rng in rngs])
        white, value = map(np.asarray, states)
        flown = simulate(self.walls, white, value, momenta, angles, self.most)
        return State(flown.white, flown.log_likelihood), flown.arrived


class WalledTarget(eqx.Module):
    """A target with a step likelihood of two classes, and what its walls ``u_j = 0`` are."""

    target: Any
    rise: Float[Array, " J"]  # log b − log a: the height of each wall
    gram: Float[Array, "J J"] | None  # F Fᵀ, of each class

    @classmethod
    def of(cls, target: Any) -> "WalledTarget":
        """Compute it; for many labels, or classes unlike each other, ``gram`` goes by column."""
        right, wrong = target.likelihood.log_levels(target.labels)
        walls = cls(target, right - wrong, None)
        if len(target.labels) > GRAM_LABELS or not target.field.classes_share_prior:
            return walls
        normals = jax.vmap(lambda j: walls.normal(j, 1.0))(jnp.arange(len(target.labels)))
        return cls(target, walls.rise, jax.vmap(walls.in_first_field)(normals))

    @property
    def labels(self) -> Float[Array, " J"]:
        """Labels ±1, or codes of classes."""
        return self.target.labels

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Field at the labelled nodes."""
        return self.target.field.at_labelled(white)

    def in_first_field(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """The one field there is."""
        return self.at_labelled(white)

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Log likelihood of all labels."""
        return self.target.log_likelihood(white)

    def normal(self, j: Any, weights: Any) -> Float[Array, " n"]:
        """Gradient of u_j, of several fields weighted."""
        white = jnp.zeros((self.target.dimension,), self.labels.dtype)
        zero = jnp.zeros_like(self.at_labelled(white))
        transpose = jax.linear_transpose(self.at_labelled, white)
        normal: Array = transpose(zero.at[j].set(weights))[0]
        return normal

    def margins(self, u: Float[Array, " J"]) -> Float[Array, " J"]:
        """What is zero at each wall."""
        return u

    def are_walls(self, u: Float[Array, " J"]) -> Any:
        """Whether each margin is one of a wall."""
        return jnp.asarray(True)

    @property
    def cannot_be_wrong(self) -> Any:
        """Whether the likelihood is zero beyond each wall."""
        return self.rise == jnp.inf

    @property
    def right_side(self) -> Any:
        """Of each wall."""
        return self.labels

    def are_right(self, side: Float[Array, " J"]) -> Any:
        """Whether the field agrees with each label."""
        return side == self.labels

    def rise_on(self, wall: Any, side: Float[Array, " J"]) -> Any:
        """Of the potential, if this wall is crossed."""
        j = wall[0]
        return side[j] * self.labels[j] * self.rise[j]

    def direction(self, wall: Any, like: Any) -> Any:
        """Weights of the fields in the margin of a wall."""
        return jnp.ones_like(like[0])

    def pinned(self, u: Float[Array, " J"], wall: Any) -> Float[Array, " J"]:
        """U, its margin at a wall exactly zero."""
        return u.at[wall[0]].set(0.0)


class ClassWalledTarget(WalledTarget):
    """The same of several classes: walls ``u_jy = u_jk``, for each label y and other class k."""

    def in_first_field(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """Field of the first class."""
        return self.at_labelled(white)[:, 0]

    def _codes(self) -> Any:
        return self.labels.astype(jnp.int32)

    def margins(self, u: Float[Array, "J K"]) -> Float[Array, "J K"]:
        """Lead of the label's own field."""
        return jnp.take_along_axis(u, self._codes()[:, None], axis=1) - u

    def are_walls(self, u: Float[Array, "J K"]) -> Any:
        """Not where a field meets itself, nor of a class that there is not."""
        k = jnp.arange(u.shape[1])[None, :]
        there = k < jnp.asarray(self.target.likelihood.n_classes)
        return there & (k != self._codes()[:, None])

    @property
    def cannot_be_wrong(self) -> Any:
        """Whether the likelihood is zero beyond each wall."""
        return (self.rise == jnp.inf)[:, None]

    @property
    def right_side(self) -> Any:
        """Where the label's own field leads."""
        return jnp.ones((), self.labels.dtype)

    def are_right(self, side: Float[Array, "J K"]) -> Any:
        """Where the label's own field leads all others."""
        return ((side > 0) | ~self.are_walls(side)).all(axis=1)

    def rise_on(self, wall: Any, side: Float[Array, "J K"]) -> Any:
        """None while a third field leads both."""
        j, k = wall
        row = jnp.arange(side.shape[1])
        there = row < jnp.asarray(self.target.likelihood.n_classes)
        rivals = there & (row != self._codes()[j]) & (row != k)
        decides = ((side[j] > 0) | ~rivals).all()
        return jnp.where(decides, side[j, k] * self.rise[j], 0.0)

    def direction(self, wall: Any, like: Any) -> Any:
        """``e_y − e_k``."""
        j, k = wall
        return jnp.zeros_like(like[0]).at[self._codes()[j]].add(1.0).at[k].add(-1.0)

    def pinned(self, u: Float[Array, "J K"], wall: Any) -> Float[Array, "J K"]:
        """U, the two fields level."""
        j, k = wall
        return u.at[j, k].set(u[j, self._codes()[j]])


class _Flight(NamedTuple):
    """A point on its way."""

    white: Array  # (n,)
    momentum: Array  # (n,)
    u: Array  # (J,) or (J, K): F white
    velocity: Array  # the same: F momentum
    side: Array  # of each wall, ±1; known without rounding
    remaining: Array  # angle
    n_events: Array


def _to_next_wall(flight: _Flight, walls: WalledTarget) -> _Flight:
    # A wall is met when w = side · margin falls to zero: w cos t + w' sin t = 0, cot t = −w'/w.
    height = jnp.maximum(flight.side * walls.margins(flight.u), 0.0)  # rounding: it was below
    rate = flight.side * walls.margins(flight.velocity)
    tiny = np.finfo(height.dtype).tiny
    cotangent = jnp.where(walls.are_walls(height), -rate / (height + tiny), -jnp.inf)
    wall = jnp.unravel_index(jnp.argmax(cotangent), height.shape)  # the largest is the first
    t = jnp.arctan2(height[wall], -rate[wall])
    met = t < flight.remaining
    t = jnp.minimum(t, flight.remaining)
    cos, sin = jnp.cos(t), jnp.sin(t)
    white = cos * flight.white + sin * flight.momentum
    momentum = cos * flight.momentum - sin * flight.white
    u = cos * flight.u + sin * flight.velocity
    velocity = cos * flight.velocity - sin * flight.u

    j, weights = wall[0], walls.direction(wall, u)
    normal = walls.normal(j, weights)
    side, speed, norm = flight.side[wall], walls.margins(velocity)[wall], normal @ normal
    rise = walls.rise_on(wall, flight.side)
    rise = jnp.where(rise == -jnp.inf, 0.0, rise)  # from nowhere: any finite gain will do
    kinetic = speed**2 - 2 * rise * norm
    crosses = kinetic > 0
    new_speed = jnp.where(crosses, jnp.sign(speed) * jnp.sqrt(jnp.maximum(kinetic, 0.0)), -speed)
    kick = jnp.where(met, (new_speed - speed) / norm, 0.0)
    if walls.gram is None:
        push = walls.at_labelled(normal)
    else:
        push = jnp.multiply.outer(walls.gram[j], weights)
    new_side = jnp.where(crosses & met, -side, side)
    return _Flight(
        white=white,
        momentum=momentum + kick * normal,
        u=jnp.where(met, walls.pinned(u, wall), u),
        velocity=velocity + kick * push,
        side=flight.side.at[wall].set(new_side),
        remaining=jnp.where(met, flight.remaining - t, 0.0),
        n_events=flight.n_events + 1,
    )
