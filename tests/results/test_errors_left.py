"""How many labels are wrong, where the number of wrong ones has a distribution in closed form."""

import numpy as np
import pytest
from scipy.stats import binom, norm

import graphuq as gq

N_DRAWS = 500  # of the field, from which ends of an interval are quantiles


def independent_nodes(prior_mean):
    """Return the result of independent nodes with ``u_i ~ N(m_i, 1)``, of which two have labels.

    The precision of the field is ``β (L + 1/σ²)`` with ``β = σ²``, which is the identity up to 4σ²
    for a path.
    """
    graph = gq.graphs.path_graph(len(prior_mean))
    spectrum = gq.laplacian_spectrum(graph, "unnormalized", 2, tail_eigenvalue="mean")
    posterior = gq.Posterior(
        spectrum,
        gq.priors.RegularizedLaplacian(beta=1e-6, sigma=1e-3),
        gq.likelihoods.Probit(1.0),
        labelled=[0, 1],
        labels=[1, -1],
        prior_mean=prior_mean,
    )
    return gq.infer(posterior, gq.inference.ExpectationPropagation())


@pytest.mark.parametrize("n_nodes", [40, 6000])
@pytest.mark.parametrize("seed", range(4))
def test_the_interval_is_around_the_mean_of_a_binomial_number(n_nodes, seed):
    """A fifth of the nodes have either class with probability 1/2, and others are certain.

    The number of errors is binomial, so an interval of equal tails has its mean in the middle. For
    6,000 nodes draws are of a third of them, which have another share of uncertain nodes.
    """
    rng, n_free = np.random.default_rng(seed), n_nodes - 2
    uncertain = np.append([False, False], rng.permutation(n_free) < n_free // 5)
    count = gq.expected_errors(independent_nodes(np.where(uncertain, 0.0, 6.0)))
    law = binom(uncertain.sum(), 0.5)
    assert count.expected == pytest.approx(law.mean(), abs=1e-3)
    assert law.cdf(count.upper) - law.cdf(count.lower - 1) > 0.9
    z = norm.ppf(0.95)
    std = (count.upper - count.lower) / (2 * z)
    assert std < 2 * law.std() + 1  # a third of the nodes counts thrice: √3 times as much
    error = np.sqrt(0.05 * 0.95 / N_DRAWS / 2) / norm.pdf(z) * std  # of the mean of both ends
    assert abs((count.lower + count.upper) / 2 - law.mean()) < 1 + 4 * error  # 1: whole numbers
