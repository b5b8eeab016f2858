"""Independence sampler with proposals from a Gaussian close to the posterior."""

from typing import Any, ClassVar

import numpy as np

from graphuq.errors import require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation
from graphuq.inference.independence.base import (
    IndependenceSampler,
    Proposals,
    Proposed,
    log_density,
    log_normal,
)
from graphuq.posterior.target import log_likelihoods
from graphuq.utils.checks import check_fields


class Independence(IndependenceSampler):
    """Metropolis-Hastings with independent proposals from the reference.

    One matrix product makes all proposals of all chains with their likelihoods. Nothing is
    adapted and hardly anything is compiled. A share of the proposals comes from the prior.
    Likelihoods are bounded, so the ratio of posterior to proposal density is bounded too. The
    chain is therefore uniformly ergodic for any reference (Tierney 1994, corollary 4; the
    mixture is that of Hesterberg 1995). If the reference is far off, the acceptance is low.

    Parameters
    ----------
    share : float, default 0.05
        Share of proposals from the prior, in (0, 1).
    reference : Approximation, optional
        Approximation whose Gaussian makes the proposals. Without it they come from the prior
        alone, which suits a few labels.
    """

    share: float = 0.05
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = False

    def __check_init__(self) -> None:
        check_fields(self)
        require(0 < self.share < 1, "share", f"{self.share!r}", "use a share in (0, 1)")

    def proposals(
        self, target: Any, gaussian: GaussianApproximation | None, precision: str, few: int
    ) -> Proposals:
        """Return the function that draws from the Gaussian and from the prior."""
        root = None if gaussian is None else np.linalg.cholesky(gaussian.white_covariance)

        def propose(rng: np.random.Generator, n: int) -> Proposed:
            white = rng.normal(size=(n, target.dimension))
            log_ratio = np.zeros(n)
            log_prior_over_proposal = np.zeros(n)
            if gaussian is not None and root is not None:
                log_gaussian = log_normal(white) - np.log(np.diag(root)).sum()
                of_prior = rng.uniform(size=n) < self.share
                white = np.where(of_prior[:, None], white, gaussian.white_mean + white @ root.T)
                log_gaussian[of_prior] = log_density(gaussian.white_mean, root, white[of_prior])
                log_prior = log_normal(white)
                log_ratio = log_prior - log_gaussian
                log_prior_over_proposal = log_prior - np.logaddexp(
                    np.log1p(-self.share) + log_gaussian, np.log(self.share) + log_prior
                )
            values = log_likelihoods(target, white, precision, few)
            log_likelihood = np.nan_to_num(values, nan=-np.inf, neginf=-np.inf)
            return Proposed(
                white,
                log_likelihood,
                log_likelihood + log_ratio,
                log_likelihood + log_prior_over_proposal,
            )

        return propose
