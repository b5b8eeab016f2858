"""Results of which the distribution has a closed form, and covariances by dense matrices."""

import numpy as np

import graphuq as gq


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


def nodes_with_one_field(labels):
    """Return the result of 42 nodes that all have the same u, with labels of some of them."""
    spectrum = gq.laplacian_spectrum(gq.graphs.path_graph(42), "unnormalized", 2)
    prior = gq.priors.RegularizedLaplacian(beta=1.0, sigma=1e5)  # the constant, and little more
    likelihood = gq.likelihoods.Probit(1e5 / np.sqrt(42))  # as large as u
    posterior = gq.Posterior(spectrum, prior, likelihood, np.arange(len(labels)), labels)
    return gq.infer(posterior, gq.inference.ExpectationPropagation())


def series_covariance(prior, spectrum):
    """Return the covariance of a series, and of its tail, at all nodes, by dense matrices."""
    std, q = prior.spectral_std(spectrum), np.asarray(spectrum.eigenvectors)
    series = (q * std.modes**2) @ q.T + std.tail**2 * (np.eye(len(q)) - q @ q.T)
    return spectrum.node_scale[:, None] * series * spectrum.node_scale
