"""Options ``--encode`` and ``--impute``: tables with text, categories, dates and gaps."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from graphuq.classifier.table_encoder import TableEncoder
from graphuq.classifier.table_encoder.refusals import RefusedColumns
from graphuq.cli.columns import feature_columns_of, require_features
from graphuq.cli.contents import Contents
from graphuq.cli.frames import GAPS, format_of_file, read_columns
from graphuq.errors import require
from graphuq.graphs.features import check_features
from graphuq.results.formats import formats_of_reading, table_formats


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
    path: Path,
    special: Sequence[str],
    dropped: Sequence[str],
    encoder: TableEncoder,
    options: Mapping[str, str] | None = None,
) -> Contents:
    """Return special columns, encoded features and their names from a file with named columns.

    Parameters
    ----------
    path : path
    special, dropped : sequence of str
        Columns of labels, ids and so on, and columns to ignore.
    encoder : TableEncoder
        It is fitted to the columns that are left, unless it was fitted before.
    options : dict of str to str, optional
        What the user says of how the file holds its table.

    Raises
    ------
    InvalidInput, StorageError
        If the file cannot be read, or a column cannot be encoded.
    """
    require(
        path.suffix.lower() in formats_of_reading(),
        "--encode" if encoder.encode else "--impute",
        f"given beside '{path.name}'",
        f"give a {' or '.join(table_formats())} file, whose columns have names",
    )
    fitted = hasattr(encoder, "transformer_")
    as_texts = [name for name, one in _kinds(encoder).items() if one in ("category", "text")]
    found = format_of_file(path, options, encoder.decimal if fitted else None)
    found = found.without(sorted({*GAPS, *encoder.missing_values}))
    frame = read_columns(path, special, dropped, found, as_texts)
    rest = frame.features
    require_features(rest)
    names = encoder.feature_names_in_.tolist() if fitted else []
    rest = rest[feature_columns_of([str(name) for name in rest.columns], names)]
    try:
        if fitted:
            features = encoder.transform(rest)
        else:
            encoder.set_params(decimal=found.decimal)
            features = encoder.fit_transform(rest)
    except RefusedColumns as error:
        raise error.at_command_line(fitted) from None
    features = check_features(features, "features")
    names = encoder.get_feature_names_out().tolist()
    return Contents(frame.columns, features, names, frame.ids, found, encoder.readings_)


def _kinds(encoder: TableEncoder) -> dict[str, str]:
    """Return the kinds that are known before the file is read."""
    return getattr(encoder, "kinds_", None) or dict(encoder.kinds or {})
