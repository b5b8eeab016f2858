"""Unbiased importance-sampling estimate of the marginal likelihood."""

import dataclasses

import numpy as np
from scipy.special import logsumexp

from graphuq.errors import IncompatibleParts, require
from graphuq.inference import ExpectationPropagation, Independence, SequentialIndependence
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import demand_reference

BATCH = 1_000  # draws in memory


@dataclasses.dataclass(frozen=True)
class EvidenceEstimate:
    """Importance-sampling estimate of ``log p(labels)``.

    Attributes
    ----------
    log_evidence : float
        Log of an unbiased estimate of the probability of the labels.
    std_error : float
        Standard error of it, in nats; reliable only if ``effective_share`` is not small.
    effective_share : float
        Effective share of the draws in (0, 1]: one over the mean square of their weights, whose
        mean is 1. Below about 0.1, a few draws dominate the estimate.
    expectation_propagation : float
        Value of expectation propagation, which `maximize_evidence` maximises.
    """

    log_evidence: float
    std_error: float
    effective_share: float
    expectation_propagation: float


def estimate_evidence(
    posterior: Posterior, *, n_draws: int = 10_000, rng: int | np.random.Generator = 0
) -> EvidenceEstimate:
    """Estimate the probability of the labels without bias, by importance sampling.

    Draws are the proposals of `SequentialIndependence` if it supports the likelihood; otherwise
    those of `Independence` with expectation propagation as reference. The estimate is their mean
    weight.

    Parameters
    ----------
    posterior : Posterior
        Posterior without learnt hyperparameters.
    n_draws : int, default 10000
        2 or more.
    rng : int or numpy.random.Generator, default 0

    Returns
    -------
    EvidenceEstimate

    Raises
    ------
    InvalidInput
        If expectation propagation does not converge, or ``n_draws`` is out of range.
    IncompatibleParts
        If hyperparameters are learnt, or the model has a tail and more labels than modes and
        `SequentialIndependence` does not support it.

    Examples
    --------
    >>> import graphuq as gq
    >>> data = gq.datasets.two_moons(n_nodes=200)
    >>> spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(data.features), n_eigenpairs=20)
    >>> nodes = [0, 50, 100, 150]
    >>> prior, likelihood = gq.priors.Matern(), gq.likelihoods.Probit(0.1)
    >>> posterior = gq.Posterior(spectrum, prior, likelihood, nodes, data.signs(1)[nodes])
    >>> found = gq.estimate_evidence(posterior, n_draws=2000)
    >>> found.std_error < 0.01
    True
    """
    require(n_draws >= 2, "n_draws", f"{n_draws}", "use 2 or more")
    if posterior.learnt:
        names = ", ".join(posterior.learnt)
        raise IncompatibleParts(
            f"{names} is learnt, and the evidence is that of fixed values; give a number"
        )
    target, about = posterior.plain_target, ExpectationPropagation()
    refused = SequentialIndependence.target_refusal(target) is not None
    if refused:
        demand_reference(target)
    gaussian = about.fit(target)
    sampler = (Independence if refused else SequentialIndependence)(reference=about)
    propose = sampler.proposals(target, gaussian, "float64", BATCH * len(posterior.labels))
    rng = np.random.default_rng(rng)
    sizes = [BATCH] * (n_draws // BATCH) + [n_draws % BATCH]
    log_weight = np.concatenate([propose(rng, size).log_weight for size in sizes if size])
    log_evidence = float(logsumexp(log_weight) - np.log(n_draws))
    weights = np.exp(log_weight - log_evidence)
    return EvidenceEstimate(
        log_evidence=log_evidence,
        std_error=float(weights.std(ddof=1) / np.sqrt(n_draws)),
        effective_share=float(1 / (weights**2).mean()),
        expectation_propagation=gaussian.log_evidence,
    )
