"""Conversion of arguments to matrices of numbers; arguments of the wrong kind are refused by name.

Every function that takes features, distances or weights from a user converts them here.
"""

from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from graphuq.errors import InvalidInput, require
from graphuq.graphs.containers import is_frame, is_polars, plain_table
from graphuq.graphs.graph_objects import kind_of_graph
from graphuq.utils.checks import describe, refuse_zero_bytes
from graphuq.utils.gate import check_sparse

MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
Features: TypeAlias = np.ndarray | sparse.csr_array
"""Matrix with one row per node, or the distances between all pairs of nodes."""

# NumPy types whose values single precision holds exactly.
ENCODE = "drop it or convert it, as by make_pipeline(TableEncoder(), classifier)"
SINGLE = (np.float32, np.float16, np.int8, np.uint8, np.int16, np.uint16)
MIN_STEPS = 1000  # numbers that a column of large integers must be able to hold in its range
FULL = 2 / 3  # share of entries from which a sparse format takes more memory than an array
NOT_REAL = {"c": "complex numbers", "m": "time differences", "M": "dates", "S": "bytes",
            "U": "text", "T": "text", "V": "records"}  # by NumPy's kind  # fmt: skip


def to_matrix(values: MatrixLike, argument: str, remedy: str) -> Features:
    """Convert an argument to numbers; a sparse matrix stays sparse.

    Values that single precision holds exactly stay or become single, all others double. A memory
    map of either stays on disk. Missing values of pandas and masked entries become NaN.

    Parameters
    ----------
    values : array_like, sparse matrix or DataFrame
    argument : str
        Name of the argument in errors.
    remedy : str
        Remedy in the error for an argument that is not a matrix at all.

    Raises
    ------
    InvalidInput
        If the argument is a graph, a data set, a file name or another object that is not an
        array, or if it holds text, dates or complex numbers.
    """
    _refuse_other_kinds(values, argument)
    values = plain_table(values, argument)
    _require_array(values, argument, remedy)
    kind = getattr(getattr(values, "dtype", None), "kind", "f")
    require(
        kind not in NOT_REAL, argument, f"not numeric ({NOT_REAL.get(kind)})", "give real numbers"
    )
    if sparse.issparse(values):
        check_sparse(values, argument)
    elif not is_frame(values):
        _refuse_text(values, argument)
    if np.ma.isMaskedArray(values):
        values = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    try:
        matrix = _to_array(values)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            argument, f"not numeric ({error})", "give numbers only, in rows of equal length"
        ) from None
    return matrix


def _require_array(values: Any, argument: str, remedy: str) -> None:
    """Refuse what is no collection."""
    known = sparse.issparse(values) or hasattr(values, "__array__") or hasattr(values, "__len__")
    array = known or np.iterable(values)
    require(array, argument, f"{describe(values)} is not a matrix", remedy)


def check_kind(values: Any, argument: str) -> None:
    """Refuse what scikit-learn would convert or read in silence: text, dates, masks, lies.

    Complex numbers are left to it.

    Raises
    ------
    InvalidInput
        If values are no collection, text or dates, some are masked, a sparse matrix is damaged,
        or integers are too large to be told apart.
    """
    _require_array(values, argument, "give one row of numbers for each node")
    kind = getattr(getattr(values, "dtype", None), "kind", "f")
    if sparse.issparse(values):
        check_sparse(values, argument)
    elif is_frame(values):
        _check_columns(values, argument)
    elif is_polars(values):
        _check_polars(values, argument)
    else:
        require(
            kind not in NOT_REAL or kind == "c",
            argument,
            f"not numeric ({NOT_REAL.get(kind)})",
            "give real numbers",
        )
        require(not np.ma.is_masked(values), argument, "masked values", "impute or drop them")
        if isinstance(values, list | tuple):
            lengths = {len(row) for row in values if isinstance(row, list | tuple)}
            remedy = "give rows of equal length"
            require(len(lengths) < 2, argument, f"rows of {sorted(lengths)[:3]} numbers", remedy)
        _refuse_text(values, argument)
        if isinstance(values, np.ndarray) and values.ndim == 2:
            for place, column in enumerate(values.T if _is_long(values) else ()):
                _refuse_lost_digits(column, argument, place)


def _is_long(values: Any) -> bool:
    """Return whether there are integers of 64 bits."""
    return values.dtype.kind in "iu" and values.dtype.itemsize == 8


def _refuse_lost_digits(column: Any, argument: str, name: object) -> None:
    """Refuse integers that are so large that numbers of 53 bits do not tell them apart."""
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    step = float(np.spacing(float(max(abs(low), abs(high)))))
    require(
        step <= 1 or not 0 < high - low < MIN_STEPS * step,
        argument,
        f"column {name!r} holds {low} to {high}, and features tell steps of {step:g} there",
        "subtract the smallest value",
    )


def _refuse_text(values: Any, argument: str) -> None:
    """Refuse numbers that are written as text, which NumPy would convert silently."""
    if (
        isinstance(values, list | tuple)
        or getattr(getattr(values, "dtype", None), "kind", "") == "O"
    ):
        text = _first_text(values)
        require(text is None, argument, f"not numeric (text {text!r})", "convert it, as by float()")


def _first_text(values: Any, depth: int = 3) -> str | bytes | None:
    """Return the first text in nested lists or in an array of objects."""
    for value in values.ravel() if isinstance(values, np.ndarray) else values:
        if isinstance(value, str | bytes):
            return value
        nested = isinstance(value, list | tuple)
        if nested and depth > 0 and (text := _first_text(value, depth - 1)) is not None:
            return text
    return None


def _to_array(values: Any) -> Features:
    if sparse.issparse(values):
        return canonical(sparse.csr_array(values, dtype=np.float64))
    if is_frame(values):
        return np.ascontiguousarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    single = isinstance(values, np.ndarray) and values.dtype in SINGLE
    return np.ascontiguousarray(values, dtype=np.float32 if single else np.float64)


def canonical(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return a sparse matrix with one entry a place, in order; the given one stays as it is."""
    if matrix.has_canonical_format:
        return matrix
    found = matrix.copy()
    found.sum_duplicates()
    return found


def dense_if_full(rows: Any) -> Any:
    """Return an array for a full matrix in a sparse format, so that both have the same model."""
    if not sparse.issparse(rows):
        return rows
    n_entries = np.count_nonzero(rows.data)  # some matrices store zeros
    return rows.toarray() if n_entries >= FULL * rows.shape[0] * rows.shape[1] else rows


def _refuse_other_kinds(values: Any, argument: str) -> None:
    """Raise `InvalidInput` for objects that are often passed by mistake."""
    if is_polars(values):
        _check_polars(values, argument)
        return
    if is_frame(values):
        _check_columns(values, argument)
        return  # columns are attributes, so that the questions below could be misanswered
    if hasattr(values, "n_edges"):
        raise InvalidInput(
            argument,
            f"{values!r} is already a graph",
            "pass features, or use the graph itself, for example in laplacian_spectrum",
        )
    if (library := kind_of_graph(values)) is not None:
        raise InvalidInput(
            argument, f"{describe(values)} is a {library} graph", "convert it by from_adjacency"
        )


def _check_columns(frame: Any, argument: str) -> None:
    """Raise `InvalidInput` for the first column of a DataFrame that does not hold numbers."""
    require(frame.shape[1] > 0, argument, "no columns", "give one feature or more")
    refuse_zero_bytes(frame.columns, argument)
    twice = frame.columns[frame.columns.duplicated()]
    require(
        len(twice) == 0,
        argument,
        f"two columns with the name {twice[:1].tolist()}",
        "give each column a name of its own",
    )
    for name, column in frame.items():
        if column.dtype.kind in "biuf":
            if _is_long(column) and not column.isna().any():
                _refuse_lost_digits(column, argument, name)
            continue
        try:
            if column.dtype.kind in NOT_REAL:
                raise TypeError
            column.to_numpy(dtype=np.float64, na_value=np.nan)
            if any(isinstance(value, str) for value in column):
                raise TypeError
        except (TypeError, ValueError):
            _refuse_column(argument, name, column.dtype, column.iloc[0])


def _check_polars(frame: Any, argument: str) -> None:
    """Raise `InvalidInput` for the first column of a polars DataFrame that is not of numbers."""
    refuse_zero_bytes(frame.columns, argument)
    for series in frame.get_columns():
        if not series.dtype.is_numeric():
            _refuse_column(argument, series.name, series.dtype, next(iter(series), None))


def _refuse_column(argument: str, name: Any, dtype: Any, first: Any) -> NoReturn:
    raise InvalidInput(
        argument,
        f"column {name!r} ({dtype}) is not numeric, first value {first!r}",
        ENCODE,
    )


def check_no_gaps(frame: Any, argument: str) -> None:
    """Raise `InvalidInput` for the first column of a table of numbers that has an empty cell."""
    columns = (
        ((series.name, series.to_numpy()) for series in frame.get_columns())
        if is_polars(frame)
        else ((name, column.isna().to_numpy()) for name, column in frame.items())
    )
    for name, values in columns:
        missing = values if values.dtype == bool else np.isnan(values.astype(np.float64))
        empty = np.flatnonzero(missing)
        require(
            len(empty) == 0,
            argument,
            f"column {name!r} is NaN in {len(empty)} row(s), first row {empty[:1].tolist()}",
            "drop it or fill it, as by make_pipeline(TableEncoder(impute=True), classifier)",
        )


def weights_of(weight: Any, n: int, what: str) -> np.ndarray:
    """Return one weight for each edge or group, by default 1, as numbers.

    Raises
    ------
    InvalidInput
        If they are not numbers, or not one for each.
    """
    if weight is None:
        return np.ones(n)
    article = "an" if what[0] in "aeiou" else "a"
    remedy = f"give one number {article} {what}"
    try:
        numbers = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("weight", f"not numeric ({error})", remedy) from None
    require(numbers.shape == (n,), "weight", f"shape {numbers.shape} for {n} {what}s", remedy)
    return numbers
