"""Text that ``graphuq classify`` and ``graphuq demo`` print about a result."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphuq import scores
from graphuq.cli.clock import STARTED
from graphuq.errors import IncompatibleParts
from graphuq.results import label_numbers
from graphuq.results.errors_left import expected_errors
from graphuq.results.label_checks import suspect_labels
from graphuq.results.label_numbers import label_mean, mean_label_variance
from graphuq.results.reported import lines_on
from graphuq.results.result import Result
from graphuq.results.sampling import is_sampled
from graphuq.results.trust.base import Trust
from graphuq.results.uncertainty import with_unseen

COLOURS = {"green": "bold green", "amber": "bold yellow", "red": "bold red"}


def codes_of(result: Result) -> list[int]:
    """Return the codes of the classes in the order of their names: −1 and +1, or 0 to K − 1."""
    if label_mean(result).ndim == 1:
        return [-1, 1]
    return list(range(label_mean(result).shape[1]))


def all_names(result: Result, names: Sequence[str]) -> list[str]:
    """Return the names of all classes, including those without labelled rows."""
    return with_unseen(names, len(codes_of(result)))


def print_preview(result: Result, names: Sequence[str], truth: np.ndarray | None) -> None:
    """Print the first, approximate result."""
    counts = ", ".join(
        f"{int((label_numbers.labels(result) == code).sum())} {name}"
        for name, code in zip(all_names(result, names), codes_of(result), strict=True)
    )
    scored = scores.where_known(label_mean(result), truth, result.posterior.labelled)
    accuracy = "" if scored is None else f", accuracy {scores.accuracy(*scored):.4f}"
    gaussian = not is_sampled(result)
    method = "expectation propagation" if gaussian else "few draws"
    Console(markup=False, emoji=False).print(
        f"Approximate result after {time.perf_counter() - STARTED:.1f} s, by {method}: "
        f"{counts}{accuracy}. Sampling goes on.",
        soft_wrap=True,
        highlight=False,
    )


def print_summary(
    result: Result,
    names: Sequence[str],
    truth: np.ndarray | None,
    output: Path,
    ids: np.ndarray | None = None,
    predictions: str = "predictions.csv",
) -> None:
    """Print a table of the result, the verdict with its reasons, and the paths of the files.

    Labels that are probably wrong are named by their ``ids``, or by the index of their node.
    """
    console = Console(markup=False, emoji=False)
    table = Table(
        title=f"{len(result.has_evidence)} nodes, {len(result.posterior.labels)} labelled"
    )
    for column in ("class", "given", "inferred", "mean probability", "above 0.95"):
        table.add_column(column, justify="left" if column == "class" else "right")
    probability = result.probabilities.max(axis=1)
    for name, code in zip(all_names(result, names), codes_of(result), strict=True):
        inferred = label_numbers.labels(result) == code
        sure = probability[inferred]
        table.add_row(
            name,
            str(int((result.posterior.labels == code).sum())),
            str(int(inferred.sum())),
            f"{sure.mean():.3f}" if len(sure) else "–",
            str(int((sure > 0.95).sum())),
        )
    console.print(table)
    scored = scores.where_known(label_mean(result), truth, result.posterior.labelled)
    if scored is not None:
        console.print(
            f"On {len(scored[0])} unlabelled nodes: accuracy {scores.accuracy(*scored):.4f}, "
            f"expected calibration error {scores.expected_calibration_error(*scored):.4f}"
        )
    console.print(
        f"Mean label variance: {mean_label_variance(result):.4f}  (0: all labels certain)"
    )
    for line in lines_on(result):
        console.print(line, soft_wrap=True, highlight=False)
    if left := errors_line(result):
        console.print(left, soft_wrap=True, highlight=False)
    if suspect := suspect_line(result, ids):
        console.print(suspect, soft_wrap=True, highlight=False, markup=False)
    from graphuq.report.calibration import with_calibration  # matplotlib: after the first result

    print_trust(with_calibration(result.trust, scored), result.diagnostics.verdict, console)
    for name in (predictions, "posterior.nc", "report.html"):
        console.print(f"  {output / name}", soft_wrap=True, highlight=False)


def print_trust(trust: Trust, convergence: str, console: Console) -> None:
    """Print how far to rely on the result, with its level in colour, and the reasons."""
    if trust.checks["convergence"].ok:  # otherwise it is among the reasons
        console.print(convergence, soft_wrap=True)
    console.print(Text(trust.headline, style=COLOURS[trust.level]), soft_wrap=True)
    for reason in trust.reasons:
        console.print(Text(f"- {reason}"), soft_wrap=True)


def errors_line(result: Result) -> str:
    """Return the line on the expected number of wrong labels, or "" if it is not known."""
    free = len(result.has_evidence) - len(result.posterior.labelled)
    try:
        errors = expected_errors(result)
    except IncompatibleParts:  # a point has no uncertainty
        return ""
    return (
        f"Errors left, by the model: about {errors.expected:.0f} of {free} unlabelled nodes "
        f"(90 % interval {errors.lower:.0f} to {errors.upper:.0f})"
    )


def suspect_line(result: Result, ids: np.ndarray | None = None) -> str:
    """Return the line that names the labels to check, or "" if there are none."""
    names = np.arange(len(result.has_evidence)) if ids is None else ids
    found = [
        f"{names[row['node']]} (given {row['given']}; {row['other']} has probability "
        f"{row['other_probability']:.2f})"
        for row in suspect_labels(result, 5, likely_wrong=True).to_dict(orient="records")
    ]
    return f"labels to check: {', '.join(found)}" if found else ""


def print_tuned(
    labels: np.ndarray, names: Sequence[str], truth: np.ndarray | None, given: np.ndarray
) -> None:
    """Print the result with class proportions; the table before it is without them."""
    counts = ", ".join(f"{name} {int((labels == name).sum())}" for name in names)
    words = f"With the class proportions: {counts}"
    if truth is not None:
        scored = (given == "") & np.isin(truth, list(names))
        words += f"; accuracy {float((labels == truth)[scored].mean()):.4f}"
    Console(markup=False, emoji=False).print(words, soft_wrap=True, highlight=False)
