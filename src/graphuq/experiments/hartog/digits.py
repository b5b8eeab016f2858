"""Time and accuracy against the size of the graph: figure 5."""

import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from graphuq.datasets import load_mnist
from graphuq.experiments.base import Context, Outcome
from graphuq.experiments.hartog.setup import PROPER, run, series
from graphuq.experiments.problems import rhat
from graphuq.graphs import knn_graph
from graphuq.inference import ExpectationPropagation, ReversibleJump
from graphuq.likelihoods import Probit
from graphuq.posterior import Posterior
from graphuq.priors import Matern
from graphuq.run import infer
from graphuq.scores import accuracy
from graphuq.spectrum import laplacian_spectrum

TRAINING = {4: 5_842, 9: 5_949}  # images of each digit that are MNIST's training images
MOST_PAIRS = 600  # of the truncated method; beyond, a proposed k is rejected
CHAINS = 2


def figure5(context: Context) -> Outcome:
    """Time and accuracy against graph size, truncated and not: MNIST (4, 9), training labels."""
    sizes = context.pick((500, 1000, 2000), (1000, 2000, 4000, 8000, 13782))
    data = load_mnist((4, 9), n_components=50, folder=context.folder)
    truth = data.signs(4)
    first = np.r_[np.arange(TRAINING[4]), (truth > 0).sum() + np.arange(TRAINING[9])]
    training = np.isin(np.arange(len(truth)), first)
    rng = np.random.default_rng(context.seed)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        chosen = np.sort(
            np.concatenate(
                [
                    rng.choice(pool, round(size * len(pool) / len(truth)), replace=False)
                    for pool in (np.flatnonzero(training), np.flatnonzero(~training))
                ]
            )
        )
        features, signs, known = data.features[chosen], truth[chosen], training[chosen]
        rows += _methods(context, features, signs, np.flatnonzero(known))
    exponents = {
        method: float(np.polyfit(np.log(sizes), np.log(_times(rows, method)[1]), 1)[0])
        for method in dict.fromkeys(row["method"] for row in rows)
    }
    for row in rows:
        row["exponent of time"] = exponents[row["method"]]
    last = {row["method"]: row for row in rows if row["N"] == rows[-1]["N"]}
    text = "; ".join(
        f"{method}: {row['seconds']:.1f} s at N = {row['N']} (time ~ N^{exponents[method]:.1f}), "
        f"accuracy {row['accuracy']:.4f}"
        for method, row in last.items()
    )
    return Outcome(rows, f"{text}.", _draw(rows))


def _methods(
    context: Context, features: np.ndarray, signs: np.ndarray, known: np.ndarray
) -> list[dict[str, Any]]:
    """One graph, by each method: seconds from the graph to the answer."""
    n = len(features)
    graph = knn_graph(features, 15, "unweighted")
    kept = context.pick(300, 1000)
    rows = []
    for name, n_pairs, truncation in (
        ("truncated", min(n, MOST_PAIRS), None),
        ("untruncated", n, n),
    ):
        began = time.perf_counter()
        spectrum = laplacian_spectrum(graph, "unnormalized", n_pairs)
        solved = time.perf_counter() - began
        posterior = series(spectrum, known, signs[known], None, PROPER, truncation)
        result = run(
            posterior, ReversibleJump(), n_samples=kept, n_chains=CHAINS, n_warmup=kept // 2
        )
        draws = result.hyperparameters.get("truncation", np.array([float(n)]))
        rows.append(
            {
                "N": n,
                "method": name,
                "seconds": time.perf_counter() - began,
                "of which eigenpairs": solved,
                "accuracy": accuracy(result.label_mean, signs, known),
                "median k": float(np.median(draws)),
                "R-hat": rhat(result),
            }
        )
    began = time.perf_counter()
    spectrum = laplacian_spectrum(graph)
    solved = time.perf_counter() - began
    posterior = Posterior(spectrum, Matern(), Probit(0.1), known, signs[known])
    result = infer(posterior, ExpectationPropagation())
    rows.append(
        {
            "N": n,
            "method": "Matérn, expectation propagation",
            "seconds": time.perf_counter() - began,
            "of which eigenpairs": solved,
            "accuracy": accuracy(result.label_mean, signs, known),
        }
    )
    return rows


def _times(rows: list[dict[str, Any]], method: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and seconds of a method."""
    own = [row for row in rows if row["method"] == method]
    return np.array([row["N"] for row in own]), np.array([row["seconds"] for row in own])


def _draw(rows: list[dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(10.5, 3.2), layout="constrained")
    plain, logarithmic, right = figure.subplots(1, 3)
    colors = {"truncated": "#3b6fb6", "untruncated": "#1f2328"}
    for method in dict.fromkeys(row["method"] for row in rows):
        color = colors.get(method, "#c2410c")
        n, seconds = _times(rows, method)
        for axes in (plain, logarithmic):
            axes.plot(n, seconds, "o-", color=color, markersize=3, label=method)
        found = [row["accuracy"] for row in rows if row["method"] == method]
        right.plot(n, found, "o-", color=color, markersize=3)
    logarithmic.set(xscale="log", yscale="log")
    for axes in (plain, logarithmic):
        axes.set(xlabel="nodes", ylabel="seconds")
    right.set(xlabel="nodes", ylabel="accuracy on test images")
    plain.legend(frameon=False, fontsize=8)
    for axes in (plain, logarithmic, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
