"""Steps of the sweeps of nested expectation propagation, extrapolated to their fixed point."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

DAMPING, MIN_DAMPING = 0.8, 0.1  # share of each update, at first and at least
DAMPING_LOSS = 0.7  # factor of the damping when the change grows by `GROWTH`
GROWTH = 3.0
HISTORY = 3  # earlier sweeps that an extrapolation uses
MIN_INDEPENDENT = 1e-8  # share below which directions of the history are rounding error


class _Sweep(NamedTuple):
    """Sites before a sweep, and its undamped update, each (2, J, K)."""

    sites: np.ndarray
    residual: np.ndarray


class Sweeps:
    """Anderson's steps (1965), from the sites and updates of the last sweeps."""

    def __init__(self) -> None:
        self.damping, self._best = DAMPING, np.inf
        self._past: list[_Sweep] = []

    def next(
        self,
        sites: Float[np.ndarray, "2 J K"],
        new: Float[np.ndarray, "2 J K"],
        change: float,
        variances: Float[np.ndarray, "J K"],
    ) -> Float[np.ndarray, "2 J K"]:
        """Return the sites of the next sweep.

        Parameters
        ----------
        sites, new : numpy.ndarray, shape (2, J, K)
            Sites, and their undamped update.
        change : float
            Largest change of the update.
        variances : numpy.ndarray, shape (J, K)
            Of ``v − u_k``, in whose deviations residuals are measured.
        """
        if change > GROWTH * self._best:  # oscillation
            self.damping, self._past = max(DAMPING_LOSS * self.damping, MIN_DAMPING), []
        self._best = min(self._best, change)
        self._past = [_Sweep(sites, new - sites), *self._past[:HISTORY]]
        return _extrapolated(self._past, variances, self.damping)


def _extrapolated(
    sweeps: list[_Sweep], variances: Float[np.ndarray, "J K"], damping: float
) -> Float[np.ndarray, "2 J K"]:
    """Return Anderson's step (1965): the fixed point of a linear map with these sweeps.

    Residuals are measured in deviations of ``v − u_k``. A site whose precision would be negative
    is given the damped update.
    """
    now = sweeps[0]
    plain = now.sites + damping * now.residual
    if len(sweeps) == 1:
        return plain
    scale = np.stack([variances, np.sqrt(variances)])
    moved = [one.sites - now.sites for one in sweeps[1:]]
    changed = [one.residual - now.residual for one in sweeps[1:]]
    design = np.stack([(scale * one).ravel() for one in changed], axis=1)
    shares, *_ = np.linalg.lstsq(design, (scale * now.residual).ravel(), rcond=MIN_INDEPENDENT)
    found = plain.copy()
    for share, of_sites, of_residual in zip(shares, moved, changed, strict=True):
        found -= share * (of_sites + damping * of_residual)
    proper = np.isfinite(found).all(axis=0) & (found[0] >= 0)
    return np.where(proper, found, plain)
