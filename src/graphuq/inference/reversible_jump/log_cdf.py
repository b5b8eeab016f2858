"""``log Φ`` of many margins ``y f``, with its slope and curvature.

On a good graph most labels lie far from the boundary. There all three are zero to rounding and
are not computed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from graphuq.utils.special_functions import normal_hazard

FAR = 9.0  # margin, in standard deviations, from which log Φ is zero to rounding
LOW, PER_UNIT = -40.0, 128  # first margin of the table of slopes, and its entries per unit


def log_cdf(margins: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """Return ``log Φ`` of each margin."""
    return _where_near(log_ndtr, margins)  # with where= it crashes in SciPy 1.17


def label_slope(margins: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """Return the slope ``φ/Φ`` of ``log Φ``."""
    return _where_near(normal_hazard, margins)


def label_curvature(
    slope: Float[np.ndarray, "*n"], margins: Float[np.ndarray, "*n"]
) -> Float[np.ndarray, "*n"]:
    """Return the curvature of ``−log Φ``, in [0, 1].

    Far below zero it is a difference of two large numbers and therefore clipped.
    """
    return np.clip(slope * (slope + margins), 0.0, 1.0)


def quick_slope(margins: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """Return `label_slope` to 1e-5, by linear interpolation in a single-precision table.

    It is used for forces, whose error the acceptance of a trajectory corrects. Margins below
    the table follow its first line.
    """
    return _where_near(_interpolate, margins)


def _where_near(
    function: Callable[[Any], Any], margins: Float[np.ndarray, "*n"]
) -> Float[np.ndarray, "*n"]:
    """Return a function of the margins below `FAR`, and zero at the others."""
    order: Any = "F" if margins.flags.f_contiguous else "C"  # fields may be either; no copy
    flat = margins.ravel(order)
    near = np.flatnonzero(flat < FAR)
    found = function(flat[near])
    result = np.zeros(flat.size, dtype=found.dtype)
    result[near] = found
    return result.reshape(margins.shape, order=order)


def _interpolate(margins: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    at = (margins.astype(np.float32) - np.float32(LOW)) * np.float32(PER_UNIT)
    entry = np.maximum(at, np.float32(0.0)).astype(np.intp)
    result: Float[np.ndarray, " n"] = SLOPES[entry] + (at - entry.astype(np.float32)) * RISES[entry]
    return result


SLOPES = normal_hazard(np.arange(LOW, FAR + 2 / PER_UNIT, 1 / PER_UNIT)).astype(np.float32)
RISES = np.diff(SLOPES, append=np.float32(0.0))
