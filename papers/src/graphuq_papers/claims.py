"""Claims of the papers, and what the numbers of an experiment say of them."""

import dataclasses
import itertools
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

Row = dict[str, Any]  # one row of a table: column name to cell (a number, a word or None)

MAX_RHAT = 1.01  # R-hat from which a finding says that chains have not converged
COLUMNS = 100  # characters in a line of the list of claims


class Verdict(StrEnum):
    """What numbers say of a claim."""

    HOLDS = "holds"
    CONVERGED_ONLY = "holds converged only"
    FAILS = "does not hold"


class Finding(NamedTuple):
    """A verdict, and the numbers on which it rests.

    Attributes
    ----------
    verdict : Verdict
    figures : str
        Numbers in a few words.
    """

    verdict: Verdict
    figures: str


@dataclasses.dataclass(frozen=True)
class Claim:
    """What a paper says of a table or a figure.

    Attributes
    ----------
    sentence : str
        The claim in our words, with a full stop.
    judge : callable
        Function of the rows of the experiment that returns a `Finding`.
    of_time : bool, default False
        Whether the claim is about running times, so that the verdict depends on the machine.
    """

    sentence: str
    judge: Callable[[Sequence[Row]], Finding]
    of_time: bool = False


class Judged(NamedTuple):
    """A claim with its finding, and the table or figure that it is about."""

    label: str
    claim: Claim
    finding: Finding


def finding(
    holds: bool | np.bool,
    figures: str,
    protocol: bool | np.bool | None = None,
    rhat: float | None = None,
) -> Finding:
    """Return the finding on a claim.

    Parameters
    ----------
    holds : bool
        Whether converged chains, or numbers without Monte-Carlo error, show the claim.
    figures : str
    protocol : bool, optional
        Whether the paper's own chains show it; None if there are none.
    rhat : float, optional
        Largest R-hat, which is named if it is 1.01 or more.
    """
    verdict = Verdict.HOLDS if holds else Verdict.FAILS
    if holds and protocol is not None and not protocol:
        verdict = Verdict.CONVERGED_ONLY
    doubt = "" if rhat is None or rhat < MAX_RHAT else f" (R-hat {rhat:.3f})"
    return Finding(verdict, figures + doubt)


def cells(rows: Iterable[Row], column: str, where: Mapping[str, Any] | None = None) -> list[Any]:
    """Return the cells of a column in the rows with the given cells in other columns."""
    wanted = (where or {}).items()
    return [r[column] for r in rows if column in r and all(r.get(k) == v for k, v in wanted)]


def cell(rows: Iterable[Row], column: str, where: Mapping[str, Any]) -> Any:
    """Return the first cell of a column in the rows with the given cells in other columns."""
    return cells(rows, column, where)[0]


def rises(values: Sequence[Any], errors: Sequence[float] | None = None) -> bool:
    """Return whether values rise from first to last, each step down within two standard errors."""
    size = np.zeros(len(values)) if errors is None else np.asarray(errors, dtype=float)
    steps = itertools.pairwise(zip(values, size, strict=True))
    within = all(b - a >= -2 * np.hypot(x, y) for (a, x), (b, y) in steps)
    return bool(values[-1] > values[0] and within)


def falls(values: Sequence[Any], errors: Sequence[float] | None = None) -> bool:
    """Return whether values fall from first to last, each step up within two standard errors."""
    return rises([-value for value in values], errors)


def listed(values: Iterable[Any], form: str = ".3f") -> str:
    """Return numbers as words."""
    return ", ".join(f"{value:{form}}" for value in values)


def claims_text(found: Iterable[Judged]) -> str:
    """Return claims and findings as a list in Markdown, a claim an entry."""
    entries = (
        f"- **{label}**: {claim.sentence} *{verdict.capitalize()}*: {figures}."
        for label, claim, (verdict, figures) in found
    )
    return "\n".join(textwrap.fill(e, COLUMNS, subsequent_indent="  ") for e in entries)
