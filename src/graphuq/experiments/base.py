"""What an experiment is, and how its outcome is written down."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from matplotlib.figure import Figure

from graphuq.results.storage import version
from graphuq.utils.files import atomic_write
from graphuq.utils.html import embedded, write_page

T = TypeVar("T")

OPEN_ROWS, MAX_ROWS = 12, 40  # of a table on the page: beside a figure before it is folded; at all


@dataclasses.dataclass(frozen=True)
class Context:
    """How to run.

    Attributes
    ----------
    quick : bool
        Fewer trials and coarser grids.
    folder : Path or None
        Where the data sets are; None: the environment variable, or a download.
    seed : int
    """

    quick: bool = False
    folder: Path | None = None
    seed: int = 0

    def pick(self, quick: T, full: T) -> T:
        """One of two sizes."""
        return quick if self.quick else full


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found.

    Attributes
    ----------
    rows : sequence of dict
        The table; where the paper has a number, beside it ("paper") what its own protocol gives
        ("protocol") and the converged answer ("converged").
    text : str
        What it says, in a line or two.
    figure : Figure or None
    """

    rows: Sequence[dict[str, Any]]
    text: str
    figure: Figure | None = None


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper: name, title, and what makes it."""

    name: str
    title: str
    run: Callable[[Context], Outcome]


def registered(*runs: Callable[[Context], Outcome]) -> dict[str, Experiment]:
    """Experiments by name: that of the function, the title its docstring."""
    return {run.__name__: Experiment(run.__name__, _title(run), run) for run in runs}


def _title(run: Callable[[Context], Outcome]) -> str:
    return (run.__doc__ or "").partition("\n")[0].rstrip(".")


def write_outcome(outcome: Outcome, folder: Path, name: str) -> list[Path]:
    """Write ``name.csv``, ``name.txt`` and, where there is a figure, ``name.png``.

    Raises
    ------
    StorageError
        If a file cannot be written.
    """
    paths = [folder / f"{name}.csv", folder / f"{name}.txt"]
    with atomic_write(paths[0]) as temporary:
        pd.DataFrame(list(outcome.rows)).to_csv(temporary, index=False)
    with atomic_write(paths[1]) as temporary:
        temporary.write_text(outcome.text + "\n", encoding="utf-8")
    if outcome.figure is not None:
        paths.append(folder / f"{name}.png")
        with atomic_write(paths[-1]) as temporary:
            outcome.figure.savefig(temporary, dpi=130)
    return paths


def write_summary(
    title: str, found: Sequence[tuple[Experiment, Outcome, float]], path: Path, quick: bool
) -> None:
    """Write all outcomes, with the seconds each took, on one HTML page.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    entries = [
        {
            "name": experiment.name,
            "label": re.sub(r"(?<=[a-z])(?=\d)", " ", experiment.name).capitalize(),
            "title": experiment.title,
            "text": outcome.text,
            "seconds": seconds,
            "table": pd.DataFrame(list(outcome.rows))
            .head(MAX_ROWS)
            .to_html(
                index=False,
                border=0,
                classes="wide",
                float_format=lambda value: f"{value:.4g}",
                na_rep="",
            ),
            "n_rows": len(outcome.rows),
            "n_hidden": max(0, len(outcome.rows) - MAX_ROWS),
            "folded": outcome.figure is not None and len(outcome.rows) > OPEN_ROWS,
            "picture": None if outcome.figure is None else embedded(outcome.figure, dpi=110),
        }
        for experiment, outcome, seconds in found
    ]
    write_page(
        path,
        "graphuq.experiments",
        "page.html",
        title=title,
        entries=entries,
        quick=quick,
        version=version(),
    )
