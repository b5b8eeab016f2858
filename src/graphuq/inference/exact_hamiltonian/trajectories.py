"""Trajectories between walls ``u_j = 0``, compiled by Numba.

A trajectory meets walls by the hundred, and at each all J labels are turned, kicked and looked
through for the next: microseconds of work, of which XLA's loops make tens.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, no_type_check

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from graphuq.posterior.target import MAX_REFLECTIONS, START_NOISE
from graphuq.utils.arrays import njit_cached, single_threaded_blas

GRAM_LABELS = 8192  # up to here F Fᵀ is computed once: at most 537 MB


class HalfSpaces(NamedTuple):
    """Where a step likelihood of two classes steps, and how far; all of one precision."""

    factor: Any  # (J, n): F, of u = F x
    gram: Any  # (J, J): F Fᵀ; or of no rows, and those wanted are computed on the way
    labels: Any  # (J,): ±1
    rise: Any  # (J,): of the potential from a label's own side to the other
    right: Any  # (J,): log probability of a label on its own side
    wrong: Any  # (J,): the same on the other


class Trajectories(NamedTuple):
    """Where chains are after each of S trajectories."""

    white: Any  # (C, S, n)
    log_likelihood: Any  # (C, S)
    arrived: Any  # (C, S): or given up, and still where they were


def walls_of(target: Any, dtype: Any) -> HalfSpaces:
    """The walls of a target of two classes, whose arrays are NumPy's, in a precision."""
    factor = np.ascontiguousarray(target.field.matrix(), dtype)
    labels = np.asarray(target.labels, dtype)
    few = len(labels) <= GRAM_LABELS
    gram = factor @ factor.T if few else np.empty((0, len(labels)), factor.dtype)
    right, wrong = (np.asarray(own, dtype) for own in target.likelihood.log_levels(labels))
    return HalfSpaces(factor, gram, labels, right - wrong, right, wrong)


def log_likelihoods(walls: HalfSpaces, white: Any) -> Any:
    """Of points in white coordinates, shape (…, n)."""
    right = (white @ walls.factor.T >= 0) == (walls.labels > 0)
    return np.where(right, walls.right, walls.wrong).sum(axis=-1)


def starts(walls: HalfSpaces, rngs: Sequence[np.random.Generator]) -> tuple[Any, Any]:
    """Where chains begin, as `Target.start` has it, with nothing to compile.

    Returns
    -------
    white : array, shape (C, n)
        Draws from the posterior that would hold if labels were values of u seen through noise,
        one from each generator, reflected at walls that no label may be beyond.
    log_likelihood : array, shape (C,)
    """
    factor, (n_labels, dimension) = walls.factor, walls.factor.shape
    white = np.stack([rng.standard_normal(dimension, factor.dtype) for rng in rngs])
    noise = np.stack([rng.standard_normal(n_labels, factor.dtype) for rng in rngs])
    covariance = LinearOperator(
        (n_labels, n_labels),
        matvec=lambda x: factor @ (x @ factor) + START_NOISE**2 * x,
        dtype=factor.dtype,
    )
    with single_threaded_blas():
        misfit = walls.labels - white @ factor.T - START_NOISE * noise
        for x, own in zip(white, misfit, strict=True):
            x += cg(covariance, own, rtol=1e-3, maxiter=100)[0] @ factor
            _reflect_until_possible(walls, x)
        return white, log_likelihoods(walls, white)


def _reflect_until_possible(walls: HalfSpaces, x: Any) -> None:
    """As `Target.possible`: at the wall that is violated most, until none is; in place."""
    u = walls.factor @ x
    for _ in range(MAX_REFLECTIONS):
        margin = np.where(walls.rise == np.inf, walls.labels * u, 1)
        j = int(np.argmin(margin))
        if margin[j] > 0:
            return
        row = walls.gram[j] if len(walls.gram) else walls.factor @ walls.factor[j]
        step = walls.labels[j] * (1e-3 * np.sqrt(row[j]) - 2 * margin[j]) / row[j]
        x += step * walls.factor[j]
        u += step * row


def simulate(
    walls: HalfSpaces,
    white: Any,
    value: Any,
    momenta: Any,
    angles: Any,
    most: int,
    powers: Any | None = None,
) -> Trajectories:
    """S trajectories of each of C chains, one thread a core.

    Parameters
    ----------
    walls : HalfSpaces
    white, value : array, shape (C, n) and (C,)
        Where the chains are, and their log likelihoods there.
    momenta, angles : array, shape (C, S, n) and (C, S)
        Of each trajectory at its start, and how long it is, at most π/2.
    most : int
        Walls met in a trajectory, beyond which it is given up.
    powers : array, shape (C,), optional
        Of the likelihood that each chain samples, by default 1. Log likelihoods are of power 1.
    """
    n_chains, n_labels, dtype = len(white), len(walls.labels), walls.factor.dtype
    n_threads = min(n_chains, os.cpu_count() or 1)
    each = (white, value, momenta, angles, np.ones(n_chains) if powers is None else powers)
    flown = Trajectories(
        np.empty(momenta.shape, dtype), np.empty(angles.shape, dtype), np.empty(angles.shape, bool)
    )

    def share(k: int) -> None:
        own = slice(k, None, n_threads)  # chains of about one power to each
        bits = np.empty(n_labels, f"i{dtype.itemsize}")
        found = _fly(walls, *(np.ascontiguousarray(part[own]) for part in each), most, bits)
        for whole, part in zip(flown, found, strict=True):
            whole[own] = part

    with single_threaded_blas(), ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(share, range(n_threads)))
    return flown


@njit_cached
@no_type_check
def _fly(
    walls: Any,
    white: Any,
    value: Any,
    momenta: Any,
    angles: Any,
    powers: Any,
    most: Any,
    bits: Any,
) -> Any:
    n_chains, n_steps, dimension = momenta.shape
    n_labels, labels = len(walls.labels), walls.labels
    real = white.dtype.type
    ends, values = np.empty_like(momenta), np.empty((n_chains, n_steps), white.dtype)
    arrived = np.empty((n_chains, n_steps), np.bool_)
    both = np.empty((2 * n_chains, dimension), white.dtype)  # positions, and momenta
    kicks = np.empty((n_chains, n_labels), white.dtype)
    sides = np.empty_like(kicks)
    for s in range(n_steps):
        for c in range(n_chains):
            for i in range(dimension):
                both[c, i] = ends[c, s - 1, i] if s else white[c, i]
                both[n_chains + c, i] = momenta[c, s, i]
        fields = np.dot(both, walls.factor.T)
        for c in range(n_chains):
            before = values[c, s - 1] if s else value[c]
            height, rate, side = fields[c], fields[n_chains + c], sides[c]
            for j in range(n_labels):
                side[j] = 1 if height[j] >= 0 else -1
                if before > -np.inf and walls.rise[j] == np.inf:
                    side[j] = labels[j]  # on a wall, rounding may say otherwise
                height[j] = max(side[j] * height[j], real(0))
                rate[j] *= side[j]
                kicks[c, j] = 0
            arrived[c, s] = _trajectory(
                walls, height, rate, side, kicks[c], angles[c, s], powers[c], most, bits
            )
        moved = np.dot(kicks, walls.factor)
        for c in range(n_chains):
            total = 0.0
            for j in range(n_labels):
                total += walls.right[j] if sides[c, j] == labels[j] else walls.wrong[j]
            values[c, s] = total
            cos, sin = real(math.cos(angles[c, s])), real(math.sin(angles[c, s]))
            if not arrived[c, s]:
                values[c, s] = values[c, s - 1] if s else value[c]
                cos, sin = real(1), real(0)
            for i in range(dimension):
                ends[c, s, i] = cos * both[c, i] + sin * both[n_chains + c, i]
                if arrived[c, s]:
                    ends[c, s, i] += moved[c, i]
    return ends, values, arrived


@njit_cached
@no_type_check
def _trajectory(
    walls: Any,
    height: Any,
    rate: Any,
    side: Any,
    kicks: Any,
    angle: Any,
    power: Any,
    most: Any,
    bits: Any,
) -> bool:
    """Heights ``side · u`` turn, ``h cos t + r sin t``, until one is zero: there ``cot t = −r/h``.

    A kick k of the momentum along normal j at angle s before the end moves the end by k sin(s)
    along it: ``kicks`` are those, summed up.
    """
    real = height.dtype.type
    cotangents = bits.view(height.dtype)
    remaining = angle
    for _ in range(most + 1):
        j = _first_wall(height, rate, cotangents, bits)
        if cotangents[j] <= 0:
            return True  # further than any trajectory
        t = math.atan2(height[j], -rate[j])
        if t >= remaining:
            return True
        remaining -= t
        cos, sin = math.cos(t), math.sin(t)
        row = walls.gram[j] if len(walls.gram) else np.dot(walls.factor, walls.factor[j])
        speed = cos * rate[j] - sin * height[j]
        rise = side[j] * walls.labels[j] * power * walls.rise[j]
        if rise == -np.inf:
            rise = 0.0  # from nowhere: any finite gain will do
        kinetic = speed**2 - 2 * rise * row[j]
        crosses = kinetic > 0
        new_speed = -math.sqrt(kinetic) if crosses else -speed
        kick = side[j] * (new_speed - speed) / row[j]
        kicks[j] += kick * math.sin(remaining)
        _turn(height, rate, side, row, real(cos), real(sin), real(kick))
        height[j] = 0
        if crosses:
            side[j] = -side[j]
            rate[j] = -rate[j]
    return False


@njit_cached
@no_type_check
def _turn(height: Any, rate: Any, side: Any, row: Any, cos: Any, sin: Any, kick: Any) -> None:
    zero = height.dtype.type(0)
    for j in range(len(height)):
        turned = cos * height[j] + sin * rate[j]
        rate[j] = cos * rate[j] - sin * height[j] + kick * side[j] * row[j]
        height[j] = turned if turned > zero else zero  # rounding: it was below


@njit_cached
@no_type_check
def _first_wall(height: Any, rate: Any, cotangents: Any, bits: Any) -> Any:
    """The largest cotangent's; of numbers above zero their bits are the largest integer too.

    Integers have loops without branches, four times as fast.
    """
    tiny = np.finfo(height.dtype).tiny
    for j in range(len(height)):
        cotangents[j] = -rate[j] / (height[j] + tiny)
    most = bits[0]
    for j in range(len(bits)):
        most = max(most, bits[j])
    last = len(bits) - 1
    first = last
    for j in range(len(bits)):
        first = min(first, j if bits[j] == most else last)
    return first
