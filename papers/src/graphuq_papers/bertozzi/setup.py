"""Data sets and chains of Bertozzi, Luo, Stuart & Zygalakis (2018), §5.1."""

import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from graphuq import Converged, Posterior, Result, Spectrum, infer, laplacian_spectrum
from graphuq.datasets import load_voting
from graphuq.errors import NotConvergedWarning
from graphuq.graphs import complete_graph
from graphuq.inference import PCN, Sampler
from graphuq.results import draws as draws_of
from graphuq_papers.base import Context
from graphuq_papers.problems import Problem, space

KEPT = 2_000  # draws stored per chain of the paper's protocol; the others are thinned out
BLOCK_NUMBERS = 10_000_000  # draws × nodes per block: 80 MB in double precision


@lru_cache(maxsize=4)
def voting(context: Context, algorithm: str = "full", n_eigenpairs: int | None = None) -> Problem:
    """Return the voting records: 435 nodes, complete graph, Gaussian weights with τ = 1.25.

    Democrats have class +1. `algorithm` and `n_eigenpairs` are those of `laplacian_spectrum`.
    """
    data = load_voting(context.folder)
    points, metric = space(context, data.features)
    graph = complete_graph(points, "gaussian", scale=1.25, metric=metric)
    # For the approximation, λ̄ is the last computed eigenvalue.
    spectrum = laplacian_spectrum(graph, n_eigenpairs=n_eigenpairs, algorithm=algorithm)
    return Problem(spectrum, data.signs("democrat"))


def truncated(problem: Problem, n_eigenpairs: int) -> Problem:
    """Return the problem with fewer eigenpairs and no tail."""
    spectrum = problem.spectrum
    fewer = Spectrum(
        eigenvalues=spectrum.eigenvalues[:n_eigenpairs],
        eigenvectors=np.ascontiguousarray(spectrum.eigenvectors[:, :n_eigenpairs]),
        residuals=spectrum.residuals[:n_eigenpairs],
        tail_eigenvalue=None,
        components=spectrum.components,
        degrees=spectrum.degrees,
        node_scale=spectrum.node_scale,
        settings={**spectrum.settings, "n_eigenpairs": n_eigenpairs},
    )
    return problem._replace(spectrum=fewer)


class Chain(NamedTuple):
    """Estimates from the paper's own chain: plain means of signs over its draws.

    Attributes
    ----------
    label_mean : numpy.ndarray, shape (N,)
        Mean of ``sign(u_j)`` over the draws, in [−1, 1]; no part of u is integrated out.
    acceptance : float
        Share of proposals that were accepted.
    white : numpy.ndarray, shape (S, L)
        Stored draws, in white coordinates.
    kept : numpy.ndarray, shape (S,)
        Factor that multiplies the residual given the labelled nodes between two stored draws.
    """

    label_mean: Float[np.ndarray, " N"]
    acceptance: float
    white: Float[np.ndarray, "S L"]
    kept: Float[np.ndarray, " S"]

    @property
    def mean_label_variance(self) -> float:
        """Mean label variance, equation (9)."""
        return float((1 - self.label_mean**2).mean())


def protocol(posterior: Posterior, n_steps: int, step_size: float, seed: int) -> Chain:
    """Run the paper's protocol: one pCN chain of fixed length and β, started near the labels.

    Algorithms 1 to 3 move the whole field, but acceptance depends on the labelled nodes alone.
    So the field at the labelled nodes is a pCN chain by itself, and only this chain is run. At
    every other node, the residual given the labelled nodes is an autoregression: an accepted move
    multiplies it by √(1 − β²) and adds noise. Between two stored draws, it is updated by the
    expected number of accepted moves.

    Parameters
    ----------
    posterior : Posterior
    n_steps : int
        Number of pCN steps.
    step_size : float
        β, in (0, 1].
    seed : int
    """
    thin = max(1, n_steps // KEPT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        draws = draws_of(
            infer(
                posterior,
                PCN(step_size=step_size),
                n_samples=n_steps // thin,
                n_chains=1,
                n_warmup=0,
                thin=thin,
                rng=seed,
            )
        )
    white, rng = draws.white[0].astype(np.float64), np.random.default_rng(seed)
    # Factor that multiplies the residual between two stored draws.
    kept = (1 - step_size**2) ** (draws.acceptance[0] * thin / 2)
    n_nodes = posterior.spectrum.n_nodes
    n_blocks = -(-n_nodes // max(64, BLOCK_NUMBERS // len(white)))
    label_mean = np.empty(n_nodes)
    for part in np.array_split(np.arange(n_nodes), n_blocks):
        u, std = given_draws(posterior, white, part)
        label_mean[part] = np.where(u + residuals(rng, std, kept).T >= 0, 1.0, -1.0).mean(axis=1)
    return Chain(label_mean, float(draws.acceptance.mean()), white, kept)


def given_draws(
    posterior: Posterior, white: Float[np.ndarray, "S n"], nodes: Int[np.ndarray, " B"]
) -> tuple[Float[np.ndarray, "B S"], Float[np.ndarray, " B"]]:
    """Return mean (for each draw) and deviation of u at nodes, given the labelled nodes."""
    field: Any = posterior.field
    spectrum = posterior.spectrum
    vectors, scale = spectrum.eigenvectors[nodes], spectrum.node_scale[nodes]
    place = np.full(spectrum.n_nodes, -1)
    place[posterior.observed_nodes] = np.arange(len(posterior.observed_nodes))
    known = np.flatnonzero(place[nodes] >= 0)
    with jax.enable_x64(True):
        mean = scale[:, None] * (vectors @ np.asarray(field.mean_coefficients(white)).T)
        std = scale * field.conditional_std(vectors)
        if posterior.std.tail and len(known):  # the tail of a labelled node is not in the series
            u = np.asarray(jax.vmap(field.at_labelled)(white))
            mean[known] = u[:, place[nodes[known]]].T
    std[known] = 0.0
    return mean, std


def residuals(
    rng: np.random.Generator, std: Float[np.ndarray, " B"], kept: Float[np.ndarray, " S"]
) -> Float[np.ndarray, "S B"]:
    """Draw a stationary first-order Gaussian autoregression for each node.

    Parameters
    ----------
    rng : numpy.random.Generator
    std : numpy.ndarray, shape (B,)
        Stationary standard deviation at each node.
    kept : numpy.ndarray, shape (S,)
        Autoregression coefficient of each step, in [0, 1].
    """
    residuals = np.zeros((len(kept), len(std)))
    if not std.any():
        return residuals
    now = rng.normal(size=len(std))
    for draw, share in zip(residuals, kept, strict=True):
        if share < 1:
            now = share * now + np.sqrt(1 - share**2) * rng.normal(size=len(std))
        draw[:] = std * now
    return residuals


def converged(
    posterior: Posterior,
    seed: int,
    label_mcse: float | None = None,
    method: Sampler | None = None,
    **options: Any,
) -> Result:
    """Run a sampler, by default the default one, until R-hat < 1.01 or 12,000 draws per chain.

    The result's diagnostics say whether it has converged; there is no warning. Other keyword
    arguments are those of `infer`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return infer(
            posterior,
            method,
            n_samples=12_000,
            rng=seed,
            precision="float32",
            stop=Converged(label_mcse=label_mcse),
            **options,
        )
