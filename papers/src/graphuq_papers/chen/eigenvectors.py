"""Figures 1 to 4: how eigenvectors relate to the classes."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from graphuq import laplacian_spectrum
from graphuq.datasets import two_moons
from graphuq.graphs import complete_graph
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.chen.setup import voting
from graphuq_papers.claims import Claim, Finding, Row, cell, cells, finding
from graphuq_papers.problems import Problem, mnist, moons, space

SHOWN = 9  # eigenvectors per figure, as in the paper


CORRELATION = "|correlation with the class|"  # columns
UNEXPLAINED = "share of the class's variance that nine leave"
SELF_TUNING = "self-tuning weights, symmetric Laplacian"


def _tells(most: int) -> Callable[[Sequence[Row]], Finding]:
    """Return the judge of whether one of the eigenvectors up to q_most tells the classes."""

    def judge(rows: Sequence[Row]) -> Finding:
        found = cells(rows, CORRELATION)
        best = int(np.argmax(found))
        return finding(
            best <= most and found[best] > 0.5,
            f"q_{best} has correlation {found[best]:.2f} with the class; nine leave "
            f"{cell(rows, UNEXPLAINED, {}):.0%} of its variance",
        )

    return judge


def _less(rows: Sequence[Row]) -> Finding:
    fixed, tuned = cells(rows, UNEXPLAINED)
    return finding(
        fixed > tuned,
        f"nine leave {fixed:.0%} of the class's variance, self-tuning ones {tuned:.0%}",
    )


@experiment(Claim("The second eigenvector tells the parties apart.", _tells(1)))
def figure1(context: Context) -> Outcome:
    """First nine eigenvectors: voting records, unnormalised Laplacian."""
    return _eigenvectors(voting(context), "voting records")


@experiment(Claim("A low eigenvector tells the moons apart.", _tells(SHOWN - 1)))
def figure2(context: Context) -> Outcome:
    """First nine eigenvectors: two moons, σ = 0.04, self-tuning weights, symmetric Laplacian."""
    return _eigenvectors(moons(context, 0.04, context.seed), "two moons, self-tuning weights")


@experiment(Claim("Eigenvectors of fixed-length weights hold less of the classes.", _less))
def figure3(context: Context) -> Outcome:
    """First nine eigenvectors: two moons, σ = 0.04, Gaussian weights, unnormalised Laplacian."""
    data = two_moons(2000, 100, 0.04, rng=context.seed)
    points, metric = space(context, data.features)
    graph = complete_graph(points, "gaussian", scale=1.0, metric=metric)
    spectrum = laplacian_spectrum(graph, "unnormalized", n_eigenpairs=SHOWN, solver="dense")
    found = _eigenvectors(
        Problem(spectrum, data.signs(1)), "two moons, Gaussian weights of fixed length scale"
    )
    other = _unexplained(moons(context, 0.04, context.seed))
    return dataclasses.replace(found, rows=[*found.rows, {"j": SELF_TUNING, UNEXPLAINED: other}])


@experiment(Claim("A low eigenvector tells 4 from 9.", _tells(SHOWN - 1)))
def figure4(context: Context) -> Outcome:
    """First nine eigenvectors: MNIST (4, 9), self-tuning weights, symmetric Laplacian."""
    return _eigenvectors(mnist(context, (4, 9)), "MNIST (4, 9)")


def _unexplained(problem: Problem) -> float:
    """Return the share of the variance of the class that a linear fit by nine leaves."""
    q = problem.spectrum.eigenvectors[:, :SHOWN]
    return float(np.linalg.lstsq(q, problem.truth, rcond=None)[1][0]) / len(problem.truth)


def _eigenvectors(problem: Problem, name: str) -> Outcome:
    order = np.argsort(problem.truth, kind="stable")  # nodes of one class, then of the other
    q, truth = problem.spectrum.eigenvectors[order, :SHOWN], problem.truth[order]
    figure = Figure(figsize=(9.5, 6.0), layout="constrained")
    rows: list[Row] = []
    for j, axes in enumerate(figure.subplots(3, 3, sharex=True).ravel()):
        for sign, color in ((-1, "#3b6fb6"), (1, "#c2410c")):
            nodes = np.flatnonzero(truth == sign)
            axes.plot(nodes, q[nodes, j], ".", markersize=1.5, color=color)
        axes.set(title=f"q_{j}, λ = {problem.spectrum.eigenvalues[j]:.3g}")
        axes.spines[["top", "right"]].set_visible(False)
        correlation = 0.0 if np.ptp(q[:, j]) < 1e-9 else abs(np.corrcoef(q[:, j], truth)[0, 1])
        rows.append({"j": j, CORRELATION: float(correlation)})
    figure.supxlabel("node, ordered by class")
    correlations = [row[CORRELATION] for row in rows]
    residual = _unexplained(problem)
    rows.append({"j": "all", UNEXPLAINED: residual})
    return Outcome(
        rows,
        f"{name}: eigenvector q_{int(np.argmax(correlations))} has the largest absolute "
        f"correlation with the class, {max(correlations):.2f}. A linear fit by all nine leaves a "
        f"share of {residual:.2f} of the variance of the class unexplained.",
        figure,
    )
