"""Rows of a regressor: graph and spectrum of the fit, and distributions at rows of any kind."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from scipy import sparse

from graphuq.classifier.new_rows import Connected, in_basis
from graphuq.classifier.options import build_graph, is_word, n_pairs_of
from graphuq.evidence.regression import eigenpairs_of
from graphuq.graphs import Graph, SelfTuning
from graphuq.graphs.signs import require_no_signs
from graphuq.models.numbers import NumbersModel
from graphuq.models.predictive import Predictive
from graphuq.spectrum import Basis, SpectralBasis, laplacian_spectrum
from graphuq.spectrum.linear import linear_functions
from graphuq.utils.progress import reporting

if TYPE_CHECKING:
    from graphuq.classifier.regressor.regressor import GraphRegressor

SMALLEST_SHARE = 0.3  # see `kept_by_means`
SHARPNESS = 1.0  # of the weights "auto" of a nearest-neighbour graph; docs/archive/regression.md


def chosen_weights(regressor: "GraphRegressor") -> SelfTuning | None:
    """Return the weights that "auto" stands for in a nearest-neighbour graph, else None."""
    is_auto = is_word(regressor.graph, "knn") and is_word(regressor.weights, "auto")
    return SelfTuning(SHARPNESS) if is_auto else None


def basis_of(
    regressor: "GraphRegressor", model: NumbersModel, graph: Any, X: Any
) -> tuple[Graph, Basis]:
    """Return the graph of the rows, the eigenpairs of its Laplacian, and linear functions."""
    own = chosen_weights(regressor)
    with reporting(regressor.progress) as report:
        found = build_graph(
            graph,
            X,
            regressor.n_neighbors,
            regressor.weights if own is None else own,
            regressor.metric,
            report,
            getattr(regressor, "feature_names_in_", None),
        )
        require_no_signs(found.weights, "no number is the opposite of another")
        spectrum = laplacian_spectrum(
            found,
            regressor.laplacian,
            n_pairs_of(regressor.n_eigenpairs, found.n_nodes),
            tail_eigenvalue=regressor.tail_eigenvalue,
            progress=report,
        )
    has_linear = model.needs_features and found.features is not None
    return found, Basis(spectrum, (linear_functions(found.features),) if has_linear else ())


def predictive_of(
    regressor: "GraphRegressor",
    rows: Connected,
    quantity: str,
    exposure: Float[np.ndarray, " M"] | float,
) -> Predictive:
    """Return distributions at rows that are joined to the nodes."""
    posterior = regressor.posterior_
    own, inside = posterior.latent(quantity), rows.nodes >= 0
    basis, scale = in_basis(regressor, rows, posterior.engine.spectrum)
    if regressor.out_of_sample == "mean":
        spectrum = eigenpairs_of(posterior.engine.spectrum)
        basis[:, : spectrum.n_columns] /= kept_by_means(spectrum, rows.weights)
    found = posterior.latent_at(basis, scale, quantity)
    for values, of_node in zip(found, own, strict=True):
        values[inside] = of_node[rows.nodes[inside]]
    return posterior.predictive(found, quantity, exposure)


def kept_by_means(spectrum: SpectralBasis, weights: sparse.csr_array) -> Float[np.ndarray, "#M l"]:
    """Return the share of each eigenvector that the mean over neighbours keeps.

    At a node it is 1 − λ of the normalised Laplacians, and 1 − λ/d of the other, with the degree d.
    Divided by it, a field varies at new rows as at nodes (Nyström's formula). Shares below 0.3 are
    those of rough vectors, of which neighbours say little, and count as 0.3.
    """
    degree = np.ones((1, 1))
    if spectrum.settings["laplacian"] == "unnormalized":
        degree = np.asarray(abs(weights).sum(axis=1)).reshape(-1, 1)
        degree = np.where(degree > 0, degree, np.inf)
    return np.maximum(1 - np.asarray(spectrum.eigenvalues) / degree, SMALLEST_SHARE)


def predictive_of_fit(regressor: "GraphRegressor", quantity: str) -> Predictive:
    """Return distributions at the rows of the fit, each with its own exposure."""
    posterior, seen = regressor.posterior_, exposure_of_fit(regressor)
    return posterior.predictive(posterior.latent(quantity), quantity, seen)


def exposure_of_fit(regressor: "GraphRegressor") -> Float[np.ndarray, " N"]:
    """Return the exposure of each row of the fit, 1 by default."""
    own = regressor.exposure_
    return np.ones(len(regressor.transduction_)) if own is None else own


def given_of_fit(regressor: "GraphRegressor") -> Float[np.ndarray, " N"]:
    """Return the number that each row of the fit was given, NaN without one."""
    posterior = regressor.posterior_
    found = np.full(len(regressor.transduction_), np.nan)
    found[posterior.engine.labelled] = posterior.given
    return found


def unit_of_field(regressor: "GraphRegressor") -> float:
    """Return the size of differences in `transduction_`, by which they are rounded."""
    if regressor.exposure_ is None:
        return regressor.posterior_.unit
    return float(regressor.transduction_.std()) or 1.0
