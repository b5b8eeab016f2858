"""Label means of a second fit, to a spectrum with a tail, beside those of the first.

Both fits are expectation propagation, so that neither has Monte-Carlo error. An average is a sum
over the most probable components of each block. The tail changes the evidence of those on a graph,
and so their weights. Functions of the features have no tail, nor has a graph with all eigenpairs.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference import ExpectationPropagation
from graphuq.inference.draws import Draws
from graphuq.inference.settings import RunSettings
from graphuq.posterior.posterior import Posterior
from graphuq.results.diagnostics import node_rows
from graphuq.results.sampling import draws as draws_of
from graphuq.results.summaries import summarize
from graphuq.spectrum import SpectralBasis
from graphuq.spectrum.blocks import spectrum_of
from graphuq.utils.part import unchecked

if TYPE_CHECKING:
    from graphuq.results.result import Result

MAX_COORDINATES = 1_000  # labels × fields up to which fits take some tenths of a second, together
N_COMPONENTS = 3  # of each block of an average, the most probable ones; fewer with many labels
METHOD = ExpectationPropagation(tolerance=1e-3)  # of a mean, in standard deviations


# Functions of a spectrum that return the common eigenvalue of what is left out.
Tails: TypeAlias = tuple[Callable[[SpectralBasis], float], ...]


class _Part(NamedTuple):
    """One component: its probability, its posterior, and that to which a tail can be given."""

    weight: float
    posterior: Posterior
    on_graph: Posterior | None


def label_means_of_tails(
    result: "Result", nodes: Int[np.ndarray, " M"], tails: Tails
) -> list[Float[np.ndarray, "M *K"]] | None:
    """Return label means at nodes without a tail, and with each of some tails.

    They are None where expectation propagation cannot serve the posterior, or would take long.
    """
    posterior = result.posterior
    if _n_coordinates(posterior) > MAX_COORDINATES:
        return None
    try:
        parts = _parts(result)
        if parts is None:
            return None
        found = [_of_part(part, nodes, tails) for part in parts]
    except (IncompatibleParts, InvalidInput, np.linalg.LinAlgError):
        return None
    logs = np.array([evidence for _, evidence in found])  # (parts, fits)
    log_weights = np.log([part.weight for part in parts])[:, None] + logs - logs[:, :1]
    weights = softmax(log_weights, axis=0)
    each = np.array([means for means, _ in found])  # (parts, fits, M, *K)
    return list(np.einsum("pf,pf...->f...", weights, each))


def _parts(result: "Result") -> list[_Part] | None:
    """Return the components that matter; one for a posterior that is no average.

    Of an average these are the most probable components of each block, which stand for their block,
    since a graph has many components, each with little probability.
    """
    posterior = result.posterior
    if not posterior.is_weighted:
        plain = with_median_draw(result)
        return None if plain is None else [_Part(1.0, plain, _if_cut(plain))]
    prior: Any = posterior.prior
    drawn = np.asarray(result.answer.hyperparameters["component"]).astype(int)
    numbers, counts = np.unique(drawn, return_counts=True)
    blocks, parts = np.array(prior.blocks)[numbers], []
    most = max(1, MAX_COORDINATES // _n_coordinates(posterior) // len(set(blocks)))
    for block in dict.fromkeys(blocks.tolist()):
        own = np.flatnonzero(blocks == block)
        first = own[np.argsort(-counts[own], kind="stable")][: min(most, N_COMPONENTS)]
        scale = counts[own].sum() / counts[first].sum() / counts.sum()
        for i in first:
            one = posterior.component(int(numbers[i]))
            parts.append(_Part(float(counts[i] * scale), one, _on_graph(one)))
    return parts


def _n_coordinates(posterior: Posterior) -> int:
    """Return the number of values of fields that the likelihood sees."""
    return len(posterior.observed_nodes) * posterior.n_fields


def _if_cut(posterior: Posterior) -> Posterior | None:
    """Return the posterior if its spectrum leaves eigenpairs out, or None."""
    spectrum = posterior.spectrum
    return posterior if spectrum.n_eigenpairs < spectrum.n_nodes else None


def _on_graph(posterior: Posterior) -> Posterior | None:
    """Return a component on some of the eigenpairs of a graph, or None if nothing is left out."""
    mixture: Any = posterior.prior
    terms = mixture.components[int(mixture.component)]
    spectrum = spectrum_of(posterior.spectrum, terms[0].block)
    if len(terms) > 1 or terms[0].prior is None or spectrum is None:
        return None
    return _if_cut(
        dataclasses.replace(
            posterior,
            spectrum=spectrum,
            prior=terms[0].prior,
            likelihood=posterior.likelihood.rescaled(1 / terms[0].scale),
        )
    )


def _of_part(
    part: _Part, nodes: Int[np.ndarray, " M"], tails: Tails
) -> tuple[list[Float[np.ndarray, "M *K"]], list[float]]:
    """Return label means and log evidence of a component without a tail, and with each tail."""
    graph = part.on_graph
    first = _fitted(part.posterior if graph is None else graph, nodes)
    fits = [first] * (1 + len(tails))
    if graph is not None:
        spectrum = graph.spectrum
        spectra = [spectrum.with_tail(eigenvalue(spectrum)) for eigenvalue in tails]
        fits[1:] = [_fitted(dataclasses.replace(graph, spectrum=own), nodes) for own in spectra]
    means, evidence = zip(*fits, strict=True)
    return list(means), list(evidence)


def _fitted(
    posterior: Posterior, nodes: Int[np.ndarray, " M"]
) -> tuple[Float[np.ndarray, "M *K"], float]:
    """Return label means at nodes, and the log evidence."""
    answer: Any = METHOD.run(posterior, RunSettings())
    rows = node_rows(posterior)[nodes]
    found = summarize(answer, posterior.field, rows, posterior.likelihood.link)
    return found.label_mean, float(answer.log_evidence)


def with_median_draw(result: "Result") -> Posterior | None:
    """Return the posterior with the hyperparameters of the draw with the median log likelihood.

    Without learnt hyperparameters it is the posterior itself. It is None if there are no draws of
    them, or if each class has its own.
    """
    posterior = result.posterior
    if not posterior.learnt:
        return posterior
    if posterior.per_class or not isinstance(result.answer, Draws):
        return None
    draws = draws_of(result)
    order = np.argsort(draws.log_likelihood, axis=None)
    chain, draw = np.unravel_index(order[len(order) // 2], draws.log_likelihood.shape)
    drawn = {name: values[chain, draw] for name, values in draws.hyperparameters.items()}
    values = {name: v.item() if np.ndim(v) == 0 else v for name, v in drawn.items()}
    if not values.keys() >= posterior.learnt.keys():
        return None
    prior, likelihood = posterior.prior, posterior.likelihood
    return dataclasses.replace(
        posterior,
        prior=unchecked(prior, {n: values[n] for n in prior.learnt}),
        likelihood=unchecked(likelihood, {n: values[n] for n in likelihood.learnt}),
    )
