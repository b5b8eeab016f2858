"""Columns of a basis whose rows are in the store: eigenpairs of graphs, functions of features.

A row of these columns is all that a posterior needs of a row of the table. So a posterior is made
of the labelled rows and a sample of the others, as one of n nodes instead of N. With eigenvectors
multiplied by ``√(N/n)`` its priors, which have ``E|u|² = n``, are those of the whole table.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.engine import functions
from graphuq.engine.store import Stage
from graphuq.spectrum import Spectrum
from graphuq.spectrum.exponential import ExponentialColumns


@dataclasses.dataclass(frozen=True)
class StoredPairs:
    """Eigenpairs of a graph, null vectors included.

    Attributes
    ----------
    parts, graph, pairs : Stage
        ``parts`` has the places of the rows in the order of the parts.
    """

    parts: Stage
    graph: Stage
    pairs: Stage

    @property
    def starts(self) -> list[int]:
        """Places at which the parts begin, and the number of rows."""
        starts: list[int] = self.parts.record["starts"]
        return starts

    @property
    def n_null(self) -> int:
        """Number of null vectors, one for each component of the graph."""
        return int(self.graph.record["n_components"])

    @property
    def n_pairs(self) -> int:
        """Number of eigenpairs, null ones included."""
        return self.n_null + len(self.pairs.record["eigenvalues"])

    def places(self, rows: Int[np.ndarray, " R"]) -> Int[np.ndarray, " R"]:
        """Return the places of rows of the table."""
        return np.asarray(self.parts.parts("place", self.parts.record["blocks"]).take(rows))

    def vectors(self, places: Int[np.ndarray, " R"]) -> Float[np.ndarray, "R L"]:
        """Return rows of eigenvectors."""
        starts, n_null = self.starts, self.n_null
        vectors = self.pairs.parts("vectors", starts).take(places)
        rows = np.zeros((len(places), n_null + vectors.shape[1]))
        profile = self.graph.parts("profile", starts).take(places)
        rows[np.arange(len(places)), self.components(places)] = profile
        rows[:, n_null:] = vectors
        return rows

    def components(self, places: Int[np.ndarray, " R"]) -> Int[np.ndarray, " R"]:
        """Return the component of each row."""
        return np.asarray(self.graph.parts("component", self.starts).take(places))

    def degrees(self, places: Int[np.ndarray, " R"]) -> Float[np.ndarray, " R"]:
        """Return the degree of each row."""
        return np.asarray(self.graph.parts("degree", self.starts).take(places))

    def first_rows(self) -> Int[np.ndarray, " c"]:
        """Return a row of the table of each component."""
        starts = self.starts
        first = np.full(self.n_null, starts[-1])
        for part in range(len(starts) - 1):
            found, at = np.unique(np.asarray(self.graph.load("component", part)), return_index=True)
            np.minimum.at(first, found, starts[part] + at)
        return np.asarray(self.parts.parts("row", starts).take(first))

    def spectrum(self, rows: Int[np.ndarray, " n"], settings: Mapping[str, Any]) -> Spectrum:
        """Return the spectrum at some rows of the table, as one of so many nodes."""
        places, record, zeros = self.places(rows), self.pairs.record, np.zeros(self.n_null)
        return Spectrum(
            eigenvalues=np.append(zeros, record["eigenvalues"]),
            eigenvectors=self.vectors(places) * np.sqrt(self.starts[-1] / len(rows)),
            residuals=np.append(zeros, record["residuals"]),
            tail_eigenvalue=None,
            components=self.components(places),
            degrees=self.degrees(places),
            node_scale=np.ones(len(rows)),
            settings=settings,
        )


@dataclasses.dataclass(frozen=True)
class StoredBasis:
    """Eigenpairs of the graph, functions of the features, and eigenpairs of other graphs.

    Attributes
    ----------
    pairs : StoredPairs
    functions : Stage
        See `graphuq.engine.functions`.
    others : dict of str to StoredPairs
        By name of the block. Their rows are the places of ``pairs``.
    chosen : dict of str to ExponentialColumns, optional
        Functions that the labels have chosen, by name of the block.
    """

    pairs: StoredPairs
    functions: Stage
    others: Mapping[str, StoredPairs] = dataclasses.field(default_factory=dict)
    chosen: Mapping[str, ExponentialColumns] = dataclasses.field(default_factory=dict)

    def columns(
        self, rows: Int[np.ndarray, " R"], names: Iterable[str], n_nodes: int
    ) -> Float[np.ndarray, "R L"]:
        """Return the columns of eigenpairs and of named blocks at rows of the table.

        Parameters
        ----------
        rows : numpy.ndarray of int, shape (R,)
        names : iterable of str
            Names of blocks.
        n_nodes : int
            n, of the posterior.
        """
        return self.columns_at(self.pairs.places(rows), names, n_nodes)

    def columns_at(
        self, places: Int[np.ndarray, " R"], names: Iterable[str], n_nodes: int
    ) -> Float[np.ndarray, "R L"]:
        """Return the same at places."""
        factor = np.sqrt(self.pairs.starts[-1] / n_nodes)
        found = [self.pairs.vectors(places) * factor]
        for name in names:
            if name in self.others:
                other = self.others[name]
                found.append(other.vectors(other.places(places)) * factor)
            else:
                found.append(self.of_features(places, name))
        return np.hstack(found)

    def of_features(self, places: Int[np.ndarray, " R"], name: str) -> Float[np.ndarray, "R m"]:
        """Return the columns of functions at places."""
        return self.at_rows(self.features(places), name)

    def features(self, places: Int[np.ndarray, " R"]) -> Float[np.ndarray, "R d"]:
        """Return the features at places."""
        return np.asarray(self.pairs.parts.parts("features", self.pairs.starts).take(places))

    def at_rows(self, rows: Float[np.ndarray, "R d"], name: str) -> Float[np.ndarray, "R m"]:
        """Return the columns of functions at rows with these features."""
        if name in self.chosen:
            return self.chosen[name].at(rows)
        return functions.values(self.functions, name, rows)
