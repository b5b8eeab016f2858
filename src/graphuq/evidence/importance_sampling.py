"""The evidence itself, where maximising it takes expectation propagation's word."""

import dataclasses

import numpy as np
from scipy.special import logsumexp

from graphuq.errors import IncompatibleParts, require
from graphuq.inference import ExpectationPropagation, Independence, SequentialIndependence
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import demand_reference

AT_ONCE = 1_000  # draws held


@dataclasses.dataclass(frozen=True)
class EvidenceEstimate:
    """What draws say of ``log p(labels)``.

    Attributes
    ----------
    log_evidence : float
        Log of an unbiased estimate of the probability of the labels.
    std_error : float
        Its standard error, in nats; to be believed where ``effective_share`` is.
    effective_share : float
        Effective share of the draws in (0, 1]: one over the mean square of their weights, whose
        mean is 1. Below a tenth or so a few draws decide.
    expectation_propagation : float
        Expectation propagation's value, which `maximize_evidence` goes by.
    """

    log_evidence: float
    std_error: float
    effective_share: float
    expectation_propagation: float


def estimate_evidence(
    posterior: Posterior, *, n_draws: int = 10_000, seed: int = 0
) -> EvidenceEstimate:
    """Estimate the probability of the labels without bias, by importance sampling.

    By the proposals of `SequentialIndependence`, whose mean weight it is, where that knows the
    likelihood; else by those of `Independence` about expectation propagation.

    Parameters
    ----------
    posterior : Posterior
        With nothing to learn.
    n_draws : int, default 10000
        2 or more.
    seed : int, default 0

    Returns
    -------
    EvidenceEstimate

    Raises
    ------
    InvalidInput
        If expectation propagation does not settle, or ``n_draws`` is out of range.
    IncompatibleParts
        If hyperparameters are learnt, or the model has a tail and more labels than modes and is
        none that `SequentialIndependence` knows.

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
        raise IncompatibleParts(f"{names} is learnt: give it a value, of which to ask the evidence")
    target, about = posterior.plain_target, ExpectationPropagation()
    refused = SequentialIndependence.target_refusal(target) is not None
    if refused:
        demand_reference(target)
    gaussian = about.fit(target)
    sampler = (Independence if refused else SequentialIndependence)(reference=about)
    propose = sampler.proposals(target, gaussian, "float64", AT_ONCE * len(posterior.labels))
    rng = np.random.default_rng(seed)
    sizes = [AT_ONCE] * (n_draws // AT_ONCE) + [n_draws % AT_ONCE]
    log_weight = np.concatenate([propose(rng, size).log_weight for size in sizes if size])
    log_evidence = float(logsumexp(log_weight) - np.log(n_draws))
    weights = np.exp(log_weight - log_evidence)
    return EvidenceEstimate(
        log_evidence=log_evidence,
        std_error=float(weights.std(ddof=1) / np.sqrt(n_draws)),
        effective_share=float(1 / (weights**2).mean()),
        expectation_propagation=gaussian.log_evidence,
    )
