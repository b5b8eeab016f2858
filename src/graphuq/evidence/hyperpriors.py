"""Laws that the evidence of hyperparameters is weighed by."""

from typing import Any, NamedTuple

import numpy as np

from graphuq.spectrum import CovarianceColumns, Spectrum


class Hyperprior(NamedTuple):
    """A log-normal law of a positive hyperparameter, and the range that is searched."""

    median: float
    log_std: float
    lower: float
    upper: float

    def penalty(self, log_value: Any) -> Any:
        """Minus the log density of the logarithm, up to a constant."""
        return 0.5 * ((log_value - np.log(self.median)) / self.log_std) ** 2


# Medians that serve voting records and two pairs of digits alike; see docs/measurements.md. That of
# τ is the most it is: on a large graph it follows the spectrum down.
SMOOTH_MODES = 8  # as many modes beside the null vectors have λ below the median of τ², at least
HYPERPRIORS = {
    "tau": Hyperprior(0.25, 0.25, 0.01, 3.0),
    "alpha": Hyperprior(4.0, 0.25, 0.25, 32.0),
    "noise_std": Hyperprior(0.1, 0.25, 0.01, 10.0),
}


def hyperpriors_of(spectrum: Spectrum | CovarianceColumns) -> dict[str, Hyperprior]:
    """The laws by name, that of τ fitted to a spectrum.

    1/τ is how far a label reaches, and the same structure has smaller eigenvalues the more nodes it
    has: the median of τ² is the eighth eigenvalue above the null ones, where that is less than the
    usual one.
    """
    if not spectrum.has_eigenpairs:
        return HYPERPRIORS
    place = min(spectrum.n_components + SMOOTH_MODES - 1, spectrum.n_eigenpairs - 1)
    tau = HYPERPRIORS["tau"]
    smooth = float(np.sqrt(max(spectrum.eigenvalues[place], tau.lower**2)))
    return HYPERPRIORS | {"tau": tau._replace(median=min(tau.median, smooth))}
