"""Parquet files, whose columns have types."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphuq.results.formats.base import TableFormat
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import reading
from graphuq.utils.parquet_columns import check_repeated

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class Parquet(TableFormat):
    """Parquet: columns with types."""

    suffix: ClassVar[str] = ".parquet"

    def read(self, path: Path, text_columns: Sequence[str] = ()) -> "pd.DataFrame":
        """Return all columns. Texts are decoded here, where pandas would do it late."""
        require_extra("parquet")
        from pyarrow.parquet import ParquetFile

        with reading(path, "parquet file"), ParquetFile(path) as file:
            table = file.read()
            table.validate(full=True)
            frame = table.to_pandas()
            if hasattr(frame.index, "start"):  # a range that the file states, also without rows
                np.array([frame.index.start, frame.index.stop, frame.index.step], dtype=np.int64)
        check_repeated([str(name) for name in frame.columns], path)
        return frame

    def write(self, table: "pd.DataFrame", path: Path) -> None:
        """Write a table to a new file."""
        require_extra("parquet")
        from pyarrow import parquet

        columns: Any = {name: _values(table[name]) for name in table.columns}
        parquet.write_table(arrow_table(columns), path)


def arrow_table(columns: Mapping[str, np.ndarray]) -> "pa.Table":
    """Return columns, or those of a table of pandas, as a table of Arrow."""
    require_extra("parquet")
    import pyarrow as pa

    arrays: dict[str, Any] = {}
    for name in columns:
        wanted = arrays["label"].type if name == "given" and "label" in arrays else None
        arrays[name] = _arrow_array(np.asarray(columns[name]), wanted)
    return pa.table(arrays)


def _values(column: "pd.Series") -> np.ndarray:
    """Return the values of a column of pandas, as objects unless they are plain numbers."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return np.asarray(column.to_numpy())
    values = column.astype(object)
    return np.asarray(values.where(values.notna(), None), dtype=object)


def _arrow_array(values: np.ndarray, wanted: Any) -> Any:
    """Return an array of Arrow; texts and other objects become texts."""
    require_extra("parquet")
    import pyarrow as pa

    if values.dtype.kind in "biuf" and wanted is None:
        return pa.array(values)
    objects = [None if value is None else value for value in values.tolist()]
    if wanted is None and not all(isinstance(v, bool | int | float | None) for v in objects):
        wanted = pa.string()
    if wanted is not None and pa.types.is_string(wanted):
        objects = [None if value is None else str(value) for value in objects]
    return pa.array(objects, type=wanted, from_pandas=True)
