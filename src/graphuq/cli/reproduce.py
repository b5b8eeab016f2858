"""``graphuq reproduce``: tables and figures of the papers."""

import time
from pathlib import Path
from typing import Annotated

import typer

from graphuq.errors import InvalidInput, require
from graphuq.utils.output_folder import atomic_folder, output_folder


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="bertozzi, chen, hartog or zhu.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAMES", help="Tables and figures, such as table1 figure9."),
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the tables and figures.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Run all of them, and write index.html.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer trials and coarser grids.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder for the files that are written.",
            show_default="out/PAPER",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder with data files.",
            show_default="the environment variable GRAPHUQ_DATA",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Random seed.")] = 0,
) -> None:
    """Reproduce tables and figures of PAPER.

    Each compares the published number, the number from the published protocol, and the number from
    converged chains. It writes NAME.csv, NAME.txt and, for a figure, NAME.png.
    """
    from graphuq.experiments import PAPERS, Context
    from graphuq.experiments.base import write_outcome, write_summary

    require(paper in PAPERS, "PAPER", f"{paper!r} is unknown", f"use {', '.join(PAPERS)}")
    experiments = PAPERS[paper]
    if show_list:
        for name, experiment in experiments.items():
            print(f"{name:10} {experiment.title}")
        return
    chosen = list(experiments) if everything else list(names or [])
    if not chosen:
        raise InvalidInput(
            "NAMES", "nothing to run", f"name some of {', '.join(experiments)}, or use --all"
        )
    for name in chosen:
        require(
            name in experiments, "NAMES", f"{name!r} is unknown", "see graphuq reproduce --list"
        )
    context = Context(quick=quick, folder=folder, seed=seed)
    found = []
    with output_folder(Path("out") / paper if output is None else output) as output:
        for name in chosen:
            began = time.perf_counter()
            outcome = experiments[name].run(context)
            seconds = time.perf_counter() - began
            with atomic_folder(output) as writing:
                paths = write_outcome(outcome, writing, name)
            found.append((experiments[name], outcome, seconds))
            print(f"{name} ({seconds:.0f} s): {outcome.text}")
            for path in paths:
                print(f"  {output / path.name}")
            if everything:  # after each one, so that an interruption keeps the finished results
                write_summary(f"graphuq reproduce {paper}", found, output / "index.html", quick)
        if everything:
            print(f"  {output / 'index.html'}")
