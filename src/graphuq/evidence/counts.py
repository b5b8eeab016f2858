r"""Counts on a graph: the posterior and the evidence by expectation propagation.

    y_j ~ Poisson(E_j e^{c_0 + h_j}),   h_j = c + a u_j + g l_j + γ ε_j

Each count is replaced by a normal number of the log rate, with the mean and variance that leave
the posterior of that log rate as the count does. Given these, all is `GraphRegression`. See
docs/theory/numbers.md, "Counts as labels".
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import norm

from graphuq.evidence.poisson_lognormal import sites_of
from graphuq.evidence.regression import GraphRegression, Slopes, WithEvidence, eigenpairs_of
from graphuq.priors import Prior, SpectralStd
from graphuq.spectrum.basis import SpectralBasis
from graphuq.utils.concurrency import cached_property

MAX_PASSES = 300
TOLERANCE = 1e-8  # largest shift of a log rate by a pass, in its own standard deviations
SMALLEST_STEP = 0.1  # of a damped pass


class FixedPoint(NamedTuple):
    """Normal numbers in place of counts.

    Attributes
    ----------
    mean, variance : numpy.ndarray, shape (J,)
        Of the numbers.
    log_ratio : float
        Log of what the counts have in evidence beyond the numbers.
    converged : bool
        Whether passes over all counts change them no more.
    """

    mean: Float[np.ndarray, " J"]
    variance: Float[np.ndarray, " J"]
    log_ratio: float
    converged: bool


@dataclasses.dataclass(frozen=True, eq=False)
class GraphCounts(WithEvidence):
    """Counts at labelled nodes of a graph, under one choice of hyperparameters.

    Parameters
    ----------
    spectrum : Spectrum or Basis
    prior : Prior
        A prior without learnt hyperparameters.
    labelled : numpy.ndarray of int, shape (J,)
    counts : numpy.ndarray, shape (J,)
        0, 1, 2, …
    log_exposure : numpy.ndarray, shape (J,)
        ``log E_j + c_0``.
    field_std, noise_std : float
        a > 0 and γ ≥ 0, of the log rate.
    start_mean, start_variance : numpy.ndarray, shape (J,), optional
        Normal numbers from which the passes begin; by default those of each count alone.
    linear_std : float
        g, of the log rate.

    Attributes
    ----------
    log_evidence : float
        ``log P(counts)``, as expectation propagation finds it.
    """

    spectrum: SpectralBasis
    prior: Prior
    labelled: Int[np.ndarray, " J"]
    counts: Float[np.ndarray, " J"]
    log_exposure: Float[np.ndarray, " J"]
    field_std: float = 1.0
    noise_std: float = 0.3
    start_mean: Float[np.ndarray, " J"] | None = None
    start_variance: Float[np.ndarray, " J"] | None = None
    linear_std: float = 0.5

    def replaced(self, **changes: Any) -> "GraphCounts":
        """Return the counts with other hyperparameters, whose passes begin where these ended."""
        mean, variance = self._first if (found := self._found) is None else found[:2]
        return dataclasses.replace(self, start_mean=mean, start_variance=variance, **changes)

    @property
    def _found(self) -> "FixedPoint | None":
        """The fixed point, if it was computed."""
        return vars(self).get("fixed_point")

    @property
    def std(self) -> SpectralStd:
        """Spectral deviations ``a s`` and ``a s̄``."""
        std = self.prior.spectral_std(eigenpairs_of(self.spectrum))
        return SpectralStd(self.field_std * std.modes, self.field_std * std.tail)

    @cached_property
    def fixed_point(self) -> FixedPoint:
        """Normal numbers that all counts together are replaced by (Minka 2001, section 3).

        All are replaced at once. A pass that changes more than the one before it is followed by
        shorter ones.

        Raises
        ------
        numpy.linalg.LinAlgError
            If a field is so large beside its noise that variances are lost to rounding.
        """
        mean, variance = self._first
        step, last, log_ratio = 1.0, np.inf, np.nan
        for _ in range(MAX_PASSES):
            inverse = self._regression(mean, variance).inverse
            with np.errstate(divide="ignore", invalid="ignore"):
                others = mean - inverse.pull / inverse.diagonal
                spread = 1 / inverse.diagonal - variance
            _require_variances(spread)
            log_mass, at, width = sites_of(self.counts, others + self.log_exposure, spread)
            _require_variances(width)
            at = at - self.log_exposure
            own = norm.logpdf(mean, others, np.sqrt(spread + variance))
            log_ratio = float((log_mass - own).sum())
            precision, shift = 1 / width - 1 / variance, at / width - mean / variance
            posterior = 1 / (1 / spread + 1 / variance)
            middle = posterior * (others / spread + mean / variance)
            move = np.abs(shift - precision * middle) * np.sqrt(posterior)
            change = float(np.maximum(move, np.abs(precision) * posterior).max())
            if change < TOLERANCE:
                return FixedPoint(mean, variance, log_ratio, True)
            if change > last:
                step = max(step / 2, SMALLEST_STEP)
            last = change
            with np.errstate(all="ignore"):
                new = 1 / variance + step * precision
                mean, variance = (mean / variance + step * shift) / new, 1 / new
            _require_variances(variance)
        return FixedPoint(mean, variance, log_ratio, False)

    @property
    def _first(self) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
        """Numbers to begin with; a log rate of a count alone is that of half a count more."""
        if self.start_mean is not None and self.start_variance is not None:
            return self.start_mean, self.start_variance
        counts = self.counts + 0.5
        return np.log(counts) - self.log_exposure, 1 / counts

    def _regression(
        self, mean: Float[np.ndarray, " J"], variance: Float[np.ndarray, " J"]
    ) -> GraphRegression:
        """Return the regression of normal numbers, with γ² in the variance of each."""
        weights = 1 / (self.noise_std**2 + variance)
        settings = (self.field_std, 1.0, weights, self.linear_std)
        return GraphRegression(self.spectrum, self.prior, self.labelled, mean, *settings)

    @cached_property
    def regression(self) -> GraphRegression:
        """The regression of the normal numbers, whose field is that of the counts."""
        return self._regression(*self.fixed_point[:2])

    @property
    def log_evidence(self) -> float:
        """``log N(t; 0, K) + Σ_j log (P_j(y_j) / N_j(t_j))``, each factor given the others."""
        return self.regression.log_evidence + self.fixed_point.log_ratio

    @property
    def coefficients(self) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n n"]]:
        """Mean and covariance of the coefficients of the modes and of the constant."""
        return self.regression.coefficients

    def field_at(
        self, rows: Float[np.ndarray, "M L"], scale: Float[np.ndarray, " M"]
    ) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
        """Return mean and standard deviation of ``c + a u``; see `GraphRegression.field_at`."""
        return self.regression.field_at(rows, scale)

    def field(self) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
        """Return mean and standard deviation of ``c + a u`` at every node."""
        return self.regression.field()

    def leave_one_out(self) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
        """Return mean and deviation of each ``c + a u_j + γ ε_j`` without its own count.

        The normal numbers of the other counts stay as they are.
        """
        mean, std = self.regression.leave_one_out()
        return mean, np.sqrt(std**2 - self.fixed_point.variance)

    def log_left_out(self) -> Float[np.ndarray, " J"]:
        """Return the log probability of each count given all others."""
        mean, std = self.leave_one_out()
        return sites_of(self.counts, mean + self.log_exposure, std**2).log_mass

    def slopes(self) -> Slopes:
        """Return derivatives of the log evidence.

        The normal numbers are a fixed point, so that only ``log N(t; 0, K)`` changes, to first
        order (Seeger 2005, "Expectation propagation for exponential families").
        """
        by_noise = 2 * self.noise_std**2 * float(self.regression.by_floor.sum())
        return self.regression.slopes()._replace(noise_std=by_noise)


def _require_variances(values: Float[np.ndarray, " J"]) -> None:
    """Raise `LinAlgError` for numbers that are no variances."""
    if not np.all(np.isfinite(values) & (values > 0)):
        raise np.linalg.LinAlgError("variances are lost to rounding")
