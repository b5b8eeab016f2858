"""Tables of other libraries: those that are converted, and what people give in place of a table."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from graphuq.errors import InvalidInput
from graphuq.utils.checks import describe


def plain_table(values: Any, argument: str) -> Any:
    """Return tables of Arrow and the like as DataFrames, and other arguments as they are.

    Numbers of fewer than 16 bits of mantissa, such as bfloat16, become single precision, and
    columns of pandas that leave another value out than 0 become whole.

    Raises
    ------
    InvalidInput
        If the argument is no table in memory, but a file name, a dict, or a query, for instance.
    """
    if isinstance(values, np.ndarray | list | tuple) or sparse.issparse(values):
        return _of_array(values, argument)
    if is_frame(values):
        if hasattr(values, "compute"):
            remedy = "call compute() first, or name a store=..."
            raise InvalidInput(argument, f"{describe(values)} is not in memory", remedy)
        sparse_types = {n: t for n, t in values.dtypes.items() if getattr(t, "fill_value", 0) != 0}
        whole = {name: dtype.subtype for name, dtype in sparse_types.items()}
        return values.astype(whole) if whole else values
    if is_polars(values):
        return values
    if hasattr(values, "to_pandas") and (hasattr(values, "schema") or hasattr(values, "features")):
        return values.to_pandas()
    if (found := _no_matrix(values)) is not None:
        raise InvalidInput(argument, *found)
    dtype = getattr(values, "dtype", None)
    is_odd = getattr(dtype, "kind", "") in ("O", "V") or hasattr(values, "null_count")
    return _of_array(np.asarray(values), argument) if is_odd else values


def is_frame(values: Any) -> bool:
    """Return whether an object is a pandas DataFrame."""
    return hasattr(values, "select_dtypes")


def is_polars(values: Any) -> bool:
    """Return whether an object is a polars DataFrame."""
    return hasattr(values, "get_columns") and hasattr(values, "schema")


def _of_array(values: Any, argument: str) -> Any:
    """Return an array of numbers that NumPy itself lacks in single precision."""
    first = next(iter(values), None) if isinstance(values, list | tuple) else None
    if isinstance(first, Mapping):
        raise InvalidInput(argument, "a list of dicts", "give pandas.DataFrame(X)")
    if isinstance(values, tuple) and len(values) == 2 and [*map(np.ndim, values)] == [2, 1]:
        raise InvalidInput(argument, "a pair of a matrix and numbers", "give the matrix alone")
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind == "V" and not issubclass(values.dtype.type, np.void):
        return values.astype(np.float32)
    one: Any = values[0] if values.dtype.kind == "O" and values.ndim == 1 and len(values) else None
    if np.ndim(one) == 1:
        found = f"{describe(values)} whose elements are rows"
        raise InvalidInput(argument, found, "give numpy.stack(X)")
    return values


def _no_matrix(values: Any) -> tuple[str, str] | None:
    """Return what an object is that is no matrix, and what to give in its place."""
    shown = describe(values)
    if isinstance(values, str | os.PathLike):
        return f"{str(values)!r} is text", "load a file first, as by pandas.read_csv"
    if hasattr(values, "target") and hasattr(values, "data"):
        return f"{shown} is a data set", "pass its features, dataset.data"
    if isinstance(values, Mapping):
        return f"{shown} is not a matrix", "give one of its arrays, or pandas.DataFrame(X)"
    if isinstance(values, Iterator):
        return f"{shown} is not a matrix", "give list(X)"
    for method in ("to_memory", "todense", "collect"):
        if hasattr(values, method):
            return f"{shown} is not an array", f"call {method}() first"
    return None
