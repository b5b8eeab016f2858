"""How a file of text holds a table: separator, encoding, decimal mark, quotes, header."""

import codecs
import csv
import io
import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from graphuq.errors import InvalidInput, StorageError, require
from graphuq.utils.written.gaps import is_gap_word
from graphuq.utils.written.numbers import decimal_mark, number_in

SEPARATORS = ("\t", ";", "|", ",", " ")  # a blank stands for any number of them
NAMES = {"tab": "\t", "blank": " ", "space": " ", "\\t": "\t"}
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by the bytes with which a file begins, the longer ones first."""

SAMPLE = 1_000_000  # characters that are looked at
SAMPLE_ROWS = 500  # rows of them
BLOCK = 1 << 20  # bytes that are decoded together
MOSTLY = 0.8  # share of rows, or of cells
FEW = 4  # columns, such as ends, weight and sign of edges
Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Dialect:
    """How a file of text holds a table.

    Parameters
    ----------
    separator : str, default ","
        Character between two cells; a blank stands for any number of them.
    encoding : str, default "utf-8"
    decimal : {".", ","}, default "."
        Decimal mark; the other one is then a mark of thousands.
    quote : str, default '"'
        Character around a cell that holds separators.
    header : {0, 1, 2}, default 1
        Lines with the names of the columns. Without one they are x0, x1 and so on; the names of
        two are joined.
    skip : int, default 0
        Lines before the header.
    lines : int, default 1
        Lines up to the end of the header, of which a cell may have several.
    columns : tuple of str
        Names of the columns, different from each other.
    repeated : tuple of str
        Names that occurred more than once; the further columns got a number.
    """

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    quote: str = '"'
    header: int = 1
    skip: int = 0
    lines: int = field(default=1, compare=False)
    columns: tuple[str, ...] = field(default=(), compare=False)
    repeated: tuple[str, ...] = field(default=(), compare=False)

    def settings(self) -> dict[str, Any]:
        """Return all parts but the columns, as plain data."""
        return {name: getattr(self, name) for name in OPTIONS}

    def __str__(self) -> str:
        """Return what was taken, in a few words."""
        named = {"\t": "tab", " ": "blanks"}.get(self.separator, repr(self.separator))
        words = [f"separator {named}", self.encoding]
        words += ["decimal commas"] if self.decimal == "," else []
        words += [f"quotes {self.quote}"] if self.quote != '"' else []
        words += {0: ["no header"], 2: ["two header lines"]}.get(self.header, [])
        words += [f"{self.skip} lines before the header"] if self.skip else []
        words += [f"names that repeat: {', '.join(self.repeated)}"] if self.repeated else []
        return ", ".join(words)


OPTIONS = tuple(one.name for one in fields(Dialect) if one.compare)
"""Parts of a dialect that a user may say."""


def dialect_of(
    path: Path, given: Mapping[str, str] | None = None, decimal: str | None = None
) -> Dialect:
    """Return how a file holds its table, which is found from its first rows.

    Parameters
    ----------
    path : path
    given : dict of str to str, optional
        Parts that the user says, as `OPTIONS` names them.
    decimal : {".", ","}, optional
        Decimal mark where the rows do not tell.

    Raises
    ------
    InvalidInput
        If a part is unknown, or the file has two header lines or a title.
    StorageError
        If the encoding of the file is not the one that is given.
    """
    told = _told(given or {})
    encoding = told.get("encoding") or _encoding_of(path)
    text, is_whole = _beginning(path, encoding)
    skip = told.get("skip", _lines_to_skip(text))
    named = re.match(r"sep=(.)\r?\n", text)  # as spreadsheets write it
    text = "".join(text.splitlines(keepends=True)[skip:])
    separator = told.get("separator") or (named[1] if named else _separator_of(text))
    quote = told.get("quote") or _quote_of(text, separator)
    rows, ends = _rows(text, separator, quote, is_whole)
    header = told["header"] if "header" in told else _header_of(rows, ends, path, skip)
    body = rows[header:]
    cells = list(itertools.zip_longest(*body, fillvalue=""))
    mark = told.get("decimal") or _decimal_of(cells, separator, decimal)
    columns, repeated = _names(rows[:header], body)
    lines = skip + (ends[header - 1] if header and rows else 0)
    return Dialect(separator, encoding, mark, quote, header, skip, lines, columns, repeated)


def _told(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the parts that the user says, checked."""
    told: dict[str, Any] = {}
    for name, text in given.items():
        require(name in OPTIONS, "--read", f"{name!r} is unknown", f"use {', '.join(OPTIONS)}")
        value: Any = NAMES.get(text, text) if name == "separator" else text
        if name in ("header", "skip"):
            known = text.isdecimal() and (name == "skip" or int(text) <= 2)
            require(known, "--read", f"{name}={text}", "give 0, 1 or 2 lines")
            value = int(text)
        elif name == "encoding":
            try:
                codecs.lookup(text)
            except LookupError:
                words = "use utf-8, cp1252, latin-1, utf-16 or another one of Python"
                raise InvalidInput("--read", f"encoding={text}", words) from None
        elif name == "decimal":
            require(text in (".", ","), "--read", f"decimal={text}", "give a point or a comma")
        else:
            require(len(value) == 1, "--read", f"{name}={text}", "give one character, or tab")
        told[name] = value
    return told


def _encoding_of(path: Path) -> str:
    """Return the encoding that the mark at the beginning says, or the first that fits."""
    with open(path, "rb") as file:
        start = file.read(1000)
        for mark in sorted(MARKS, key=len, reverse=True):
            if start.startswith(mark):
                return MARKS[mark]
        if len(start) > 3 and start[1::2].count(0) > MOSTLY * len(start[1::2]):
            return "utf-16-le"
        if len(start) > 3 and start[::2].count(0) > MOSTLY * len(start[::2]):
            return "utf-16-be"
        if b"\0" in start:
            raise ValueError("it holds bytes that are no text")
        file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while block := file.read(BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def _beginning(path: Path, encoding: str) -> tuple[str, bool]:
    """Return the first characters of a file, and whether they are all."""
    try:
        with open(path, encoding=encoding, newline="") as file:
            text = file.read(SAMPLE)
            return text, not file.read(1)
    except UnicodeError:
        raise StorageError(
            f"'{path}' is not text in {encoding}; name its encoding by --read encoding=latin-1, "
            "cp1251 or another one"
        ) from None


def _lines_to_skip(text: str) -> int:
    """Return the number of lines before the header: comments, and the separator's name."""
    lines = text.splitlines()
    started = re.compile(r"#|sep=.$")
    n_lines = len(list(itertools.takewhile(started.match, lines)))
    last, following = [*lines[max(n_lines - 1, 0) : n_lines + 1], "", ""][:2]
    is_header = last[:1] == "#" and any(
        last.count(mark) == following.count(mark) > 0 for mark in SEPARATORS[:-1]
    )
    return n_lines - 1 if is_header else n_lines


def _rows(
    text: str, separator: str, quote: str, is_whole: bool = True
) -> tuple[list[list[str]], list[int]]:
    """Return the first rows that are not blank, and the place of each among all rows."""
    rows, ends = [], []
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=separator,
        quotechar=quote,
        skipinitialspace=separator == " ",
    )
    try:
        for number, row in enumerate(reader, 1):
            if separator == " " and row[-1:] == [""]:
                row.pop()
            if row:
                rows.append(row)
                ends.append(number)
            if len(rows) > SAMPLE_ROWS:
                break
        else:
            if not is_whole and len(rows) > 1:  # the last one may be cut
                rows.pop()
    except csv.Error:  # the reader of the whole file says what is wrong
        pass
    return rows, ends


def _separator_of(text: str) -> str:
    """Return the separator by which most rows have the same number of cells.

    The first row has as many, or one less, as R writes it; or another number of at least three is
    that of a title. A file of one column gets a separator that it does not have.
    """
    best, score = "", (False, 0.0)
    for separator in SEPARATORS:
        rows, _ = _rows(text, separator, '"')
        counts = Counter(len(row) for row in rows[1:] or rows)
        if not counts or (separator == " " and score > (False, 0.0)):
            continue
        n_cells, n_rows = counts.most_common(1)[0]
        share = n_rows / counts.total()
        fits = len(rows[0]) == n_cells or (n_cells > 2 and len(rows[0]) == n_cells - 1)
        likely = n_cells > 1 and share >= MOSTLY and (fits or (n_cells > 2 and separator != " "))
        if likely and (fits, share) > score:
            best, score = separator, (fits, share)
    if best:
        return best
    marks = (",", "\t", "|", ";")
    header = next(iter(text.splitlines()), "")
    absent = [mark for mark in marks if mark not in text] or [","]
    return max(marks, key=header.count) if any(map(header.count, marks)) else absent[0]


def _quote_of(text: str, separator: str) -> str:
    """Return an apostrophe if it makes rows of equal length where double quotes do not.

    Or if double quotes do, but most cells of a column are within apostrophes.
    """
    rows, with_other = _rows(text, separator, '"')[0], _rows(text, separator, "'")[0]
    same, same_with_other = (
        sum(len(row) == len(found[0]) for row in found) / max(len(found), 1)
        for found in (rows, with_other)
    )
    if same_with_other != same:
        return "'" if same_with_other > max(same, MOSTLY) else '"'
    for cells in itertools.zip_longest(*rows[1:], fillvalue=""):
        quoted = sum(len(cell) > 1 and cell[0] == cell[-1] == "'" for cell in cells)
        if quoted > MOSTLY * len(cells):
            return "'"
    return '"'


def _header_of(rows: Rows, ends: Sequence[int], path: Path, skip: int) -> int:
    """Return the number of header lines, 0 or 1.

    Parameters
    ----------
    rows : list of list of str
        First rows that are not blank.
    ends : list of int
        Their places among all rows.
    path : path
    skip : int
        Lines before them.

    Raises
    ------
    InvalidInput
        If there are two, or a title.
    """
    if len(rows) < 3:
        return 1
    n_cells = Counter(len(row) for row in rows[1:]).most_common(1)[0][0]
    title = next((k for k, row in enumerate(rows) if len(row) >= n_cells - 1), 0)
    require(
        title == 0,
        "file",
        f"the first line of '{path.name}' has another number of cells ({len(rows[0])}) than most "
        f"others ({n_cells})",
        f"delete what is above the names of columns, or add --read skip={skip + ends[title] - 1}",
    )
    numeric = [k for k in range(n_cells) if _is_numeric(_cells(rows[2:], k))]
    second = [cell for k in numeric for cell in _cells(rows[1:2], k)]
    texts = [cell for cell in second if not (_is_number(cell) or is_gap_word(cell))]
    shown = ", ".join(repr(cell) for cell in texts[:3])
    require(
        len(numeric) < 2 or len(texts) < len(numeric),
        "file",
        f"line {skip + 2} of '{path.name}' looks like a second header line ({shown})",
        "delete it, or add --read header=2 to join the two",
    )
    if len(rows[0]) < n_cells:
        return 1
    first = rows[0]
    repeats = len(set(first)) < len(first)
    if numeric:
        names = [first[k] for k in numeric if first[k].strip()]
        values = [cell for k in numeric for cell in _cells(rows[1:], k)]
        return int(_like_names(names, values) or not all(map(_is_number, names)))
    return int(not repeats or not all(first[k] in _cells(rows[1:], k) for k in range(n_cells)))


def _like_names(first: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether whole numbers in the first line are names of columns of numbers, as years are.

    Beside whole numbers, names rise, and those of a few columns are no values of these, as the
    ends of an edge are.
    """
    if not all(re.fullmatch(r"\d+", name) for name in first) or len(set(first)) < len(first):
        return False
    if not all(re.fullmatch(r"[-+]?\d+|", value.strip()) for value in values):
        return True
    rising = all(int(a) < int(b) for a, b in itertools.pairwise(first))
    return rising and (len(first) > FEW or not set(first) <= set(values))


def _cells(rows: Rows, k: int) -> list[str]:
    return [row[k] for row in rows if k < len(row)]


def _is_numeric(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if not is_gap_word(cell)]
    return bool(filled) and sum(map(_is_number, filled)) > MOSTLY * len(filled)


def _is_number(cell: str) -> bool:
    return any(not math.isnan(number_in(cell, mark).value) for mark in (".", ","))


def _decimal_of(columns: Rows, separator: str, decimal: str | None) -> str:
    """Return the decimal mark that the cells show; a comma is usual beside semicolons."""
    numbers = [[cell for cell in cells if _is_number(cell)] for cells in columns]
    columns = [cells for cells, found in zip(columns, numbers, strict=True)
               if 2 * len(found) > len(cells)]  # fmt: skip
    shown = decimal_mark(columns)
    if shown is not None:
        return shown
    marks = {mark for mark in (".", ",") for cells in numbers if any(mark in c for c in cells)}
    if "." in marks and "," in marks:
        return "."
    return decimal or ("," if separator == ";" and "," in marks else ".")


def _names(header: Rows, body: Rows) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return different names of all columns, and those that occurred more than once."""
    counts = Counter(len(row) for row in body or header)
    n_cells = counts.most_common(1)[0][0] if counts else 0
    if not header:
        return tuple(f"x{k}" for k in range(n_cells)), ()
    names = [" ".join(filter(None, parts)).strip()
             for parts in itertools.zip_longest(*header, fillvalue="")]  # fmt: skip
    if n_cells > 2 and len(names) == n_cells - 1 and any(_cells(body, n_cells - 1)):
        names.insert(0, "")  # R leaves out the name of the names of rows
    names = [name or f"Unnamed: {k}" for k, name in enumerate(names)]
    found: list[str] = []
    for name in names:
        tried = itertools.chain([name], (f"{name}.{k}" for k in itertools.count(1)))
        found.append(next(one for one in tried if one not in found))
    repeated = tuple(name for name, count in Counter(names).items() if count > 1)
    return tuple(found), repeated
