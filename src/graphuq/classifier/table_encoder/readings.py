"""What kind a column of a table is, and how its cells are read as numbers or dates."""

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from graphuq.classifier.table_encoder.refusals import (
    CORRECT,
    DROP,
    NAMES,
    SAME_NAMES,
    RefusedColumn,
)
from graphuq.errors import require
from graphuq.utils.text_numbers import to_numbers
from graphuq.utils.written.dates import DateFormat, days_of, formats_of_dates
from graphuq.utils.written.gaps import is_gap_word
from graphuq.utils.written.numbers import (
    NumberFormat,
    decimal_mark,
    format_of_numbers,
    number_in,
)

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("number", "date", "category", "text")
MIN_WORDS = 4.0  # mean number of words of a cell, from which a column is text
FEW = 20  # different values that are categories, however few rows have each
MAX_CATEGORIES = 1_000
ORDINALS = {"st", "nd", "rd", "th"}  # of 1st, 2nd, 3rd, 4th, which are no units
MAX_ODD = 0.05  # share of cells of a column of numbers that may be other texts
SAY_KIND = "leave it out, or say what it is: kinds={{{0!r}: 'category'}} (--kind {0}=category)"
NO_VALUE = "has no value in any row", "leave it out", "no value", DROP


@dataclass(frozen=True)
class Reading:
    """How a column is read.

    Parameters
    ----------
    kind : {"number", "date", "category", "text"}
    format : NumberFormat or DateFormat, optional
        How texts are numbers or dates; required for these two kinds.
    gaps : tuple of str
        Texts among the numbers or dates that count as empty cells.
    """

    kind: str
    format: NumberFormat | DateFormat | None = None
    gaps: tuple[str, ...] = ()

    def numbers(self, filled: "pd.Series") -> Float[np.ndarray, " M"]:
        """Return the numbers of cells, or their days since 1970; NaN where they are neither."""
        if isinstance(self.format, DateFormat):
            return days_of(filled) if filled.dtype.kind == "M" else self.format(filled)
        assert isinstance(self.format, NumberFormat)
        import pandas as pd

        of_texts = isinstance(
            filled.dtype, np.dtype | pd.StringDtype
        )  # the latter from pandas 3 on
        if filled.dtype.kind in "biuf" or not of_texts:
            return to_numbers(filled).to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
        if self.format == NumberFormat() and (plain := to_numbers(filled)).notna().all():
            return plain.to_numpy(dtype=np.float64, copy=True)
        return self.format(filled).values

    def to_plain(self) -> dict[str, Any]:
        """Return format and gaps as plain data, nothing if they are the usual ones."""
        plain = {} if self.format in (None, NumberFormat(), DateFormat()) else vars(self.format)
        return dict(plain) | ({"gaps": list(self.gaps)} if self.gaps else {})

    @classmethod
    def from_plain(cls, kind: str, plain: Mapping[str, Any]) -> "Reading":
        """Return the reading of a kind with the stored parts."""
        parts = {name: value for name, value in plain.items() if name != "gaps"}
        formats = {"number": NumberFormat, "date": DateFormat}
        made = formats[kind](**parts) if kind in formats else None
        return cls(kind, made, tuple(plain.get("gaps", ())))


def reading_of(
    column: "pd.Series",
    gaps: Bool[np.ndarray, " N"],
    given: str | None = None,
    decimal: str | None = None,
) -> Reading:
    """Return how a column is read.

    Texts are numbers if all of them are, with one unit at most, or nearly all: words for "nothing"
    and up to 5 % of other texts are then empty cells. They are dates if all have one format. They
    are text if cells have four words or more and most are different; otherwise categories.

    Parameters
    ----------
    column : pandas.Series
    gaps : numpy.ndarray of bool, shape (N,)
        Empty cells.
    given : str, optional
        Kind that the user names.
    decimal : {".", ","}, optional
        Decimal mark where the cells do not tell.

    Raises
    ------
    RefusedColumn
        If the column holds something else, or nearly as many different texts as rows.
    """
    import pandas as pd

    filled = stripped(column[~gaps])
    if given is not None:
        return _reading_as_told(filled, given, decimal)
    name, kind = str(column.name), column.dtype.kind
    if kind == "b" or isinstance(column.dtype, pd.CategoricalDtype):
        return Reading("category")
    if kind in "iuf":
        return Reading("number", NumberFormat())
    if kind == "M":
        return Reading("date", DateFormat())
    if filled.empty:
        raise RefusedColumn(name, *NO_VALUE)
    types = {type(value) for value in filled}
    if kind == "O" or types <= {str}:
        if types <= {bool, np.bool_}:
            return Reading("category")
        if all(issubclass(one, datetime.date) for one in types):
            return Reading("date", DateFormat())
        if all(issubclass(one, int | float | np.number | str) for one in types):
            return _reading_of_texts(name, filled, decimal)
    raise RefusedColumn(
        name,
        f"({column.dtype}) holds values such as {filled.iloc[0]!r}",
        "convert it to numbers, texts or dates, or leave it out",
        "neither numbers, texts nor dates",
        CORRECT,
    )


def _reading_as_told(filled: "pd.Series", given: str, decimal: str | None) -> Reading:
    """Return the reading of a kind that the user names; the format of a date may follow it."""
    kind, _, pattern = given.partition(" ")
    if kind not in ("number", "date"):
        return Reading(kind)
    words = _gap_words(filled)
    rest = filled[~filled.isin(words)]
    if kind == "number":
        likely = format_of_numbers(rest, pattern or decimal)
        return Reading("number", replace(likely, decimal=pattern or likely.decimal), words)
    if pattern or filled.dtype.kind == "M":
        return Reading("date", DateFormat(pattern) if pattern else DateFormat(), words)
    found = formats_of_dates(rest.astype(str).str.strip())
    return Reading("date", found[0] if found else DateFormat(), words)


def _reading_of_texts(name: str, filled: "pd.Series", decimal: str | None) -> Reading:
    """Return the reading of a column of texts, and perhaps numbers, without empty cells."""
    numbers = as_numbers(filled, decimal)
    if numbers is not None:
        return numbers
    words = _gap_words(filled)
    if words != tuple(filled.unique()):
        dates = formats_of_dates(filled[~filled.isin(words)].astype(str).str.strip())
        if dates:
            return Reading("date", dates[0], words)
    texts = filled.astype(str).str.strip()
    n_different, share = texts.nunique(), texts.nunique() / len(texts)
    if share > 0.5 and texts.str.count(r"\S+").mean() >= MIN_WORDS:
        return Reading("text")
    if n_different > FEW and share > 0.5:
        raise RefusedColumn(
            name,
            f"has {n_different} different texts in {len(texts)} rows, such as "
            f"{texts.iloc[0][:20]!r}, like names",
            SAY_KIND.format(name),
            "texts like names",
            DROP,
            NAMES if n_different == len(texts) else SAME_NAMES,
        )
    if n_different > MAX_CATEGORIES:
        raise RefusedColumn(
            name,
            f"has {n_different} different texts",
            f"leave it out, or join them to at most {MAX_CATEGORIES} categories",
            f"over {MAX_CATEGORIES} different texts",
            DROP,
        )
    return Reading("category")


def as_numbers(filled: "pd.Series", decimal: str | None = None) -> Reading | None:
    """Return how a column of texts is one of numbers, None if it is none."""
    if decimal != "," and to_numbers(filled).notna().all():
        return Reading("number", NumberFormat())
    found = format_of_numbers(filled, decimal)
    odd = filled[np.isnan(found(filled).values)]
    n_other = sum(not is_gap_word(str(text)) for text in odd)
    if len(odd) == len(filled) or n_other > MAX_ODD * len(filled):
        return None
    return Reading("number", found, tuple(str(text) for text in odd.unique()))


def _gap_words(filled: "pd.Series") -> tuple[str, ...]:
    """Return the texts among the cells that stand for "nothing"."""
    return tuple(one for one in filled.unique() if isinstance(one, str) and is_gap_word(one))


def stripped(column: "pd.Series") -> "pd.Series":
    """Return a column whose texts have no blanks around them."""
    if column.dtype.kind != "O":
        return column
    return column.map(lambda value: value.strip() if isinstance(value, str) else value)


def decimal_mark_of(frame: "pd.DataFrame") -> str | None:
    """Return the decimal mark that the texts of a table show, None if none does."""
    texts = (frame[name] for name in frame.columns if frame[name].dtype.kind not in "biufcmM")
    return decimal_mark(column.dropna() for column in texts)


def remarks(
    frame: "pd.DataFrame", readings: Mapping[str, Reading], told: Mapping[str, str]
) -> list[str]:
    """Return one sentence a kind of guess that was made about cells, where no kind was told."""
    empty: dict[str, Counter[str]] = {}
    bounds, doubts = [], []
    for name, reading in readings.items():
        column = stripped(frame[name])
        for text in reading.gaps:
            empty.setdefault(text, Counter())[name] = int((column == text).sum())
        if column.dtype.kind != "O":
            continue
        filled = column[column.notna() & ~column.isin(reading.gaps)]
        if isinstance(reading.format, NumberFormat):
            cells = filled[reading.format(filled).is_bound].unique()
            bounds += [f"{name} ({_listed(map(repr, cells))})"] if len(cells) else []
        if reading.kind == "category" and name not in told:
            doubts += _several_units(name, filled)
        if " " not in told.get(name, ""):
            doubts += _doubt(name, filled, reading)
    found = []
    if empty:
        words = [f"{text!r} ({_listed(f'{k} in {n}' for n, k in where.items())})"
                 for text, where in empty.items()]  # fmt: skip
        found.append(f"cells among numbers or dates that count as empty: {_listed(words)}")
        if odd := [
            name for text, where in empty.items() if not is_gap_word(text) for name in where
        ]:
            found.append(
                f"if {odd[0]} holds codes, say so by kinds={{{odd[0]!r}: 'category'}} "
                f"(--encode --kind {odd[0]}=category)"
            )
    if bounds:
        found.append(f"bounds that count as numbers: {_listed(bounds)}")
    return found + doubts


def _several_units(name: str, filled: "pd.Series") -> list[str]:
    """Return a sentence if cells are numbers of several units, and categories for this reason."""
    cells = filled.astype(str).unique()
    found = [number_in(cell, ".") for cell in cells]
    units = list(dict.fromkeys(one.unit.strip("+") for one in found if not np.isnan(one.value)))
    if len(units) < 2 or np.mean([np.isnan(one.value) for one in found]) > MAX_ODD:
        return []
    if ORDINALS.issuperset(units):
        return []
    return [f"numbers of {name!r} have several units ({_listed(map(repr, units))}) and count as "
            "categories; convert them to one unit"]  # fmt: skip


def _doubt(name: str, filled: "pd.Series", reading: Reading) -> list[str]:
    """Return a sentence if cells fit another format, by which they are other numbers or days."""
    values = reading.numbers(filled) if reading.format is not None else np.empty(0)
    for other in _other_formats(filled, reading.format):
        found = replace(reading, format=other).numbers(filled)
        if not np.isnan(found).any() and (found != values).any():
            mark = other.pattern if isinstance(other, DateFormat) else other.decimal
            return [
                f"{filled.iloc[0]!r} and others of {name!r} could be read in another way: say it "
                f"by kinds={{{name!r}: '{reading.kind} {mark}'}} "
                f"(--kind '{name}={reading.kind} {mark}')"
            ]
    return []


def _other_formats(
    filled: "pd.Series", chosen: NumberFormat | DateFormat | None
) -> Sequence[NumberFormat | DateFormat]:
    """Return formats that are as likely as the chosen one."""
    if isinstance(chosen, DateFormat):
        return formats_of_dates(filled.astype(str).str.strip())
    if chosen is None or chosen.decimal == ".":  # "1,234" is hardly a number with three decimals
        return []
    return [replace(chosen, decimal=".")]


def _listed(words: Iterable[str], most: int = 5) -> str:
    """Return words with commas between them, and the number of those left out."""
    words = list(words)
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def check_kinds(kinds: Mapping[str, str] | None, names: Collection[str]) -> dict[str, str]:
    """Return the kinds that the user names, by column.

    Raises
    ------
    InvalidInput
        If a column is not in the table, or a kind is unknown.
    """
    for name, given in (kinds or {}).items():
        kind, space, pattern = given.partition(" ")
        require(name in names, "kinds", f"no column {name!r}", f"use one of {list(names)[:8]}")
        require(kind in KINDS, "kinds", f"{given!r} of {name!r}", f"use one of {', '.join(KINDS)}")
        require(
            not space
            or (kind == "date" and "%" in pattern)
            or (kind == "number" and pattern in (".", ",")),
            "kinds",
            f"{given!r} of {name!r}",
            "write a format after it, as in 'date %d/%m/%Y', or a decimal mark, as in 'number ,'",
        )
    return dict(kinds or {})
