"""Similarity of items by the graph alone: what to show first, look-alikes and a map."""

import dataclasses
import threading
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.graphs import Graph
from graphuq.priors import Matern
from graphuq.spectrum import Spectrum, laplacian_spectrum

MAX_EIGENPAIRS = 60  # similarity needs the coarse structure of the graph only
N_COVERED = 2_000  # items that are covered, a random sample of more
EQUAL = 1e-9  # difference of what two items explain that rounding may make
PRIOR = Matern(tau=0.25, alpha=4.0)  # as the classifier's before evidence chooses


class Similarity:
    """Correlation of a smooth Gaussian field between the nodes of a graph.

    Parameters
    ----------
    spectrum : Spectrum
        Eigenpairs of a graph on the N items, of which the first few matter.
    """

    def __init__(self, spectrum: Spectrum) -> None:
        prior = PRIOR.bind(spectrum)
        self._spectrum, self._lock = spectrum, threading.Lock()
        self._places: Float[np.ndarray, "N 2"] | None = None
        rows = np.asarray(spectrum.basis) * spectrum.node_scale[:, None]
        self._rows: Float[np.ndarray, "N L"] = rows * prior.spectral_std(spectrum).modes
        self._std = np.sqrt((self._rows**2).sum(axis=1))

    @classmethod
    def of_graph(cls, graph: Graph, basis: Any = None) -> "Similarity":
        """Return the similarity on a graph, from its first eigenpairs.

        Parameters
        ----------
        graph : Graph
        basis : Basis, optional
            Of this graph; its eigenpairs are taken if they are of the symmetric Laplacian and
            enough, and else computed.
        """
        n_pairs = min(max(MAX_EIGENPAIRS, 2 * graph.n_components), graph.n_nodes)
        known = getattr(basis, "spectrum", None)
        if known is not None and _serves(known, n_pairs):
            return cls(_first_pairs(known, n_pairs))
        return cls(laplacian_spectrum(graph, n_eigenpairs=n_pairs))

    def central_rows(self, n: int, labelled: Any = (), without: Any = ()) -> Int[np.ndarray, " n"]:
        """Return items that tell most about all others, one after the other.

        Each one is the item that adds most to ``Σ_i max_j C_ij²`` over labelled items j, where C is
        the correlation of the field: the share of the variance at i that the closest label explains
        (greedy facility location: Nemhauser, Wolsey & Fisher 1978). No classes are needed. Of many
        items, a random sample is covered, and they come from it.

        Parameters
        ----------
        n : int
            Number of items; there are fewer if fewer are left.
        labelled : sequence of int, optional
            Items whose labels are known.
        without : sequence of int, optional
            Other items that are not returned.
        """
        known = np.asarray(list(labelled), dtype=np.int64)
        free = np.ones(len(self._rows), dtype=bool)
        free[known] = False
        free[np.asarray(without, dtype=np.int64)] = False
        rows = np.flatnonzero(free)
        if len(rows) > N_COVERED:
            rows = np.sort(np.random.default_rng(0).choice(rows, N_COVERED, replace=False))
        among = rows if len(self._rows) > N_COVERED else np.arange(len(self._rows))
        v = self._rows / np.where(self._std > 0, self._std, 1.0)[:, None]
        explained = (v[among] @ v[rows].T) ** 2
        best = ((v[among] @ v[known].T) ** 2).max(axis=1, initial=0.0)
        left, picks = np.ones(len(rows), dtype=bool), list[int]()
        while len(picks) < n and left.any():
            gain = np.where(left, np.maximum(explained - best[:, None], 0.0).sum(axis=0), -1.0)
            # Of items that tell the same, the first: rounding differs between machines.
            place = int((gain >= gain.max() - EQUAL).argmax())
            picks.append(int(rows[place]))
            left[place] = False
            best = np.maximum(best, explained[:, place])
        return np.array(picks, dtype=np.int64)

    def to(self, row: int, others: Any) -> Float[np.ndarray, " M"]:
        """Return the correlation between one item and others, in [−1, 1]."""
        others = np.asarray(others, dtype=np.int64)
        scale = self._std[row] * self._std[others]
        products = self._rows[others] @ self._rows[row]
        return np.asarray(np.clip(products / np.where(scale > 0, scale, 1.0), -1.0, 1.0))

    def closest(self, row: int, among: Any, n: int) -> Int[np.ndarray, " n"]:
        """Return the most similar of some items, the closest first."""
        among = np.asarray(among, dtype=np.int64)
        among = among[among != row]
        return np.asarray(among[np.argsort(-self.to(row, among), kind="stable")[:n]])

    def coordinates(self) -> Float[np.ndarray, "N 2"]:
        """Return a place in the plane for each item; the first call takes up to 5 s."""
        from graphuq.spectrum.layout import node_layout  # imports scikit-learn's manifolds

        with self._lock:
            if self._places is None:
                self._places = node_layout(self._spectrum, np.arange(len(self._rows)))
            return self._places


def _serves(spectrum: Spectrum, n_pairs: int) -> bool:
    is_symmetric = spectrum.settings.get("laplacian") == "symmetric"
    is_array = isinstance(spectrum.eigenvectors, np.ndarray)
    return is_symmetric and is_array and len(spectrum.eigenvalues) >= n_pairs


def _first_pairs(spectrum: Spectrum, n: int) -> Spectrum:
    return dataclasses.replace(
        spectrum,
        eigenvalues=spectrum.eigenvalues[:n],
        eigenvectors=np.asarray(spectrum.eigenvectors)[:, :n],
        residuals=spectrum.residuals[:n],
        tail_eigenvalue=None,
    )
