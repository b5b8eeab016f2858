"""Errors of each approximation: Laplace's method, expectation propagation and sampling."""

import time
import warnings
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from graphuq import Converged, Posterior, infer
from graphuq.errors import DisconnectedGraphWarning, NotConvergedWarning
from graphuq.inference import Approximation, ExpectationPropagation, Laplace
from graphuq.results import label_mean
from graphuq.scores import expected_calibration_error, log_score
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.claims import Claim, Finding, Row, cells, finding
from graphuq_papers.problems import rhat
from graphuq_papers.zhu.tasks import Task, accuracies, evidence_search, tasks

METHODS: dict[str, Approximation | None] = {  # the value None stands for the default sampler
    "Laplace": Laplace(),
    "expectation propagation": ExpectationPropagation(),
    "sampling": None,
}


def _same_classes(rows: Sequence[Row]) -> Finding:
    found = [float(np.mean(cells(rows, "tuned accuracy", {"method": name}))) for name in METHODS]
    words = f"tuned accuracy {found[0]:.4f}, of the posterior {found[2]:.4f}"
    return finding(abs(found[0] - found[2]) < 0.005, words)


def _same_probabilities(rows: Sequence[Row]) -> Finding:
    worst = {n: max(cells(rows, "mean error of p", {"method": n})) for n in list(METHODS)[:2]}
    words = ", ".join(f"{name} {value:.4f}" for name, value in worst.items())
    return finding(worst["Laplace"] < 0.01, f"mean error in the worst task: {words}")


@experiment(
    Claim("Laplace's method gives the classes of the posterior.", _same_classes),
    Claim("Laplace's method gives its probabilities (mean error below 0.01).", _same_probabilities),
)
def approximations(context: Context) -> Outcome:
    """Accuracy, log score and calibration of Laplace, expectation propagation and sampling."""
    rows = [row for task in tasks(context) for row in _task_rows(context, task)]
    worst = np.max([r["R-hat"] for r in rows if r["method"] == "sampling"])
    return Outcome(
        rows,
        f"Means over six tasks. {'; '.join(_method_summary(rows, name) for name in METHODS)} "
        f"(largest R-hat {worst:.3f}). Tuned accuracy uses the true "
        "class proportions; for both scores, smaller is better.",
    )


def _task_rows(context: Context, task: Task) -> list[Row]:
    """Return the scores of each method on one task, averaged over draws of labelled nodes."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
    for draw in range(context.pick(1, 3)):
        labelled = task.draw(1000 * context.seed + draw)
        search = evidence_search("knn", task, labelled, context.seed)
        posterior = search.best_estimator_.result_.posterior
        for name, row in _compare(posterior, task, labelled).items():
            found[name].append(row)
    return [
        {"task": task.name, "method": name, "draws": len(draws)}
        | {key: float(np.mean([one[key] for one in draws])) for key in draws[0]}
        for name, draws in found.items()
    ]


def _method_summary(rows: list[Row], name: str) -> str:
    """Return the name of a method with its mean scores over all tasks."""
    means = {
        key: np.mean([r[key] for r in rows if r["method"] == name])
        for key in ("tuned accuracy", "log score", "calibration error", "seconds")
    }
    return (
        f"{name}: tuned accuracy {means['tuned accuracy']:.3f}, log score "
        f"{means['log score']:.3f}, calibration error {means['calibration error']:.3f}, "
        f"{means['seconds']:.2g} s"
    )


def _compare(
    posterior: Posterior, task: Task, labelled: Int[np.ndarray, " J"]
) -> dict[str, dict[str, float]]:
    """Run each method on one posterior, whose covariance is already cached."""
    results, rows = {}, {}
    for name, method in METHODS.items():
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # the table has R-hat
            warnings.simplefilter("ignore", DisconnectedGraphWarning)
            results[name] = (
                infer(posterior, n_samples=10_000, stop=Converged(label_mcse=0.005))
                if method is None
                else infer(posterior, method)
            )
        seconds = time.perf_counter() - began
        plain, tuned = accuracies(results[name], task, labelled)
        mean = label_mean(results[name])
        rows[name] = {
            "accuracy": plain,
            "tuned accuracy": tuned,
            "log score": log_score(mean, task.truth, labelled),
            "calibration error": expected_calibration_error(mean, task.truth, labelled),
            "log evidence": float(results[name].log_evidence or np.nan),
            "R-hat": np.nan if method is not None else rhat(results[name]),
            "seconds": seconds,
        }
    truth = results["sampling"].probabilities[:, 1]
    for name, row in rows.items():
        error = abs(results[name].probabilities[:, 1] - truth)
        row |= {"mean error of p": float(error.mean()), "largest error of p": float(error.max())}
    return rows
