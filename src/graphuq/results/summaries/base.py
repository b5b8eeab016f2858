"""Nodes, and what every summary of them knows: the law of u there given a draw."""

import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

import jax
import numpy as np
from jaxtyping import Float

from graphuq.posterior.field import ClassField, LabelledField
from graphuq.spectrum import ProductBasis

BLOCK_ELEMENTS = 1_000_000  # rows × draws a thread holds at once: a temporary fits the cache
BATCHES, BATCHES_A_CHAIN = 20, 20  # in all, and a chain at most, for the Monte-Carlo error

Link: TypeAlias = tuple[np.ndarray, np.ndarray] | None
"""Of a label that is drawn, see `Likelihood.link`; None: it is the sign of u."""


@dataclasses.dataclass(frozen=True, eq=False)
class NodeSummaries:
    """Posterior numbers for B nodes.

    Attributes
    ----------
    label_mean, label_mcse : numpy.ndarray, shape (B,) or (B, K)
        ``E S(u)``, and its Monte-Carlo standard error. For two classes S is the sign; for several
        it is the unit vector of the largest field, and its mean the probability of each class.
    latent_mean, latent_std : numpy.ndarray, shape (B,) or (B, K)
        Mean and standard deviation of u.
    """

    label_mean: Float[np.ndarray, "B *K"]
    label_mcse: Float[np.ndarray, "B *K"]
    latent_mean: Float[np.ndarray, "B *K"]
    latent_std: Float[np.ndarray, "B *K"]


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Nodes to summarise: their rows of the eigenvector matrix.

    ``at_labelled`` gives, for each, its position among the labelled nodes, or −1.
    """

    eigenvectors: Float[np.ndarray, "B L"] | ProductBasis
    scale: Float[np.ndarray, " B"]
    at_labelled: np.ndarray

    def __getitem__(self, part: slice | np.ndarray) -> "Rows":
        """Some of the rows."""
        return Rows(self.eigenvectors[part], self.scale[part], self.at_labelled[part])


def conditional_moments(
    field: LabelledField | ClassField, white: Float[np.ndarray, "S n"], rows: Rows
) -> tuple[Float[np.ndarray, "B S *K"], Float[np.ndarray, " B"]]:
    """Mean, for each draw, and standard deviation of u at nodes given u at the labelled ones."""
    one = field.one_class
    loadings, std = law_of(one, rows)
    if isinstance(field, ClassField):
        seen = np.asarray(one.seen(field.by_class(white)))  # (S, K, r)
        mean = np.einsum("br,skr->bsk", loadings, seen, optimize=True)
    else:
        mean = loadings @ np.asarray(one.seen(white)).T
    known, at = apart_from(one, rows)
    if len(known):
        u = np.asarray(jax.vmap(field.at_labelled)(white))  # (S, J) or (S, J, K)
        mean[known] = np.swapaxes(u[:, at], 0, 1)
        std[known] = 0.0
    return mean, std


def law_of(
    field: LabelledField, rows: Rows
) -> tuple[Float[np.ndarray, "B r"], Float[np.ndarray, " B"]]:
    """Nodes given a draw: u has mean ``loadings @ seen`` and this deviation; see `apart_from`."""
    eigenvectors = np.asarray(rows.eigenvectors)
    loadings = field.loadings(eigenvectors)
    std = rows.scale * field.conditional_std(eigenvectors, loadings)
    loadings *= rows.scale[:, None]
    if field.labelled_loadings is not None:
        known = np.flatnonzero(rows.at_labelled >= 0)
        loadings[known] = np.asarray(field.labelled_loadings)[rows.at_labelled[known]]
        std[known] = 0.0
    return loadings, std


def apart_from(field: LabelledField, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Labelled nodes that `law_of` does not describe, and the position of each among the labels."""
    if field.labelled_loadings is not None:
        return np.arange(0), np.arange(0)
    known = np.flatnonzero(rows.at_labelled >= 0)
    return known, rows.at_labelled[known]


def slices(n: int, size: int) -> Iterator[slice]:
    """N rows in as few parts of at most so many as there can be, of like length.

    They do not overlap: what threads write does not depend on which of them comes last.
    """
    bounds = np.linspace(0, n, -(-n // max(64, size)) + 1).astype(int)
    for begin, end in pairwise(bounds):
        yield slice(int(begin), int(end))
