"""The stages that do not depend on labels: rows in parts, neighbours, graph, eigenpairs."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from graphuq.blocks import graph, neighbors, pairs, partition
from graphuq.blocks.answer import Basis
from graphuq.blocks.sources import Source
from graphuq.blocks.store import Stage
from graphuq.blocks.tasks import Tasks
from graphuq.errors import require
from graphuq.graphs.weights import WeightFunction

DEFAULT_EIGENPAIRS = 150  # as in memory: null vectors beyond the first are not counted


@dataclasses.dataclass(frozen=True)
class StageOptions:
    """Options of these stages; see `BlockClassifier`."""

    n_parts: int
    n_neighbors: int
    exact: bool
    weight: WeightFunction
    n_eigenpairs: int | None
    tolerance: float
    seed: int


class Stages:
    """Names of the stages of a table, and the order in which they are done.

    Attributes
    ----------
    rows, parts, neighbors, graph, pairs : Stage
        ``rows`` is removed once ``parts`` is complete.
    """

    def __init__(self, store: Path, table: Source, options: StageOptions) -> None:
        self.table, self.options = table, options
        source = {"source": table.identity, "names": table.names, "seed": options.seed}
        self.rows = Stage.of(store, "rows", source)
        self.parts = Stage.of(store, "parts", {**source, "n_parts": options.n_parts})
        searched = {"n_neighbors": options.n_neighbors, "exact": options.exact}
        self.neighbors = Stage.of(store, "neighbors", searched, [self.parts])
        weighed = {"weights": repr(options.weight)}
        self.graph = Stage.of(store, "graph", weighed, [self.neighbors])
        wanted = {
            "n_eigenpairs": options.n_eigenpairs,
            "tolerance": options.tolerance,
            "seed": options.seed,
        }
        self.pairs = Stage.of(store, "pairs", wanted, [self.graph])

    def complete(self, tasks: Tasks) -> None:
        """Do what is not done.

        Warns
        -----
        DisconnectedGraphWarning
            If the graph has several components.
        NotConvergedWarning
            If fewer eigenpairs converge than by default.
        """
        options = self.options
        if not self.parts.is_done:
            if not self.rows.is_done:
                partition.copy_rows(self.rows, self.table, tasks)
            partition.partition(self.parts, self.rows, options.n_parts, options.seed, tasks)
        self.rows.remove_all()
        if not self.neighbors.is_done:
            neighbors.search(self.neighbors, self.parts, options.n_neighbors, options.exact, tasks)
        if not self.graph.is_done:
            graph.build(self.graph, self.parts, self.neighbors, options.weight, tasks)
        graph.warn_if_disconnected(self.graph.record, self.table.n_rows)
        n_wanted = self._n_wanted()
        if not self.pairs.is_done:
            asked = options.n_eigenpairs is not None
            arguments = self.parts, self.graph, n_wanted, asked, options.tolerance, options.seed
            pairs.compute(self.pairs, *arguments, tasks)
        for stage in (self.parts, self.graph, self.pairs):
            stage.clear()

    def _n_wanted(self) -> int:
        """Return the number of eigenpairs without null vectors."""
        n_rows, n_null, asked = self.table.n_rows, self.n_components, self.options.n_eigenpairs
        most = pairs.most_pairs(n_rows)
        if asked is None:
            return min(DEFAULT_EIGENPAIRS - 1, most - n_null)
        require(
            n_null < asked <= most,
            "n_eigenpairs",
            f"{asked} pairs of {n_rows} rows in {n_null} component(s), each of which has a null "
            "vector",
            f"use more than the components, and at most {most}",
        )
        return asked - n_null

    @property
    def n_components(self) -> int:
        """Number of connected components of the graph."""
        return int(self.graph.record["n_components"])

    @property
    def recall(self) -> float:
        """Share of the true neighbours that were found."""
        return float(self.neighbors.record["recall"])

    @property
    def basis(self) -> Basis:
        """Eigenvectors of all rows."""
        return Basis(self.graph, self.pairs, self.parts.record["starts"])

    def places(self, rows: Int[np.ndarray, " R"]) -> Int[np.ndarray, " R"]:
        """Return the places of rows of the source."""
        return np.asarray(self.parts.parts("place", self.parts.record["blocks"]).take(rows))

    def described(self) -> dict[str, Any]:
        """Return the settings of graph and spectrum, as plain data."""
        return {
            "laplacian": "symmetric",
            "graph": "knn",
            "n_rows": self.table.n_rows,
            "n_neighbors": self.options.n_neighbors,
            "weights": repr(self.options.weight),
            "recall": round(self.recall, 4),
            "n_eigenpairs": self.n_components + len(self.pairs.record["eigenvalues"]),
            "tolerance": self.options.tolerance,
            "solver": self.pairs.record["solver"],
        }
