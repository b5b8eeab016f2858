"""What each approximation costs the user: Laplace's method, expectation propagation, sampling."""

import time
import warnings
from typing import Any

import numpy as np

from graphuq.errors import DisconnectedGraphWarning, NotConvergedWarning
from graphuq.experiments.base import Context, Outcome
from graphuq.experiments.problems import rhat
from graphuq.experiments.zhu.tasks import judged, searched, tasks
from graphuq.inference import ExpectationPropagation, Laplace
from graphuq.run.infer import infer
from graphuq.run.stopping import Converged
from graphuq.scores import expected_calibration_error, log_score

METHODS: dict[str, Any] = {
    "Laplace": Laplace(),
    "expectation propagation": ExpectationPropagation(),
    "sampling": None,
}


def approximations(context: Context) -> Outcome:
    """Laplace, expectation propagation and converged sampling: accuracy, log score, calibration."""
    rows: list[dict[str, Any]] = []
    for task in tasks(context):
        found: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
        for draw in range(context.pick(1, 3)):
            labelled = task.draw(1000 * context.seed + draw)
            posterior = searched("knn", task, labelled, context.seed).best_estimator_
            for name, own in _fitted(posterior.result_.posterior, task, labelled).items():
                found[name].append(own)
        rows += [
            {"task": task.name, "method": name, "draws": len(own)}
            | {key: float(np.mean([one[key] for one in own])) for key in own[0]}
            for name, own in found.items()
        ]
    means = {
        name: {
            key: np.mean([r[key] for r in rows if r["method"] == name])
            for key in ("tuned", "log score", "calibration error", "seconds")
        }
        for name in METHODS
    }
    text = "; ".join(
        f"{name}: tuned accuracy {m['tuned']:.3f}, log score {m['log score']:.3f}, calibration "
        f"error {m['calibration error']:.3f}, {m['seconds']:.2g} s"
        for name, m in means.items()
    )
    worst = np.max([r["R-hat"] for r in rows if r["method"] == "sampling"])
    return Outcome(rows, f"Means over six tasks. {text} (largest R-hat {worst:.3f}).")


def _fitted(posterior: Any, task: Any, labelled: Any) -> dict[str, dict[str, float]]:
    """Each method on one posterior, whose covariance is there already."""
    results, rows = {}, {}
    for name, method in METHODS.items():
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # the table has R-hat
            warnings.simplefilter("ignore", DisconnectedGraphWarning)
            results[name] = infer(
                posterior, method, n_samples=10_000, stop=Converged(label_mcse=0.005)
            )
        seconds = time.perf_counter() - began
        plain, tuned = judged(results[name], task, labelled)
        mean = results[name].label_mean
        rows[name] = {
            "accuracy": plain,
            "tuned": tuned,
            "log score": log_score(mean, task.truth, labelled),
            "calibration error": expected_calibration_error(mean, task.truth, labelled),
            "log evidence": float(results[name].log_evidence or np.nan),
            "R-hat": np.nan if method is not None else rhat(results[name]),
            "seconds": seconds,
        }
    truth = results["sampling"].class_probabilities[:, 1]
    for name, row in rows.items():
        error = abs(results[name].class_probabilities[:, 1] - truth)
        row |= {"mean error of p": float(error.mean()), "largest": float(error.max())}
    return rows
