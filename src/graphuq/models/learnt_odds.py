"""Components of the default and their prior odds, which were learnt from other data sets.

On a new graph nobody knows how smooth the labels are. Experience does: `learnt_odds.json` holds
the log probability of each component as a function of what is known beforehand. It was fitted by
`benchmarks/fit_hyperprior.py` so that held-out labels of a corpus of data sets have the largest
probability. A component is given by

- its range: τ² is the eigenvalue of a given rank above the null ones, so that about as many modes
  are smooth, whatever the size of the graph;
- its power α, its noise γ relative to the field, and whether each class has a constant.

No set has more than 26 classes. With more, the odds are those of 26, and ranks grow in proportion
to the number of classes: as many more modes are needed to tell them apart.

If the basis has other blocks, more components are on these. A second graph has the same components
on its own eigenvalues; functions of the features have five, of different noise. The odds of each
block against the graph are ``exp(a + b log(J/K) + c log K)``, learnt by `benchmarks/fit_blocks.py`
(docs/archive/blocks.md): with few labels a graph is the better guess, with many the features
tell more. A graph without columns that tear the first one apart has the odds of the second graph,
and the third power, which wide tables alone have, those of whitened functions. Functions of a few
variables have those of the functions of all, times the probability of these few among all sets.

A graph that is given beside features of its nodes, or beside other graphs, is another matter: its
edges may say nothing of the features, and one or the other may be useless. Nothing was learnt of
such data. The blocks of tables keep their odds, and a graph of sparse features has those of the
second graph. Other blocks have the same probability as the graph, and so have sums of the graph and
each block that is given with it, and steep priors on the graph, of few modes: the eigenvalues of a
graph with few triangles are nearly equal. So are they on a graph without features, where the odds
of the steep priors are those of a block that all data sets have.
"""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from graphuq.distributions import Categorical
from graphuq.models.mixture import Mixture, Term, changed
from graphuq.priors import Matern
from graphuq.spectrum import SpectralBasis
from graphuq.spectrum.blocks import EIGENPAIRS, spectrum_of
from graphuq.spectrum.exponential import EXPONENTIAL
from graphuq.spectrum.few_variables import FEW_VARIABLES
from graphuq.spectrum.joined import JOINED_GRAPH
from graphuq.spectrum.node_blocks import FEATURE_GRAPH, NODE_BLOCKS
from graphuq.spectrum.powers import THIRD_POWER
from graphuq.spectrum.whitened import WHITENED_GRAPH, WHITENED_LINEAR

TABLE, BLOCKS = "learnt_odds.json", "block_odds.json"
MOST_CLASSES = 26  # of the sets from which the odds were learnt
MIN_PROBABILITY = 1e-4  # prior probability below which a component is left out
FEATURE_NOISES = (0.03, 0.1, 0.3, 1.0, 3.0)  # γ of components on features, equally probable
SUM_RANKS, SUM_POWERS = (2, 16), (2.0, 32.0)  # of the eigenvalue τ², and α, of graphs in sums
N_SUMS = len(SUM_RANKS) * len(SUM_POWERS) * len(FEATURE_NOISES)  # of the graph and one block
# Of a graph with few triangles the leading eigenvectors alone tell classes.
STEEP = "steep"
STEEP_RANKS, STEEP_POWERS = (1,), (16.0, 64.0)
# Blocks that too few data sets have to learn their odds.
ALIKE = {
    JOINED_GRAPH: WHITENED_GRAPH,
    FEATURE_GRAPH: WHITENED_GRAPH,
    THIRD_POWER: WHITENED_LINEAR,
    FEW_VARIABLES: EXPONENTIAL,
}
SMALLEST_EIGENVALUE = 1e-6  # bound of τ² for components of a graph that are nearly disconnected


def learnt_mixture(basis: SpectralBasis, n_classes: int, n_labels: int) -> Mixture:
    """Return the mixture for a graph, a number of classes and a number of labels.

    Parameters
    ----------
    basis : Spectrum or Basis
    n_classes : int
        K, at least 2.
    n_labels : int
        J, the number of labelled nodes.

    Returns
    -------
    Mixture
        Its scales are those of a likelihood with noise 1.

    Examples
    --------
    >>> import graphuq as gq
    >>> from graphuq.models.learnt_odds import learnt_mixture
    >>> moons = gq.datasets.two_moons(100)
    >>> spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features), n_eigenpairs=50)
    >>> learnt_mixture(spectrum, n_classes=2, n_labels=4).learnt["component"].discrete
    True
    """
    components, log_odds = _on_graph(basis, EIGENPAIRS, n_classes, n_labels)
    known = np.array([1.0, np.log(n_labels / n_classes), np.log(min(n_classes, MOST_CLASSES))])
    odds, given = _stored(BLOCKS), set(basis.settings.get(NODE_BLOCKS, ()))
    for block in basis.blocks:
        learnt_for = ALIKE.get(block.name, block.name)
        if learnt_for not in odds and block.name not in given:
            continue
        own = spectrum_of(basis, block.name)
        if own is None:
            more = [Term(1 / noise, block=block.name) for noise in FEATURE_NOISES]
            logs = _even(len(more))
        else:
            more, logs = _on_graph(own, block.name, n_classes, n_labels)
        components += more
        more_odds = odds[learnt_for] @ known if learnt_for in odds else 0.0
        log_odds = np.append(log_odds, logs + more_odds + getattr(block, "log_prior", 0.0))
    if given or basis.is_signed or not basis.blocks:
        steep = steep_terms(basis)
        components += steep
        more_odds = 0.0 if given or basis.is_signed else odds[STEEP] @ known
        log_odds = np.append(log_odds, _even(len(steep)) + more_odds)
    sums = [
        terms for block in basis.blocks if block.name in given for terms in _sums(basis, block.name)
    ]
    log_odds = np.append(log_odds, np.tile(_even(N_SUMS), len(sums) // N_SUMS))
    every = [*((one,) for one in components), *sums]
    return Mixture(every, Categorical(np.exp(log_odds - log_odds.max())))


def steep_terms(graph: SpectralBasis) -> list[Term]:
    """Return components on the leading eigenvectors of a graph, nearly alone."""
    priors = _priors(graph, STEEP_RANKS, STEEP_POWERS)
    return [Term(1 / noise, prior) for prior in priors for noise in FEATURE_NOISES]


def _even(n: int) -> Float[np.ndarray, " n"]:
    """Return the logarithms of n equal probabilities."""
    return np.full(n, -np.log(n))


def _sums(basis: SpectralBasis, block: str) -> list[tuple[Term, Term]]:
    """Return sums of a field on the graph and one on a block, of equal variance."""
    other, found = spectrum_of(basis, block), []
    settings = SUM_RANKS, SUM_POWERS
    firsts = _priors(basis, *settings)
    seconds = [None] * len(firsts) if other is None else _priors(other, *settings)
    for first, second in zip(firsts, seconds, strict=True):
        for noise in FEATURE_NOISES:
            scale = 0.5**0.5 / noise
            found.append((Term(scale, first), Term(scale, second, block)))
    return found


def _priors(graph: SpectralBasis, ranks: Sequence[int], powers: Sequence[float]) -> list[Matern]:
    """Return priors whose τ² is an eigenvalue of a rank, for each rank and power α."""
    return [Matern(eigenvalue_of_rank(graph, rank) ** 0.5, a) for rank in ranks for a in powers]


def _on_graph(
    spectrum: SpectralBasis, block: str, n_classes: int, n_labels: int
) -> tuple[list[Term], Float[np.ndarray, " m"]]:
    """Return components on a graph, and the logarithms of their probabilities."""
    table = _stored(TABLE)
    logs = table["base"] + table["slopes"] @ features(spectrum, n_classes, n_labels)
    logs -= logsumexp(logs)
    kept = np.flatnonzero(logs >= np.log(MIN_PROBABILITY))
    finer, matern = max(1.0, n_classes / MOST_CLASSES), Matern()
    first = Term(1.0, matern)
    components = []
    for m in kept.tolist():
        numbers = {
            "tau": eigenvalue_of_rank(spectrum, round(table["rank"][m] * finer)) ** 0.5,
            "alpha": float(table["alpha"][m]),
            "include_constant": bool(table["constant"][m]) or None,
        }
        prior = changed(matern, numbers)
        own = {"scale": 1 / float(table["noise"][m]), "prior": prior, "block": block}
        components.append(changed(first, own))
    return components, logs[kept] - logsumexp(logs[kept])


def features(basis: SpectralBasis, n_classes: int, n_labels: int) -> Float[np.ndarray, " F"]:
    """Return what the probabilities depend on.

    They are log K, log² K, log(J/K), log²(J/K), and the logarithm of the ratio of the eigenvalues
    of ranks K and K − 1, the gap that K clusters leave. Logarithms of K are at most those of 26.
    """
    log_classes = np.log(min(n_classes, MOST_CLASSES))
    log_share = np.log(n_labels / n_classes)
    gap = np.log(eigenvalue_of_rank(basis, n_classes) / eigenvalue_of_rank(basis, n_classes - 1))
    return np.array([log_classes, log_classes**2, log_share, log_share**2, gap])


def eigenvalue_of_rank(basis: SpectralBasis, rank: int) -> float:
    """Return the eigenvalue of a rank; rank 1 is the first above the null ones.

    On a graph with negative weights even the first mode tells two classes apart, and counts.
    """
    n_constant = basis.n_components - basis.is_signed
    place = min(n_constant - 1 + rank, basis.n_eigenpairs - 1)
    return max(float(basis.eigenvalues[place]), SMALLEST_EIGENVALUE)


@cache
def _stored(name: str) -> dict[str, Any]:
    """Return the arrays of a table; ``slopes`` has one column for each of `features`."""
    text = files("graphuq.models").joinpath(name).read_text(encoding="utf-8")
    return {key: np.array(values) for key, values in json.loads(text).items() if key != "about"}
