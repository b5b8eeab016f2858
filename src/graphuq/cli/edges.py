"""Lists of edges in CSV or Parquet files, whose nodes ``graphuq classify`` labels."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from graphuq.classifier.table_encoder.readings import as_numbers
from graphuq.cli.columns import check_column, read_options, refuse_given, same_name
from graphuq.cli.frames import as_text, format_of_file, read_frame
from graphuq.cli.graph_files import edges_of_file
from graphuq.cli.tables import Table
from graphuq.errors import InvalidInput, StorageError, require
from graphuq.graphs import Graph, from_edges, from_hyperedges, node_graph
from graphuq.graphs.directions import check_rule
from graphuq.graphs.graph_files import GRAPH_SUFFIXES
from graphuq.graphs.graph_objects import SIGN
from graphuq.results.formats import formats_of_reading
from graphuq.utils.checks import text_array

DEFAULT_COLUMNS, WEIGHT = ("source", "target"), "weight"


class EdgeKind(NamedTuple):
    """What the rows of a list of edges are.

    Attributes
    ----------
    symmetrize : str or None
        Rule for edges that lead from the first node to the second; see `from_adjacency`.
    are_groups : bool
        Whether the second column names a group of nodes, in place of a node.
    """

    symmetrize: str | None = None
    are_groups: bool = False

    def check(self, has_edges: bool) -> None:
        """Raise `InvalidInput` if options of edges are given without edges, or exclude another."""
        check_rule(self.symmetrize, "--symmetrize")
        one = "--groups" if self.are_groups else "--symmetrize"
        given = self.are_groups or self.symmetrize is not None
        require(
            has_edges or not given,
            one,
            "given without a list of edges",
            "name its columns by --edges, or its file by --graph",
        )
        require(
            not self.are_groups or self.symmetrize is None,
            "--symmetrize",
            "given beside --groups, which have no direction",
            "leave one of the two out",
        )

    def graph(self, source: list[str], target: list[str], weight: Any, nodes: Any) -> Graph:
        """Return the graph of edges, or of nodes in groups."""
        if not self.are_groups:
            return from_edges(source, target, weight, nodes=nodes, symmetrize=self.symmetrize)
        require(weight is None, "--edges", "a column of weights beside --groups", "name two")
        members: dict[str, list[str]] = {}
        for node, group in zip(source, target, strict=True):
            members.setdefault(group, []).append(node)
        return from_hyperedges(members.values(), nodes=nodes)


def read_edges(path: Path, columns: str, options: Mapping[str, Any], kind: EdgeKind) -> Table:
    """Read a graph whose edges are the rows of a file.

    Parameters
    ----------
    path : path
        CSV or Parquet file.
    columns : str
        Names of the columns with the two nodes of each edge and, optionally, its weight:
        "source,target" or "source,target,weight".
    options : dict
        Options of the command that have no meaning for a graph; none may be given.
    kind : EdgeKind

    Returns
    -------
    Table
        The weights as features, and the names of the nodes as ids.

    Raises
    ------
    InvalidInput, StorageError
        If the file cannot be read, a column is missing, or an option has no meaning.
    """
    others = {name: value for name, value in options.items() if name != "read"}
    refuse_given(others, "--edges", "leave it out; labels of nodes are given with --labels FILE")
    graph = _graph_of(path, columns, kind, told=read_options(options.get("read")))
    assert graph.names is not None
    return Table(graph.weights, graph.names.astype(str), None, None, [])


def edge_files(graph: str) -> list[Path]:
    """Return the files that ``--graph`` names, separated by commas, or none for any other word."""
    paths = [Path(part.strip()) for part in graph.split(",")]
    known = (*formats_of_reading(), *GRAPH_SUFFIXES)
    return paths if all(path.suffix.lower() in known for path in paths) else []


def graph_of_rows(
    paths: Sequence[Path], columns: str | None, ids: np.ndarray, kind: EdgeKind
) -> Graph:
    """Return the graph of lists of edges between the rows of a table.

    Parameters
    ----------
    paths : sequence of path
        CSV or Parquet files, one a graph, which gives the graph its name.
    columns : str, optional
        As for `read_edges`; by default ``source`` and ``target``, and ``weight`` or ``sign`` if
        there is one.
    ids : numpy.ndarray of str, shape (N,)
        Names of the rows.
    kind : EdgeKind

    Raises
    ------
    InvalidInput, StorageError
        If a file cannot be read, a column is missing, or an edge has a node without a row.
    """
    names = [path.stem for path in paths]
    require(len(set(names)) == len(names), "--graph", f"files {names}", "give each its own name")
    graphs = {path.stem: _graph_of(path, columns, kind, ids) for path in paths}
    return node_graph(graphs if len(graphs) > 1 else graphs[names[0]])


def _graph_of(
    path: Path,
    columns: str | None,
    kind: EdgeKind,
    nodes: np.ndarray | None = None,
    told: Mapping[str, str] | None = None,
) -> Graph:
    """Return the graph of a list of edges, of given nodes or of those that it names."""
    if not path.is_file():
        raise StorageError(f"there is no file '{path}'")
    require(
        path.suffix.lower() in (*formats_of_reading(), *GRAPH_SUFFIXES),
        "file",
        f"'{path.name}' has an unknown type for edges",
        f"use {' or '.join(formats_of_reading())}",
    )
    source, target, weight = _edge_columns(path, columns, told)
    if nodes is not None:
        known = set(nodes.tolist())
        ends = source if kind.are_groups else (*source, *target)
        missing = [str(name) for name in ends if name not in known]
        require(
            not missing,
            "--graph",
            f"node {missing[:1]} of '{path.name}' has no row",
            "add a row for it, or name the column with the names of rows by --id-column",
        )
    own = None if nodes is None else nodes.tolist()
    return kind.graph(source.tolist(), target.tolist(), weight, own)


def _edge_columns(
    path: Path, columns: str | None, told: Mapping[str, str] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the names of both nodes of each edge, and its weight if it has one."""
    if path.suffix.lower() in GRAPH_SUFFIXES:
        require(columns is None, "--edges", f"given beside '{path.name}'", "leave it out")
        edges = edges_of_file(path)
        ends = text_array((end for edge in edges for end in edge[:2]), "--graph").reshape(-1, 2)
        return ends[:, 0], ends[:, 1], _numbers(pd.Series([edge[2] for edge in edges]))
    names = list(DEFAULT_COLUMNS) if columns is None else [n.strip() for n in columns.split(",")]
    require(
        len(names) in (2, 3) and all(names) and len(set(names)) == len(names),
        "--edges",
        f"{columns!r}",
        "name two columns, or three with the weight: source,target,weight",
    )
    either = [*names[:2], *(name.title() for name in names[:2])]
    frame = read_frame(path, either, format_of_file(path, told))
    found = [str(column) for column in frame.columns]
    if columns is None:  # Gephi writes Source, Target and Weight
        numbers = [name for w in (WEIGHT, SIGN) if (name := same_name(w, found)) in found]
        remedy = f"name one of them, as in --edges {','.join((*DEFAULT_COLUMNS, WEIGHT))}"
        require(len(numbers) < 2, "--graph", f"columns {numbers} of '{path.name}'", remedy)
        names = [*(same_name(name, found) for name in DEFAULT_COLUMNS), *numbers]
    for name in names:
        check_column(name, found, f"name the columns of nodes, as in --edges {','.join(found[:2])}")
    source, target = (as_text(frame[name]) for name in names[:2])
    return source, target, _numbers(frame[names[2]]) if len(names) == 3 else None


def _numbers(column: pd.Series) -> Any:
    """Return weights as numbers.

    Raises
    ------
    InvalidInput
        If one is empty or text.
    """
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
        numbers = column.to_numpy(dtype=float)
    else:
        cells = pd.Series(as_text(column), dtype=object)
        reading = as_numbers(cells)
        numbers = np.full(len(cells), np.nan) if reading is None else reading.numbers(cells)
    if np.isnan(numbers).any():
        row = int(np.isnan(numbers).argmax())
        raise InvalidInput(
            "weight", f"{str(column.iloc[row])!r} in row {row}", "give a number in every row"
        )
    return numbers
