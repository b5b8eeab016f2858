"""Eigenpairs of the small components of a graph: each component by itself.

A Laplacian is block-diagonal, one block a component. Networks and tissues have hundreds of
components of a few nodes beside large ones. The pairs of each small block cost next to nothing, and
solvers are given the other nodes alone: the many copies of eigenvalues that small components share
would be their hardest case.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.spectrum.laplacian import Laplacian
from graphuq.spectrum.multiple_eigenvalue import Solution

MAX_NODES = 64  # of a small component


class _Group(NamedTuple):
    """Pairs of all small components of one size, which have a null vector or have none."""

    values: Float[np.ndarray, "m k"]
    vectors: Float[np.ndarray, "m s k"]
    nodes: Int[np.ndarray, "m s"]


class SmallComponents:
    """Small components of the graph of a Laplacian, apart from the rest of it.

    Parameters
    ----------
    laplacian : Laplacian

    Attributes
    ----------
    others : numpy.ndarray of int, shape (n,)
        Nodes outside of them.
    rest : Laplacian or None
        That of these nodes, if there are any.
    """

    def __init__(self, laplacian: Laplacian) -> None:
        components = laplacian.graph.components
        sizes = np.bincount(components)[components]
        small, self.others = np.flatnonzero(sizes <= MAX_NODES), np.flatnonzero(sizes > MAX_NODES)
        self.groups = _groups(laplacian.on(small), small) if len(small) else []
        self.rest = None if not len(self.others) else laplacian
        if self.rest is not None and len(small):
            self.rest = laplacian.on(self.others)

    def n_rest(self, n_pairs: int) -> int:
        """Return how many of the other pairs are at most needed among the smallest ones."""
        if self.rest is None:
            return 0
        return min(n_pairs, self.rest.n_nodes - self.rest.n_null)

    def nonnull_pairs(
        self, of_rest: Callable[[Laplacian, int], Solution], whole: Laplacian, n_pairs: int
    ) -> Solution:
        """Return the pairs of the smallest positive eigenvalues of the whole graph.

        Parameters
        ----------
        of_rest : callable
            Returns so many pairs of the Laplacian of the other nodes.
        whole : Laplacian
        n_pairs : int

        Returns
        -------
        eigenvalues, eigenvectors, residuals : numpy.ndarray, shapes (k,), (N, k), (k,)
        """
        values, n_rest = [group.values.ravel() for group in self.groups], self.n_rest(n_pairs)
        if self.rest is not None:
            found, others, inexact = of_rest(self.rest, n_rest)
            values.append(found)
        every = np.concatenate(values)
        chosen = np.argsort(every, kind="stable")[:n_pairs]
        column = np.full(len(every), -1)
        column[chosen] = np.arange(len(chosen))
        vectors, begin = np.zeros((whole.n_nodes, len(chosen))), 0
        residuals = np.zeros(len(chosen))
        for group in self.groups:
            own = column[begin : begin + group.values.size].reshape(group.values.shape)
            m, k = np.nonzero(own >= 0)
            vectors[group.nodes[m], own[m, k][:, None]] = group.vectors[m, :, k]
            begin += group.values.size
        if self.rest is not None:
            own = column[begin:]
            residuals[own[own >= 0]] = inexact[own >= 0]
            vectors[np.ix_(self.others, own[own >= 0])] = np.asarray(others)[:, own >= 0]
        return every[chosen], vectors, residuals


def _groups(laplacian: Laplacian, nodes: Int[np.ndarray, " n"]) -> list[_Group]:
    """Return the pairs of small components, those of one size together, but balanced ones apart.

    A null vector is shifted above the largest eigenvalue, as `dense.nonnull_pairs` does.
    """
    components = laplacian.graph.components
    sizes = np.bincount(components)
    order = np.argsort(components, kind="stable")
    firsts = np.cumsum(sizes) - sizes
    place = np.empty(len(order), int)  # of each node in its component
    place[order] = np.arange(len(order)) - np.repeat(firsts, sizes)
    weights = sparse.coo_array(laplacian.scaled_weights(np.float64))
    profile, diagonal, groups = laplacian.null_profile, laplacian.diagonal, []
    is_balanced = np.bincount(components, profile != 0) > 0
    for size, has_null in sorted(set(zip(sizes.tolist(), is_balanced.tolist(), strict=True))):
        if size == 1:
            continue
        own = np.flatnonzero((sizes == size) & (is_balanced == has_null))
        number = np.full(len(sizes), -1)
        number[own] = np.arange(len(own))
        members = order[firsts[own][:, None] + np.arange(size)]  # (m, s)
        null = profile[members]
        blocks = 2 * laplacian.upper_bound * null[:, :, None] * null[:, None, :]
        blocks[:, np.arange(size), np.arange(size)] += diagonal[members]
        inside = number[components[weights.row]] >= 0
        row, col = weights.row[inside], weights.col[inside]
        np.subtract.at(
            blocks, (number[components[row]], place[row], place[col]), weights.data[inside]
        )
        values, vectors = np.linalg.eigh(blocks)
        k = size - has_null
        groups.append(_Group(values[:, :k], vectors[:, :, :k], nodes[members]))
    return groups
