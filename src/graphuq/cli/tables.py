"""Tables in, predictions out."""

import dataclasses
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from graphuq.errors import InvalidInput, StorageError, require
from graphuq.graphs.features import check_features

FORMATS = (".csv", ".parquet", ".npz")


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """What a file holds: N rows of features (or weights), names, and labels as text.

    Attributes
    ----------
    features : numpy.ndarray, shape (N, d), or scipy.sparse.csr_array, shape (N, N)
    ids : numpy.ndarray of str, shape (N,)
    labels, truth : numpy.ndarray of str, shape (N,), or None
        Classes, empty where unknown.
    feature_names : list of str
    """

    features: Any
    ids: np.ndarray
    labels: np.ndarray | None
    truth: np.ndarray | None
    feature_names: list[str]


def read_table(
    path: Path,
    label_column: str | None = None,
    id_column: str | None = None,
    truth_column: str | None = None,
    dropped: Sequence[str] = (),
) -> Table:
    """Read features, ids and labels from a CSV, Parquet or NPZ file.

    An NPZ file holds ``X`` (or ``features``) and arrays named like the columns, or is a matrix
    of weights saved by ``scipy.sparse.save_npz``.

    Raises
    ------
    InvalidInput, StorageError
        If the file cannot be read, or a column is missing, repeated, or holds the wrong thing.
    """
    if not path.is_file():
        raise StorageError(f"there is no file '{path}'")
    if path.suffix.lower() not in FORMATS:
        raise InvalidInput(
            "file", f"'{path.name}' is of no known type", f"use {', '.join(FORMATS)}"
        )
    special = [c for c in (label_column, id_column, truth_column) if c is not None]
    require(len(set(special)) == len(special), "columns", f"{special} repeat", "name each once")
    if path.suffix.lower() == ".npz":
        columns, features, names = _read_npz(path, special)
    else:
        frame = _read_frame(path, special)
        for column in special:
            _check_column(column, list(frame.columns))
        columns = {column: _as_text(frame[column]) for column in special}
        for column in dropped:
            _check_column(column, list(frame.columns))
        rest = frame.drop(columns=[*special, *dropped])
        features, names = _numeric(rest), [str(name) for name in rest.columns]
    n_rows = features.shape[0]
    require(n_rows > 0, "file", f"'{path}' has no rows", "give at least 2 rows")
    ids = columns[id_column] if id_column else np.arange(n_rows).astype(str)
    _check_ids(ids, id_column or "id")
    return Table(
        features=features,
        ids=ids,
        labels=columns[label_column] if label_column else None,
        truth=columns[truth_column] if truth_column else None,
        feature_names=names,
    )


def read_labels(path: Path, ids: np.ndarray) -> np.ndarray:
    """Labels from a second file with the columns ``id`` and ``label``, in the order of ``ids``.

    Raises
    ------
    InvalidInput
        If an id is not among ``ids``, or repeats.
    """
    if not path.is_file():
        raise StorageError(f"there is no file '{path}'")
    frame = _read_frame(path, ["id", "label"])
    for column in ("id", "label"):
        _check_column(column, list(frame.columns))
    named, values = _as_text(frame["id"]), _as_text(frame["label"])
    _check_ids(named, "id")
    unknown = np.setdiff1d(named, ids)
    require(
        len(unknown) == 0,
        "labels",
        f"{len(unknown)} label(s) on nodes that are not there, for example {unknown[:1].tolist()}",
        "use ids of the table (row numbers from 0 where it has no id column)",
    )
    place = {identifier: index for index, identifier in enumerate(ids)}
    labels = np.full(len(ids), "", dtype=object)
    for identifier, value in zip(named, values, strict=True):
        labels[place[identifier]] = value
    return labels.astype(str)


def _read_frame(path: Path, text_columns: list[str]) -> pd.DataFrame:
    try:
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
        frame = pd.read_csv(path, dtype=dict.fromkeys(text_columns, str), keep_default_na=False)
    except (OSError, ValueError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StorageError(
            f"'{path}' is not a readable {path.suffix[1:]} file ({reason}); it may be empty, "
            "truncated or of another type"
        ) from None
    if _last_line_is_short(path, frame.shape[1]):
        raise StorageError(f"the last row of '{path}' has too few fields; it may be truncated")
    return frame


def _last_line_is_short(path: Path, n_columns: int) -> bool:
    """Whether the file ends within a row, which the CSV reader would fill up in silence."""
    with open(path, "rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 1_000_000))
        lines = file.read().decode(errors="replace").splitlines()
    last = next((line for line in reversed(lines) if line.strip()), "")
    return '"' not in last and last.count(",") + 1 < n_columns


def _read_npz(path: Path, special: list[str]) -> tuple[dict[str, np.ndarray], Any, list[str]]:
    try:
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as file:
            keys = set(file.files)
            if {"indices", "indptr", "data", "shape"} <= keys:
                return {}, sparse.csr_array(sparse.load_npz(path)), []
            for column in special:
                _check_column(column, sorted(keys))
            name = next((n for n in ("X", "features") if n in keys), None)
            if name is None:
                raise InvalidInput("file", f"'{path}' has no array X", "save features as X")
            columns = {c: _as_text(pd.Series(file[c].ravel())) for c in special}
            features = check_features(file[name], name)
    except InvalidInput:
        raise
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise StorageError(f"'{path}' is not a readable npz file ({error})") from None
    for column, values in columns.items():
        require(
            len(values) == len(features),
            column,
            f"{len(values)} values for {len(features)} rows",
            "save one value a row",
        )
    return columns, features, [f"x{i}" for i in range(features.shape[1])]


def _check_column(column: str, columns: list[str]) -> None:
    require(
        column in columns,
        "column",
        f"'{column}' is not among {columns[:8]}{' …' if len(columns) > 8 else ''}",
        "name a column of the file",
    )


def _as_text(column: pd.Series) -> np.ndarray:
    """Classes or ids as text; missing ones empty; 3.0 as 3."""
    if pd.api.types.is_float_dtype(column):
        whole = column.dropna()
        if (whole == whole.round()).all():
            column = column.astype("Int64")
    return np.array(["" if pd.isna(v) else str(v).strip() for v in column], dtype=str)


def _numeric(frame: pd.DataFrame) -> np.ndarray:
    require(frame.shape[1] > 0, "file", "no feature columns", "give at least one column of numbers")
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            continue
        converted = pd.to_numeric(column, errors="coerce")
        bad = converted.isna().to_numpy()
        if not bad.any():
            frame = frame.assign(**{str(name): converted})
            continue
        row = int(np.flatnonzero(bad)[0])
        value = column.iloc[row]
        if pd.isna(value) or str(value).strip() == "":
            raise InvalidInput(
                "features", f"column '{name}' is empty in row {row}", "fill or drop it"
            )
        raise InvalidInput(
            "features",
            f"column '{name}' holds text ({str(value)[:20]!r} in row {row})",
            "drop or encode it, or name it as --id-column, --label-column or --truth-column",
        )
    return check_features(frame.to_numpy(dtype=np.float64), "features")


def _check_ids(ids: np.ndarray, column: str) -> None:
    empty = np.flatnonzero(ids == "")
    require(len(empty) == 0, column, f"missing in row {empty[:1].tolist()}", "give every row an id")
    unique, counts = np.unique(ids, return_counts=True)
    repeated = unique[counts > 1]
    require(
        len(repeated) == 0,
        column,
        f"{repeated[:1].tolist()} occurs more than once ({len(repeated)} such ids)",
        "make ids unique",
    )
