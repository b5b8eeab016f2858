"""Experiments, their outcomes, and the files in which outcomes are stored."""

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

Row = dict[str, Any]  # one row of a table: column name to cell (a number, a word or None)

OPEN_ROWS = 12  # rows; the page folds a longer table if the experiment also has a figure
MAX_ROWS = 40  # rows; the page shows no more of any table, the CSV file has them all


@dataclasses.dataclass(frozen=True)
class Context:
    """Settings that all experiments share.

    Attributes
    ----------
    quick : bool, default False
        Whether to use fewer trials and coarser grids.
    folder : Path or None, default None
        Folder of the data sets. If None, the environment variable names it, or the data sets are
        downloaded.
    seed : int, default 0
        Seed of every random choice.
    """

    quick: bool = False
    folder: Path | None = None
    seed: int = 0

    def pick(self, quick: T, full: T) -> T:
        """Return `quick` for a quick run and `full` otherwise."""
        return quick if self.quick else full


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """Result of an experiment.

    Attributes
    ----------
    rows : sequence of dict
        The table. Column "paper" has the number printed in the paper. Column "protocol" has the
        result of the paper's own protocol, and column "converged" that of converged chains.
    text : str
        Summary in a few sentences.
    figure : Figure or None, default None
        The figure, if the experiment draws one.
    """

    rows: Sequence[Row]
    text: str
    figure: Figure | None = None


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper: its name, its title and the function that computes it."""

    name: str
    title: str
    run: Callable[[Context], Outcome]


def registered(*runs: Callable[[Context], Outcome]) -> dict[str, Experiment]:
    """Return experiments by name.

    The name of an experiment is that of its function, and its title is the first line of the
    function's docstring.
    """
    return {run.__name__: Experiment(run.__name__, _title(run), run) for run in runs}


def _title(run: Callable[[Context], Outcome]) -> str:
    return (run.__doc__ or "").partition("\n")[0].rstrip(".")


def write_outcome(outcome: Outcome, folder: Path, name: str) -> list[Path]:
    """Write ``name.csv``, ``name.txt`` and, if the outcome has a figure, ``name.png``.

    Returns
    -------
    list of Path
        Paths of the files.

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
    """Write all outcomes, with the running time of each in seconds, to one HTML page.

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
