"""Columns that cannot be used: all of a table in one message, with what mends each."""

from collections.abc import Sequence

from graphuq.errors import InvalidInput

DROP, ENCODE, IMPUTE, CORRECT = "--drop", "--encode", "--impute", ""
MENDS = {
    ENCODE: ("use encode=True", ENCODE),
    IMPUTE: ("use impute=True", IMPUTE),
    DROP: ("leave out {}", "--drop {}"),
    CORRECT: ("correct {}", "correct {}"),
}
"""What to do about columns, in Python and at the command line."""

ALONE = {
    DROP: "add --drop {0}, or say what it is: --id-column {0}, --kind {0}=category",
    ENCODE: "add --encode, or name it with --drop, --id-column, --label-column or --truth-column",
    IMPUTE: "fill them, or add --impute or --drop {0}",
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
    """

    def __init__(self, column: str, problem: str, remedy: str, short: str, mend: str) -> None:
        super().__init__("X", f"column {column!r} {problem}", remedy)
        self.column, self.short, self.mend = column, short, mend

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, str, str]]:
        """Return the three parts of the error that another process raises."""
        return InvalidInput, (self.argument, self.problem, self.remedy)


class RefusedColumns(InvalidInput):
    """All columns of a table that cannot be used."""

    def __init__(self, refused: Sequence[RefusedColumn]) -> None:
        (first, *others), self.refused = refused, refused
        problem, remedy = first.problem, first.remedy
        if others:
            problem, remedy = self._problems(), ", ".join(self._mends(0))
        super().__init__("X", problem, remedy)

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, str, str]]:
        """Return the three parts of the error that another process raises."""
        return InvalidInput, (self.argument, self.problem, self.remedy)

    def at_command_line(self, is_fitted: bool = False) -> InvalidInput:
        """Return the error with options as remedies; a model that is fitted has none."""
        (first, *others), mends = self.refused, self._mends(1)
        if is_fitted:
            remedy = "correct the cells: the model was fitted to a table without such ones"
            return InvalidInput("features", self._problems(), remedy)
        if not others:
            remedy = ALONE.get(first.mend, first.remedy).format(quoted(first.column))
            return InvalidInput("features", first.problem, remedy)
        options = " ".join(one for one in mends if one.startswith("--"))
        words = [f"add {options}"] if options else []
        words += [one for one in mends if not one.startswith("--")]
        return InvalidInput("features", self._problems(), ", ".join(words))

    def _problems(self) -> str:
        shorts = dict.fromkeys(one.short for one in self.refused)
        return "; ".join(
            f"{short} in {', '.join(repr(o.column) for o in self.refused if o.short == short)}"
            for short in shorts
        )

    def _mends(self, place: int) -> list[str]:
        """Return what to do in Python (0) or at the command line (1), once each."""
        found = []
        for mend, words in MENDS.items():
            names = [one.column for one in self.refused if one.mend == mend]
            if names and place and mend == DROP:
                found += [words[1].format(quoted(name)) for name in names]
            elif names:
                found.append(words[place].format(", ".join(map(repr, names))))
        return found


def empty_cells(column: str, n_cells: int, row: int, text: str = "") -> RefusedColumn:
    """Return the refusal of a column with empty cells, the first of which may hold a text."""
    cells = "cell" if n_cells == 1 else "cells"
    what = f"{n_cells} {cells} without a value, such as {text.strip()[:20]!r} in row {row}"
    if not text.strip():
        what = f"{n_cells} empty {cells}, the first in row {row}"
    remedy = "fill them, or use impute=True (--impute)"
    return RefusedColumn(column, f"has {what}", remedy, "empty cells", IMPUTE)


def quoted(name: str) -> str:
    """Return a name as a shell takes it."""
    return name if name and name.isidentifier() else f"'{name}'"
