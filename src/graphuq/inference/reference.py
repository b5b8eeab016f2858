"""The Gaussian that a sampler moves about, and whether chains see all of its mass."""

import numpy as np
from scipy.special import logsumexp

from graphuq.errors import IncompatibleParts
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Sampler
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import demand_reference, log_likelihoods

MAX_PROPOSALS, MIN_PROPOSALS = 1_600, 200  # draws of a Gaussian by which it is assessed
PROPOSALS_TIMES_LABELS = 1_600_000  # draws × labels, which take some 10 ms
NEGLIGIBLE_DENSITY = 0.01  # posterior density over the Gaussian's, against its mean
MAX_UNCOVERED = 0.002  # largest share of draws at negligible density


def fit_reference(
    posterior: Posterior, sampler: Sampler, known: GaussianApproximation | None = None
) -> GaussianApproximation | None:
    """Return the Gaussian of a sampler's reference.

    Parameters
    ----------
    posterior : Posterior
    sampler : Sampler
    known : GaussianApproximation, optional
        The Gaussian, if it was computed before.

    Returns
    -------
    GaussianApproximation or None
        None if the sampler has no reference.

    Raises
    ------
    IncompatibleParts
        If the field keeps no covariance matrix, or the reference answers with a point.
    """
    if sampler.reference is None or known is not None:
        return known if sampler.reference is not None else None
    if sampler.reference_is_matrix:
        demand_reference(posterior.plain_target)
    fitted = sampler.reference.fit(posterior.plain_target)
    if not isinstance(fitted, GaussianApproximation):
        raise IncompatibleParts(
            f"{sampler.reference} gives a point, which no sampler can move about; use "
            "ExpectationPropagation() as reference"
        )
    return fitted


def n_proposals(posterior: Posterior) -> int:
    """Return the number of draws by which a Gaussian is assessed: 1,600 or fewer."""
    n = PROPOSALS_TIMES_LABELS // (len(posterior.labels) * posterior.n_fields)
    return max(min(MAX_PROPOSALS, n), MIN_PROPOSALS)


def has_uncovered_mass(posterior: Posterior, gaussian: GaussianApproximation) -> bool:
    """Return whether a Gaussian q has mass where the posterior π has almost none.

    Then E_π[(q/π) f] ≠ E_q[f], because chains never see that mass, and the control variate is
    biased. The test uses `n_proposals` draws of q: at most 2 in 1,000 may have a density
    π/q below a hundredth of its mean.
    """
    root = np.linalg.cholesky(gaussian.white_covariance)
    z = np.random.default_rng(0).normal(size=(n_proposals(posterior), len(root)))
    white = gaussian.white_mean + z @ root.T
    values = log_likelihoods(posterior.plain_target, white)
    log_ratio = values - 0.5 * (white**2).sum(axis=1) + 0.5 * (z**2).sum(axis=1)
    log_ratio = np.where(np.isnan(log_ratio), -np.inf, log_ratio)
    mean = logsumexp(log_ratio) - np.log(len(z))
    return bool((log_ratio < mean + np.log(NEGLIGIBLE_DENSITY)).mean() > MAX_UNCOVERED)
