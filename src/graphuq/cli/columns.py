"""Names of the columns of a table."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from graphuq.errors import GraphuqWarning, InvalidInput, require
from graphuq.results.formats import table_formats
from graphuq.utils.checks import is_number
from graphuq.utils.near_names import did_you_mean
from graphuq.utils.user_warnings import warn_user
from graphuq.utils.written.gaps import is_gap_word


def generated_names(n_columns: int) -> list[str]:
    """Return names of columns for a file that has none."""
    return [f"x{i}" for i in range(n_columns)]


def feature_columns_of(present: list[str], required: Sequence[str]) -> list[str]:
    """Return the columns to use: those that are required, or else all that are present."""
    missing = [name for name in required if name not in present]
    if not required or (missing and list(required) == generated_names(len(required))):
        return present
    folded = {name.casefold(): name for name in present}
    near = [folded[name.casefold()] for name in missing if name.casefold() in folded]
    require(
        not missing,
        "file",
        f"it lacks {missing[:5]}{' …' if len(missing) > 5 else ''} of the "
        f"{len(required)} feature columns{f', but has {near[:5]}' if near else ''}",
        "give all feature columns of the fit, under the same names",
    )
    return list(required)


def require_features(frame: Any) -> None:
    """Raise `InvalidInput` if a table has no column that could be a feature."""
    require(
        frame.shape[1] > 0,
        "file",
        "no feature columns",
        "give at least one column of numbers; a network alone is read by "
        "'classify EDGES.csv --edges A,B --labels NODES.csv'",
    )


def check_column(
    column: str, columns: list[str], remedy: str = "name a column of the file"
) -> None:
    """Require that a column is in the file."""
    if column in columns:
        return
    raise InvalidInput(
        "column",
        f"'{column}' is not among {columns[:8]}{' …' if len(columns) > 8 else ''}",
        did_you_mean(column, columns, remedy),
    )


def same_name(column: str, columns: Sequence[str]) -> str:
    """Return a name as the file spells it, in capitals or not, or as it is if the file lacks it."""
    if column in columns:
        return column
    return next((one for one in columns if one.casefold() == column.casefold()), column)


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


def without_missing(
    labels: np.ndarray, missing: Sequence[str] | None, argument: str = "labels"
) -> np.ndarray:
    """Return labels as text, empty where they are a text that means unlabelled.

    These are the given texts or, if none is given, words such as "?" and "unknown".

    Warns
    -----
    MissingLabelWarning
        If there are such words.
    """
    if missing is not None:
        return np.where(np.isin(labels, missing), "", labels)
    from graphuq.classifier.unlabelled_words import without_words

    return without_words(labels, argument, "--missing-label '' makes it a class")


def numbers_from(
    text: np.ndarray, column: str, remedy: str, decimal: str | None
) -> Float[np.ndarray, " N"]:
    """Return numbers from a column of text, however they are written; NaN where it is empty.

    Parameters
    ----------
    text : numpy.ndarray of str, shape (N,)
    column : str
    remedy : str
        What to do about other texts.
    decimal : {".", ","} or None
        Decimal mark of the file.

    Raises
    ------
    InvalidInput
        If a text is no number.

    Warns
    -----
    GraphuqWarning
        If words for "nothing" count as empty, or bounds such as "<0.1" as numbers.
    """
    import pandas as pd

    from graphuq.classifier.regressor.values import numbers_of
    from graphuq.classifier.table_encoder.readings import as_numbers, remarks

    cells = pd.Series(text, dtype=object)
    reading = as_numbers(cells[text != ""], decimal) if (text != "").any() else None
    if reading is None or not all(map(is_gap_word, reading.gaps)):
        return numbers_of(text, column, remedy)
    if found := remarks(cells[text != ""].to_frame(column), {column: reading}, {}):
        warn_user(f"{column}: {'; '.join(found)}", GraphuqWarning)
    filled = (text != "") & ~np.isin(text, reading.gaps)
    numbers = np.full(len(text), np.nan)
    numbers[filled] = reading.numbers(cells[filled])
    return numbers_of(numbers, column, remedy)


def weights_from(
    text: np.ndarray | None,
    column: str | None,
    given: Bool[np.ndarray, "N *A"],
    decimal: str | None = None,
) -> Float[np.ndarray, " N"] | None:
    """Return weights of labels from a column of text, or None without one.

    Raises
    ------
    InvalidInput
        If a labelled row has no weight, or a weight is not a number >= 0.
    """
    if text is None or column is None:
        return None
    remedy = "give a number >= 0 for each given label"
    numbers = numbers_from(text, column, remedy, decimal)
    wrong = np.flatnonzero(given & ~(numbers >= 0))
    require(len(wrong) == 0, column, f"no weight >= 0 in row {wrong[:1].tolist()}", remedy)
    return np.where(given, numbers, 1.0)


def exposures_from(
    text: np.ndarray | None, column: str | None, decimal: str | None = None
) -> Float[np.ndarray, " N"] | None:
    """Return exposures of all rows from a column of text, or None without one.

    Raises
    ------
    InvalidInput
        If a row has no number > 0.
    """
    if text is None or column is None:
        return None
    remedy = "give a number > 0 for every row, also where the count is unknown"
    numbers = numbers_from(text, column, remedy, decimal)
    wrong = np.flatnonzero(~(numbers > 0))
    require(len(wrong) == 0, column, f"no exposure > 0 in row {wrong[:1].tolist()}", remedy)
    return numbers


def read_options(texts: Sequence[str] | None, option: str = "--read") -> dict[str, str]:
    """Return the parts of option ``--read``, or of one like it, by their names.

    Raises
    ------
    InvalidInput
        If one is not NAME=VALUE.
    """
    named = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        remedy = "write NAME=VALUE, as in separator=';'"
        require(bool(name.strip() and equals and value), option, f"{text!r}", remedy)
        named[name.strip()] = value
    return named


def label_options(texts: Sequence[str] | None, labels: Path | None) -> dict[str, str]:
    """Return the parts of option ``--read-labels``, which is refused without ``--labels``."""
    require(
        not texts or labels is not None,
        "--read-labels",
        f"{list(texts or ())} without --labels",
        "add --labels FILE, or use --read for FILE",
    )
    return read_options(texts, "--read-labels")


NOT_GIVEN = {"scaling": "none", "weights": "auto"}  # of options whose default is not None


def refuse_given(options: Mapping[str, Any], beside: str, remedy: str) -> None:
    """Raise `InvalidInput` for the first option that was given, by its name on the command line."""
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        is_default = value in (None, False, [], ()) and not is_number(value)
        require(
            is_default or value == NOT_GIVEN.get(name), option, f"given beside {beside}", remedy
        )


def refuse_others(
    command: Callable[..., None],
    given: Mapping[str, Any],
    used: Sequence[str],
    of_estimator: Sequence[str],
    beside: str,
) -> None:
    """Raise `InvalidInput` for the first option that would have no effect beside another one.

    Parameters
    ----------
    command : callable
        The command, whose defaults tell which options were given.
    given : dict
        All its options; ``given["given"]`` has those of the estimator that were given.
    used, of_estimator : sequence of str
        Names of the options that have an effect.
    beside : str
        The other option.
    """
    options, parameters = given["given"], inspect.signature(command).parameters
    without = [n for n in options if n not in of_estimator]
    used = (*used, "given")
    without += [n for n in given if n not in used and given[n] != parameters[n].default]
    for name in without:
        option, value = f"--{name.replace('_', '-')}", options.get(name, given.get(name))
        raise InvalidInput(option, f"{value} beside {beside}", "leave it out")
