"""Trajectories between walls ``u_j = 0``, compiled by Numba.

A trajectory meets hundreds of walls, and at each one all J labels are updated and searched for the
next wall. That takes microseconds here, and ten times as long in the loops of XLA.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, no_type_check

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from graphuq.posterior.target import MAX_REFLECTIONS, START_NOISE, Target
from graphuq.utils.arrays import njit_cached, single_threaded_blas

GRAM_LABELS = 8192  # labels up to which F Fᵀ is computed once: at most 537 MB


class HalfSpaces(NamedTuple):
    """Walls of a binary step likelihood; all arrays have the same precision.

    Attributes
    ----------
    factor : numpy.ndarray, shape (J, n)
        F of ``u = F x``.
    gram : numpy.ndarray, shape (J, J) or (0, J)
        ``F Fᵀ``; without rows if these are computed when needed.
    labels : numpy.ndarray of ±1, shape (J,)
    rise : numpy.ndarray, shape (J,)
        Rise of the potential from a label's own side to the other.
    right, wrong : numpy.ndarray, shape (J,)
        Log probability of a label on its own side and on the other.
    """

    factor: np.ndarray
    gram: np.ndarray
    labels: np.ndarray
    rise: np.ndarray
    right: np.ndarray
    wrong: np.ndarray


class Trajectories(NamedTuple):
    """States of chains after each of S trajectories.

    Attributes
    ----------
    white : numpy.ndarray, shape (C, S, n)
    log_likelihood : numpy.ndarray, shape (C, S)
    arrived : numpy.ndarray of bool, shape (C, S)
        False if the trajectory was abandoned and the chain stayed where it was.
    """

    white: np.ndarray
    log_likelihood: np.ndarray
    arrived: np.ndarray


def walls_of(target: Target, dtype: np.dtype | str | type) -> HalfSpaces:
    """Return the walls of a binary target with NumPy arrays, in a precision."""
    factor = np.ascontiguousarray(target.field.matrix(), dtype)
    labels = np.asarray(target.labels, dtype)
    few = len(labels) <= GRAM_LABELS
    gram = factor @ factor.T if few else np.empty((0, len(labels)), factor.dtype)
    right, wrong = (np.asarray(own, dtype) for own in target.likelihood.log_levels(labels))
    return HalfSpaces(factor, gram, labels, right - wrong, right, wrong)


def log_likelihoods(walls: HalfSpaces, white: np.ndarray) -> Any:
    """Return the log likelihood of points in white coordinates, shape (…, n).

    It is `Target.log_likelihood` without compilation.
    """
    right = (white @ walls.factor.T >= 0) == (walls.labels > 0)
    return np.where(right, walls.right, walls.wrong).sum(axis=-1)


def starts(walls: HalfSpaces, rngs: Sequence[np.random.Generator]) -> tuple[Any, Any]:
    """Draw the starting points of chains: `Target.start` in NumPy, without compilation.

    Returns
    -------
    white : array, shape (C, n)
        Draws, one from each generator, from the posterior of labels that are values of u with
        noise; reflected at walls that no label may be beyond.
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


def _reflect_until_possible(walls: HalfSpaces, x: np.ndarray) -> None:
    """Reflect at the most violated wall until no wall is violated, in place.

    It is `Target.possible` without compilation.
    """
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
    white: np.ndarray,
    value: np.ndarray,
    momenta: np.ndarray,
    angles: np.ndarray,
    max_walls: int,
    powers: np.ndarray | None = None,
) -> Trajectories:
    """Simulate S trajectories of each of C chains, with one thread for each core.

    Parameters
    ----------
    walls : HalfSpaces
    white, value : array, shape (C, n) and (C,)
        States of the chains, and their log likelihoods.
    momenta, angles : array, shape (C, S, n) and (C, S)
        Momentum at the start of each trajectory, and its angle, at most π/2.
    max_walls : int
        Largest number of walls in a trajectory, beyond which it is abandoned.
    powers : array, shape (C,), optional
        Power of the likelihood that each chain samples, by default 1. The returned log
        likelihoods are those of power 1.
    """
    n_chains, n_labels, dtype = len(white), len(walls.labels), walls.factor.dtype
    n_threads = min(n_chains, os.cpu_count() or 1)
    each = (white, value, momenta, angles, np.ones(n_chains) if powers is None else powers)
    result = Trajectories(
        np.empty(momenta.shape, dtype), np.empty(angles.shape, dtype), np.empty(angles.shape, bool)
    )

    def share(k: int) -> None:
        own = slice(k, None, n_threads)  # chains of similar power to each thread
        bits = np.empty(n_labels, f"i{dtype.itemsize}")
        found = _simulate_chains(
            walls, *(np.ascontiguousarray(part[own]) for part in each), max_walls, bits
        )
        for whole, part in zip(result, found, strict=True):
            whole[own] = part

    with single_threaded_blas(), ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(share, range(n_threads)))
    return result


@njit_cached
@no_type_check
def _simulate_chains(
    walls: HalfSpaces,
    white: np.ndarray,
    value: np.ndarray,
    momenta: np.ndarray,
    angles: np.ndarray,
    powers: np.ndarray,
    max_walls: int,
    bits: np.ndarray,
) -> Any:
    n_chains, n_steps, dimension = momenta.shape
    n_labels = len(walls.labels)
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
            possible = (values[c, s - 1] if s else value[c]) > -np.inf
            height, rate, side = fields[c], fields[n_chains + c], sides[c]
            _set_sides(walls, height, rate, side, possible)
            kicks[c, :] = 0
            arrived[c, s] = _trajectory(
                walls, height, rate, side, kicks[c], angles[c, s], powers[c], max_walls, bits
            )
        moved = np.dot(kicks, walls.factor)
        for c in range(n_chains):
            values[c, s] = _log_likelihood_of(walls, sides[c])
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
def _set_sides(
    walls: HalfSpaces, height: np.ndarray, rate: np.ndarray, side: np.ndarray, possible: bool
) -> None:
    """Set the side of each wall, and make heights and rates relative to it."""
    real = height.dtype.type
    for j in range(len(side)):
        side[j] = 1 if height[j] >= 0 else -1
        if possible and walls.rise[j] == np.inf:
            side[j] = walls.labels[j]  # on a wall, rounding may give the wrong sign
        height[j] = max(side[j] * height[j], real(0))
        rate[j] *= side[j]


@njit_cached
@no_type_check
def _log_likelihood_of(walls: HalfSpaces, side: np.ndarray) -> float:
    """Return the log likelihood of the sides of all walls."""
    total = 0.0
    for j in range(len(side)):
        total += walls.right[j] if side[j] == walls.labels[j] else walls.wrong[j]
    return total


@njit_cached
@no_type_check
def _trajectory(
    walls: HalfSpaces,
    height: np.ndarray,
    rate: np.ndarray,
    side: np.ndarray,
    kicks: np.ndarray,
    angle: float,
    power: float,
    max_walls: int,
    bits: np.ndarray,
) -> bool:
    """Follow the heights ``side · u``, ``h cos t + r sin t``, from wall to wall; return arrival.

    A height is zero where ``cot t = −r/h``. A kick k of the momentum along normal j at angle s
    before the end moves the end by k sin(s) along it; ``kicks`` are the sums of these.
    """
    real = height.dtype.type
    cotangents = bits.view(height.dtype)
    remaining = angle
    for _ in range(max_walls + 1):
        j = _first_wall(height, rate, cotangents, bits)
        if cotangents[j] <= 0:
            return True  # beyond every trajectory
        t = math.atan2(height[j], -rate[j])
        if t >= remaining:
            return True
        remaining -= t
        cos, sin = math.cos(t), math.sin(t)
        row = walls.gram[j] if len(walls.gram) else np.dot(walls.factor, walls.factor[j])
        speed = cos * rate[j] - sin * height[j]
        rise = side[j] * walls.labels[j] * power * walls.rise[j]
        new_speed, crosses = cross_wall(speed, rise, row[j])
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
def cross_wall(rate: float, rise: float, squared_norm: float) -> tuple[float, bool]:
    """Return the rate after a wall, and whether it is crossed; see `walls.cross_wall`."""
    if rise == -np.inf:
        rise = 0.0
    kinetic = rate**2 - 2 * rise * squared_norm
    if kinetic > 0:
        return -math.sqrt(kinetic), True
    return -rate, False


@njit_cached
@no_type_check
def _turn(
    height: np.ndarray,
    rate: np.ndarray,
    side: np.ndarray,
    row: np.ndarray,
    cos: float,
    sin: float,
    kick: float,
) -> None:
    zero = height.dtype.type(0)
    for j in range(len(height)):
        turned = cos * height[j] + sin * rate[j]
        rate[j] = cos * rate[j] - sin * height[j] + kick * side[j] * row[j]
        height[j] = turned if turned > zero else zero  # rounding may make it negative


@njit_cached
@no_type_check
def _first_wall(
    height: np.ndarray, rate: np.ndarray, cotangents: np.ndarray, bits: np.ndarray
) -> Any:
    """Return the wall with the largest cotangent.

    The largest positive number also has the largest bits as an integer. Loops over integers have
    no branches and are four times as fast.
    """
    tiny = np.finfo(height.dtype).tiny
    for j in range(len(height)):
        cotangents[j] = -rate[j] / (height[j] + tiny)
    largest = bits[0]
    for j in range(len(bits)):
        largest = max(largest, bits[j])
    last = len(bits) - 1
    first = last
    for j in range(len(bits)):
        first = min(first, j if bits[j] == largest else last)
    return first
