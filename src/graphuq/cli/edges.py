"""A list of edges in a CSV or Parquet file, whose nodes ``graphuq classify`` labels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from graphuq.cli.columns import check_column, refuse_given
from graphuq.cli.frames import as_text, read_frame
from graphuq.cli.tables import Table
from graphuq.errors import InvalidInput, StorageError, require
from graphuq.graphs import from_edges
from graphuq.results.formats import table_formats
from graphuq.utils.text_numbers import to_numbers


def read_edges(path: Path, columns: str, options: Mapping[str, Any]) -> Table:
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

    Returns
    -------
    Table
        The weights as features, and the names of the nodes as ids.

    Raises
    ------
    InvalidInput, StorageError
        If the file cannot be read, a column is missing, or an option has no meaning.
    """
    refuse_given(options, "--edges", "leave it out; labels of nodes are given with --labels FILE")
    names = [name.strip() for name in columns.split(",")]
    require(
        len(names) in (2, 3) and all(names) and len(set(names)) == len(names),
        "--edges",
        f"{columns!r}",
        "name two columns, or three with the weight: source,target,weight",
    )
    if not path.is_file():
        raise StorageError(f"there is no file '{path}'")
    require(
        path.suffix.lower() in table_formats(),
        "file",
        f"'{path.name}' has an unknown type for edges",
        f"use {' or '.join(table_formats())}",
    )
    frame = read_frame(path, names[:2])
    for name in names:
        check_column(name, [str(column) for column in frame.columns])
    source, target = (as_text(frame[name]) for name in names[:2])
    weight = _numbers(frame[names[2]]) if len(names) == 3 else None
    graph = from_edges(source.tolist(), target.tolist(), weight)
    assert graph.names is not None
    return Table(graph.weights, graph.names.astype(str), None, None, [])


def _numbers(column: pd.Series) -> Any:
    """Return weights as numbers.

    Raises
    ------
    InvalidInput
        If one is empty or text.
    """
    numbers = to_numbers(column)
    if numbers.isna().any():
        row = int(numbers.isna().to_numpy().argmax())
        raise InvalidInput(
            "weight", f"{str(column.iloc[row])!r} in row {row}", "give a number >= 0 in every row"
        )
    return numbers.to_numpy(dtype=float)
