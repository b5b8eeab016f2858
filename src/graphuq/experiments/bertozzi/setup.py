"""Data sets, graphs and posteriors of Bertozzi, Luo, Stuart & Zygalakis (2018), §5.1."""

import warnings
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from graphuq.datasets import load_voting
from graphuq.errors import NotConvergedWarning
from graphuq.experiments.base import Context
from graphuq.experiments.problems import Problem
from graphuq.graphs import complete_graph
from graphuq.inference import PCN
from graphuq.inference.chains import run_chains
from graphuq.posterior.posterior import Posterior
from graphuq.results.diagnostics import node_rows
from graphuq.results.result import Result
from graphuq.results.summaries import conditional_moments
from graphuq.results.summaries.base import slices
from graphuq.run.infer import infer
from graphuq.run.stopping import Converged
from graphuq.spectrum import Spectrum, laplacian_spectrum

KEPT = 2_000  # draws kept of a protocol's chain
BLOCK_NUMBERS = 10_000_000  # draws × nodes at once


@lru_cache(maxsize=4)
def voting(context: Context, algorithm: str = "full", n_eigenpairs: int | None = None) -> Problem:
    """435 members, complete graph of Gaussian weights, τ = 1.25; democrats are +1."""
    data = load_voting(context.folder)
    graph = complete_graph(data.features, "gaussian", scale=1.25)
    # λ̄ is the last computed eigenvalue.
    spectrum = laplacian_spectrum(graph, n_eigenpairs=n_eigenpairs, algorithm=algorithm)
    return Problem(spectrum, data.signs("democrat"))


def truncated(problem: Problem, n_eigenpairs: int) -> Problem:
    """The same with fewer eigenpairs."""
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
    """What the paper's own chain says: means of signs over its draws, nothing integrated out."""

    label_mean: Float[np.ndarray, " N"]
    acceptance: float

    @property
    def mean_label_variance(self) -> float:
        """Equation (9)."""
        return float((1 - self.label_mean**2).mean())


def protocol(posterior: Posterior, n_steps: int, step_size: float, seed: int) -> Chain:
    """The paper's way: one pCN chain of so many steps at a fixed β, started near the labels.

    Algorithms 1 to 3 move the whole field, and acceptance looks at the labels alone. So the field
    there makes a pCN chain of its own, which is run; what it leaves open at any other node is
    multiplied by √(1 − β²) and refreshed with every move, as often as is to be expected.
    """
    thin = max(1, n_steps // KEPT)
    draws = run_chains(
        posterior.target,
        PCN(step_size=step_size),
        n_samples=n_steps // thin,
        n_chains=1,
        n_warmup=0,
        thin=thin,
        seed=seed,
    )
    white, rng = draws.white[0].astype(np.float64), np.random.default_rng(seed)
    kept = (1 - step_size**2) ** (draws.acceptance[0] * thin / 2)  # of what was open, each draw
    rows, n_nodes = node_rows(posterior), posterior.spectrum.n_nodes
    label_mean = np.empty(n_nodes)
    for part in slices(n_nodes, BLOCK_NUMBERS // len(white)):
        with jax.enable_x64(True):
            u, std = conditional_moments(posterior.field, white, rows[part])
        label_mean[part] = np.where(u + _open(rng, std, kept).T >= 0, 1.0, -1.0).mean(axis=1)
    return Chain(label_mean, float(draws.acceptance.mean()))


def _open(
    rng: np.random.Generator, std: Float[np.ndarray, " B"], kept: Float[np.ndarray, " S"]
) -> Float[np.ndarray, "S B"]:
    """A Gaussian process of order 1 in time for each node, of its deviation, in equilibrium."""
    found = np.zeros((len(kept), len(std)))
    if not std.any():
        return found
    now = rng.normal(size=len(std))
    for draw, share in zip(found, kept, strict=True):
        if share < 1:
            now = share * now + np.sqrt(1 - share**2) * rng.normal(size=len(std))
        draw[:] = std * now
    return found


def converged(posterior: Posterior, seed: int, label_mcse: float | None = None) -> Result:
    """By the sampler that suits, until R-hat < 1.01; whether it got there is in the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return infer(
            posterior,
            n_samples=12_000,
            seed=seed,
            precision="float32",
            stop=Converged(label_mcse=label_mcse),
        )
