"""Components of the default and their prior odds, which were learnt from other data sets.

On a new graph nobody knows how smooth the labels are. Experience does: `learnt_odds.json` holds
the log probability of each component as a function of what is known beforehand. It was fitted by
`benchmarks/fit_hyperprior.py` so that held-out labels of a corpus of data sets have the largest
probability. A component is given by

- its range: τ² is the eigenvalue of a given rank above the null ones, so that about as many modes
  are smooth, whatever the size of the graph;
- its power α, its noise γ relative to the field, and whether each class has a constant.

If the basis has quadratic functions of the features, five more components are on these, of
different noise. Their prior odds are the number of labels a class, divided by 20: with few labels a
graph is the better guess, with many the features tell more.
"""

import dataclasses
import json
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from graphuq.distributions import Categorical
from graphuq.models.mixture import Mixture, Term
from graphuq.priors import Matern
from graphuq.spectrum import SpectralBasis
from graphuq.spectrum.quadratic import QUADRATIC

Part = TypeVar("Part", Matern, Term)
TABLE = "learnt_odds.json"
MIN_PROBABILITY = 1e-4  # prior probability below which a component is left out
FEATURE_NOISES = (0.03, 0.1, 0.3, 1.0, 3.0)  # γ of components on features, equally probable
EVEN_LABELS = 20.0  # labels a class, with which features are beforehand as probable as the graph
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
    table = _table()
    logs = table["base"] + table["slopes"] @ features(basis, n_classes, n_labels)
    probability = np.exp(logs - logs.max())
    probability /= probability.sum()
    kept = np.flatnonzero(probability >= MIN_PROBABILITY)
    matern = Matern()
    first = Term(1.0, matern)
    components = []
    for m in kept.tolist():
        numbers = {
            "tau": eigenvalue_of_rank(basis, int(table["rank"][m])) ** 0.5,
            "alpha": float(table["alpha"][m]),
            "include_constant": bool(table["constant"][m]) or None,
        }
        own = {"scale": 1 / float(table["noise"][m]), "prior": _changed(matern, numbers)}
        components.append(_changed(first, own))
    odds = probability[kept]
    if any(block.name == QUADRATIC for block in basis.blocks):
        components += [Term(1 / noise, block=QUADRATIC) for noise in FEATURE_NOISES]
        ratio, n_more = n_labels / n_classes / EVEN_LABELS, len(FEATURE_NOISES)
        odds = np.append(odds, np.full(n_more, ratio / n_more) * odds.sum())
    return Mixture([(one,) for one in components], Categorical(odds))


def features(basis: SpectralBasis, n_classes: int, n_labels: int) -> Float[np.ndarray, " F"]:
    """Return what the probabilities depend on.

    They are log K, log² K, log(J/K), log²(J/K), and the logarithm of the ratio of the eigenvalues
    of ranks K and K − 1, the gap that K clusters leave.
    """
    log_classes, log_share = np.log(n_classes), np.log(n_labels / n_classes)
    gap = np.log(eigenvalue_of_rank(basis, n_classes) / eigenvalue_of_rank(basis, n_classes - 1))
    return np.array([log_classes, log_classes**2, log_share, log_share**2, gap])


def eigenvalue_of_rank(basis: SpectralBasis, rank: int) -> float:
    """Return the eigenvalue of a rank; rank 1 is the first above the null ones."""
    place = min(basis.n_components - 1 + rank, basis.n_eigenpairs - 1)
    return max(float(basis.eigenvalues[place]), SMALLEST_EIGENVALUE)


def _changed(part: Part, values: dict[str, Any]) -> Part:
    """Return a part with other numbers, which are known to be right, without its checks.

    The checks of some hundred parts would take a tenth of a fit.
    """
    changed = object.__new__(type(part))
    for field in dataclasses.fields(part):
        value = values.get(field.name, getattr(part, field.name))
        object.__setattr__(changed, field.name, value)
    return changed


@cache
def _table() -> dict[str, Any]:
    """Return the columns of the table; ``slopes`` has one column for each of `features`."""
    text = files("graphuq.models").joinpath(TABLE).read_text(encoding="utf-8")
    return {name: np.array(values) for name, values in json.loads(text).items() if name != "about"}
