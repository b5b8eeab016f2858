"""Data sets, graphs and posteriors of Bertozzi, Luo, Stuart & Zygalakis (2018), §5.1."""

import warnings
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from graphuq.datasets import load_voting
from graphuq.errors import NotConvergedWarning
from graphuq.experiments.base import Context
from graphuq.experiments.problems import Problem
from graphuq.field import Field, NodeField, series_field
from graphuq.graphs import complete_graph
from graphuq.inference import PCN
from graphuq.inference.chains import run_chains
from graphuq.posterior import Posterior
from graphuq.result import Result
from graphuq.run import infer
from graphuq.spectrum import Spectrum, laplacian_spectrum
from graphuq.stopping import Converged
from graphuq.target import Target

KEPT = 2_000  # draws kept of a protocol's chain


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
        tail=None,
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

    It moves the whole field, as Algorithms 1 to 3 do; the library's own forms move the field at
    the labels, and integrate the rest.
    """
    spectrum, std, nodes = posterior.spectrum, posterior.std, posterior.seen_nodes
    plain = NodeField(spectrum.eigenvectors, std, spectrum.node_scale, nodes)
    field: Field = plain
    if std.tail == 0.0:  # the likelihood needs the rows at the labels only
        everywhere = series_field(spectrum, std)
        field = eqx.tree_at(lambda f: f.factor, everywhere, everywhere.factor[nodes])
    target = Target(field, posterior.likelihood, posterior.seen_labels)
    thin = max(1, n_steps // KEPT)
    draws = run_chains(
        target,
        PCN(step_size=step_size),
        n_samples=n_steps // thin,
        n_chains=1,
        n_warmup=0,
        thin=thin,
        seed=seed,
    )
    white = draws.white[0]
    if std.tail == 0.0:
        u = white @ series_field(spectrum, std).factor.T
    else:
        with jax.enable_x64(True):
            u = np.asarray(jax.vmap(plain.at_nodes)(jnp.asarray(white)))
    return Chain(np.where(u >= 0, 1.0, -1.0).mean(axis=0), float(draws.acceptance.mean()))


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
