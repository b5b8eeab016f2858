"""Tables of features and labels are read from files."""

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow.parquet import ParquetFile

from graphuq.classifier.suspect_columns import warn_of_suspects
from graphuq.classifier.table_encoder import TableEncoder
from graphuq.classifier.table_encoder.readings import Reading
from graphuq.classifier.table_encoder.refusals import (
    RefusedColumns,
    empty_cells,
    not_finite,
)
from graphuq.cli.columns import check_column, feature_columns_of, generated_names, require_features
from graphuq.cli.contents import Contents
from graphuq.cli.frames import GAPS, as_text, format_of_file, names_in, read_columns
from graphuq.errors import InvalidInput, require
from graphuq.graphs.features import check_features, row_blocks
from graphuq.graphs.inputs import Features
from graphuq.results.formats import formats_of_reading, table_formats
from graphuq.utils.gate import (
    is_sparse_npz,
    read_npy,
    read_npz,
    reading,
    require_file,
    sparse_from,
)
from graphuq.utils.parquet_columns import check_repeated, index_columns, index_range

ARRAYS = (".npy", ".npz")  # files without a table
BATCH_ROWS = 65_536  # rows that are read together
SPILLED_BYTES = 4 << 30  # bytes of features above which they are kept on disk, not in memory


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """The contents of a file: N rows of features (or weights), names, and labels as text.

    Attributes
    ----------
    features : numpy.ndarray, shape (N, d), or scipy.sparse.csr_array, shape (N, N)
    ids : numpy.ndarray of str, shape (N,)
    labels, truth : numpy.ndarray of str, shape (N,), or None
        Classes, empty where unknown.
    feature_names : list of str
    weights : numpy.ndarray of str, shape (N,), or None
        Weights of labels.
    encoder : TableEncoder or None
        Made the features from the columns of the file.
    annotations : numpy.ndarray of str, shape (N, A), or None
        Label of each row by each annotator, empty where there is none.
    settings : dict
        How the file was read, as plain data.
    line : str
        How the file was read, in one line.
    """

    features: Features
    ids: np.ndarray
    labels: np.ndarray | None
    truth: np.ndarray | None
    feature_names: list[str]
    weights: np.ndarray | None = None
    encoder: Any = None
    annotations: np.ndarray | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    line: str = ""


def read_table(
    path: Path,
    label_column: str | None = None,
    id_column: str | None = None,
    truth_column: str | None = None,
    dropped: Sequence[str] = (),
    feature_columns: Sequence[str] = (),
    weight_column: str | None = None,
    encoder: Any = None,
    annotator_columns: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> Table:
    """Read features, ids and labels from a table, such as CSV or Parquet, or an NPY or NPZ file.

    A Parquet file is read some rows at a time. Its features have single precision if its columns
    do, and above 4 GB they are kept in a temporary file on disk. An NPY file is memory-mapped. An
    NPZ file holds ``X`` (or ``features``) and arrays with the names of the columns, or is a matrix
    of weights saved by ``scipy.sparse.save_npz``.

    Parameters
    ----------
    path : path
    label_column, id_column, truth_column : str, optional
        Columns that hold labels, names of the rows, and true classes.
    dropped : sequence of str
        Columns to ignore.
    feature_columns : sequence of str
        Columns of the features, in this order; the file may have others. By default all columns
        that have no other use. Ignored for NPY and NPZ files, whose columns have no names.
    weight_column : str, optional
        Column that holds weights of labels.
    encoder : TableEncoder, optional
        Encodes the columns of features; it is fitted, unless it was before.
    annotator_columns : sequence of str
        Columns of ``annotations``.
    options : dict of str to str, optional
        What the user says of how a file of text holds its table: separator, encoding and so on.

    Raises
    ------
    InvalidInput, StorageError
        If the file cannot be read, or a column is missing, repeated, or holds the wrong thing.
    """
    require_file(path)
    known = (*formats_of_reading(), *ARRAYS)
    require(
        path.suffix.lower() in known,
        "file",
        f"'{path.name}' has an unknown type",
        f"use {', '.join((*table_formats(), *ARRAYS))}",
    )
    named = (label_column, id_column, truth_column, weight_column, *annotator_columns)
    special = [c for c in named if c is not None]
    require(
        len(set(special)) == len(special), "columns", f"{special} repeat", "name each column once"
    )
    if encoder is None:
        found = _read_contents(path, special, dropped, feature_columns, options or {})
    else:
        from graphuq.cli.encoding import read_encoded

        found = read_encoded(path, special, dropped, encoder, options)
    columns, features = found.columns, found.features
    n_rows = features.shape[0]
    require(n_rows > 0, "file", f"'{path}' has no rows", "give at least 2 rows")
    ids = np.arange(n_rows).astype(f"U{len(str(n_rows))}") if found.ids is None else found.ids
    if id_column:
        ids = columns[id_column]
        check_ids(ids, id_column)
    return Table(
        features=features,
        ids=ids,
        labels=columns[label_column] if label_column else None,
        truth=columns[truth_column] if truth_column else None,
        feature_names=found.names,
        weights=columns[weight_column] if weight_column else None,
        encoder=encoder,
        annotations=np.stack([columns[c] for c in annotator_columns], axis=1)
        if annotator_columns
        else None,
        settings=found.settings(path),
        line=found.line(path),
    )


def _read_contents(
    path: Path,
    special: list[str],
    dropped: Sequence[str],
    required: Sequence[str],
    options: Mapping[str, str],
) -> Contents:
    """Return special columns, features and their names from a file of any known format."""
    kind = path.suffix.lower()
    if kind in (*ARRAYS, ".parquet"):
        require(not options, "--read", f"given beside '{path.name}'", "leave it out")
    if kind == ".npz":
        return _read_npz(path, special)
    if kind == ".npy":
        return _read_npy(path, special)
    if kind == ".parquet":
        return _read_parquet(path, special, dropped, required)
    found = format_of_file(path, options).without(GAPS)
    frame = read_columns(path, special, dropped, found)
    names = feature_columns_of([str(name) for name in frame.features.columns], required)
    features, readings = _numeric(frame.features[names], bool(required), found.decimal)
    return Contents(frame.columns, features, names, frame.ids, found, readings)


def _read_npz(path: Path, special: list[str]) -> Contents:
    """Return special columns, features and their names from an NPZ file."""
    arrays = read_npz(path)
    if is_sparse_npz(arrays):
        require(
            not special,
            "columns",
            f"{special} of '{path.name}', which holds only weights of edges",
            "give --labels FILE, a file with the columns id and label",
        )
        return Contents({}, sparse_from(arrays, path), [])
    for column in special:
        check_column(column, sorted(arrays))
    name = next((n for n in ("X", "features") if n in arrays), None)
    if name is None:
        raise InvalidInput("file", f"'{path}' has no array X", "save features as X")
    with reading(path, "npz file"):  # a text may not be one that can be encoded
        columns = {c: as_text(pd.Series(arrays[c].ravel(), name=c)) for c in special}
        for values in columns.values():
            "".join(values.tolist()).encode()
    features = check_features(arrays[name], name)
    for column, values in columns.items():
        require(
            len(values) == len(features),
            column,
            f"{len(values)} values for {len(features)} rows",
            "save one value for each row",
        )
    return Contents(columns, features, generated_names(features.shape[1]))


def _read_npy(path: Path, special: list[str]) -> Contents:
    """Return features from an NPY file, which has no other columns."""
    require(
        not special,
        "columns",
        f"{special} of '{path.name}', which holds only features",
        "give --labels FILE, a file with the columns id and label",
    )
    features = read_npy(path)
    features = check_features(features, "features")
    return Contents({}, features, generated_names(features.shape[1]))


def _read_parquet(
    path: Path, special: list[str], dropped: Sequence[str], required: Sequence[str]
) -> Contents:
    """Return special columns, features and their names from a Parquet file."""
    with reading(path, "parquet file"), ParquetFile(path) as file:
        schema = file.schema_arrow
        check_repeated(schema.names, path)
        for column in (*special, *dropped):
            check_column(column, schema.names)
        index, counted = index_columns(schema), index_range(schema)
        rest = [name for name in schema.names if name not in (*special, *dropped, *index)]
        names = feature_columns_of(rest, required)
        table = file.read(columns=[*special, *index]).to_pandas(ignore_metadata=True)
        columns = {column: as_text(table[column]) for column in special}
        ids = names_in(table[index[0]]) if len(index) == 1 else None
        if counted is not None and len(counted) == file.metadata.num_rows:
            ids = np.array([str(number) for number in counted])
        dtype = _number_type([schema.field(name).type for name in names])
        if dtype is None:
            frame = file.read(columns=names).to_pandas(ignore_metadata=True)
            features, readings = _numeric(frame, bool(required))
            return Contents(columns, features, names, ids, None, readings)
        features = _read_batches(file, names, dtype)
        if not required:
            warn_of_suspects(names, lambda k: features[:, k])
        _refuse_gaps(features, names, bool(required))
        _refuse_infinite(features, names, bool(required))
    return Contents(columns, check_features(features, "features"), names, ids)


def _number_type(types: list[pa.DataType]) -> type[np.floating] | None:
    """Return the precision that holds all columns, or None if a column is not of numbers.

    The result is None for no columns too.
    """
    if not types or not all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in types):
        return None
    single = all(t.bit_width <= (32 if pa.types.is_floating(t) else 16) for t in types)
    return np.float32 if single else np.float64


def _read_batches(file: ParquetFile, names: list[str], dtype: type[np.floating]) -> np.ndarray:
    """Return columns of numbers, read some rows at a time."""
    features, begin = _allocate((file.metadata.num_rows, len(names)), dtype), 0
    for batch in file.iter_batches(BATCH_ROWS, columns=names):
        rows = features[begin : begin + batch.num_rows]
        for place, column in enumerate(batch.columns):
            rows[:, place] = column.to_numpy(zero_copy_only=False)
        begin += batch.num_rows
    return features


def _allocate(shape: tuple[int, int], dtype: type[np.floating]) -> np.ndarray:
    """Return an empty array in memory, or a large one in a temporary file on disk."""
    if shape[0] * shape[1] * np.dtype(dtype).itemsize <= SPILLED_BYTES:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:  # the map keeps the deleted file
        return np.memmap(file, dtype, shape=shape)


def _numeric(
    frame: pd.DataFrame, is_fitted: bool, decimal: str | None = None
) -> tuple[np.ndarray, dict[str, Reading]]:
    """Return the columns of features as numbers, and how texts among them were read.

    Parameters
    ----------
    frame : pandas.DataFrame
    is_fitted : bool
        Whether these are new rows for a model.
    decimal : {".", ","}, optional
        Decimal mark of the file.

    Raises
    ------
    InvalidInput
        If columns hold something else or have empty cells; all of them are named.
    """
    require_features(frame)
    require(len(frame) > 0, "file", "no rows below the header", "give at least 2 rows")
    if all(frame[name].dtype.kind in "biuf" for name in frame.columns):
        features = frame.to_numpy(dtype=np.float64)
        if not is_fitted:
            warn_of_suspects([str(name) for name in frame.columns], lambda k: features[:, k])
        _refuse_gaps(features, [str(name) for name in frame.columns], is_fitted)
        _refuse_infinite(features, [str(name) for name in frame.columns], is_fitted)
        return check_features(features, "features"), {}
    numbers = {name: float for name in frame.columns if frame[name].dtype.kind == "b"}
    kinds = dict.fromkeys(map(str, frame.columns), "number") if is_fitted else None
    encoder = TableEncoder(False, scale=False, decimal=decimal, kinds=kinds)
    try:
        found = encoder.fit_transform(frame.astype(numbers))
    except RefusedColumns as error:
        raise error.at_command_line(is_fitted) from None
    return check_features(found, "features"), encoder.readings_


def _refuse_gaps(features: np.ndarray, names: list[str], is_fitted: bool) -> None:
    """Refuse empty cells, with the names of all their columns."""
    first: dict[int, int] = {}
    for rows in row_blocks(*features.shape):
        places, columns = np.nonzero(np.isnan(features[rows]))
        for place, column in zip(places.tolist(), columns.tolist(), strict=True):
            first.setdefault(column, rows.start + place)
    if first:
        found = [empty_cells(names[k], int(np.isnan(features[:, k]).sum()), first[k])
                 for k in sorted(first)]  # fmt: skip
        raise RefusedColumns(found).at_command_line(is_fitted)


def _refuse_infinite(features: np.ndarray, names: list[str], is_fitted: bool) -> None:
    """Refuse infinite cells, with the names of all their columns."""
    found = []
    for column, name in enumerate(names):
        rows = np.flatnonzero(np.isinf(features[:, column]))
        if len(rows):
            found.append(not_finite(name, str(features[rows[0], column]), int(rows[0]), "number"))
    if found:
        raise RefusedColumns(found).at_command_line(is_fitted)


def check_ids(ids: np.ndarray, column: str) -> None:
    """Require that every row has an id and that no id repeats."""
    empty = np.flatnonzero(ids == "")
    require(len(empty) == 0, column, f"missing in row {empty[:1].tolist()}", "give every row an id")
    unique, counts = np.unique(ids, return_counts=True)
    repeated = unique[counts > 1]
    require(
        len(repeated) == 0,
        column,
        f"{repeated[:1].tolist()} occurs more than once ({len(repeated)} ids repeat)",
        "make ids unique",
    )
