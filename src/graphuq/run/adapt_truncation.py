"""Eigenpairs on demand: as many as a random series turns out to use."""

import warnings
from typing import Any

import numpy as np

from graphuq.errors import GraphuqWarning, IncompatibleParts, require
from graphuq.graphs import Graph
from graphuq.likelihoods import Likelihood
from graphuq.posterior.posterior import Posterior
from graphuq.priors import Prior
from graphuq.run.infer import infer
from graphuq.spectrum import laplacian_spectrum

NEAR, SHARE = 0.8, 0.01  # a length beyond this share of ℓ, in more draws than this, wants more
PILOT_CHAINS, PILOT_DRAWS = 4, 250


def adapt_truncation(
    graph: Graph,
    prior: Prior,
    likelihood: Likelihood,
    labelled: Any,
    labels: Any,
    *,
    laplacian: str = "unnormalized",
    n_eigenpairs: int = 50,
    most: int | None = None,
    seed: int = 0,
) -> Posterior:
    """A posterior of `RandomSeries` on as many eigenpairs as its length k asks for.

    Short chains run on ℓ eigenpairs; where k comes near ℓ in more than 1 % of the draws, ℓ is
    doubled and they run again (Hartog & van Zanten 2018, §4, have it pair by pair). With a
    spectrum of your own instead, lengths beyond it are refused as proposals, and `infer` says so.

    Parameters
    ----------
    graph : Graph
    prior : RandomSeries
        Its ``truncation`` left out: k is random.
    likelihood, labelled, labels
        As in `Posterior`.
    laplacian : str, default "unnormalized"
    n_eigenpairs : int, default 50
        ℓ to begin with.
    most : int, optional
        Largest ℓ; by default N. Memory is N ℓ.
    seed : int, default 0

    Returns
    -------
    Posterior

    Raises
    ------
    IncompatibleParts
        If the prior's length is not random, or `ReversibleJump` does not sample this model.
    InvalidInput
        As `laplacian_spectrum` and `Posterior`; if ``most`` is below ``n_eigenpairs``.

    Examples
    --------
    >>> import graphuq as gq
    >>> posterior = gq.adapt_truncation(gq.graphs.path_graph(40), gq.priors.RandomSeries(),
    ...     gq.likelihoods.Probit(1.0), [3, 36], [1, -1], n_eigenpairs=10)
    >>> 10 <= posterior.spectrum.n_eigenpairs <= 40
    True
    """
    most = graph.n_nodes if most is None else min(most, graph.n_nodes)
    size = min(n_eigenpairs, graph.n_nodes)
    require(size <= most, "most", f"{most} beside n_eigenpairs={n_eigenpairs}", "use no less")
    if getattr(prior, "truncation", 0) is not None:
        raise IncompatibleParts(f"{prior} has no random length to grow with; use RandomSeries()")
    while True:
        spectrum = laplacian_spectrum(graph, laplacian, size)
        posterior = Posterior(spectrum, prior, likelihood, labelled, labels)
        posterior.series  # noqa: B018  refuses other models before any work
        if size == most:
            return posterior
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphuqWarning)  # it is a pilot
            result = infer(posterior, n_samples=PILOT_DRAWS, n_chains=PILOT_CHAINS, seed=seed)
        if float(np.mean(result.hyperparameters["truncation"] > NEAR * size)) <= SHARE:
            return posterior
        size = min(2 * size, most)
