"""Figure 9: full spectrum, spectral projection and spectral approximation."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from graphuq import infer
from graphuq.inference import ExpectationPropagation
from graphuq.likelihoods import Probit
from graphuq.results import label_mean
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.bertozzi.setup import converged, protocol, voting
from graphuq_papers.claims import Claim, Finding, Row, cell, finding
from graphuq_papers.problems import choose

# Mean absolute differences of label means that the paper prints.
PAPER = {"projection": 0.1577, "approximation": 0.0261}
NAMES = ("full", *PAPER)
STEPS, STEP_SIZE, N_PAIRS = 10_000, 0.3, 150  # of pCN: steps and β; ℓ
WAYS = ("protocol", "converged", "expectation propagation")
# Columns: the distance between two runs on the same spectrum, which is Monte-Carlo error.
NOISE = {way: f"{way}, noise alone" for way in WAYS[:2]}
SIZE = "mean |s_j|"  # column, by converged chains

Means = dict[str, Float[np.ndarray, " N"]]


def _closer(rows: Sequence[Row]) -> Finding:
    gaps = {way: [cell(rows, way, {"algorithm": name}) for name in PAPER] for way in WAYS}
    words = ", ".join(
        f"{name} {gap:.3f}" for name, gap in zip(PAPER, gaps["converged"], strict=True)
    )
    holds = all(gaps[way][1] < gaps[way][0] / 2 for way in WAYS[1:])
    return finding(holds, words, protocol=gaps["protocol"][1] < gaps["protocol"][0] / 2)


def _biased(rows: Sequence[Row]) -> Finding:
    full, projection = (cell(rows, SIZE, {"algorithm": name}) for name in NAMES[:2])
    return finding(projection > 1.1 * full, f"{SIZE} is {projection:.2f}, and {full:.2f} in full")


def _printed(rows: Sequence[Row]) -> Finding:
    found = {
        way: {name: cell(rows, way, {"algorithm": name}) for name in PAPER} for way in WAYS[:2]
    }
    near = {
        way: all(abs(np.log(gaps[name] / PAPER[name])) < np.log(1.25) for name in PAPER)
        for way, gaps in found.items()
    }
    words = "; ".join(
        f"{way} {gaps['projection']:.3f} and {gaps['approximation']:.3f}"
        for way, gaps in found.items()
    )
    exact = cell(rows, WAYS[2], {"algorithm": "approximation"})
    return finding(
        near["converged"], f"{words}; without noise {exact:.3f}", protocol=near["protocol"]
    )


@experiment(
    Claim("Approximation is closer to the full spectrum than projection.", _closer),
    Claim("Projection draws label means towards −1 and 1.", _biased),
    Claim("The mean distances are 0.158 and 0.026 (within a quarter).", _printed),
)
def figure9(context: Context) -> Outcome:
    """Label means by Algorithms 1, 2 and 3: voting records, probit, γ = 0.1, ℓ = 150.

    The eigenvalue λ̄ of the tail is the last computed one, λ_149. Distances between sampled label
    means contain Monte-Carlo error: columns "noise alone" have its size, and expectation
    propagation has none.
    """
    trials = [_label_means(context, trial) for trial in context.trials(3, 20)]
    tail = voting(context, "approximation", N_PAIRS).spectrum.tail_eigenvalue
    rows: list[Row] = []
    for name in NAMES:
        row: Row = {"algorithm": name, "paper": PAPER.get(name)}
        for way in WAYS:
            gaps = [np.abs(ways[way][name] - ways[way]["full"]).mean() for ways in trials]
            row[way] = float(np.mean(gaps))
        for way, column in NOISE.items():
            again = [np.abs(ways[column][name] - ways[way][name]).mean() for ways in trials]
            row[column] = float(np.mean(again))
        row[SIZE] = float(np.mean([np.abs(t["converged"][name]).mean() for t in trials]))
        row |= {"λ̄": tail if name == "approximation" else None, "trials": len(trials)}
        rows.append(row)
    _, projection, approximation = rows
    return Outcome(
        rows,
        "Mean absolute difference from the label means of the full spectrum: projection "
        f"{projection['converged']:.3f} (paper: {PAPER['projection']}), approximation "
        f"{approximation['converged']:.3f} (paper: {PAPER['approximation']}), where λ̄ is the last "
        f"computed eigenvalue, {tail:.4f}. Two runs of the approximation differ by "
        f"{approximation[NOISE['converged']]:.4f}, which is Monte-Carlo error alone. By "
        "expectation propagation, which has none, the differences are "
        f"{projection[WAYS[2]]:.4f} and {approximation[WAYS[2]]:.4f}. The paper's protocol, a "
        f"single chain per spectrum, gives {projection['protocol']:.3f} and "
        f"{approximation['protocol']:.3f}; two of its chains of the approximation differ by "
        f"{approximation[NOISE['protocol']]:.3f}.",
        _draw(trials[0], rows),
    )


def _label_means(context: Context, trial: int) -> dict[str, Means]:
    """Return the label means of each way and spectrum, with those of a second run."""
    found: dict[str, Means] = {way: {} for way in (*WAYS, *NOISE.values())}
    for name in NAMES:
        problem = voting(context, name, None if name == "full" else N_PAIRS)
        posterior = problem.posterior(Probit(0.1), choose(problem.truth, 3, 2, trial))
        exact = infer(posterior, ExpectationPropagation())
        found["expectation propagation"][name] = label_mean(exact)
        for chain, run in ((trial, WAYS[:2]), (1000 + trial, tuple(NOISE.values()))):
            found[run[0]][name] = protocol(posterior, STEPS, STEP_SIZE, chain).label_mean
            found[run[1]][name] = label_mean(converged(posterior, chain, label_mcse=0.01))
    return found


def _draw(ways: dict[str, Means], rows: list[Row]) -> Figure:
    """Draw the label means of the paper's chains above those of converged chains."""
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    grid = figure.subplots(2, len(NAMES), sharex=True, sharey=True)
    for line, way, words in zip(grid, WAYS[:2], ("the paper's chain", "converged"), strict=True):
        line[0].set_ylabel(f"{words}\nlabel mean s_j")
        for axes, row in zip(line, rows, strict=True):
            name = row["algorithm"]
            axes.plot(ways[way][name], ".", markersize=3, color="#3b6fb6")
            gap = "" if row["paper"] is None else f" ({row[way]:.3f}; paper {row['paper']:.3f})"
            axes.set_title(name + gap, fontsize=10)
            axes.set_ylim(-1.05, 1.05)
            axes.spines[["top", "right"]].set_visible(False)
    words = "in brackets: mean distance to the label means of the full spectrum"
    figure.suptitle(words, fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("node")
    return figure
