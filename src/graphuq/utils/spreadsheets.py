"""Texts in tables that a spreadsheet would run as formulas."""

import contextlib

import pandas as pd

from graphuq.errors import GraphuqWarning
from graphuq.utils.user_warnings import warn_user

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # a formula begins so
MARK = "'"  # before a text, which a spreadsheet then does not run


def without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts a spreadsheet does not run as formulas.

    A text that begins with =, +, -, @ or white space that ends a cell, and is not a number, gets an
    apostrophe before it, which a spreadsheet does not show. So do names of columns.

    Warns
    -----
    GraphuqWarning
        If a text was changed.
    """
    changed, columns = 0, {}
    for place, name in enumerate(frame.columns):
        values = frame.iloc[:, place]
        if values.dtype.kind not in "biufcmM":
            safe = [marked(v) if isinstance(v, str) else v for v in values]
            pairs = zip(safe, values, strict=True)
            n_changed = sum(isinstance(new, str) and new != old for new, old in pairs)
            values = pd.Series(safe, values.index, dtype=object) if n_changed else values
            changed += n_changed
        columns[marked(name) if isinstance(name, str) else name] = values
    if changed:
        warn_user(
            f"{changed} cells begin with =, +, - or @, which a spreadsheet would run; an "
            "apostrophe was written before each of them",
            GraphuqWarning,
        )
    return pd.DataFrame(columns, index=frame.index)


def marked(text: str) -> str:
    """Return a text that is no formula, which `unmarked` turns back.

    Examples
    --------
    >>> [marked(text) for text in ("=1+1", "-1.5", "'=1", "'a'")]
    ["'=1+1", '-1.5', "''=1", "'a'"]
    """
    return f"{MARK}{text}" if _is_formula(text.lstrip(MARK)) else text


def unmarked(text: str) -> str:
    """Return the text that `marked` was given.

    Examples
    --------
    >>> [unmarked(text) for text in ("'=1+1", "-1.5", "''=1", "'a'")]
    ['=1+1', '-1.5', "'=1", "'a'"]
    """
    return text[1:] if text[:1] == MARK and _is_formula(text.lstrip(MARK)) else text


def _is_formula(text: str) -> bool:
    if not text.startswith(FORMULA):
        return False
    with contextlib.suppress(ValueError):
        float(text)
        return False
    return True
