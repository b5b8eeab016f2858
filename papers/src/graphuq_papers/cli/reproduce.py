"""``graphuq reproduce``: tables and figures of the papers."""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphuq.cli import Facts, atomic_folder, output_folder, the_facts
from graphuq.errors import InvalidInput
from graphuq_papers.checks import require

if TYPE_CHECKING:
    from graphuq_papers.base import Done, Experiment


def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="PAPER", help="bertozzi, chen, hartog or zhu; with --all, by default every one."
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAMES", help="Tables and figures, such as table1 figure9."),
    ] = None,
    show_list: Annotated[
        bool,
        typer.Option(
            "--list", help="List the tables and figures, and what the last run said of each claim."
        ),
    ] = False,
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
            show_default="out/PAPER, or out",
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
    random_state: Annotated[int, typer.Option(metavar="NUMBER", help="Random seed.")] = 0,
    distance: Annotated[
        tuple[float, float],
        typer.Option(
            metavar="P Q",
            help="Use ‖x − y‖_P^Q as the squared distance of votes, moons and digits.",
            show_default="2 2",
        ),
    ] = (2.0, 2.0),
    classical_idf: Annotated[
        bool,
        typer.Option("--classical-idf", help="Weigh words of texts by log(N/df), without + 1."),
    ] = False,
) -> None:
    """Reproduce tables and figures of PAPER.

    Each compares the published number, the number from the published protocol, and the number from
    converged chains, and says whether what the paper claims of it holds. It writes NAME.csv,
    NAME.txt, NAME.json (the verdicts, which --list shows) and, for a figure, NAME.png.
    """
    from graphuq_papers.base import Context, Done, write_outcome, write_summary
    from graphuq_papers.catalogue import PAPERS
    from graphuq_papers.claims import Judged, claims_text
    from graphuq_papers.verdicts import write_verdicts

    known = ", ".join(PAPERS)
    require(paper is None or paper in PAPERS, "PAPER", f"{paper!r} is unknown", f"use {known}")
    require(
        paper is not None or everything,
        "PAPER", "not given", f"name {known}, or use --all",
    )  # fmt: skip
    chosen = _chosen(paper, list(names or []), everything or show_list)
    facts = the_facts()
    root = output or (Path("out") if paper is None else Path("out") / paper)
    if show_list:
        _say_list(facts, [(of, one, root if paper else root / of) for of, one in chosen])
        return
    context = Context(quick, folder, random_state, distance, classical_idf)
    title = "graphuq reproduce" + ("" if paper is None else f" {paper}")
    found: list[Done] = []
    with output_folder(root):
        for of, experiment in chosen:
            with nullcontext(root) if paper else output_folder(root / of) as results:
                began = time.perf_counter()
                outcome = experiment.run(context)
                found.append(Done(of, experiment, outcome, time.perf_counter() - began))
                with atomic_folder(results) as writing:
                    paths = write_outcome(outcome, writing, experiment.name)
                    paths.append(write_verdicts(found[-1], context, writing))
            _say_outcome(facts, found[-1], [results / path.name for path in paths])
            if everything:  # after each one, so that an interruption keeps the finished results
                write_summary(title, found, root / "index.html", quick)
        if everything:
            facts.wrote(root / "index.html")
    facts.say("\nWhat the paper claims, and what was found:")
    judged: dict[str, list[Judged]] = {done.paper: [] for done in found}
    for done in found:
        judged[done.paper] += done.experiment.judge(done.outcome)
    for of, some in judged.items():
        claims = [
            {
                "of": one.label,
                "claim": one.claim.sentence,
                "verdict": one.finding.verdict,
                "figures": one.finding.figures,
            }
            for one in some
        ]
        facts.say(
            "\n{title}\n\n{claims}",
            **{f"claims_of_{of}": claims},
            shown={"title": of.capitalize(), "claims": claims_text(some)},
        )


def _say_outcome(facts: Facts, done: "Done", files: list[Path]) -> None:
    """Say what an experiment found, and its files."""
    one = {
        "paper": done.paper,
        "name": done.experiment.name,
        "seconds": done.seconds,
        "text": done.outcome.text,
        "files": files,
    }
    line = "{paper} {name} ({seconds:.0f} s): {text}".format_map(one)
    shown = {"lines": "\n".join([line, *(f"  {path}" for path in files)])}
    facts.say("{lines}", experiments=[*facts.found.get("experiments", []), one], shown=shown)


def _say_list(facts: Facts, chosen: "list[tuple[str, Experiment, Path]]") -> None:
    """Say what there is, and what the last run in a folder said of each claim."""
    from graphuq_papers.verdicts import last_verdicts

    rows, lines = [], []
    for of, one, results in chosen:
        claims = last_verdicts(one, results)
        rows.append({"paper": of, "name": one.name, "title": one.title, "claims": claims})
        lines.append(f"{of} {one.name}: {one.title}")
        for claim in claims:
            settings = f" ({', '.join(claim['settings'])})" if claim["settings"] else ""
            lines.append(f"  {claim['status']}{settings}: {claim['claim']}")
    facts.say("{lines}", experiments=rows, shown={"lines": "\n".join(lines)})


def _chosen(
    paper: str | None, names: list[str], everything: bool
) -> "list[tuple[str, Experiment]]":
    """Return the experiments to run, with their papers.

    Raises
    ------
    InvalidInput
        If a name is unknown, or nothing is chosen.
    """
    from graphuq_papers.catalogue import PAPERS

    if paper is None or everything:
        papers = PAPERS if paper is None else {paper: PAPERS[paper]}
        return [(of, experiment) for of in papers for experiment in papers[of].values()]
    known = PAPERS[paper]
    if not names:
        raise InvalidInput(
            "NAMES", "nothing to run", f"name some of {', '.join(known)}, or use --all"
        )
    for name in names:
        remedy = f"see graphuq reproduce {paper} --list"
        require(name in known, "NAMES", f"{name!r} is unknown", remedy)
    return [(paper, known[name]) for name in names]
