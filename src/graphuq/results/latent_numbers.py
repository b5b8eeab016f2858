"""Numbers of the latent field u and of soft labels, at nodes and at rows outside the graph."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import IncompatibleParts, require
from graphuq.likelihoods import Likelihood
from graphuq.results import summaries
from graphuq.results.caching import kept
from graphuq.results.diagnostics import node_rows, rows_outside
from graphuq.results.label_numbers import label_mcse, label_mean
from graphuq.results.reported import reported_at_rows
from graphuq.results.sampling import draws
from graphuq.results.summaries import NodeSummaries

if TYPE_CHECKING:
    from graphuq.results.result import Result


def credible_interval(result: "Result", probability: float = 0.95) -> Float[np.ndarray, "N *K 2"]:
    """Return the equal-tailed interval of u at each node, or of each class's u.

    Raises
    ------
    InvalidInput
        If ``probability`` is not in (0, 1).

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
    >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
    >>> gq.credible_interval(classifier.fit(moons.features, y).result_).shape
    (200, 2)
    """
    require(0 < probability < 1, "probability", f"{probability!r}", "use a number in (0, 1)")
    posterior = result.posterior
    return summaries.credible_interval(
        result.answer, posterior.field, node_rows(posterior), probability
    )


@kept
def soft_label_mean(result: "Result") -> Float[np.ndarray, " N"]:
    """Return the posterior mean of the soft label ``ℓ(j) = p(y_j = +1 | u_j)`` for two classes.

    It is the probability that a label at the node would be +1, its noise included (Hartog &
    van Zanten 2018, §2.1). `Result.probabilities` tell on which side of zero u lies.

    Returns
    -------
    numpy.ndarray, shape (N,)

    Raises
    ------
    IncompatibleParts
        If there are several classes, the noise is learnt, or the likelihood uses all nodes.
    """
    posterior, likelihood = result.posterior, _response(result)
    rows = node_rows(posterior)
    return summaries.soft_label_mean(result.answer, posterior.field, rows, likelihood)


def soft_label_interval(result: "Result", probability: float = 0.95) -> Float[np.ndarray, "N 2"]:
    """Return the equal-tailed interval of the soft label with a given probability.

    Raises
    ------
    IncompatibleParts
        For the reasons of `soft_label_mean`.
    InvalidInput
        If ``probability`` is not in (0, 1).
    """
    return summaries.soft_labels(_response(result), credible_interval(result, probability))


def latent_draws(result: "Result", nodes: Any) -> Float[np.ndarray, "n S *K"]:
    """Return draws of u at some nodes, all chains one after the other.

    Each row is a sample of its node's marginal posterior; its signs are a sample of the label.

    Raises
    ------
    IncompatibleParts
        If the result comes from an approximation.
    """
    rows = node_rows(result.posterior)[np.atleast_1d(np.asarray(nodes))]
    return summaries.latent_draws(draws(result), result.posterior.field, rows)


def at_nodes(result: "Result") -> NodeSummaries:
    """Return the posterior at the nodes, as `at_rows` does at rows outside the graph."""
    numbers = result.latent_mean, result.latent_std
    return NodeSummaries(label_mean(result), label_mcse(result), *numbers)


def at_rows(
    result: "Result", eigenvectors: Float[np.ndarray, "M L"], scale: Float[np.ndarray, " M"]
) -> NodeSummaries:
    """Return the posterior at nodes outside the graph, whose rows `Spectrum.extend` gives."""
    posterior = result.posterior
    rows = rows_outside(posterior, eigenvectors, scale)
    link = posterior.likelihood.link
    found = summaries.summarize(result.answer, posterior.field, rows, link)
    return reported_at_rows(found, rows, result)


def interval_at_rows(
    result: "Result",
    eigenvectors: Float[np.ndarray, "M L"],
    scale: Float[np.ndarray, " M"],
    probability: float = 0.95,
) -> Float[np.ndarray, "M *K 2"]:
    """Return equal-tailed intervals of u at nodes outside the graph."""
    rows = rows_outside(result.posterior, eigenvectors, scale)
    return summaries.credible_interval(result.answer, result.posterior.field, rows, probability)


def at_rows_or_nodes(
    result: "Result", outside: Float[np.ndarray, "m L"], nodes: Int[np.ndarray, " M"]
) -> NodeSummaries:
    """Return the posterior at rows, each of which is a node or, where that is −1, outside.

    Parameters
    ----------
    result : Result
    outside : numpy.ndarray, shape (m, L)
        Rows of the basis of those outside, in their order, with a scale of 1.
    nodes : numpy.ndarray of int, shape (M,)
    """
    known, is_out = at_nodes(result), nodes < 0
    values = {name: value[nodes] for name, value in vars(known).items()}
    if is_out.any():
        new = at_rows(result, outside, np.ones(len(outside)))
        for name, value in values.items():
            value[is_out] = getattr(new, name)
    return NodeSummaries(**values)


def interval_at_rows_or_nodes(
    result: "Result",
    outside: Float[np.ndarray, "m L"],
    nodes: Int[np.ndarray, " M"],
    probability: float = 0.95,
) -> Float[np.ndarray, "M *K 2"]:
    """Return equal-tailed intervals of u at such rows."""
    is_out, posterior = nodes < 0, result.posterior
    shape = len(nodes), *result.latent_mean.shape[1:], 2
    interval = np.empty(shape)
    if is_out.any():
        interval[is_out] = interval_at_rows(result, outside, np.ones(len(outside)), probability)
    if not is_out.all():
        rows = node_rows(posterior)[nodes[~is_out]]
        found = summaries.credible_interval(result.answer, posterior.field, rows, probability)
        interval[~is_out] = found
    return interval


def _response(result: "Result") -> Likelihood:
    """Return the likelihood, if it gives the probability of a label at one node."""
    likelihood = result.posterior.likelihood.unshifted
    if likelihood.has_codes or likelihood.uses_all_nodes or likelihood.learnt:
        raise IncompatibleParts(
            f"soft labels need a likelihood of two classes with known noise, not {likelihood}; "
            "use probabilities"
        )
    return likelihood
