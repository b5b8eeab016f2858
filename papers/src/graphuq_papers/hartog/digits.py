"""Figure 5: time and accuracy against the size of the graph."""

import time
import warnings
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from graphuq import Converged, Posterior, infer, laplacian_spectrum
from graphuq.datasets import load_mnist
from graphuq.errors import NotConvergedWarning
from graphuq.graphs import knn_graph
from graphuq.inference import ExpectationPropagation, ReversibleJump
from graphuq.likelihoods import Probit
from graphuq.priors import Matern
from graphuq.results import label_mean
from graphuq.scores import accuracy
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.claims import Claim, Finding, Row, finding
from graphuq_papers.hartog.setup import PAPERS, PROPER, run, series
from graphuq_papers.problems import rhat, space

TRAINING = {4: 5_842, 9: 5_949}  # images of each digit in the training set of MNIST
MAX_PAIRS = 600  # eigenpairs of the truncated method; it rejects proposals of a larger k
MAX_UNTRUNCATED = 8_000  # nodes; the untruncated method computes and stores all eigenpairs
STEPS = 600  # steps of the paper's sampler, one chain: they show time against N, not convergence
MAX_DRAWS = 6_000, 24_000  # draws per chain of samplers that run until they converge: quick, full


TRUNCATED, WHOLE = "the paper's 600 steps, truncated", "the paper's 600 steps, untruncated"


def _at_largest(rows: Sequence[Row]) -> tuple[int, Row, Row]:
    """Return the largest N of the untruncated method, and the rows of both methods there."""
    n = max(row["N"] for row in rows if row["method"] == WHOLE)
    short, whole = (
        next(r for r in rows if r["N"] == n and r["method"] == name) for name in (TRUNCATED, WHOLE)
    )
    return n, short, whole


def _faster(rows: Sequence[Row]) -> Finding:
    n, short, whole = _at_largest(rows)
    words = f"{short['seconds']:.1f} and {whole['seconds']:.1f} s at N = {n}"
    return finding(whole["seconds"] > 3 * short["seconds"], words)


def _comparable(rows: Sequence[Row]) -> Finding:
    n, short, whole = _at_largest(rows)
    words = f"accuracy {short['accuracy']:.3f} and {whole['accuracy']:.3f} at N = {n}"
    default = next(r for r in rows if r["method"] == "truncated, default" and r["N"] == n)
    return finding(
        abs(default["accuracy"] - whole["accuracy"]) < 0.02,
        f"{words}, converged {default['accuracy']:.3f}",
        abs(short["accuracy"] - whole["accuracy"]) < 0.02,
        default["R-hat"],
    )


@experiment(
    Claim("Truncation is dramatically faster (three times).", _faster, of_time=True),
    Claim("Predictions with and without truncation are comparable.", _comparable),
)
def figure5(context: Context) -> Outcome:
    """Time and accuracy against graph size, with and without truncation: MNIST (4, 9).

    The training images are labelled. The default samplers run until R-hat < 1.01; the paper's
    sampler makes 600 steps of one chain.
    """
    sizes = context.pick((500, 1000, 2000), (1000, 2000, 4000, 8000, 13782))
    data = load_mnist((4, 9), n_components=50, folder=context.folder)
    truth = data.signs(4)
    first = np.r_[np.arange(TRAINING[4]), (truth > 0).sum() + np.arange(TRAINING[9])]
    training = np.isin(np.arange(len(truth)), first)
    rng = np.random.default_rng(context.seed)
    rows: list[Row] = []
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
    exponents = {}
    for method in dict.fromkeys(row["method"] for row in rows):
        n, seconds = np.log(_times(rows, method))
        exponents[method] = float(np.polyfit(n, seconds, 1)[0])
    for row in rows:
        row["exponent of time in N"] = exponents[row["method"]]
    last = {row["method"]: row for row in rows}
    text = "; ".join(
        f"{method}: {row['seconds']:.1f} s at N = {row['N']} (time ~ N^{exponents[method]:.1f}), "
        f"accuracy {row['accuracy']:.4f}"
        + (f", R-hat {row['R-hat']:.3f}" if row["R-hat"] > 0 else "")
        for method, row in last.items()
    )
    return Outcome(rows, f"{text}.", _draw(rows))


def _methods(
    context: Context, features: np.ndarray, signs: np.ndarray, known: np.ndarray
) -> list[Row]:
    """Return the seconds from the graph to the result, and the accuracy, of each method."""
    n, max_draws = len(features), context.pick(*MAX_DRAWS)
    points, metric = space(context, features)
    graph = knn_graph(points, 15, "unweighted", metric=metric)
    rows = []
    for name, n_pairs, truncation, method in (
        ("truncated, default", min(n, MAX_PAIRS), None, ReversibleJump()),
        (TRUNCATED, min(n, MAX_PAIRS), None, PAPERS),
        (WHOLE, n, n, PAPERS),
    ):
        if n_pairs == n and n > MAX_UNTRUNCATED:
            continue
        began = time.perf_counter()
        spectrum = laplacian_spectrum(graph, "unnormalized", n_pairs)
        solved = time.perf_counter() - began
        posterior = series(spectrum, known, signs[known], None, PROPER, truncation)
        default = method is not PAPERS
        result = run(
            posterior,
            method,
            n_samples=max_draws if default else STEPS - STEPS // 3,
            n_chains=4 if default else 1,
            n_warmup=None if default else STEPS // 3,
            stop=Converged(label_mcse=None) if default else None,
        )
        k = np.median(result.hyperparameters.get("truncation", float(n)))
        row = _row(n, name, began, solved, accuracy(label_mean(result), signs, known))
        rows.append(row | {"median k": float(k), "R-hat": rhat(result) if default else np.nan})
    for name, sampler in (("Matérn, EP", ExpectationPropagation()), ("Matérn, default", None)):
        began = time.perf_counter()
        spectrum = laplacian_spectrum(graph)
        solved = time.perf_counter() - began
        posterior = Posterior(spectrum, Matern(), Probit(0.1), known, signs[known])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # the table has R-hat
            result = (
                infer(posterior, n_samples=max_draws, stop=Converged(label_mcse=None))
                if sampler is None
                else infer(posterior, sampler)
            )
        row = _row(n, name, began, solved, accuracy(label_mean(result), signs, known))
        rows.append(row | {"R-hat": np.nan if sampler is not None else rhat(result)})
    return rows


def _row(n: int, method: str, began: float, solved: float, right: float) -> Row:
    """Return the columns that all methods have."""
    return {
        "N": n,
        "method": method,
        "seconds": time.perf_counter() - began,
        "seconds for the eigenpairs": solved,
        "accuracy": right,
    }


def _times(rows: list[Row], method: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the graph sizes and the seconds of one method."""
    chosen = [row for row in rows if row["method"] == method]
    return np.array([row["N"] for row in chosen]), np.array([row["seconds"] for row in chosen])


def _draw(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(10.5, 3.6), layout="constrained")
    plain, logarithmic, right = figure.subplots(1, 3)
    colors = {
        "truncated, default": "#3b6fb6",
        TRUNCATED: "#8a8f98",
        WHOLE: "#1f2328",
        "Matérn, EP": "#c2410c",
        "Matérn, default": "#e0a030",
    }
    for method in dict.fromkeys(row["method"] for row in rows):
        color = colors[method]
        n, seconds = _times(rows, method)
        for axes in (plain, logarithmic):
            axes.plot(n, seconds, "o-", color=color, markersize=3, label=method)
        found = [row["accuracy"] for row in rows if row["method"] == method]
        right.plot(n, found, "o-", color=color, markersize=3)
    logarithmic.set(xscale="log", yscale="log")
    for axes in (plain, logarithmic):
        axes.set(xlabel="nodes", ylabel="seconds")
    right.set(xlabel="nodes", ylabel="accuracy on test images")
    lines, names = plain.get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    for axes in (plain, logarithmic, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
