"""Names of the columns of a table."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from graphuq.errors import InvalidInput, require
from graphuq.results.formats import table_formats
from graphuq.utils.checks import is_number


def generated_names(n_columns: int) -> list[str]:
    """Return names of columns for a file that has none."""
    return [f"x{i}" for i in range(n_columns)]


def feature_columns_of(present: list[str], required: Sequence[str]) -> list[str]:
    """Return the columns to use: those that are required, or else all that are present."""
    missing = [name for name in required if name not in present]
    if not required or (missing and list(required) == generated_names(len(required))):
        return present
    require(
        not missing,
        "file",
        f"it lacks {missing[:5]}{' …' if len(missing) > 5 else ''} of the "
        f"{len(required)} feature columns",
        "give all feature columns of the fit, under the same names",
    )
    return list(required)


def check_column(
    column: str, columns: list[str], remedy: str = "name a column of the file"
) -> None:
    """Require that a column is in the file."""
    if column in columns:
        return
    near = difflib.get_close_matches(column, columns, n=1)
    raise InvalidInput(
        "column",
        f"'{column}' is not among {columns[:8]}{' …' if len(columns) > 8 else ''}",
        f"did you mean '{near[0]}'?" if near else remedy,
    )


def check_format(name: str) -> None:
    """Raise `InvalidInput` unless a table can be written in a format."""
    known = [suffix.removeprefix(".") for suffix in table_formats()]
    require(name in known, "--format", f"{name!r}", f"use {' or '.join(known)}")


def require_one_source(label_column: str | None, labels: Path | None) -> None:
    """Require that labels do not come from a column and from a file of their own."""
    require(
        label_column is None or labels is None,
        "--label-column",
        "given beside --labels",
        "give one of the two",
    )


def without_missing(labels: np.ndarray, missing: Sequence[str] | None) -> np.ndarray:
    """Return labels as text, empty where they are a text that means unlabelled."""
    return np.where(np.isin(labels, missing or []), "", labels)


def weights_from(
    text: np.ndarray | None, column: str | None, given: Bool[np.ndarray, "N *A"]
) -> Float[np.ndarray, " N"] | None:
    """Return weights of labels from a column of text, or None without one.

    Raises
    ------
    InvalidInput
        If a labelled row has no weight, or a weight is not a number >= 0.
    """
    if text is None or column is None:
        return None
    from graphuq.classifier.regressor.values import numbers_of

    remedy = "give a number >= 0 for each given label"
    numbers = numbers_of(text, column, remedy)
    wrong = np.flatnonzero(given & ~(numbers >= 0))
    require(len(wrong) == 0, column, f"no weight >= 0 in row {wrong[:1].tolist()}", remedy)
    return np.where(given, numbers, 1.0)


def read_options(texts: Sequence[str] | None) -> dict[str, str]:
    """Return the parts of option ``--read`` by their names.

    Raises
    ------
    InvalidInput
        If one is not NAME=VALUE.
    """
    named = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        remedy = "write NAME=VALUE, as in separator=';'"
        require(bool(name.strip() and equals and value), "--read", f"{text!r}", remedy)
        named[name.strip()] = value
    return named


NOT_GIVEN = {"scaling": "none", "weights": "auto"}  # of options whose default is not None


def refuse_given(options: Mapping[str, Any], beside: str, remedy: str) -> None:
    """Raise `InvalidInput` for the first option that was given, by its name on the command line."""
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        is_default = value in (None, False, [], ()) and not is_number(value)
        require(
            is_default or value == NOT_GIVEN.get(name), option, f"given beside {beside}", remedy
        )
