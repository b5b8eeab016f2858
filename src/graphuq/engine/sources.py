"""Tables that are read some rows at a time: Parquet, NPY and Zarr files, and Dask collections."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from graphuq.engine.store import load_mapped
from graphuq.errors import InvalidInput, StorageError, require
from graphuq.graphs.containers import is_frame, is_polars, plain_table
from graphuq.graphs.inputs import check_kind, to_matrix
from graphuq.utils.gate import reading
from graphuq.utils.parquet_columns import check_repeated, index_columns

BLOCK_ROWS = 100_000  # rows of a block of an array, and the smallest number of one of Parquet
KINDS = (
    "give a folder of Parquet files, a Parquet or NPY file, a Zarr array, a Dask collection, or "
    "rows in memory"
)
NO_NAMES = "give labels as a dict from row numbers to classes, and leave no_features out"


@dataclasses.dataclass(frozen=True)
class Block:
    """Some consecutive rows of a table, in a form that can be sent to another process.

    Attributes
    ----------
    kind : {"parquet", "npy", "zarr", "dask", "memory"}
    where : str or object
        Path of the file, the delayed value of a Dask collection, or the rows.
    begin, end : int
        Rows of the file.
    groups : tuple of int
        Row groups of a Parquet file.
    """

    kind: str
    where: Any
    begin: int
    end: int
    groups: tuple[int, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.end - self.begin

    def features(self, columns: Sequence[str]) -> np.ndarray:
        """Return the features as they are stored; ``columns`` are those of a table with names."""
        if self.kind == "parquet":
            table = self._table(columns)
            rows = np.empty((table.num_rows, len(columns)), np.float32)
            for place, name in enumerate(columns):
                column = table.column(name)
                rows[:, place] = column.to_numpy(zero_copy_only=False)
            return rows
        if self.kind == "dask":
            value = self._computed()
            return np.asarray(value[list(columns)] if columns else value)
        if self.kind == "memory":
            return np.asarray(self.where)
        if self.kind == "zarr":
            import zarr

            with reading(self.where, "Zarr array"):
                return np.asarray(zarr.open_array(self.where, mode="r")[self.begin : self.end])
        return load_mapped(self.where)[self.begin : self.end]

    def texts(self, column: str) -> tuple[Int[np.ndarray, " r"], list[str]]:
        """Return the rows in which a column has a value, and the values as text."""
        if self.kind == "dask":
            import pyarrow as pa

            values = pa.array(self._computed()[column], from_pandas=True)
        else:
            values = self._table([column]).column(column).combine_chunks()
        found = np.flatnonzero(np.asarray(values.is_valid()))
        texts = [_as_text(value) for value in values.drop_null().to_pylist()]
        kept = [k for k, text in enumerate(texts) if text not in ("", "nan")]
        return found[kept], [texts[k] for k in kept]

    def _computed(self) -> Any:
        """Return the rows of a Dask collection, computed here even if a client is active."""
        from dask.local import get_sync  # its name makes Dask 2025.1 warn of a client

        return self.where.compute(scheduler=get_sync)

    def _table(self, columns: Sequence[str]) -> Any:
        from pyarrow.parquet import ParquetFile

        with reading(self.where, "parquet file"), ParquetFile(self.where) as file:
            table = file.read_row_groups(list(self.groups), columns=list(columns))
            table.validate(full=True)  # texts that are no UTF-8 would fail when they are used
            return table


@dataclasses.dataclass(frozen=True)
class Source:
    """A table in blocks.

    Attributes
    ----------
    blocks : list of Block
    names : list of str
        Names of the columns that hold numbers; empty if columns have no names.
    width : int
        Number of columns with features.
    identity : list
        What tells the table from others: names, sizes and times of files, Dask's own name, or the
        hash of rows in memory.
    """

    blocks: list[Block]
    names: list[str]
    width: int
    identity: list[Any]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(block.n_rows for block in self.blocks)

    @property
    def starts(self) -> Int[np.ndarray, " B"]:
        """Row with which each block begins, and the number of rows."""
        return np.cumsum([0, *(block.n_rows for block in self.blocks)])


def open_source(source: Any, special: Sequence[str] = ()) -> Source:
    """Return a table in blocks.

    Parameters
    ----------
    source : path, dask.array.Array, dask.dataframe.DataFrame, array_like or DataFrame
        A folder of Parquet files, which are taken in the order of their names; a Parquet file; an
        NPY file; a Zarr array; or rows in memory.
    special : sequence of str
        Columns that are no features.

    Raises
    ------
    InvalidInput, StorageError
        If there is no such table, a column is missing or no column of numbers, or the features
        of a collection have no known number of rows.
    """
    if not isinstance(source, str | Path):
        is_lazy = hasattr(source, "to_delayed")
        return _of_dask(source, special) if is_lazy else _of_memory(source, special)
    path = Path(source).resolve()  # workers may be in another folder
    if not path.exists():
        raise StorageError(f"'{path}' does not exist")
    if path.is_dir() and not any((path / name).exists() for name in ("zarr.json", ".zarray")):
        files = sorted(path.glob("*.parquet"))
        require(files, "source", f"'{path}' holds no file *.parquet", KINDS)
        return _of_parquet(files, special)
    if path.suffix.lower() == ".parquet":
        return _of_parquet([path], special)
    require(
        not special,
        "columns",
        f"{list(special)} of '{path.name}', whose columns have no names",
        NO_NAMES,
    )
    if path.is_dir():
        return _of_zarr(path)
    if path.suffix.lower() == ".npy":
        with reading(path, "NPY file"):
            array = np.load(path, mmap_mode="r")
        return _of_array("npy", path, array, 1, _identity(path))
    raise InvalidInput("source", f"'{path.name}' has an unknown type", KINDS)


def _of_parquet(files: list[Path], special: Sequence[str]) -> Source:
    from pyarrow.parquet import ParquetFile

    blocks, names = [], None
    for path in files:
        with reading(path, "parquet file"), ParquetFile(path) as file:
            found = _numbers(file.schema_arrow, special, path)
            sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
        require(
            names is None or found == names,
            "source",
            f"'{path.name}' has other columns than '{files[0].name}'",
            "give files with the same columns in the same order",
        )
        names, begin, groups = found, 0, []
        for group in range(len(sizes)):
            groups.append(group)
            end = sum(sizes[: group + 1])
            if end - begin >= BLOCK_ROWS or group == len(sizes) - 1:
                blocks.append(Block("parquet", str(path), begin, end, tuple(groups)))
                begin, groups = end, []
    assert names is not None
    return Source(blocks, names, len(names), [_identity(path) for path in files])


def _numbers(schema: Any, special: Sequence[str], path: Path) -> list[str]:
    """Return the columns that hold features, all of which must be numbers."""
    import pyarrow as pa

    check_repeated(schema.names, path)
    for name in special:
        require(
            name in schema.names,
            "columns",
            f"'{path.name}' has no column {name!r}",
            f"use one of {', '.join(map(str, schema.names[:5]))}",
        )
    names = [name for name in schema.names if name not in special]
    index = [name for name in index_columns(schema) if name in names]
    require(
        not index,
        "source",
        f"{index} of '{path.name}' is an index of pandas and no feature, and rows of a store are "
        "numbered from 0",
        "write the table with index=False, or name the index among columns that are no features",
    )
    require(names, "source", f"'{path.name}' has no columns of features", "give one or more")
    for name in names:
        kind = schema.field(name).type
        require(
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind),
            "source",
            f"column {name!r} of '{path.name}' holds {kind}, and features are numbers",
            "name it among the columns that are no features, or encode it",
        )
    return names


def _of_array(kind: str, path: Path, array: Any, chunk: int, identity: list[Any]) -> Source:
    """Return an array in blocks of whole chunks of rows."""
    require(
        array.ndim == 2, "source", f"'{path.name}' has shape {array.shape}", "give rows and columns"
    )
    require(
        array.dtype.kind in "biuf",
        "source",
        f"'{path.name}' holds {array.dtype}, and features are numbers",
        "convert it",
    )
    n_rows, size = array.shape[0], max(1, BLOCK_ROWS // chunk) * chunk
    begins = range(0, n_rows, size)
    blocks = [Block(kind, str(path), b, min(b + size, n_rows)) for b in begins]
    return Source(blocks, [], array.shape[1], identity)


def _of_zarr(path: Path) -> Source:
    try:
        import zarr
    except ImportError:
        raise InvalidInput(
            "source", f"'{path.name}' is a Zarr array, and zarr is missing", "pip install zarr"
        ) from None
    with reading(path, "Zarr array"):
        array = zarr.open_array(str(path), mode="r")
    files = sorted(p for p in path.rglob("*") if p.is_file())
    return _of_array("zarr", path, array, array.chunks[0], [_identity(file) for file in files])


def _of_dask(source: Any, special: Sequence[str]) -> Source:
    if hasattr(source, "chunks"):
        require(not special, "columns", f"{list(special)} of an array", NO_NAMES)
        require(source.ndim == 2, "source", f"{source.ndim} dimensions", "give rows and columns")
        source = source.rechunk({1: -1})
        sizes, width, names = source.chunks[0], source.shape[1], []
        delayed = source.to_delayed().ravel().tolist()
    else:
        names = [str(name) for name in source.columns if name not in special]
        sizes = [int(n) for n in source.map_partitions(len).compute()]
        delayed, width = source.to_delayed(), len(names)
    require(
        not np.isnan(np.sum(sizes)), "source", "the number of rows is unknown",
        "call compute_chunk_sizes() first",
    )  # fmt: skip
    blocks = [Block("dask", d, 0, int(n)) for d, n in zip(delayed, sizes, strict=True)]
    return Source(blocks, names, width, [str(d.key) for d in delayed])


def _of_memory(source: Any, special: Sequence[str]) -> Source:
    names: list[str] = []
    source = plain_table(source, "X")
    if is_frame(source) or is_polars(source):
        for name in special:
            require(name in source.columns, "columns", f"no column {name!r}", "name a column of X")
        names = [str(name) for name in source.columns if name not in special]
        source = source[[name for name in source.columns if name not in special]]
        check_kind(source, "X")
    else:
        require(not special, "columns", f"{list(special)} of an array", NO_NAMES)
    rows = to_matrix(source, "X", KINDS)
    require(isinstance(rows, np.ndarray), "X", "a sparse matrix beside a store", "give a dense one")
    require(rows.ndim == 2, "X", f"{rows.ndim} dimension(s)", "give rows and columns")
    digest = hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()
    begins = range(0, len(rows), BLOCK_ROWS)
    blocks = [
        Block("memory", rows[b : b + BLOCK_ROWS], b, min(b + BLOCK_ROWS, len(rows))) for b in begins
    ]
    return Source(blocks, names, rows.shape[1], [digest, str(rows.dtype), *rows.shape])


def _identity(path: Path) -> list[Any]:
    """Return name, size and time of a file, by which a changed file counts as another one."""
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def _as_text(value: object) -> str:
    """Return a class as text, and 3.0 as 3."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
