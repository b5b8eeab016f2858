"""Hyperpriors that are added to the evidence of hyperparameters."""

from typing import NamedTuple

import numpy as np

from graphuq.spectrum import CovarianceColumns, SpectralBasis


class Hyperprior(NamedTuple):
    """Log-normal hyperprior of a positive hyperparameter, and the range that is searched.

    Attributes
    ----------
    median, log_std : float
        Median, and standard deviation of the logarithm.
    lower, upper : float
        Range of the search.
    """

    median: float
    log_std: float
    lower: float
    upper: float

    @property
    def bounds(self) -> tuple[float, float]:
        """Range of the logarithm."""
        return float(np.log(self.lower)), float(np.log(self.upper))

    def coordinate(self, value: float) -> float:
        """Return the logarithm, in which the evidence is maximised, within the range."""
        return float(np.log(np.clip(value, self.lower, self.upper)))

    def value(self, log_value: float) -> float:
        """Return the hyperparameter of a logarithm."""
        return float(np.exp(log_value))

    def derivative(self, log_value: float) -> float:
        """Return the derivative of the hyperparameter in its logarithm."""
        return float(np.exp(log_value))

    def penalty(self, log_value: float) -> float:
        """Return minus the log density of the logarithm, up to a constant."""
        return 0.5 * float((log_value - np.log(self.median)) / self.log_std) ** 2

    def slope(self, log_value: float) -> float:
        """Return the derivative of `penalty`."""
        return float(log_value - np.log(self.median)) / self.log_std**2


class NormalHyperprior(NamedTuple):
    """Normal hyperprior of a number of any sign, around 0; the coordinate is the number itself.

    Attributes
    ----------
    std : float
    bounds : tuple of float
        Range of the search.
    """

    std: float
    bounds: tuple[float, float]

    def coordinate(self, value: float) -> float:
        """Return the number within the range."""
        return float(np.clip(value, *self.bounds))

    def value(self, at: float) -> float:
        """Return the number."""
        return float(at)

    def derivative(self, at: float) -> float:
        """Return 1."""
        return 1.0

    def penalty(self, at: float) -> float:
        """Return minus the log density, up to a constant."""
        return 0.5 * (float(at) / self.std) ** 2

    def slope(self, at: float) -> float:
        """Return the derivative of `penalty`."""
        return float(at) / self.std**2


MEAN_HYPERPRIOR = NormalHyperprior(1.0, (-100.0, 100.0))  # of a constant mean, in units of u

SMOOTH_MODES = 8  # modes beside the null vectors with λ below the median of τ², at least
# Medians that suit voting records and two pairs of digits; see docs/archive/accuracy.md. That of τ
# is an upper bound: on a large graph it decreases with the spectrum. With those of `Diffusion` and
# `RandomWalk`, the variance at λ = τ² is about that of `Matern`, 1/16 of the one at 0.
HYPERPRIORS = {
    "tau": Hyperprior(0.25, 0.25, 0.01, 3.0),
    "alpha": Hyperprior(4.0, 0.25, 0.25, 32.0),
    "noise_std": Hyperprior(0.1, 0.25, 0.01, 10.0),
    "time": Hyperprior(45.0, 0.5, 1e-2, 1e5),
    "n_steps": Hyperprior(90.0, 0.5, 1e-2, 1e5),
}


def hyperpriors_of(spectrum: SpectralBasis | CovarianceColumns) -> dict[str, Hyperprior]:
    """Return the hyperpriors by name, with those of τ, t and p adapted to the spectrum.

    1/τ is the range of a label, and the same structure has smaller eigenvalues if it has more
    nodes. The median of τ² is therefore at most the eighth eigenvalue above the null ones, and
    those of the time t and the number of steps p, which are in units of 1/λ, are in proportion.
    """
    if not spectrum.has_eigenpairs:
        return HYPERPRIORS
    place = min(spectrum.n_null + SMOOTH_MODES - 1, spectrum.n_eigenpairs - 1)
    tau = HYPERPRIORS["tau"]
    smooth = float(np.sqrt(max(spectrum.eigenvalues[place], tau.lower**2)))
    ratio = min(1.0, smooth / tau.median)
    adapted = {name: HYPERPRIORS[name] for name in ("time", "n_steps")}
    return (
        HYPERPRIORS
        | {name: one._replace(median=one.median / ratio**2) for name, one in adapted.items()}
        | {"tau": tau._replace(median=tau.median * ratio)}
    )
