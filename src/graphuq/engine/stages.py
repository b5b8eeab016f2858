"""The stages that do not depend on labels: rows in parts, neighbours, graph, eigenpairs.

There is a chain of them for each graph. That of the features comes first. Its parts are the table
of which functions of the features are computed, and whose whitened rows are those of other graphs.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from graphuq.engine import functions, graph, neighbors, pairs, partition, points
from graphuq.engine.basis import StoredBasis, StoredPairs
from graphuq.engine.ranges import ranges_of
from graphuq.engine.sources import Source
from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks
from graphuq.errors import require
from graphuq.graphs import SelfTuning
from graphuq.graphs.column_ranges import ColumnRanges
from graphuq.graphs.principal import MAIN_COMPONENTS, MANY_FEATURES, Moments
from graphuq.graphs.weights import WeightFunction
from graphuq.spectrum.exponential import ExponentialColumns
from graphuq.spectrum.joined import JOINED_GRAPH, columns_that_tear
from graphuq.spectrum.solve import DEFAULT_EIGENPAIRS
from graphuq.spectrum.whitened import (
    N_NEIGHBORS,
    SHARPNESS,
    WHITENED_GRAPH,
    has_whitened_graph,
)
from graphuq.utils.concurrency import cached_property
from graphuq.utils.user_warnings import held_warnings


@dataclasses.dataclass(frozen=True)
class GraphOptions:
    """Options of the stages of one graph; see `graphuq.GraphClassifier` and `graphuq.Store`."""

    n_parts: int
    n_neighbors: int
    exact: bool
    weight: WeightFunction
    n_eigenpairs: int | None
    tolerance: float
    seed: int
    n_components: int | None = None


class GraphStages:
    """Names of the stages of one graph, and the order in which they are done.

    Attributes
    ----------
    rows, parts, points, neighbors, graph, pairs : Stage
        ``rows`` is removed once ``parts`` is complete. ``points`` is ``parts``, unless distances
        are measured in principal components.
    """

    def __init__(self, store: Path, rows: Stage, options: GraphOptions) -> None:
        self.rows, self.options = rows, options
        parted = {"n_parts": options.n_parts, "seed": options.seed}
        self.parts = Stage.of(store, "parts", parted, [rows])
        searched = {"n_neighbors": options.n_neighbors, "exact": options.exact}
        main = {"n_components": options.n_components}
        has_own = options.n_components is not None
        self.points = Stage.of(store, "points", main, [self.parts]) if has_own else self.parts
        self.neighbors = Stage.of(store, "neighbors", searched, [self.points])
        weighed = {"weights": repr(options.weight)}
        self.graph = Stage.of(store, "graph", weighed, [self.neighbors])
        wanted = {
            "n_eigenpairs": options.n_eigenpairs,
            "tolerance": options.tolerance,
            "seed": options.seed,
        }
        self.pairs = Stage.of(store, "pairs", wanted, [self.graph])

    def complete(self, copy_rows: Callable[[Stage, Tasks], None], tasks: Tasks) -> None:
        """Do what is not done, with a function that writes the rows.

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
                copy_rows(self.rows, tasks)
            partition.partition(self.parts, self.rows, options.n_parts, options.seed, tasks)
        self.rows.remove_all()
        n_rows = self.parts.record["starts"][-1]
        if options.n_components is not None and not self.points.is_done:
            own = options.n_components, options.weight
            points.project(self.points, self.parts, *own, tasks)
        if not self.neighbors.is_done:
            neighbors.search(self.neighbors, self.points, options.n_neighbors, options.exact, tasks)
        if not self.graph.is_done:
            graph.build(self.graph, self.parts, self.neighbors, options.weight, tasks)
        graph.warn_if_disconnected(self.graph.record, n_rows)
        n_wanted = self._n_wanted(n_rows)
        if not self.pairs.is_done:
            asked = options.n_eigenpairs is not None
            arguments = self.parts, self.graph, n_wanted, asked, options.tolerance, options.seed
            pairs.compute(self.pairs, *arguments, tasks)
        for stage in (self.parts, self.graph, self.pairs):
            stage.clear()

    def _n_wanted(self, n_rows: int) -> int:
        """Return the number of eigenpairs without null vectors."""
        n_null, asked = self.stored.n_null, self.options.n_eigenpairs
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

    def measured(self, rows: np.ndarray) -> np.ndarray:
        """Return the points of rows of features, in single precision."""
        if self.options.n_components is None:
            return np.ascontiguousarray(rows, dtype=np.float32)
        return points.measured(self.points, np.asarray(rows, dtype=np.float32))

    @property
    def stored(self) -> StoredPairs:
        """Eigenpairs of all rows."""
        return StoredPairs(self.parts, self.graph, self.pairs)

    @property
    def recall(self) -> float:
        """Share of the true neighbours that were found."""
        return float(self.neighbors.record["recall"])

    def described(self) -> dict[str, Any]:
        """Return the settings of graph and spectrum, as plain data."""
        return {
            "laplacian": "symmetric",
            "graph": "knn",
            "n_rows": self.parts.record["starts"][-1],
            "n_neighbors": self.options.n_neighbors,
            "weights": repr(self.options.weight),
            "recall": round(self.recall, 4),
            **({} if self.points is self.parts else {"n_components": self.options.n_components}),
            **({"distinct": True} if "n_distinct" in self.neighbors.record else {}),
            "n_eigenpairs": self.stored.n_pairs,
            "tolerance": self.options.tolerance,
            "solver": self.pairs.record["solver"],
        }


class Stages:
    """All stages of a table. Those of blocks beside the eigenpairs are done when they are needed.

    Attributes
    ----------
    first : GraphStages
        Those of the graph of the features.
    column_ranges, functions : Stage
    """

    graphs = (WHITENED_GRAPH, JOINED_GRAPH)  # names of blocks of eigenpairs of other graphs

    def __init__(self, store: Path, table: Source, options: GraphOptions) -> None:
        self.store, self.table, self.options = store, table, options
        source = {"source": table.identity, "names": table.names, "seed": options.seed}
        wide = MAIN_COMPONENTS if table.width > MANY_FEATURES else None
        first = dataclasses.replace(options, n_components=wide)
        self.first = GraphStages(store, Stage.of(store, "rows", source), first)
        self.column_ranges = Stage.of(store, "ranges", {}, [self.first.parts])
        self.functions = Stage.of(store, "functions", {}, [self.column_ranges])

    def complete(self, tasks: Tasks) -> None:
        """Do what is not done of the first graph; see `GraphStages.complete`."""
        self.first.complete(lambda rows, own: partition.copy_rows(rows, self.table, own), tasks)

    def ranges(self, tasks: Tasks) -> ColumnRanges:
        """Return the ranges of the features of all rows."""
        return ranges_of(self.column_ranges, self.first.parts, tasks)

    def blocks(self, tasks: Tasks) -> list[str]:
        """Return the names of all blocks beside the eigenpairs, as `graphuq.Basis` has them."""
        if not self.functions.is_done:
            functions.compute(self.functions, self.first.parts, self.ranges(tasks), tasks)
        names = list(self.functions.record["blocks"])
        if names and self._has_whitened_graph:
            names.append(WHITENED_GRAPH)
            names += [JOINED_GRAPH] if self._tears.any() else []
        return names

    @property
    def _has_whitened_graph(self) -> bool:
        width = self.first.parts.load("features", 0).shape[1]
        return has_whitened_graph(functions.table_like(self.table.n_rows, width))

    @cached_property
    def _tears(self) -> Bool[np.ndarray, " d"]:
        """Columns without which the joined graph is; a second graph has few enough rows."""
        rows = np.arange(self.table.n_rows)
        spectrum = self.first.stored.spectrum(rows, self.first.described())
        places = self.first.stored.places(rows)
        features = self.first.parts.parts("features", self.first.stored.starts).take(places)
        return columns_that_tear(spectrum, features.astype(np.float64))

    def other(self, name: str, tasks: Tasks) -> StoredPairs:
        """Return the eigenpairs of another graph, which are computed if they are not in the store.

        Its rows are the places of the first one.
        """
        kept = ~self._tears if name == JOINED_GRAPH else np.ones(len(self._tears), dtype=bool)
        stages = self._stages_of(kept)
        with held_warnings():  # it is one of several blocks
            stages.complete(lambda rows, own: self._copy_whitened(rows, kept, own), tasks)
        return stages.stored

    def _stages_of(self, kept: Bool[np.ndarray, " d"]) -> GraphStages:
        """Return the stages of the graph of whitened columns."""
        columns = {"columns": np.flatnonzero(kept).tolist()}
        rows = Stage.of(self.store, "whitened", columns, [self.functions])
        options = dataclasses.replace(
            self.options,
            n_neighbors=min(N_NEIGHBORS, self.table.n_rows - 1),
            weight=SelfTuning(SHARPNESS),
            n_eigenpairs=None,
        )
        return GraphStages(self.store, rows, options)

    def _copy_whitened(self, rows: Stage, kept: Bool[np.ndarray, " d"], tasks: Tasks) -> None:
        parts, starts = self.first.parts, self.first.stored.starts
        moments = Moments(*(np.asarray(self.functions.load(n)) for n in ("centre", "covariance")))
        axes = functions.whitening(moments.of_columns(kept))
        numbers = range(len(starts) - 1)
        tasks.map(_whiten_part, [(rows, parts, p, kept, *axes[:2]) for p in numbers], "functions")
        rows.finish({"starts": starts})

    def basis(
        self, names: list[str], chosen: Mapping[str, ExponentialColumns], tasks: Tasks
    ) -> StoredBasis:
        """Return the columns of all rows, with blocks of these names, which are computed.

        ``chosen`` are functions that the labels have chosen.
        """
        others = {name: self.other(name, tasks) for name in names if name in self.graphs}
        return StoredBasis(self.first.stored, self.functions, others, chosen)

    def places(self, rows: Int[np.ndarray, " R"]) -> Int[np.ndarray, " R"]:
        """Return the places of rows of the source."""
        return self.first.stored.places(rows)


def _whiten_part(
    stage: Stage, parts: Stage, p: int, kept: np.ndarray, centre: np.ndarray, directions: np.ndarray
) -> None:
    if not stage.has("rows", p):
        features = parts.load("features", p)[:, kept]
        stage.save("rows", p, functions.whiten(features, centre, directions))
