"""Numbers as people write them: "12 %", "$1,234.50", "1.234,5", "(3)", "<0.1"."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

CURRENCY = r"[$€£¥₹]|USD|EUR|GBP|CHF|US\$|Rs\.?"
WRITTEN = re.compile(
    rf"""(?P<bound>[<>≤≥~≈]=?)?\s*
    (?P<open>\()?(?P<sign>[-+−])?\s*(?P<before>{CURRENCY})?\s*(?P<second>[-−])?
    (?P<digits>(?:\d[\d.,'’\s]*)?[\d.,])(?P<exponent>[eE][-+]?\d+)?
    \s*(?P<after>\+|[%‰°€$£¥₹a-zA-Zµ²³/]{{1,12}})?(?P<close>\))?""",
    re.VERBOSE,
)
GROUPED = {  # digits with marks of thousands, by the decimal mark
    mark: re.compile(
        rf"(?P<whole>[1-9]\d{{0,2}}(?:(?P<group>[{other}\s'’])\d{{3}})(?:(?P=group)\d{{3}})*|\d*)"
        rf"(?:[{mark}](?P<rest>\d*))?"
    )
    for mark, other in ((".", ","), (",", "."))
}


class Cell(NamedTuple):
    """A number in a cell, what it is a number of, and whether it is only a bound."""

    value: float
    unit: str
    is_bound: bool


class Numbers(NamedTuple):
    """Numbers of a column, NaN where a cell holds none, and which of them are only bounds."""

    values: Float[np.ndarray, " N"]
    is_bound: Bool[np.ndarray, " N"]


@dataclass(frozen=True)
class NumberFormat:
    """How a column writes its numbers.

    Parameters
    ----------
    decimal : {".", ","}, default "."
        Decimal mark. The other one is then a mark of thousands; a space and an apostrophe are too.
    unit : str, default ""
        Unit that every number has, such as "%" or "$"; it is left out. A zero may be without it.
    """

    decimal: str = "."
    unit: str = ""

    def __call__(self, cells: Iterable[Any]) -> Numbers:
        """Return the numbers of cells; those with another unit are none."""
        cells = list(cells)
        known = {cell: self._number(cell) for cell in dict.fromkeys(cells)}
        found = [known[cell] for cell in cells]
        values = np.array([cell.value for cell in found], dtype=np.float64)
        is_bound = np.array([cell.is_bound for cell in found], dtype=bool)
        exact = values[~is_bound & ~np.isnan(values)]
        for row in np.flatnonzero(is_bound):  # "3+" is the top of a scale, or no number
            if str(cells[row]).rstrip().endswith("+") and (exact > values[row]).any():
                values[row], is_bound[row] = np.nan, False
        return Numbers(values, is_bound)

    def _number(self, cell: Any) -> Cell:
        found = number_in(cell, self.decimal)
        if found.unit in (self.unit, "") and (found.unit == self.unit or found.value == 0):
            return found
        if found.unit == "+" and not self.unit:
            return Cell(found.value, "", True)
        return Cell(math.nan, "", False)

    def __str__(self) -> str:
        """Return the unit and the decimal mark, or nothing for plain numbers."""
        comma = "decimal commas" if self.decimal == "," else ""
        return ", ".join(word for word in (self.unit, comma) if word)


def number_in(cell: Any, decimal: str) -> Cell:
    """Return the number in a cell, NaN if there is none."""
    if not isinstance(cell, str):
        return Cell(float(cell), "", False)
    none = Cell(math.nan, "", False)
    written = WRITTEN.fullmatch(cell.strip())
    if written is None or bool(written["open"]) != bool(written["close"]):
        return _plain(cell) if decimal == "." else none
    grouped = GROUPED[decimal].fullmatch(written["digits"].strip())
    if grouped is None or not (grouped["whole"] or grouped["rest"]):
        return none
    whole = re.sub(r"\D", "", grouped["whole"])
    value = float(f"{whole or 0}.{grouped['rest'] or 0}{written['exponent'] or ''}")
    signs = [written["open"], written["sign"], written["second"]]
    if sum(sign in ("(", "-", "−") for sign in signs) % 2:
        value = -value
    unit = (written["before"] or "") + (written["after"] or "")
    return Cell(value, unit, written["bound"] is not None)


def _plain(text: str) -> Cell:
    """Return what Python reads as a number, such as "inf" or "1_000" without its line."""
    try:
        return Cell(math.nan if "_" in text else float(text), "", False)
    except ValueError:
        return Cell(math.nan, "", False)


def format_of_numbers(cells: Iterable[Any], decimal: str | None = None) -> NumberFormat:
    """Return the format under which most cells are numbers.

    Parameters
    ----------
    cells : iterable
        Texts and numbers of one column, without its empty cells.
    decimal : {".", ","}, optional
        Decimal mark where the cells fit both, as "1,234" does; by default a point.
    """
    counts = Counter(cells)
    marks = (",", ".") if decimal == "," else (".", ",")
    units: Mapping[str, Counter[str]] = {mark: Counter() for mark in marks}
    for cell, count in counts.items():
        for mark in marks:
            found = number_in(cell, mark)
            if not math.isnan(found.value):
                units[mark][found.unit] += count
    best = max(marks, key=lambda mark: units[mark].total())  # the first, if they are equal
    known = units[best]
    if not known:
        return NumberFormat(best)
    unit = max(known, key=lambda one: (known[one], one == ""))
    return NumberFormat(best, "" if unit == "+" and known[""] else unit)


def decimal_mark(columns: Iterable[Iterable[Any]]) -> str | None:
    """Return the decimal mark that columns of texts show, None if none does.

    A column shows its mark if it is one of numbers that fit only this mark. Without doubt is only
    what all such columns agree on.
    """
    shown = set()
    for cells in columns:
        texts = dict.fromkeys(cell for cell in cells if isinstance(cell, str))
        fits = {m: sum(not math.isnan(number_in(t, m).value) for t in texts) for m in (".", ",")}
        best = max(fits, key=lambda mark: fits[mark])
        if fits["."] != fits[","] and 2 * fits[best] > len(texts):
            shown.add(best)
    return shown.pop() if len(shown) == 1 else None
