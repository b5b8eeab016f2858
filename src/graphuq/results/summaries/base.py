"""Nodes to summarise, and the distribution of u at them given a draw."""

import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from graphuq.posterior.field import ClassField, LabelledField
from graphuq.results.uncertainty import class_probabilities, probability_errors
from graphuq.spectrum import ProductBasis
from graphuq.utils.arrays import mapped

BLOCK_ELEMENTS = (
    1_000_000  # rows × draws of one block of a thread, whose arrays then fit the CPU cache
)
BATCHES, BATCHES_A_CHAIN = (
    20,
    20,
)  # batches in total, and at most per chain, for the Monte-Carlo error

Link: TypeAlias = tuple[np.ndarray, ...] | None
"""`Likelihood.link` of a label that is drawn given u; None if the label is the sign of u."""


@dataclasses.dataclass(frozen=True, eq=False)
class NodeSummaries:
    """Posterior means and standard deviations at B nodes.

    Attributes
    ----------
    label_mean, label_mcse : numpy.ndarray, shape (B,) or (B, K)
        ``E S(u)``, and its Monte-Carlo standard error. For two classes S is the sign. For more
        classes S is the unit vector of the largest field, and its mean is the probability of each
        class.
    latent_mean, latent_std : numpy.ndarray, shape (B,) or (B, K)
        Posterior mean and standard deviation of u.
    """

    label_mean: Float[np.ndarray, "B *K"]
    label_mcse: Float[np.ndarray, "B *K"]
    latent_mean: Float[np.ndarray, "B *K"]
    latent_std: Float[np.ndarray, "B *K"]

    @property
    def probabilities(self) -> Float[np.ndarray, "B K"]:
        """Probability of each class."""
        return class_probabilities(self.label_mean)

    def with_probabilities(
        self, p: Float[np.ndarray, "B K"], error: Float[np.ndarray, "B K"]
    ) -> "NodeSummaries":
        """Return the same with other class probabilities and their Monte-Carlo errors."""
        if self.label_mean.ndim == 1:
            p, error = p[:, 1] - p[:, 0], 2 * error[:, 1]
        return NodeSummaries(p, error, self.latent_mean, self.latent_std)

    @property
    def mcse(self) -> Float[np.ndarray, "B K"]:
        """Monte-Carlo standard errors of the probabilities."""
        return probability_errors(self.label_mcse)


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the eigenvector matrix of the nodes to summarise.

    ``at_labelled`` is the position of each node among the labelled nodes, or −1. ``mean`` is the
    prior mean of u, or None without one.
    """

    eigenvectors: Float[np.ndarray, "B L"] | ProductBasis
    scale: Float[np.ndarray, " B"]
    at_labelled: np.ndarray
    mean: Float[np.ndarray, " B"] | None = None

    def __getitem__(self, part: slice | np.ndarray) -> "Rows":
        """Return a part of the rows."""
        mean = None if self.mean is None else self.mean[part]
        return Rows(self.eigenvectors[part], self.scale[part], self.at_labelled[part], mean)

    def below(self, threshold: float) -> "Rows":
        """Return the rows of u minus a threshold."""
        return dataclasses.replace(self, mean=self.shift - threshold)

    @property
    def shift(self) -> Float[np.ndarray, " B"]:
        """Prior mean of u, zero without one."""
        return np.zeros(len(self.scale)) if self.mean is None else self.mean


def conditional_moments(
    field: LabelledField | ClassField, white: Float[np.ndarray, "S n"], rows: Rows
) -> tuple[Float[np.ndarray, "B S *K"], Float[np.ndarray, " B"]]:
    """Return mean (for each draw) and deviation of u at nodes, given the labelled nodes."""
    one = field.one_class
    loadings, std = conditional_distribution(one, rows)
    if isinstance(field, ClassField):
        seen = np.asarray(one.seen(field.by_class(white)))  # (S, K, r)
        mean = np.einsum("br,skr->bsk", loadings, seen, optimize=True)
    else:
        mean = loadings @ np.asarray(one.seen(white)).T
    known, at = nodes_read_from_draws(one, rows)
    if len(known):
        u = mapped(field.at_labelled, white)  # (S, J) or (S, J, K)
        mean[known] = np.swapaxes(u[:, at], 0, 1)
        std[known] = 0.0
    if rows.mean is not None:
        mean += rows.mean[:, None]
    return mean, std


def conditional_distribution(
    field: LabelledField, rows: Rows
) -> tuple[Float[np.ndarray, "B r"], Float[np.ndarray, " B"]]:
    """Return loadings and standard deviation of u given a draw.

    Its mean is ``loadings @ seen``, to which the caller adds ``rows.shift``.
    Nodes of `nodes_read_from_draws` are excepted.
    """
    eigenvectors = np.asarray(rows.eigenvectors)
    loadings = field.loadings(eigenvectors)
    std = rows.scale * field.conditional_std(eigenvectors, loadings)
    loadings *= rows.scale[:, None]
    if field.labelled_loadings is not None:
        known = np.flatnonzero(rows.at_labelled >= 0)
        loadings[known] = np.asarray(field.labelled_loadings)[rows.at_labelled[known]]
        std[known] = 0.0
    return loadings, std


def nodes_read_from_draws(field: LabelledField, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return labelled nodes whose u is known in each draw only, and their positions among labels.

    With a tail, u at a labelled node is no function of the coordinates that other nodes share.
    """
    if field.labelled_loadings is not None:
        return np.arange(0), np.arange(0)
    known = np.flatnonzero(rows.at_labelled >= 0)
    return known, rows.at_labelled[known]


def slices(n: int, size: int) -> Iterator[slice]:
    """Yield N rows in parts of similar length, at most ``size`` (or 64) each.

    Parts do not overlap, so that the result does not depend on the order of threads.
    """
    bounds = np.linspace(0, n, -(-n // max(64, size)) + 1).astype(int)
    for begin, end in pairwise(bounds):
        yield slice(int(begin), int(end))
