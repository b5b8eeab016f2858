"""The sweeps of nested expectation propagation, extrapolated to their fixed point."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.nested_sites import log_norm_of_noise
from graphuq.inference.nested_start import StartingSites
from graphuq.utils.progress import Progress

DAMPING, MIN_DAMPING = 0.8, 0.1  # share of each update, at first and at least
DAMPING_LOSS = 0.7  # factor of the damping when the change grows by `GROWTH`
GROWTH = 3.0
HISTORY = 5  # earlier sweeps that an extrapolation uses
MIN_INDEPENDENT = 1e-8  # share below which directions of the history are rounding error


class Sweep(NamedTuple):
    """What a sweep finds.

    Attributes
    ----------
    given : object
        The fields given the sites: ``pull``, ``variances`` of ``v − u_k``, and ``log_gaussian``,
        the log norm of the Gaussian.
    new : numpy.ndarray, shape (2, J, K)
        Undamped update of the sites.
    change : float
        Largest change of the update.
    log_sites : float
        Log norm of the sites.
    """

    given: Any
    new: Float[np.ndarray, "2 J K"]
    change: float
    log_sites: float


class FixedPoint(NamedTuple):
    """Sites and what the last sweep found of them."""

    sites: Float[np.ndarray, "2 J K"]
    last: Sweep
    n_sweeps: int

    def log_evidence(self, labels: Int[np.ndarray, " J"]) -> float:
        """Return the approximate log probability of the labels."""
        of_sites = self.last.log_sites + log_norm_of_noise(labels, *self.sites)
        return float(of_sites + self.last.given.log_gaussian)

    def described(self, labels: Int[np.ndarray, " J"], tolerance: float) -> dict[str, Any]:
        """Return the attributes that all records of nested sites have."""
        log_evidence, change = self.log_evidence(labels), self.last.change
        return {
            "log_evidence": log_evidence,
            "weights": self.sites[0],
            "shifts": self.sites[1],
            "pull": self.last.given.pull,
            "change": change,
            "n_sweeps": self.n_sweeps,
            "converged": bool(change <= tolerance and np.isfinite(log_evidence)),
        }


def first_sites(
    labels: Int[np.ndarray, " J"], n_classes: int, noise_std: float, start: StartingSites | None
) -> Float[np.ndarray, "2 J K"]:
    """Return the sites before the first sweep: zero, but for those of a start and own classes."""
    sites = np.zeros((2, len(labels), n_classes))
    if start is not None:
        sites[:, : len(start.weights)] = start.weights, start.shifts
    sites[0, np.arange(len(labels)), labels] = noise_std**-2.0
    return sites


def swept(
    sites: Float[np.ndarray, "2 J K"],
    sweep: Callable[[Float[np.ndarray, "2 J K"]], Sweep],
    labels: Int[np.ndarray, " J"],
    max_sweeps: int,
    tolerance: float,
    progress: Progress | None = None,
    goes_on: Callable[[float], bool] | None = None,
) -> FixedPoint:
    """Repeat a sweep until its largest change is at most the tolerance.

    It also ends where ``goes_on`` of the log evidence is False.
    """
    steps, n_sweeps = Sweeps(), 0
    while True:
        found = sweep(sites)
        n_sweeps += 1
        now = FixedPoint(sites, found, n_sweeps)
        if progress is not None:
            progress("sweeps", n_sweeps, max_sweeps, found.change)
        if not (found.change > tolerance and n_sweeps < max_sweeps):
            return now
        if goes_on is not None and not goes_on(now.log_evidence(labels)):
            return now
        sites = steps.next(sites, found.new, found.change, found.given.variances)


class _Step(NamedTuple):
    """Sites before a sweep, and its undamped update, each (2, J, K)."""

    sites: np.ndarray
    residual: np.ndarray


class Sweeps:
    """Anderson's steps (1965), from the sites and updates of the last sweeps."""

    def __init__(self) -> None:
        self.damping, self._best = DAMPING, np.inf
        self._past: list[_Step] = []

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
        self._past = [_Step(sites, new - sites), *self._past[:HISTORY]]
        return _extrapolated(self._past, variances, self.damping)


def _extrapolated(
    steps: list[_Step], variances: Float[np.ndarray, "J K"], damping: float
) -> Float[np.ndarray, "2 J K"]:
    """Return Anderson's step (1965): the fixed point of a linear map with these sweeps.

    Residuals are measured in deviations of ``v − u_k``. A site whose precision would be negative
    is given the damped update.
    """
    now = steps[0]
    plain = now.sites + damping * now.residual
    if len(steps) == 1:
        return plain
    scale = np.stack([variances, np.sqrt(variances)])
    moved = [one.sites - now.sites for one in steps[1:]]
    changed = [one.residual - now.residual for one in steps[1:]]
    design = np.stack([(scale * one).ravel() for one in changed], axis=1)
    shares, *_ = np.linalg.lstsq(design, (scale * now.residual).ravel(), rcond=MIN_INDEPENDENT)
    found = plain.copy()
    for share, of_sites, of_residual in zip(shares, moved, changed, strict=True):
        found -= share * (of_sites + damping * of_residual)
    proper = np.isfinite(found).all(axis=0) & (found[0] >= 0)
    return np.where(proper, found, plain)
