"""A random series on as many eigenpairs as its posterior uses."""

import numpy as np
from numpy.typing import ArrayLike

from graphuq.errors import IncompatibleParts, require
from graphuq.graphs import Graph
from graphuq.likelihoods import Likelihood
from graphuq.posterior.posterior import Posterior
from graphuq.priors import Prior
from graphuq.run.infer import infer
from graphuq.spectrum import laplacian_spectrum
from graphuq.utils.user_warnings import held_warnings

NEAR = 0.8  # share of ℓ that counts as near ℓ
MAX_SHARE = 0.01  # share of draws near ℓ above which ℓ is doubled
PILOT_CHAINS, PILOT_DRAWS = 4, 250  # short chains that only locate the truncation


def adapt_truncation(
    graph: Graph,
    prior: Prior,
    likelihood: Likelihood,
    labelled: ArrayLike,
    labels: ArrayLike,
    *,
    laplacian: str = "unnormalized",
    n_eigenpairs: int = 50,
    max_eigenpairs: int | None = None,
    rng: int = 0,
) -> Posterior:
    """Return a posterior of `RandomSeries` on as many eigenpairs as its truncation k uses.

    Short chains run on ℓ eigenpairs. If k exceeds 0.8 ℓ in more than 1 % of the draws, ℓ is
    doubled and they run again. Hartog & van Zanten (2018, §4) add pairs one by one. With a
    spectrum computed beforehand, proposals beyond its length are rejected, and `infer` warns.

    Parameters
    ----------
    graph : Graph
    prior : RandomSeries
        With ``truncation`` left out, so that k is random.
    likelihood, labelled, labels
        As in `Posterior`.
    laplacian : str, default "unnormalized"
    n_eigenpairs : int, default 50
        First ℓ.
    max_eigenpairs : int, optional
        Largest ℓ; by default N. Memory is N ℓ numbers.
    rng : int, default 0

    Returns
    -------
    Posterior

    Raises
    ------
    IncompatibleParts
        If the prior's truncation is not random, or `ReversibleJump` cannot sample this model.
    InvalidInput
        As `laplacian_spectrum` and `Posterior`; if ``max_eigenpairs`` is below ``n_eigenpairs``.

    Examples
    --------
    >>> import graphuq as gq
    >>> posterior = gq.adapt_truncation(gq.graphs.path_graph(40), gq.priors.RandomSeries(),
    ...     gq.likelihoods.Probit(1.0), [3, 36], [1, -1], n_eigenpairs=10)
    >>> 10 <= posterior.spectrum.n_eigenpairs <= 40
    True
    """
    largest = graph.n_nodes if max_eigenpairs is None else min(max_eigenpairs, graph.n_nodes)
    size = min(n_eigenpairs, graph.n_nodes)
    require(
        size <= largest,
        "max_eigenpairs",
        f"{max_eigenpairs} beside n_eigenpairs={n_eigenpairs}",
        "use n_eigenpairs or more",
    )
    if getattr(prior, "truncation", 0) is not None:
        raise IncompatibleParts(f"{prior} has no random truncation to adapt to; use RandomSeries()")
    while True:
        spectrum = laplacian_spectrum(graph, laplacian, size)
        posterior = Posterior(spectrum, prior, likelihood, labelled, labels)
        posterior.series  # noqa: B018  raises for other models before any work
        if size == largest:
            return posterior
        with held_warnings():  # it is short on purpose
            result = infer(posterior, n_samples=PILOT_DRAWS, n_chains=PILOT_CHAINS, rng=rng)
        if float(np.mean(result.hyperparameters["truncation"] > NEAR * size)) <= MAX_SHARE:
            return posterior
        size = min(2 * size, largest)
