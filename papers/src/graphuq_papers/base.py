"""Experiments, their outcomes, and the files in which outcomes are stored."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple, TypeVar

import pandas as pd
from matplotlib.figure import Figure

from graphuq import __version__
from graphuq.cli import atomic_write, embedded, write_page
from graphuq_papers.checks import require
from graphuq_papers.claims import Claim, Judged, Row

T = TypeVar("T")

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
    distance : tuple of two floats, default (2, 2)
        p ≥ 1 and q > 0 of the distances ``‖x − y‖_p^q`` of votes, moons and digits, which stand for
        the squared ones of the papers (Chen, §1.2.1).
    classical_idf : bool, default False
        Weights of words in texts; see `graphuq.datasets.load_newsgroups`.
    """

    quick: bool = False
    folder: Path | None = None
    seed: int = 0
    distance: tuple[float, float] = (2.0, 2.0)
    classical_idf: bool = False

    def __post_init__(self) -> None:
        p, q = self.distance
        require(p >= 1 and 0 < q < inf, "distance", f"{p:g} {q:g}", "use p ≥ 1 and q > 0")

    @property
    def chosen(self) -> list[str]:
        """What differs from the papers, at full size, in words."""
        p, q = self.distance
        words = {
            "quick": self.quick,
            f"random state {self.seed}": self.seed != 0,
            f"distance {p:g} {q:g}": not p == q == 2,
            "classical idf": self.classical_idf,
        }
        return [word for word, applies in words.items() if applies]

    def pick(self, quick: T, full: T) -> T:
        """Return `quick` for a quick run and `full` otherwise."""
        return quick if self.quick else full

    def trials(self, quick: int, full: int) -> range:
        """Return the seeds of so many trials; no two values of `seed` have one in common."""
        n = self.pick(quick, full)
        return range(self.seed * n, (self.seed + 1) * n)


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


Run = Callable[[Context], Outcome]


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper: what the paper says of it, and the function that computes it.

    Attributes
    ----------
    name : str
    title : str
    run : callable
    claims : tuple of Claim
    """

    name: str
    title: str
    run: Run
    claims: tuple[Claim, ...]

    @property
    def label(self) -> str:
        """Name in words, such as "Figure 9"."""
        return re.sub(r"(?<=[a-z])(?=\d)", " ", self.name).capitalize()

    def judge(self, outcome: Outcome) -> list[Judged]:
        """Return the findings of an outcome on the claims."""
        return [Judged(self.label, claim, claim.judge(outcome.rows)) for claim in self.claims]


def experiment(*claims: Claim) -> Callable[[Run], Experiment]:
    """Make an experiment of a function, with what the paper claims of it.

    The name of the experiment is that of the function, and its title is the first line of the
    function's docstring.
    """

    def of(run: Run) -> Experiment:
        title = (run.__doc__ or "").partition("\n")[0].rstrip(".")
        return Experiment(run.__name__, title, run, claims)

    return of


def registered(*experiments: Experiment) -> dict[str, Experiment]:
    """Return experiments by name."""
    return {one.name: one for one in experiments}


class Done(NamedTuple):
    """An experiment of a paper that has been run, its outcome and its running time in seconds."""

    paper: str
    experiment: Experiment
    outcome: Outcome
    seconds: float


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


def write_summary(title: str, found: Iterable[Done], path: Path, quick: bool) -> None:
    """Write all outcomes, and what they say of the claims, to one HTML page.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    entries = [
        {
            "id": f"{paper}-{experiment.name}",
            "paper": paper,
            "name": experiment.name,
            "label": experiment.label,
            "title": experiment.title,
            "text": outcome.text,
            "claims": experiment.judge(outcome),
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
        for paper, experiment, outcome, seconds in found
    ]
    write_page(
        path,
        "graphuq_papers",
        "page.html",
        title=title,
        entries=entries,
        quick=quick,
        version=__version__,
    )
