"""Tags of rows as people write them: a matrix of 0 and 1, a table, or a set of names a row."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int
from scipy import sparse

from graphuq.classifier.class_names import warn_of_alike
from graphuq.classifier.labels import missing_mask, shape_of, unknown_mask, unmasked
from graphuq.errors import InvalidInput, require, shortened
from graphuq.graphs.containers import is_frame, is_polars, plain_table
from graphuq.utils.checks import refuse_zero_bytes

REMEDY = "give one row for each row of X, and one column for each tag"
VALUES = (
    "give 1 for a row with the tag, 0 for one without, and -1 or NaN where it is unknown, "
    "as by (table == 'yes').astype(int)"
)
NAMES = "give a set of names for each row, set() for a row without tags, None if it is unlabelled"


class Tags(NamedTuple):
    """Which rows have which tags.

    Attributes
    ----------
    names : numpy.ndarray, shape (T,)
        Names of the tags; their numbers from 0 without names.
    codes : numpy.ndarray of int, shape (N, T)
        1 for a row with the tag, 0 for one without, −1 where it is unknown.
    """

    names: np.ndarray
    codes: Int[np.ndarray, "N T"]


def tags_of(Y: Any, argument: str = "Y") -> Tags:
    """Return the names of the tags, and which rows have them.

    Parameters
    ----------
    Y : array_like or sparse matrix, shape (N, T), or sequence of sets
        See `MultilabelClassifier.fit`.
    argument : str, default "Y"
        Name of ``Y`` in errors.

    Raises
    ------
    InvalidInput
        If ``Y`` is neither a matrix nor a set of names a row, names repeat, or a value is none of
        1, 0 and missing.
    """
    require(Y is not None, argument, "None", REMEDY)
    if _is_sets(Y):
        return _of_sets(list(Y), argument)
    Y = plain_table(Y, argument)
    if sparse.issparse(Y):
        return _of_matrix(Y.toarray(), None, argument)
    if is_frame(Y) or is_polars(Y):
        names = [str(name) for name in Y.columns]
        refuse_zero_bytes(names, argument)
        twice = sorted({name for name in names if names.count(name) > 1})
        require(not twice, argument, f"two columns {twice[:1]}", "give each tag a name of its own")
        values = np.array([[*row] for row in Y.to_numpy()], dtype=object).reshape(-1, len(names))
        return _of_matrix(values, np.array(names), argument)
    shape = shape_of(Y)
    require(len(shape) == 2, argument, f"shape {shape}", f"{REMEDY}, or sets of names")
    return _of_matrix(np.array([[*row] for row in unmasked(Y)], dtype=object), None, argument)


def check_both(tags: Tags) -> None:
    """Require for each tag a labelled row with it and one without it.

    Raises
    ------
    InvalidInput
        If a tag has one of them alone, which would say nothing about where the tag ends.

    Warns
    -----
    GraphuqWarning
        If names differ in capitals, blanks or hyphens alone.
    """
    warn_of_alike(tags.names, "Y: the tags")
    for name, codes in zip(tags.names.tolist(), tags.codes.T, strict=True):
        for code, words in ((1, "with"), (0, "without")):
            require(
                bool((codes == code).any()),
                "Y",
                f"no labelled row is {words} the tag {name!r}",
                f"label a row {words} it, or leave the tag out",
            )


def codes_among(Y: Any, names: np.ndarray) -> Int[np.ndarray, "M T"]:
    """Return which rows have which of the tags of a fit; −1 where it is unknown.

    Raises
    ------
    InvalidInput
        If ``Y`` has other tags, or its columns have another order.
    """
    tags, own = tags_of(Y), names.tolist()
    given = tags.names.tolist()
    if _is_sets(Y):  # a tag that no row has is no column
        unknown = sorted(set(given) - set(own))
        require(not unknown, "Y", f"the tag {unknown[:1]}", f"use {own}")
        is_known = (tags.codes >= 0).any(axis=1)
        codes = np.repeat(np.where(is_known, 0, -1)[:, None], len(own), axis=1)
        codes[:, [own.index(name) for name in given]] = tags.codes
        return codes
    are_numbers = given == list(range(len(own)))
    require(given == own or are_numbers, "Y", f"the tags {given}", f"give {own}, in this order")
    return tags.codes


def _is_sets(Y: Any) -> bool:
    """Return whether the rows are sets, None or NaN, and one of them at least a set."""
    if getattr(Y, "ndim", 1) != 1 or isinstance(Y, str | dict) or not np.iterable(Y):
        return False
    return any(isinstance(row, set | frozenset) for row in Y)


def _of_sets(rows: list[Any], argument: str) -> Tags:
    known = [isinstance(row, set | frozenset) for row in rows]
    for place, row in enumerate(rows):
        if not known[place] and not unknown_mask(np.array([row, None], dtype=object))[0]:
            raise InvalidInput(argument, f"{shortened(repr(row), 40)} in row {place}", NAMES)
    found = set().union(*(row for row, is_set in zip(rows, known, strict=True) if is_set))
    texts = all(isinstance(name, str) for name in found)
    require(texts, argument, f"names of tags that are no text: {shortened(repr(found), 60)}", NAMES)
    refuse_zero_bytes(sorted(found), argument)
    require(len(found) > 0, argument, "no tag in any row", NAMES)
    names = np.array(sorted(found))
    codes = np.array(
        [[name in row for name in names.tolist()] if is_set else [-1] * len(names)
         for row, is_set in zip(rows, known, strict=True)], dtype=np.int64
    )  # fmt: skip
    return Tags(names, codes)


def _of_matrix(values: np.ndarray, names: np.ndarray | None, argument: str) -> Tags:
    require(values.ndim == 2 and values.shape[1] > 0, argument, f"shape {values.shape}", REMEDY)
    flat = values.ravel()
    missing = missing_mask(flat, -1)
    codes, given = np.full(len(flat), -1), np.flatnonzero(~missing)
    for code in (0, 1):
        codes[[at for at in given.tolist() if _is_equal(flat[at], code)]] = code
    wrong = np.flatnonzero((codes < 0) & ~missing)
    place = int(wrong[0]) if len(wrong) else 0
    row, column = divmod(place, values.shape[1])
    shown = flat[place].item() if isinstance(flat[place], np.generic) else flat[place]
    require(
        len(wrong) == 0,
        argument,
        f"{shortened(repr(shown), 40)} in row {row}, column {column}",
        VALUES,
    )
    names = np.arange(values.shape[1]) if names is None else names
    return Tags(names, codes.reshape(values.shape))


def _is_equal(value: Any, code: int) -> bool:
    """Return whether a value is a boolean or number that is equal to 0 or 1."""
    return isinstance(value, bool | int | float | np.bool_ | np.number) and bool(value == code)
