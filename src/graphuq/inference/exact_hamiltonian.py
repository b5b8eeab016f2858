"""Exact Hamiltonian moves between the walls of a step likelihood."""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from graphuq.errors import require
from graphuq.inference.base import Approximation, Info, Kernel, State

GRAM_LABELS = 4096  # up to here FFᵀ is computed once: at most 134 MB


class ExactHamiltonian(Kernel):
    r"""Ride the ellipse ``x cos t + p sin t``, and reflect from or cross the walls ``u_j = 0``.

    Between walls the posterior is the white prior, whose Hamiltonian flow rotates (x, p). The
    field ``u_j(t) = a_j cos t + b_j sin t`` meets its wall at a time in closed form. There the
    potential jumps by Δ, the log ratio of the likelihood's two levels: the momentum across the
    wall pays for it, or, too small, is reflected. Energy is conserved exactly, and nothing is
    ever rejected (Pakman & Paninski 2014, §3 and §4; Afshar & Domke 2015).

    Of a probit the noise is sampled along with the field: given both, each label is certain.

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
    usual_warmup: ClassVar[int] = 50
    usual_thin: ClassVar[int] = 1

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
        return WalledTarget.of(target)

    def step(self, key: PRNGKeyArray, state: State, target: Any) -> tuple[State, Info]:
        """One trajectory."""
        key_momentum, key_jitter = jax.random.split(key)
        dtype = state.white.dtype
        momentum = jax.random.normal(key_momentum, state.white.shape, dtype)
        angle = self.step_size * jax.random.uniform(key_jitter, (), dtype, 0.8, 1.0)
        most = self.max_events * len(target.labels)
        start = _Flight(
            white=state.white,
            momentum=momentum,
            u=target.at_labelled(state.white),
            velocity=target.at_labelled(momentum),
            side=jnp.where(target.at_labelled(state.white) >= 0, 1.0, -1.0).astype(dtype),
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
        value = jnp.where(end.side == target.labels, right, wrong).sum()
        new = State(
            jnp.where(arrived, end.white, state.white),
            jnp.where(arrived, value, state.log_likelihood),
        )
        return new, Info(arrived.astype(dtype), arrived)


class WalledTarget(eqx.Module):
    """A target with a step likelihood, and what its walls are made of."""

    target: Any
    rise: Float[Array, " J"]  # log b − log a: the height of each wall
    norms: Float[Array, " J"]  # |F_j|²
    gram: Float[Array, "J J"] | None  # F Fᵀ

    @staticmethod
    def of(target: Any) -> "WalledTarget":
        """Compute it, or for many labels leave ``gram`` to be computed by column."""
        n_labels = len(target.labels)
        right, wrong = target.likelihood.log_levels(target.labels)
        gram = None
        if n_labels <= GRAM_LABELS:
            normals = jax.vmap(lambda j: _normal(target, j))(jnp.arange(n_labels))
            gram = jax.vmap(target.field.at_labelled)(normals)
            norms = jnp.diagonal(gram)
        else:
            norms = jax.lax.map(
                lambda j: (_normal(target, j) ** 2).sum(), jnp.arange(n_labels), batch_size=256
            )
        return WalledTarget(target, right - wrong, norms, gram)

    @property
    def labels(self) -> Float[Array, " J"]:
        """Labels ±1."""
        return self.target.labels

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """Field at the labelled nodes."""
        return self.target.field.at_labelled(white)

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Log likelihood of all labels."""
        return self.target.log_likelihood(white)


class _Flight(NamedTuple):
    """A point on its way."""

    white: Array  # (n,)
    momentum: Array  # (n,)
    u: Array  # (J,): F white
    velocity: Array  # (J,): F momentum
    side: Array  # (J,): of the wall, ±1; known without rounding
    remaining: Array  # angle
    n_events: Array


def _normal(target: Any, j: Any) -> Array:
    """Row j of F: the normal of wall j."""
    unit = jnp.zeros_like(target.labels).at[j].set(1.0)
    white = jnp.zeros((target.dimension,), target.labels.dtype)
    transpose = jax.linear_transpose(target.field.at_labelled, white)
    normal: Array = transpose(unit)[0]
    return normal


def _to_next_wall(flight: _Flight, walls: WalledTarget) -> _Flight:
    # Wall j is met when w = side · u falls to zero: w cos t + w' sin t = 0, cot t = −w'/w.
    height = jnp.maximum(flight.side * flight.u, 0.0)  # rounding may have left it below
    rate = flight.side * flight.velocity
    tiny = np.finfo(height.dtype).tiny
    j = jnp.argmax(-rate / (height + tiny))  # the largest cotangent belongs to the first
    t = jnp.arctan2(height[j], -rate[j])
    met = t < flight.remaining
    t = jnp.minimum(t, flight.remaining)
    cos, sin = jnp.cos(t), jnp.sin(t)
    white = cos * flight.white + sin * flight.momentum
    momentum = cos * flight.momentum - sin * flight.white
    u = cos * flight.u + sin * flight.velocity
    velocity = cos * flight.velocity - sin * flight.u

    side, speed, norm = flight.side[j], velocity[j], walls.norms[j]
    rise = side * walls.labels[j] * walls.rise[j]  # of the potential, on crossing
    rise = jnp.where(rise == -jnp.inf, 0.0, rise)  # from nowhere: any finite gain will do
    kinetic = speed**2 - 2 * rise * norm
    crosses = kinetic > 0
    new_speed = jnp.where(crosses, jnp.sign(speed) * jnp.sqrt(jnp.maximum(kinetic, 0.0)), -speed)
    kick = jnp.where(met, (new_speed - speed) / norm, 0.0)
    normal = _normal(walls.target, j)
    column = walls.gram[j] if walls.gram is not None else walls.at_labelled(normal)
    new_side = jnp.where(crosses & met, -side, side)
    return _Flight(
        white=white,
        momentum=momentum + kick * normal,
        u=u.at[j].set(jnp.where(met, 0.0, u[j])),
        velocity=velocity + kick * column,
        side=flight.side.at[j].set(new_side),
        remaining=jnp.where(met, flight.remaining - t, 0.0),
        n_events=flight.n_events + 1,
    )
