"""Columns that cannot be used: all of a table in one message, with what mends each."""

from collections.abc import Sequence
from shlex import quote

from graphuq.errors import MAX_MESSAGE, InvalidInput
from graphuq.utils.written.gaps import is_gap_word

DROP, ENCODE, IMPUTE, CORRECT = "--drop", "--encode", "--impute", ""
CODES, NAMES, SAME_NAMES = "texts among numbers", "texts all different", "texts that repeat"
ROOM = MAX_MESSAGE - 15  # characters of problem and remedy
MENDS = {
    ENCODE: ("use encode=True", ENCODE),
    IMPUTE: ("use impute=True", IMPUTE),
    DROP: ("leave out {}", "--drop {}"),
    CORRECT: ("correct {}", "correct {}"),
}
"""What to do about columns, in Python and at the command line."""

ALONE = {
    DROP: "add --drop {0}",
    NAMES: "add --drop {0}, or say what it is: --id-column {0}, --kind {0}=category",
    SAME_NAMES: "add --drop {0}, or say what it is: --kind {0}=category",
    ENCODE: "add --encode, or name it with --drop, --id-column, --label-column or --truth-column",
    IMPUTE: "fill them, or add --impute or --drop {0}",
    CODES: "add --impute if they are gaps, or --encode --kind {0}=category if {0} holds codes",
}
"""What to do about the only such column, at the command line."""


class RefusedColumn(InvalidInput):
    """A column that cannot be used.

    Parameters
    ----------
    column : str
    problem : str
        What is wrong, after the name of the column.
    remedy : str
        What to do if it is the only such column.
    short : str
        What the column holds, in a few words, such as "empty cells".
    mend : {"--drop", "--encode", "--impute", ""}
        Option that mends it, "" if only another file does.
    how : str, default ""
        Key of `ALONE`, if it is not the option.
    """

    def __init__(
        self, column: str, problem: str, remedy: str, short: str, mend: str, how: str = ""
    ) -> None:
        super().__init__("X", f"column {column!r} {problem}", remedy)
        self.column, self.short, self.mend, self.how = column, short, mend, how

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, str, str]]:
        """Return the three parts of the error that another process raises."""
        return InvalidInput, (self.argument, self.problem, self.remedy)


class RefusedColumns(InvalidInput):
    """All columns of a table that cannot be used."""

    def __init__(self, refused: Sequence[RefusedColumn]) -> None:
        (first, *others), self.refused = refused, refused
        problem, remedy = first.problem, first.remedy
        if others:
            remedy = ", ".join(self._mends(0))
            problem = self._problems(remedy)
        super().__init__("X", problem, remedy)

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, str, str]]:
        """Return the three parts of the error that another process raises."""
        return InvalidInput, (self.argument, self.problem, self.remedy)

    def at_command_line(self, is_fitted: bool = False) -> InvalidInput:
        """Return the error with options as remedies; a model that is fitted has none."""
        (first, *others), mends = self.refused, self._mends(1)
        if is_fitted:
            remedy = "correct the cells: the model was fitted to a table without such ones"
            problem = self._problems(remedy) if others else first.problem
            return InvalidInput("features", problem, remedy)
        if not others:
            remedy = ALONE.get(first.how or first.mend, first.remedy).format(quote(first.column))
            return InvalidInput("features", first.problem, remedy)
        options = " ".join(one for one in mends if one.startswith("--"))
        words = [f"add {options}"] if options else []
        words += [one for one in mends if not one.startswith("--")]
        remedy = ", ".join(words)
        return InvalidInput("features", self._problems(remedy), remedy)

    def _problems(self, remedy: str) -> str:
        """Return what is wrong with all columns; as many as fit beside the remedy are named."""
        for most in (len(self.refused), *range(8, 0, -1)):
            problems = "; ".join(self._groups(most))
            if len(problems) + len(remedy) < ROOM:
                break
        return problems

    def _groups(self, most: int) -> list[str]:
        found = []
        for short in dict.fromkeys(one.short for one in self.refused):
            names = [repr(one.column) for one in self.refused if one.short == short]
            more = f" and {len(names) - most} more" if len(names) > most else ""
            found.append(f"{short} in {', '.join(names[:most])}{more}")
        return found

    def _mends(self, place: int) -> list[str]:
        """Return what to do in Python (0) or at the command line (1), once each."""
        found = []
        for mend, words in MENDS.items():
            names = [one.column for one in self.refused if one.mend == mend]
            if names and place and mend == DROP:
                found += [words[1].format(quote(name)) for name in names]
            elif names:
                found.append(words[place].format(", ".join(map(repr, names))))
        return found


def not_finite(column: str, text: str, row: int, kind: str) -> RefusedColumn:
    """Return the refusal of a column with a cell that is no finite number or date."""
    problem = f"holds {text[:30]!r} in row {row}, which is no finite {kind}"
    short = f"cells that are no finite {kind}"
    return RefusedColumn(column, problem, "correct it, or empty the cell", short, CORRECT)


def empty_cells(column: str, n_cells: int, row: int, text: str = "") -> RefusedColumn:
    """Return the refusal of a column with empty cells, the first of which may hold a text."""
    cells = "cell" if n_cells == 1 else "cells"
    if not is_gap_word(text):
        problem = f"has {n_cells} {cells} without a number, such as {text[:20]!r} in row {row}"
        remedy = (
            f"use impute=True if they are gaps, or kinds={{{column!r}: 'category'}} if it has codes"
        )
        return RefusedColumn(column, problem, remedy, "empty cells", IMPUTE, CODES)
    what = f"{n_cells} {cells} without a value, such as {text.strip()[:20]!r} in row {row}"
    if not text.strip():
        what = f"{n_cells} empty {cells}, the first in row {row}"
    remedy = "fill them, or use impute=True (--impute)"
    return RefusedColumn(column, f"has {what}", remedy, "empty cells", IMPUTE)
