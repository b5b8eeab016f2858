"""Data sets, graphs and posteriors of Bertozzi, Luo, Stuart & Zygalakis (2018), §5.1."""

import warnings
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from graphuq.datasets import load_mnist, load_voting, two_moons
from graphuq.diagnostics import Diagnostics
from graphuq.errors import NotConvergedWarning
from graphuq.experiments.base import Context
from graphuq.field import Field, NodeField, series_field
from graphuq.graphs import complete_graph, knn_graph
from graphuq.inference import PCN
from graphuq.inference.chains import run_chains
from graphuq.likelihoods import Likelihood
from graphuq.posterior import Posterior
from graphuq.priors import InverseLaplacian
from graphuq.result import Result
from graphuq.run import infer
from graphuq.spectrum import Spectrum, laplacian_spectrum
from graphuq.stopping import Converged
from graphuq.target import Target

MOONS_PAIRS, MNIST_PAIRS = 150, 300  # eigenpairs, of the appendix; §5.2 does not say
KEPT = 2_000  # draws kept of a protocol's chain


class Problem(NamedTuple):
    """A graph's spectrum, and the true sign of every node."""

    spectrum: Spectrum
    truth: Float[np.ndarray, " N"]
    images: np.ndarray | None = None

    def posterior(self, likelihood: Likelihood, labelled: Int[np.ndarray, " J"]) -> Posterior:
        """With the paper's prior and true labels at some nodes."""
        return Posterior(
            self.spectrum, InverseLaplacian(), likelihood, labelled, self.truth[labelled]
        )


@lru_cache(maxsize=4)
def voting(context: Context, algorithm: str = "full", n_eigenpairs: int | None = None) -> Problem:
    """435 members, complete graph of Gaussian weights, τ = 1.25; democrats are +1."""
    data = load_voting(context.folder)
    graph = complete_graph(data.features, "gaussian", scale=1.25)
    # λ̄ is the last computed eigenvalue.
    spectrum = laplacian_spectrum(graph, n_eigenpairs=n_eigenpairs, algorithm=algorithm)
    return Problem(spectrum, data.signs("democrat"))


@lru_cache(maxsize=2)
def moons(noise_std: float, seed: int) -> Problem:
    """2,000 points in 100 dimensions, complete graph, self-tuning weights with K = 10."""
    data = two_moons(2000, 100, noise_std, seed=seed)
    graph = complete_graph(data.features, "self-tuning", n_neighbors=10)
    spectrum = laplacian_spectrum(graph, n_eigenpairs=MOONS_PAIRS, solver="dense")
    return Problem(spectrum, data.signs(1))


@lru_cache(maxsize=6)
def mnist(
    context: Context,
    pair: tuple[int, int],
    n_each: int | None = 2000,
    n_eigenpairs: int = MNIST_PAIRS,
) -> Problem:
    """Two digits, 50 principal components, 20 nearest neighbours, self-tuning weights."""
    data = load_mnist(pair, n_each, n_components=50, folder=context.folder)
    pictures = load_mnist(pair, n_each, folder=context.folder).features.reshape(-1, 28, 28)
    spectrum = laplacian_spectrum(knn_graph(data.features, 20), n_eigenpairs=n_eigenpairs)
    return Problem(spectrum, data.signs(pair[0]), pictures)


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


def choose(
    truth: Float[np.ndarray, " N"], n_positive: int, n_negative: int, seed: int
) -> Int[np.ndarray, " J"]:
    """So many nodes of each class, at random."""
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [
            rng.choice(np.flatnonzero(truth == sign), count, replace=False)
            for sign, count in ((1, n_positive), (-1, n_negative))
        ]
    )


def share(truth: Float[np.ndarray, " N"], fraction: float, seed: int) -> Int[np.ndarray, " J"]:
    """That fraction of each class, at random, at least one node."""
    counts = [max(1, round(fraction * int((truth == sign).sum()))) for sign in (1, -1)]
    return choose(truth, counts[0], counts[1], seed)


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
            n_samples=4000,
            seed=seed,
            precision="float32",
            stop=Converged(label_mcse=label_mcse),
        )


def rhat(result: Result) -> float:
    """Largest R-hat of a sampler's result."""
    assert isinstance(result.diagnostics, Diagnostics)
    return result.diagnostics.rhat
