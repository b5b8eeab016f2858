"""What truncation costs: label means with ℓ eigenpairs, beside those with all of them."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from graphuq import Result, infer
from graphuq.inference import ExpectationPropagation
from graphuq.likelihoods import Probit
from graphuq.priors import InverseLaplacian, Matern, Prior
from graphuq.results import label_mean, mean_label_variance, truncation_effect
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.bertozzi.setup import truncated
from graphuq_papers.claims import Claim, Finding, Row, cells, finding, listed
from graphuq_papers.problems import Problem, mnist, share

PRIORS: dict[str, Prior] = {"c/λ": InverseLaplacian(), "Matérn (default)": Matern()}
COLORS = {"c/λ": "#d97706", "Matérn (default)": "#3b6fb6"}
MAX_MOVE = 0.05  # mean move of label means from which the certificate is not green
NOISE, LABELLED = 0.1, 0.04  # γ and the share of labels, as in table 1
MOVE, TAIL = "move of label means", "distance with a tail at λ̄"  # columns
ESTIMATE, BOUND = "estimate", "bound"  # columns, of the certificate
VARIANCE, FULL = "mean label variance", "with all eigenpairs"


def _foreseen(rows: Sequence[Row]) -> Finding:
    """Compare estimates with moves that the certificate calls too large."""
    moved = sorted(
        (row[ESTIMATE] / row[MOVE], f"{row['prior']} with ℓ = {row['ℓ']}")
        for row in rows
        if row[MOVE] > MAX_MOVE
    )
    (low, at_low), (high, at_high) = moved[0], moved[-1]
    words = f"estimate / move is {low:.2f} ({at_low}) to {high:.2f} ({at_high})"
    return finding(low >= 0.5 and high <= 2, words)


def _replaced(rows: Sequence[Row]) -> Finding:
    worst = max(row[TAIL] / row[MOVE] for row in rows)
    words = "; ".join(f"{prior} {listed(cells(rows, TAIL, {'prior': prior}))}" for prior in PRIORS)
    return finding(worst < 1 / 3, f"distances that are left: {words}")


@experiment(
    Claim("The certificate predicts how far label means move (within a factor of two).", _foreseen),
    Claim("A tail at the mean eigenvalue removes two thirds of the move.", _replaced),
)
def truncation(context: Context) -> Outcome:
    """Label means with ℓ of N eigenpairs: MNIST (4, 9), probit, 4 % labelled, γ = 0.1.

    Moves are mean distances, over unlabelled nodes, to the label means with all N eigenpairs, by
    expectation propagation, which has no Monte-Carlo error.
    """
    n_each = context.pick(500, 2000)
    sizes = context.pick((10, 20, 50, 100, 300), (25, 50, 100, 150, 300, 600, 1200))
    problem = mnist(context, (4, 9), n_each, 2 * n_each)
    rows: list[Row] = []
    for name, prior in PRIORS.items():
        full = _label_means(problem, prior, context.seed)
        for size in sizes:
            short = truncated(problem, size)
            result = _label_means(short, prior, context.seed)
            effect = truncation_effect(result)
            with_tail = dataclasses.replace(short.spectrum, tail_eigenvalue=effect.mean_eigenvalue)
            tail = _label_means(short._replace(spectrum=with_tail), prior, context.seed)
            move, left = (
                float(np.abs(label_mean(one) - label_mean(full))[effect.nodes].mean())
                for one in (result, tail)
            )
            rows.append(
                {
                    "prior": name,
                    "ℓ": size,
                    MOVE: move,
                    ESTIMATE: float(effect.estimate.mean()),
                    BOUND: float(effect.bound.mean()),
                    TAIL: left,
                    VARIANCE: mean_label_variance(result),
                    FULL: mean_label_variance(full),
                    "verdict": result.trust.checks["truncation"].level,
                }
            )
    return Outcome(rows, _summary(rows, 2 * n_each), _draw(rows))


def _label_means(problem: Problem, prior: Prior, seed: int) -> Result:
    labelled = share(problem.truth, LABELLED, seed)
    return infer(problem.posterior(Probit(NOISE), labelled, prior), ExpectationPropagation())


def _summary(rows: Sequence[Row], n_nodes: int) -> str:
    sentences = []
    for prior in PRIORS:
        chosen = [row for row in rows if row["prior"] == prior]
        last = chosen[-1]
        sentences.append(
            f"{prior}: with ℓ = {listed((row['ℓ'] for row in chosen), 'd')} label means move by "
            f"{listed(row[MOVE] for row in chosen)} on average; the certificate says "
            f"{listed(row[ESTIMATE] for row in chosen)}. With {last['ℓ']} pairs the mean label "
            f"variance is {last[VARIANCE]:.3f}, with all of them {last[FULL]:.3f}"
        )
    return (
        f"{n_nodes} nodes, whose {n_nodes} eigenpairs are the truth. {'. '.join(sentences)}. "
        "The certificate is a second fit, with a tail at the mean of the eigenvalues left out; its "
        "bound has the tail at the last one computed."
    )


def _draw(rows: Sequence[Row]) -> Figure:
    """Draw the moves, what the certificate said, and the label variance against ℓ."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    panels = figure.subplots(1, 3)
    for axes, (prior, color) in zip(panels, COLORS.items(), strict=False):
        x = cells(rows, "ℓ", {"prior": prior})
        for column, style, label in (
            (MOVE, "o-", "move, to all eigenpairs"),
            (ESTIMATE, "x--", "estimate of the certificate"),
            (BOUND, ":", "its bound"),
            (TAIL, "s-", "distance with a tail at λ̄"),
        ):
            shade = "#8a8f98" if column == TAIL else color
            y = cells(rows, column, {"prior": prior})
            axes.plot(x, y, style, color=shade, markersize=4, label=label)
        axes.set(title=f"prior {prior}", ylabel="mean move of label means", ylim=(0, 0.85))
        axes.legend(frameon=False, fontsize=8)
    for prior, color in COLORS.items():
        x = cells(rows, "ℓ", {"prior": prior})
        panels[2].plot(x, cells(rows, VARIANCE, {"prior": prior}), "o-", color=color, label=prior)
        full = cells(rows, FULL, {"prior": prior})[0]
        panels[2].axhline(full, color=color, linestyle="--", label=f"{prior}, all eigenpairs")
    panels[2].set(title="mean label variance", ylim=(0, 1.02))
    panels[2].legend(frameon=False, fontsize=8, loc="lower right")
    for axes in panels:
        axes.set(xlabel="number of eigenpairs, ℓ", xscale="log")
        axes.set_xticks(cells(rows, "ℓ", {"prior": "c/λ"}), cells(rows, "ℓ", {"prior": "c/λ"}))
        axes.minorticks_off()
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return figure
