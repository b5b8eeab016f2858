"""What is printed at the end of a run."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from graphuq import scores
from graphuq.cli.clock import STARTED
from graphuq.results.result import Result
from graphuq.results.uncertainty import with_unseen


def codes_of(result: Result) -> list[int]:
    """Labels of the classes in the order of their names."""
    if result.label_mean.ndim == 1:
        return [-1, 1]
    return list(range(result.label_mean.shape[1]))


def all_names(result: Result, names: Sequence[str]) -> list[str]:
    """Names of the classes, those without any label included."""
    return with_unseen(names, len(codes_of(result)))


def print_preview(result: Result, names: Sequence[str], truth: np.ndarray | None) -> None:
    """Print the first, approximate answer, while sampling begins."""
    counts = ", ".join(
        f"{int((result.labels == code).sum())} {name}"
        for name, code in zip(all_names(result, names), codes_of(result), strict=True)
    )
    judged = scores.where_known(result.label_mean, truth, result.posterior.labelled)
    accuracy = "" if judged is None else f", accuracy {scores.accuracy(*judged):.4f}"
    Console().print(
        f"First answer after {time.perf_counter() - STARTED:.1f} s, by expectation propagation: "
        f"{counts}{accuracy}. Sampling to be sure.",
        soft_wrap=True,
        highlight=False,
    )


def print_summary(
    result: Result, names: Sequence[str], truth: np.ndarray | None, output: Path
) -> None:
    """Print a table of what came out, the verdict, and where the files are."""
    console = Console()
    table = Table(title=f"{result.n_nodes} nodes, {len(result.posterior.labels)} labelled")
    for column in ("class", "given", "inferred", "mean probability", "surer than 0.95"):
        table.add_column(column, justify="left" if column == "class" else "right")
    probability = result.class_probabilities.max(axis=1)
    for name, code in zip(all_names(result, names), codes_of(result), strict=True):
        inferred = result.labels == code
        sure = probability[inferred]
        table.add_row(
            name,
            str(int((result.posterior.labels == code).sum())),
            str(int(inferred.sum())),
            f"{sure.mean():.3f}" if len(sure) else "–",
            str(int((sure > 0.95).sum())),
        )
    console.print(table)
    judged = scores.where_known(result.label_mean, truth, result.posterior.labelled)
    if judged is not None:
        console.print(
            f"On {len(judged[0])} unlabelled nodes: accuracy {scores.accuracy(*judged):.4f}, "
            f"expected calibration error {scores.expected_calibration_error(*judged):.4f}"
        )
    console.print(f"Mean label variance: {result.mean_label_variance:.4f}  (0 sure, 1 torn)")
    if (missing := int((~result.has_evidence).sum())) > 0:
        console.print(f"{missing} nodes have no evidence: no label in their component.")
    console.print(result.diagnostics.verdict, soft_wrap=True)
    for name in ("predictions.csv", "posterior.nc", "report.html"):
        console.print(f"  {output / name}", soft_wrap=True, highlight=False)


def print_tuned(
    labels: np.ndarray, names: Sequence[str], truth: np.ndarray | None, given: np.ndarray
) -> None:
    """Say what class proportions make of it: the counts above are without them."""
    counts = ", ".join(f"{name} {int((labels == name).sum())}" for name in names)
    words = f"With the class proportions that were asked for: {counts}"
    if truth is not None:
        judged = (given == "") & np.isin(truth, list(names))
        words += f"; accuracy {float((labels == truth)[judged].mean()):.4f}"
    Console().print(words, soft_wrap=True, highlight=False)
