"""Options ``--encode`` and ``--impute``: tables with text, categories, dates and gaps."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from graphuq.classifier.table_encoder import TableEncoder
from graphuq.classifier.table_encoder.refusals import RefusedColumns
from graphuq.cli.columns import check_column, feature_columns_of
from graphuq.cli.frames import as_text, read_frame
from graphuq.errors import require
from graphuq.graphs.features import check_features
from graphuq.graphs.inputs import Features
from graphuq.results.formats import table_formats
from graphuq.results.formats.csv import check_last_line
from graphuq.utils.gate import reading
from graphuq.utils.text_numbers import read_csv

GAPS = ("", "NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>", "#N/A")
"""Cells of a CSV file that are empty, besides those that ``--missing-value`` names."""


def encoder_from(
    encode: bool,
    impute: bool,
    kinds: Sequence[str] | None,
    missing_values: Sequence[str] | None,
    scaling: str,
) -> TableEncoder | None:
    """Return the encoder that the options ask for, or None.

    Raises
    ------
    InvalidInput
        If an option has no meaning without another one, or cannot be read.
    """
    require(encode or not kinds, "--kind", "given without --encode", "add --encode")
    require(
        encode or impute or not missing_values,
        "--missing-value",
        "given without --encode or --impute",
        "add --impute",
    )
    if not (encode or impute):
        return None
    named = {}
    for text in kinds or ():
        name, equals, kind = text.rpartition("=")
        require(bool(name and equals), "--kind", f"{text!r}", "write COLUMN=KIND, as in zip=text")
        named[name] = kind
    return TableEncoder(
        encode,
        impute=impute,
        scale=encode or scaling == "standard",
        kinds=named,
        missing_values=list(missing_values or ()),
    )


def read_encoded(
    path: Path, special: list[str], dropped: Sequence[str], encoder: TableEncoder
) -> tuple[dict[str, np.ndarray], Features, list[str]]:
    """Return special columns, encoded features and their names from a CSV or Parquet file.

    Parameters
    ----------
    path : path
    special, dropped : sequence of str
        Columns of labels, ids and so on, and columns to ignore.
    encoder : TableEncoder
        It is fitted to the columns that are left, unless it was fitted before.

    Raises
    ------
    InvalidInput, StorageError
        If the file cannot be read, or a column cannot be encoded.
    """
    kind = path.suffix.lower()
    require(
        kind in table_formats(),
        "--encode" if encoder.encode else "--impute",
        f"given beside '{path.name}'",
        f"give a {' or '.join(table_formats())} file, whose columns have names",
    )
    fitted = hasattr(encoder, "transformer_")
    as_texts = [name for name, one in _kinds(encoder).items() if one in ("category", "text")]
    if kind == ".csv":
        frame = _read_csv(path, special, as_texts, encoder)
    else:
        frame = read_frame(path, [*special, *as_texts])
    present = [str(name) for name in frame.columns]
    for column in (*special, *dropped):
        check_column(column, present)
    columns = {column: as_text(frame[column]) for column in special}
    rest = frame.drop(columns=[*special, *dropped])
    require(rest.shape[1] > 0, "file", "no feature columns", "give at least one")
    names = encoder.feature_names_in_.tolist() if fitted else []
    rest = rest[feature_columns_of([str(name) for name in rest.columns], names)]
    try:
        features = encoder.transform(rest) if fitted else encoder.fit_transform(rest)
    except RefusedColumns as error:
        raise error.at_command_line(fitted) from None
    return columns, check_features(features, "features"), encoder.get_feature_names_out().tolist()


def _kinds(encoder: TableEncoder) -> dict[str, str]:
    """Return the kinds that are known before the file is read."""
    return getattr(encoder, "kinds_", None) or dict(encoder.kinds or {})


def _read_csv(
    path: Path, special: list[str], as_texts: list[str], encoder: TableEncoder
) -> pd.DataFrame:
    """Return a CSV file with NaN in empty cells of features."""
    with reading(path, "csv file"):
        names = pd.read_csv(path, nrows=0).columns
        gaps = sorted({*GAPS, *encoder.missing_values})
        frame = read_csv(
            path,
            dtype=dict.fromkeys([*special, *as_texts], str),
            keep_default_na=False,
            na_values={name: gaps for name in names if name not in special},
            low_memory=False,
        )
    check_last_line(path, frame.shape[1])
    return frame
