"""Thresholds between ordered classes, by the evidence of the labels.

Thresholds b have the prior density ``∏_k π_k(b)``, up to a constant, where π_k is the probability
of grade k at an average node before any label: as if each grade had one label at a node of which
the graph tells nothing. So a grade without labels keeps a share, and thresholds stay apart.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, ndtri

from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.evidence.quasi_newton import FAILED, minimize_loss
from graphuq.inference.expectation_propagation import (
    DAMPINGS,
    EPState,
    iterate_sites,
    log_evidence,
)
from graphuq.likelihoods import Ordered
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import Target
from graphuq.utils.arrays import single_threaded_blas

MAX_SWEEPS, TOLERANCE = 200, 1e-4  # of expectation propagation; of a mean, in deviations
MAX_ITERATIONS = 50
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-7, 1e-3  # relative, of L-BFGS; of the log evidence
REACH, MIN_GAP, MAX_GAP = 8.0, 1e-3, 16.0  # of thresholds, in deviations of u + noise


def thresholds_of_shares(
    counts: Float[np.ndarray, " K"], total_std: float = 1.0
) -> Float[np.ndarray, " k"]:
    """Return the thresholds at which grades have the shares of ``counts + 1`` at an average node.

    Parameters
    ----------
    counts : numpy.ndarray, shape (K,)
        Labels of each grade.
    total_std : float, default 1
        Standard deviation of u + noise at an average node.

    Examples
    --------
    >>> import numpy as np
    >>> from graphuq.evidence.thresholds import thresholds_of_shares
    >>> thresholds_of_shares(np.array([1, 4, 1])).round(2).tolist()
    [-0.76, 0.76]
    """
    shares = (counts + 1) / (counts + 1).sum()
    found: np.ndarray = total_std * ndtri(np.cumsum(shares)[:-1])
    return found


def learn_thresholds(
    posteriors: Posterior | Sequence[Posterior],
    log_odds: Sequence[float] | Float[np.ndarray, " M"] = (0.0,),
    total_std: float | None = None,
) -> Float[np.ndarray, " k"]:
    """Return the thresholds of the largest evidence times prior density.

    The evidence is that of expectation propagation. Its gradient is exact at a fixed point
    (Chu & Ghahramani 2005, §3.3).

    Parameters
    ----------
    posteriors : Posterior or sequence of Posterior
        With an `Ordered` likelihood each, whose thresholds are the start, and the same labels. Of
        several the evidence is the sum, weighed by their prior odds.
    log_odds : array_like, shape (M,), default (0,)
        Log prior odds of the posteriors.
    total_std : float, optional
        Standard deviation of u + noise at an average node; by default √(γ² + 1), since priors have
        the mean variance 1.

    Raises
    ------
    IncompatibleParts
        If a likelihood has no thresholds.
    InvalidInput
        If expectation propagation has no fixed point at the start.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> from graphuq.evidence.thresholds import learn_thresholds
    >>> graph = gq.graphs.knn_graph(np.arange(30.0)[:, None], n_neighbors=4)
    >>> posterior = gq.Posterior(gq.laplacian_spectrum(graph), gq.priors.Matern(),
    ...     gq.likelihoods.Ordered([-0.5, 0.5]), labelled=[0, 5, 12, 15, 20, 29],
    ...     labels=[0, 0, 1, 1, 1, 2])
    >>> lower, upper = learn_thresholds(posterior)
    >>> bool(-1.5 < lower < 0 < upper < 2.0)
    True
    """
    several = [posteriors] if isinstance(posteriors, Posterior) else list(posteriors)
    for posterior in several:
        if not posterior.likelihood.is_ordered:
            raise IncompatibleParts(
                f"{posterior.likelihood} has no thresholds; use gq.likelihoods.Ordered"
            )
    noise = float(several[0].likelihood.link[1][0])  # type: ignore[index]
    total = float(np.hypot(noise, 1.0)) if total_std is None else total_std
    search = _Search([one.plain_target for one in several], np.asarray(log_odds, float), total)
    first = search.start()
    require(
        search.loss(first)[0] < FAILED,
        "posterior",
        "expectation propagation has no fixed point at the first thresholds",
        "use a larger noise_std, or a rougher prior",
    )
    found = minimize_loss(
        search.loss,
        first,
        search.bounds,
        max_iterations=MAX_ITERATIONS,
        loss_tolerance=LOSS_TOLERANCE,
        gradient_tolerance=GRADIENT_TOLERANCE,
    )
    return search.thresholds(found.at)


class _Search:
    """Minus log evidence as a function of the first threshold and the logs of the gaps."""

    def __init__(
        self, targets: list[Target], log_odds: Float[np.ndarray, " M"], total_std: float
    ) -> None:
        self.targets, self.log_odds, self.total = targets, log_odds, total_std
        self._sites: list[Any] = [None] * len(targets)
        own: Any = targets[0].likelihood
        self._first, self._n = np.asarray(own.thresholds, dtype=np.float64), own.n_classes
        gap = (np.log(MIN_GAP * total_std), np.log(MAX_GAP * total_std))
        self.bounds = [(-REACH * total_std, REACH * total_std), *[gap] * (self._n - 2)]

    def start(self) -> Float[np.ndarray, " p"]:
        at = np.append(self._first[0], np.log(np.diff(self._first)))
        return np.clip(at, *np.array(self.bounds).T)

    def thresholds(self, at: Float[np.ndarray, " p"]) -> Float[np.ndarray, " k"]:
        return np.cumsum(np.append(at[0], np.exp(at[1:])))

    def loss(self, at: Float[np.ndarray, " p"]) -> tuple[float, Float[np.ndarray, " p"]]:
        """Return minus the log evidence and prior density, and the gradient."""
        b = self.thresholds(at)
        if not (np.diff(b) > 0).all():
            return FAILED, np.zeros_like(at)
        found = [self._of_target(m, b) for m in range(len(self.targets))]
        logs = self.log_odds + [value for value, _ in found]
        if not np.isfinite(logs).any():
            return FAILED, np.zeros_like(at)
        total = logsumexp(logs)
        value, slopes = self._prior(b)
        slopes = slopes + np.exp(logs - total) @ [slope for _, slope in found]
        later = np.cumsum(slopes[::-1])[::-1]  # a gap moves all thresholds above it
        gradient = np.append(later[0], later[1:] * np.exp(at[1:]))
        return -(float(total) + value), -gradient

    def _prior(self, b: Float[np.ndarray, " k"]) -> tuple[float, Float[np.ndarray, " k"]]:
        """Return the log of the product of the shares of all grades, and its gradient."""
        own, grades = Ordered(b, self.total), np.arange(float(self._n))
        nothing = np.zeros(self._n)
        shares = own.log_partition(nothing, nothing, grades)
        return float(shares.sum()), own.threshold_slopes(nothing, nothing, grades)

    def _of_target(
        self, m: int, b: Float[np.ndarray, " k"]
    ) -> tuple[float, Float[np.ndarray, " k"]]:
        """Return the log evidence of a posterior and its gradient in the thresholds."""
        known = self.targets[m]
        own: Any = known.likelihood
        target = Target(known.field, Ordered(b, own.noise_std), known.labels)
        found = self._fixed_point(target, self._sites[m])
        if found is None:
            return -np.inf, np.zeros_like(b)
        self._sites[m] = found.sites
        precision, shift = found.sites
        variance = 1 / (1 / found.given.variance - precision)
        mean = variance * (found.given.mean / found.given.variance - shift)
        likelihood: Any = target.likelihood
        return log_evidence(target, found), likelihood.threshold_slopes(
            mean, variance, target.labels
        )

    def _fixed_point(self, target: Target, sites: Any) -> EPState | None:
        with single_threaded_blas():
            for damping in DAMPINGS:
                try:
                    found = iterate_sites(target, damping, MAX_SWEEPS, TOLERANCE, sites)
                except (np.linalg.LinAlgError, InvalidInput):
                    continue
                if found.change <= TOLERANCE:
                    return found
        return None
