"""Data sets, with their graphs and spectra, that several papers use."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import cdist

from graphuq import Posterior, Result, Spectrum, laplacian_spectrum
from graphuq.datasets import load_mnist, two_moons
from graphuq.graphs import complete_graph, knn_graph
from graphuq.likelihoods import Likelihood
from graphuq.priors import InverseLaplacian, Prior
from graphuq_papers.base import Context

# Numbers of eigenpairs from the appendix of Bertozzi et al. (2018); their §5.2 gives none.
MOONS_PAIRS, MNIST_PAIRS = 150, 300


class Problem(NamedTuple):
    """A spectrum of a graph and the true class of every node.

    Attributes
    ----------
    spectrum : Spectrum
        Eigenpairs of the graph Laplacian.
    truth : numpy.ndarray, shape (N,)
        True classes: −1 or +1 for two classes, codes 0, 1, … for more.
    images : numpy.ndarray or None, default None
        Images that the nodes stand for, if the nodes are images.
    """

    spectrum: Spectrum
    truth: Float[np.ndarray, " N"]
    images: np.ndarray | None = None

    def posterior(
        self,
        likelihood: Likelihood,
        labelled: Int[np.ndarray, " J"],
        prior: Prior | None = None,
    ) -> Posterior:
        """Return the posterior given the true labels of some nodes; the default prior is c/λ."""
        prior = InverseLaplacian() if prior is None else prior
        return Posterior(self.spectrum, prior, likelihood, labelled, self.truth[labelled])


def space(
    context: Context, features: Float[np.ndarray, "N d"]
) -> tuple[Float[np.ndarray, "N n"], str]:
    """Return what a graph is made of, and its metric.

    That is the features, or for p and q other than 2 the distances ``‖x − y‖_p^(q/2)``: weights are
    functions of their squares.
    """
    p, q = context.distance
    if p == q == 2:
        return features, "euclidean"
    return cdist(features, features, "minkowski", p=p) ** (q / 2), "precomputed"


@lru_cache(maxsize=2)
def moons(context: Context, noise_std: float, seed: int) -> Problem:
    """Return two moons: 2,000 points in 100 dimensions on a complete graph.

    The weights are self-tuning with K = 10; the spectrum has 150 eigenpairs.
    """
    data = two_moons(2000, 100, noise_std, rng=seed)
    points, metric = space(context, data.features)
    graph = complete_graph(points, "self-tuning", n_neighbors=10, metric=metric)
    spectrum = laplacian_spectrum(graph, n_eigenpairs=MOONS_PAIRS, solver="dense")
    return Problem(spectrum, data.signs(1))


@lru_cache(maxsize=6)
def mnist(
    context: Context,
    pair: tuple[int, int],
    n_each: int | None = 2000,
    n_eigenpairs: int = MNIST_PAIRS,
) -> Problem:
    """Return two digits of MNIST on a graph of 20 nearest neighbours with self-tuning weights.

    Features are 50 principal components. ``n_each=None`` takes all images of both digits.
    """
    data = load_mnist(pair, n_each, n_components=50, folder=context.folder)
    pictures = load_mnist(pair, n_each, folder=context.folder).features.reshape(-1, 28, 28)
    return Problem(_of_images(context, data.features, n_eigenpairs), data.signs(pair[0]), pictures)


@lru_cache(maxsize=2)
def digits(context: Context, classes: tuple[int, ...], n_each: int, n_eigenpairs: int) -> Problem:
    """Return three or more digits of MNIST on the graph of `mnist`; `truth` has class codes."""
    data = load_mnist(classes, n_each, n_components=50, folder=context.folder)
    spectrum = _of_images(context, data.features, n_eigenpairs)
    return Problem(spectrum, data.codes().astype(np.float64))


def _of_images(context: Context, features: Float[np.ndarray, "N d"], n_eigenpairs: int) -> Spectrum:
    """Return the spectrum of the graph of 20 nearest neighbours with self-tuning weights."""
    points, metric = space(context, features)
    return laplacian_spectrum(knn_graph(points, 20, metric=metric), n_eigenpairs=n_eigenpairs)


def choose(
    truth: Float[np.ndarray, " N"], n_positive: int, n_negative: int, seed: int
) -> Int[np.ndarray, " J"]:
    """Draw the given numbers of nodes of the classes +1 and −1 at random."""
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [
            rng.choice(np.flatnonzero(truth == sign), count, replace=False)
            for sign, count in ((1, n_positive), (-1, n_negative))
        ]
    )


def share(truth: Float[np.ndarray, " N"], fraction: float, seed: int) -> Int[np.ndarray, " J"]:
    """Draw a fraction of each class at random, with at least one node per class."""
    rng = np.random.default_rng(seed)
    chosen = []
    for label in np.unique(truth)[::-1]:
        nodes = np.flatnonzero(truth == label)
        chosen.append(rng.choice(nodes, max(1, round(fraction * len(nodes))), replace=False))
    return np.concatenate(chosen)


def rhat(result: Result) -> float:
    """Return the largest R-hat of a sampled result."""
    return float(result.diagnostics.to_plain()["rhat"])
