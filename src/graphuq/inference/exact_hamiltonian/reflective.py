"""Hamiltonian Monte Carlo with reflection at walls, in coordinates whitened by a reference."""

from typing import Any, ClassVar, NamedTuple

from jaxtyping import Float

from graphuq.errors import require
from graphuq.inference.base import FACTOR_NUMBERS, Approximation
from graphuq.inference.exact_hamiltonian.walls import cross_wall
from graphuq.inference.kernel import Kernel
from graphuq.inference.transitions import Info, State, metropolis
from graphuq.posterior.posterior import Posterior
from graphuq.utils.checks import check_fields
from graphuq.utils.part import Part
from graphuq.utils.with_jax import Array, PRNGKeyArray, jax, jnp

MAX_STEPS = 50  # straight pieces of a trajectory, which is then shorter


class ReflectiveHamiltonian(Kernel):
    r"""Move straight between the walls ``u_j = 0`` of a step likelihood; reflect or cross there.

    If a field of few modes has many labels, these leave it a thin cone in white coordinates. There
    `ExactHamiltonian`, which follows the prior's ellipses, meets ten thousand walls in a
    trajectory. In coordinates that make expectation propagation's Gaussian isotropic it meets some
    dozens. The prior is then no longer white: its gradient acts in kicks between straight pieces,
    as in leapfrog. An acceptance step corrects the error in energy (Afshar & Domke 2015,
    algorithm 1; walls as in Pakman & Paninski 2014).

    Parameters
    ----------
    step_size : float, default 0.3
        Time of one straight piece, in (0, 1]; tuned in warm-up.
    length : float, default 1.5
        Time of a trajectory, rounded up to whole pieces, of which there are at most 50.
    max_events : int, default 50
        Largest number of walls in a trajectory, in multiples of the number of labels. Beyond it
        the trajectory is abandoned and the chain stays where it is.
    target_acceptance : float, default 0.8
    reference : Approximation, optional
        Approximation whose Gaussian whitens the coordinates: ``ExpectationPropagation()``.
        Without it they are the prior's, where `ExactHamiltonian` needs no acceptance.
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
        check_fields(self)
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
        dimension = posterior.dimension if likelihood.is_step else posterior.dimension + n_labels
        if likelihood.is_multiclass:
            reason = "a likelihood of two levels for two classes, such as LevelSet"
        elif dimension * n_labels > FACTOR_NUMBERS:
            reason = f"fewer than {n_labels} labels in {dimension} dimensions"
        return reason and f"ReflectiveHamiltonian needs {reason}; use ExactHamiltonian()"

    def prepare(self, target: Any) -> Any:
        """Return the walls as arrays."""
        return _Walls.of(target)

    def step(self, key: PRNGKeyArray, state: State, target: Any) -> tuple[State, Info]:
        """Simulate one trajectory and accept or reject its end."""
        walls: _Walls = target
        key_momentum, key_jitter, key_accept = jax.random.split(key, 3)
        dtype = state.white.dtype
        momentum = jax.random.normal(key_momentum, state.white.shape, dtype)
        time = self.step_size * jax.random.uniform(key_jitter, (), dtype, 0.8, 1.0)
        n_pieces = jnp.minimum(jnp.ceil(self.length / self.step_size), MAX_STEPS)
        max_walls = self.max_events * len(walls.labels)

        def piece(_: Any, carry: tuple[_TrajectoryState, Array]) -> tuple[_TrajectoryState, Array]:
            at, kicked = carry[0], carry[0].momentum + 0.5 * time * walls.pull(carry[0].white)
            at = at._replace(
                momentum=kicked,
                height=jnp.maximum(at.side * walls.at_labelled(at.white), 0.0),
                rate=at.side * (walls.factor @ kicked),
                remaining=time,
            )
            at = jax.lax.while_loop(
                lambda at: (at.remaining > 0) & (at.n_events < max_walls),
                lambda at: _to_next_wall(at, walls),
                at,
            )
            kicked = at.momentum + 0.5 * time * walls.pull(at.white)
            return at._replace(momentum=kicked), carry[1] & (at.remaining <= 0)

        u = walls.at_labelled(state.white)
        side = jnp.where(u >= 0, 1.0, -1.0).astype(dtype)
        # On a wall, rounding may give the wrong sign; a chain is never where it is impossible.
        possible = jnp.isfinite(state.log_likelihood) & (walls.rise == jnp.inf)
        side = jnp.where(possible, walls.labels, side)
        start = _TrajectoryState(state.white, momentum, u, u, side, time, jnp.asarray(0))
        end, arrived = jax.lax.fori_loop(
            0, n_pieces.astype(jnp.int32), piece, (start, jnp.asarray(True))
        )
        value = walls.log_likelihood(end.white, end.side)
        proposal = State(end.white, jnp.where(arrived, value, -jnp.inf))
        energy = 0.5 * ((state.white**2).sum() + (momentum**2).sum())
        energy -= 0.5 * ((end.white**2).sum() + (end.momentum**2).sum())
        moved, info = metropolis(key_accept, state, proposal, energy)
        lost = arrived & (
            state.log_likelihood == -jnp.inf
        )  # any point is better than likelihood zero
        return State(
            *(jnp.where(lost, new, old) for new, old in zip(proposal, moved, strict=True))
        ), info


class _Walls(Part):
    """Walls of the likelihood, and the prior's density between them, with ``x = m + r z``.

    Attributes
    ----------
    factor, constant : array, shape (J, n) and (J,)
        The map z → u.
    mean, root : array, shape (n,)
        m and r.
    labels : array of ±1, shape (J,)
    right, wrong : array, shape (J,)
        Log probability of a label on its own side and on the other.
    rise : array, shape (J,)
        Rise of the potential from a label's own side to the other.
    """

    factor: Array
    constant: Array
    mean: Array
    root: Array
    labels: Array
    right: Array
    wrong: Array
    rise: Array

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
        """Return the field at the labels."""
        return self.factor @ z + self.constant

    def pull(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return the gradient of the prior's log density."""
        return -self.root * (self.mean + self.root * z)

    def log_likelihood(self, z: Float[Array, " n"], side: Float[Array, " J"]) -> Float[Array, ""]:
        """Return the log density relative to the standard normal, from the sides of the walls."""
        value = jnp.where(side == self.labels, self.right, self.wrong).sum()
        return value + 0.5 * ((z**2).sum() - ((self.mean + self.root * z) ** 2).sum())


class _TrajectoryState(NamedTuple):
    """State within a trajectory."""

    white: Array  # (n,)
    momentum: Array  # (n,)
    height: Array  # side · u, shape (J,)
    rate: Array  # rate of the height, shape (J,)
    side: Array  # side of each wall, ±1, shape (J,)
    remaining: Array  # remaining time
    n_events: Array


def _to_next_wall(at: _TrajectoryState, walls: _Walls) -> _TrajectoryState:
    times = jnp.where(at.rate < 0, at.height / -at.rate, jnp.inf)
    j = jnp.argmin(times)
    met = times[j] < at.remaining
    time = jnp.minimum(times[j], at.remaining)
    height = jnp.maximum(at.height + time * at.rate, 0.0)

    normal, side, speed = walls.factor[j], at.side[j], at.rate[j]
    row = walls.factor @ normal
    new_speed, passes = cross_wall(speed, side * walls.labels[j] * walls.rise[j], row[j])
    crosses = met & passes
    kick = jnp.where(met, side * (new_speed - speed) / row[j], 0.0)
    rate = at.rate + kick * at.side * row
    turned = jnp.where(crosses, -1.0, 1.0).astype(height.dtype)
    return _TrajectoryState(
        white=at.white + time * at.momentum,
        momentum=at.momentum + kick * normal,
        height=height.at[j].set(jnp.where(met, 0.0, height[j])),
        rate=rate.at[j].multiply(turned),
        side=at.side.at[j].multiply(turned),
        remaining=jnp.where(met, at.remaining - time, 0.0),
        n_events=at.n_events + 1,
    )
