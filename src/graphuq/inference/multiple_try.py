"""Multiple-try moves of tempered replicas along lines, compiled."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, PRNGKeyArray

from graphuq.inference.base import swapped
from graphuq.inference.draws import BLOCK

SCALE = 1.5  # of the tries along an axis, in deviations of the replica's own law
LOGISTIC = float(np.sqrt(3) / np.pi)  # to deviation 1


class Walls(eqx.Module):
    """The labels as what it costs to be on the wrong side of them."""

    factor: Any  # (J, r): y_j F_j, so that label j is right where the product with x is positive
    rise: Any  # (J,): log b − log a

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return int(self.factor.shape[1])

    def costs(self, white: Any) -> Any:
        """E of many points: what labels on the wrong side cost."""
        return jnp.where(white @ self.factor.T < 0, self.rise, 0).sum(axis=-1)


class Ladder(eqx.Module):
    """T replicas: their powers, axes, and the labels that each counts."""

    powers: Any  # (T,)
    axes: Any  # (T, r, r), as rows
    factor: Any  # (T, A, r): rows of the walls
    rise: Any  # (T, A)
    along: Any  # (T, r, A): how fast each label's product changes along each axis


class Replicas(NamedTuple):
    """Where they are, and E there; C chains of each."""

    white: Any  # (T, C, r)
    cost: Any  # (T, C)


class Seen(NamedTuple):
    """Sums over steps and chains."""

    count: Any
    first: Any  # (T, r): of x, at distance √r
    second: Any  # (T, r, r): of its products
    rejections: Any  # (T − 1,): of swaps between neighbours

    @classmethod
    def nothing(cls, n_replicas: int, dimension: int) -> "Seen":
        """Before the first step."""
        square = (n_replicas, dimension, dimension)
        return cls(*map(np.zeros, ((), square[:2], square, (n_replicas - 1,))))


class Kept(NamedTuple):
    """What is kept of the replica of power 1, shape (C, S, …)."""

    white: Any
    cost: Any
    acceptance: Any


@eqx.filter_jit
def run_block(
    key: PRNGKeyArray,
    begin: Array,
    thin: Array,
    replicas: Replicas,
    walls: Walls,
    ladder: Ladder,
    n_tries: int,
    n_moves: int,
) -> tuple[Replicas, Seen, Kept]:
    """`BLOCK` times ``thin`` steps, the first of which has the number ``begin``."""
    n_replicas, n_chains, dimension = replicas.white.shape
    dtype = replicas.white.dtype
    shapes = (
        (n_moves, n_replicas, n_chains, n_tries + 3),
        (n_replicas, n_chains),
        (n_replicas, n_chains, (dimension + 1) // 2),
        (n_chains, n_replicas),
    )

    def step(number: Array, carry: Any) -> Any:
        replicas, seen, acceptance = carry
        noise = _uniforms(jax.random.fold_in(key, number), shapes)
        moved, accepted = _line_moves(noise[0], noise[1], replicas, walls, ladder)
        unit = moved.white / jnp.sqrt((moved.white**2).mean(axis=-1, keepdims=True))
        white = unit * _distances(noise[2], dimension) / np.sqrt(dimension)
        later = Seen(
            jnp.asarray(n_chains, dtype),
            unit.sum(axis=1),
            jnp.einsum("tci,tcj->tij", unit, unit),
            _rejections(moved.cost, ladder.powers).sum(axis=1),
        )
        replicas = _swapped(noise[3], Replicas(white, moved.cost), ladder.powers)
        return replicas, jax.tree.map(jnp.add, seen, later), acceptance + accepted[-1] / thin

    def draw(carry: Any, k: Array) -> Any:
        first = begin + k * thin
        start = (*carry, jnp.zeros(n_chains, dtype))
        replicas, seen, acceptance = jax.lax.fori_loop(first, first + thin, step, start)
        return (replicas, seen), Kept(replicas.white[-1], replicas.cost[-1], acceptance)

    nothing = jax.tree.map(
        lambda leaf: jnp.asarray(leaf, dtype), Seen.nothing(n_replicas, dimension)
    )
    (replicas, seen), kept = jax.lax.scan(draw, (replicas, nothing), jnp.arange(BLOCK))
    return replicas, seen, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), kept)


def _uniforms(key: PRNGKeyArray, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Arrays of uniform numbers, not quite 0 nor 1: of one flat draw, which compiles in no time."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    flat = jax.random.uniform(key, (sum(sizes),), jnp.float32, 1e-7, 1 - 1e-7)
    parts = jnp.split(flat, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _line_moves(
    noise: Array, noise_of_others: Array, replicas: Replicas, walls: Walls, ladder: Ladder
) -> tuple[Replicas, Array]:
    """Moves by the labels that are counted, accepted together by the others.

    Along each line the present point is one of K + 1 that lie about a common centre alike, so that
    to take any of them with probability ∝ its density leaves that density invariant.
    """
    dimension = walls.dimension
    at, powers = jnp.arange(len(ladder.powers))[:, None], ladder.powers[:, None, None]
    rise = ladder.rise[:, None, :]
    axes, levels = (noise[..., 0] * dimension).astype(jnp.int32), noise[..., 1:2]
    points = SCALE * LOGISTIC * (jnp.log(noise) - jnp.log1p(-noise))[..., 2:]

    def move(carry: Any, noise: Any) -> Any:
        x, product, cost = carry
        axis, level, points = noise
        direction, along = ladder.axes[at, axis], ladder.along[at, axis]
        t = points - points[..., :1]  # the present point is the first
        tried = product[..., None, :] + t[..., 1:, None] * along[..., None, :]
        costs = jnp.where(tried < 0, rise[..., None, :], 0).sum(axis=-1)
        costs = jnp.concatenate([cost[..., None], costs], axis=-1)
        slope = (x * direction).sum(axis=-1, keepdims=True)
        bend = (direction**2).sum(axis=-1, keepdims=True)
        weights = jax.nn.softmax(-powers * costs - t * slope - 0.5 * t**2 * bend, axis=-1)
        passed = jnp.cumsum(weights, axis=-1) < level * weights.sum(axis=-1, keepdims=True)
        taken = jnp.minimum(passed.sum(axis=-1, keepdims=True), t.shape[-1] - 1)
        t, cost = (jnp.take_along_axis(values, taken, axis=-1) for values in (t, costs))
        product = product + t.astype(jnp.float32) * along
        return (x + t * direction, product, cost[..., 0]), None

    product = jnp.einsum("tcr,tar->tca", replicas.white.astype(jnp.float32), ladder.factor)
    before = jnp.where(product < 0, rise, 0).sum(axis=-1)
    start = (replicas.white, product, before.astype(replicas.cost.dtype))
    (white, _, after), _ = jax.lax.scan(move, start, (axes, levels, points))
    cost = walls.costs(white)
    others = (cost - after) - (replicas.cost - before)
    probability = jnp.exp(jnp.minimum(-ladder.powers[:, None] * others, 0.0))
    accepted = noise_of_others < probability
    moved = Replicas(
        jnp.where(accepted[..., None], white, replicas.white),
        jnp.where(accepted, cost, replicas.cost),
    )
    return moved, probability


def _distances(noise: Array, dimension: int) -> Array:
    """Of standard normal vectors from 0: squares of pairs of coordinates are exponential."""
    square = -2 * jnp.log(noise[..., : dimension // 2]).sum(axis=-1, keepdims=True)
    if dimension % 2:
        square += ndtri(noise[..., -1:]) ** 2
    return jnp.sqrt(square)


def _rejections(cost: Array, powers: Array) -> Array:
    """Probabilities that neighbours do not swap."""
    return 1 - jnp.exp(jnp.minimum(jnp.diff(powers)[:, None] * jnp.diff(cost, axis=0), 0.0))


def _swapped(noise: Array, replicas: Replicas, powers: Array) -> Replicas:
    """Even pairs and then odd ones, each chain for itself."""
    n_replicas = len(powers)

    def own(noise: Array, white: Array, cost: Array) -> tuple[Array, Array]:
        for first in (0, 1):
            places = slice(first, n_replicas - 1, 2)
            white, cost = swapped(noise[places], first, powers, white, -cost)
            cost = -cost
        return white, cost

    return Replicas(*jax.vmap(own, in_axes=(0, 1, 1), out_axes=1)(noise, *replicas))
