"""Exact Hamiltonian Monte Carlo between the walls of a step likelihood."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from graphuq.errors import require
from graphuq.inference.base import FACTOR_NUMBERS, Approximation
from graphuq.inference.exact_hamiltonian.walls import cross_wall
from graphuq.inference.kernel import Kernel
from graphuq.inference.transitions import CompiledSteps, Info, State
from graphuq.utils.checks import check_fields
from graphuq.utils.part import Part
from graphuq.utils.with_jax import Array, PRNGKeyArray, jax, jnp

if TYPE_CHECKING:
    from graphuq.inference.exact_hamiltonian.trajectories import HalfSpaces

GRAM_LABELS = 4096  # labels up to which FFᵀ is computed once: at most 134 MB


class ExactHamiltonian(Kernel):
    r"""Follow the ellipse ``x cos t + p sin t``, and reflect from or cross the walls ``u_j = 0``.

    Between walls the posterior is the white prior, whose Hamiltonian flow rotates (x, p). The
    field ``u_j(t) = a_j cos t + b_j sin t`` meets its wall at a time in closed form. There the
    potential jumps by Δ, the log ratio of the likelihood's two levels. The momentum across the
    wall pays for it, or is reflected if it is too small. Energy is conserved exactly, and nothing
    is ever rejected (Pakman & Paninski 2014, §3 and §4; Afshar & Domke 2015).

    For a probit the noise is sampled with the field: given both, each label is certain. For
    multiclass likelihoods, a wall is where another field equals that of the label's class. Crossing
    it costs nothing while a third field is larger than both. Chains of two classes are compiled by
    Numba (`trajectories`), and take a twentieth of the time of JAX's loops.

    Parameters
    ----------
    step_size : float, default π/2
        Angle of one trajectory in (0, π/2], jittered by a fifth. Warm-up leaves it at π/2.
    max_events : int, default 50
        Largest number of walls in a trajectory, in multiples of the number of labels. Beyond it
        the trajectory is abandoned and the chain stays where it is.
    target_acceptance, reference
        Not used: nothing is rejected, and only the prior's ellipses are exact.
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
        check_fields(self)
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
        """Quarter turn π/2, after which the prior's autocorrelation is zero."""
        return float(np.pi) / 2

    def prepare(self, target: Any) -> Any:
        """Add what all trajectories share: scalar products of the normals of the walls."""
        multiclass = target.likelihood.is_multiclass
        return (ClassWalledTarget if multiclass else WalledTarget).of(target)

    def moves(self, target: Any, dtype: Any) -> CompiledSteps | None:
        """Return trajectories compiled by Numba, for two classes, or None."""
        if (
            target.likelihood.is_multiclass
            or target.dimension * len(target.labels) > FACTOR_NUMBERS
        ):
            return None
        return _Trajectories(
            self.walls(target, dtype), self.max_events * len(target.labels), self.max_step_size
        )

    def walls(self, target: Any, dtype: Any) -> "HalfSpaces":
        """Return the walls of a binary target, as arrays for Numba."""
        from graphuq.inference.exact_hamiltonian.trajectories import (
            walls_of,  # Numba takes a while to import
        )

        return walls_of(target, dtype)

    def step(self, key: PRNGKeyArray, state: State, target: Any) -> tuple[State, Info]:
        """Simulate one trajectory."""
        key_momentum, key_jitter = jax.random.split(key)
        dtype = state.white.dtype
        momentum = jax.random.normal(key_momentum, state.white.shape, dtype)
        angle = self.step_size * jax.random.uniform(key_jitter, (), dtype, 0.8, 1.0)
        u, velocity = target.at_labelled(state.white), target.at_labelled(momentum)
        max_walls = self.max_events * u.size
        side = jnp.where(target.margins(u) >= 0, 1.0, -1.0).astype(dtype)
        # On a wall, rounding may give the wrong sign; a chain is never where it is impossible.
        possible = jnp.isfinite(state.log_likelihood)
        side = jnp.where(possible & target.cannot_be_wrong, target.right_side, side)
        start = _TrajectoryState(
            white=state.white,
            momentum=momentum,
            u=u,
            velocity=velocity,
            side=side,
            remaining=angle,
            n_events=jnp.asarray(0),
        )
        end = jax.lax.while_loop(
            lambda flight: (flight.remaining > 0) & (flight.n_events < max_walls),
            lambda flight: _to_next_wall(flight, target),
            start,
        )
        arrived = end.remaining <= 0
        # Use the sides of the walls, which are known without rounding.
        right, wrong = target.target.likelihood.log_levels(target.labels)
        value = jnp.where(target.are_right(end.side), right, wrong).sum()
        new = State(
            jnp.where(arrived, end.white, state.white),
            jnp.where(arrived, value, state.log_likelihood),
        )
        return new, Info(arrived.astype(dtype), arrived)


class _Trajectories(NamedTuple):
    """Trajectories of binary chains, compiled by Numba; see `CompiledSteps`.

    Attributes
    ----------
    walls : HalfSpaces
    max_walls : int
        Largest number of walls in a trajectory.
    max_angle : float
        Largest angle of a trajectory.
    """

    walls: "HalfSpaces"
    max_walls: int
    max_angle: float

    def start(self, rngs: Sequence[np.random.Generator]) -> State:
        """Draw a starting point for each generator."""
        from graphuq.inference.exact_hamiltonian.trajectories import starts

        return State(*starts(self.walls, rngs))

    def __call__(
        self, rngs: Sequence[np.random.Generator], states: State, step_size: float, n_steps: int
    ) -> tuple[State, Any]:
        from graphuq.inference.exact_hamiltonian.trajectories import simulate

        shape, dtype = (n_steps, self.walls.factor.shape[1]), self.walls.factor.dtype
        momenta = np.stack([rng.standard_normal(shape, dtype) for rng in rngs])
        step_size = min(step_size, self.max_angle)
        angles = step_size * np.stack([rng.uniform(0.8, 1.0, n_steps) for rng in rngs])
        white, value = map(np.asarray, states)
        found: Any = simulate(self.walls, white, value, momenta, angles, self.max_walls)
        return State(found.white, found.log_likelihood), found.arrived


Wall: TypeAlias = tuple[Array, ...]  # indices of a wall: of a label, and of a class if multiclass


class WalledTarget(Part):
    """Target with a binary step likelihood, and its walls ``u_j = 0``.

    Attributes
    ----------
    target : Target
    rise : array, shape (J,)
        log b − log a, the height of each wall.
    gram : array, shape (J, J), or None
        ``F Fᵀ`` of each class, or None if its columns are computed when needed.
    """

    target: Any
    rise: Float[Array, " J"]
    gram: Float[Array, "J J"] | None

    @classmethod
    def of(cls, target: Any) -> "WalledTarget":
        """Make the walls; without ``gram`` for many labels or classes with different priors."""
        right, wrong = target.likelihood.log_levels(target.labels)
        walls = cls(target, right - wrong, None)
        if len(target.labels) > GRAM_LABELS or not target.field.classes_share_prior:
            return walls
        normals = jax.vmap(lambda j: walls.normal(j, 1.0))(jnp.arange(len(target.labels)))
        return cls(target, walls.rise, jax.vmap(walls.in_first_field)(normals))

    @property
    def labels(self) -> Float[Array, " J"]:
        """Labels ±1, or class codes."""
        return self.target.labels

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Return the field at the labelled nodes."""
        return self.target.field.at_labelled(white)

    def in_first_field(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """Return the only field."""
        return self.at_labelled(white)

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Return the log likelihood of all labels."""
        return self.target.log_likelihood(white)

    def normal(self, j: Any, weights: Any) -> Float[Array, " n"]:
        """Return the gradient of u_j, or of a weighted sum of the fields at j."""
        white = jnp.zeros((self.target.dimension,), self.labels.dtype)
        zero = jnp.zeros_like(self.at_labelled(white))
        transpose = jax.linear_transpose(self.at_labelled, white)
        normal: Array = transpose(zero.at[j].set(weights))[0]
        return normal

    def margins(self, u: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return the function of u that is zero at each wall."""
        return u

    def are_walls(self, u: Float[Array, " J"]) -> Any:
        """Return whether each margin belongs to a wall."""
        return jnp.asarray(True)

    @property
    def cannot_be_wrong(self) -> Any:
        """Whether the likelihood is zero on the wrong side of each wall."""
        return self.rise == jnp.inf

    @property
    def right_side(self) -> Any:
        """Side of each wall that agrees with the label."""
        return self.labels

    def are_right(self, side: Float[Array, " J"]) -> Any:
        """Return whether the field agrees with each label."""
        return side == self.labels

    def rise_on(self, wall: Wall, side: Float[Array, " J"]) -> Any:
        """Return the rise of the potential if a wall is crossed."""
        j = wall[0]
        return side[j] * self.labels[j] * self.rise[j]

    def direction(self, wall: Wall, like: Array) -> Any:
        """Return the weights of the fields in the margin of a wall."""
        return jnp.ones_like(like[0])

    def pin_to_wall(self, u: Float[Array, " J"], wall: Wall) -> Float[Array, " J"]:
        """Return u with the margin at a wall set to exactly zero."""
        return u.at[wall[0]].set(0.0)


class ClassWalledTarget(WalledTarget):
    """Target with a multiclass step likelihood, and its walls ``u_jy = u_jk``, k ≠ y."""

    def in_first_field(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """Return the field of the first class."""
        return self.at_labelled(white)[:, 0]

    def _codes(self) -> Any:
        return self.labels.astype(jnp.int32)

    def margins(self, u: Float[Array, "J K"]) -> Float[Array, "J K"]:
        """Return ``u_jy − u_jk`` for the class y of each label."""
        return jnp.take_along_axis(u, self._codes()[:, None], axis=1) - u

    def are_walls(self, u: Float[Array, "J K"]) -> Any:
        """Return whether k is another class than y, and exists."""
        k = jnp.arange(u.shape[1])[None, :]
        exists = k < jnp.asarray(self.target.likelihood.n_classes)
        return exists & (k != self._codes()[:, None])

    @property
    def cannot_be_wrong(self) -> Any:
        """Whether the likelihood is zero on the wrong side of each wall."""
        return (self.rise == jnp.inf)[:, None]

    @property
    def right_side(self) -> Any:
        """Positive side of each wall, where the field of the label's class is larger."""
        return jnp.ones((), self.labels.dtype)

    def are_right(self, side: Float[Array, "J K"]) -> Any:
        """Return where the field of the label's class is larger than all others."""
        return ((side > 0) | ~self.are_walls(side)).all(axis=1)

    def rise_on(self, wall: Wall, side: Float[Array, "J K"]) -> Any:
        """Return the rise of the potential, 0 while a third field is larger than both."""
        j, k = wall
        row = jnp.arange(side.shape[1])
        exists = row < jnp.asarray(self.target.likelihood.n_classes)
        rivals = exists & (row != self._codes()[j]) & (row != k)
        decides = ((side[j] > 0) | ~rivals).all()
        return jnp.where(decides, side[j, k] * self.rise[j], 0.0)

    def direction(self, wall: Wall, like: Array) -> Any:
        """Return ``e_y − e_k``."""
        j, k = wall
        return jnp.zeros_like(like[0]).at[self._codes()[j]].add(1.0).at[k].add(-1.0)

    def pin_to_wall(self, u: Float[Array, "J K"], wall: Wall) -> Float[Array, "J K"]:
        """Return u with the two fields exactly equal."""
        j, k = wall
        return u.at[j, k].set(u[j, self._codes()[j]])


class _TrajectoryState(NamedTuple):
    """State within a trajectory."""

    white: Array  # (n,)
    momentum: Array  # (n,)
    u: Array  # F white, shape (J,) or (J, K)
    velocity: Array  # F momentum, same shape
    side: Array  # side of each wall, ±1; known without rounding
    remaining: Array  # remaining angle
    n_events: Array


def _to_next_wall(flight: _TrajectoryState, walls: WalledTarget) -> _TrajectoryState:
    # A wall is met when w = side · margin falls to zero: w cos t + w' sin t = 0, cot t = −w'/w.
    height = jnp.maximum(
        flight.side * walls.margins(flight.u), 0.0
    )  # rounding may make it negative
    rate = flight.side * walls.margins(flight.velocity)
    tiny = np.finfo(height.dtype).tiny
    cotangent = jnp.where(walls.are_walls(height), -rate / (height + tiny), -jnp.inf)
    wall = jnp.unravel_index(jnp.argmax(cotangent), height.shape)  # the first wall has the largest
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
    side, norm = flight.side[wall], normal @ normal
    rate_there = side * walls.margins(velocity)[wall]
    new_rate, crosses = cross_wall(rate_there, walls.rise_on(wall, flight.side), norm)
    kick = jnp.where(met, side * (new_rate - rate_there) / norm, 0.0)
    if walls.gram is None:
        push = walls.at_labelled(normal)
    else:
        push = jnp.multiply.outer(walls.gram[j], weights)
    new_side = jnp.where(crosses & met, -side, side)
    return _TrajectoryState(
        white=white,
        momentum=momentum + kick * normal,
        u=jnp.where(met, walls.pin_to_wall(u, wall), u),
        velocity=velocity + kick * push,
        side=flight.side.at[wall].set(new_side),
        remaining=jnp.where(met, flight.remaining - t, 0.0),
        n_events=flight.n_events + 1,
    )
