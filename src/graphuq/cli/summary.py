"""What ``graphuq classify`` and ``graphuq demo`` say about a result."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphuq import scores
from graphuq.cli.clock import STARTED
from graphuq.cli.facts import Facts
from graphuq.cli.verdict import say_verdict
from graphuq.errors import IncompatibleParts
from graphuq.results import label_numbers
from graphuq.results.errors_left import expected_errors
from graphuq.results.label_checks import suspect_labels
from graphuq.results.label_numbers import label_mean, mean_label_variance
from graphuq.results.reported import lines_on
from graphuq.results.result import Result
from graphuq.results.sampling import is_sampled
from graphuq.results.uncertainty import with_unseen


def codes_of(result: Result) -> list[int]:
    """Return the codes of the classes in the order of their names: −1 and +1, or 0 to K − 1."""
    if label_mean(result).ndim == 1:
        return [-1, 1]
    return list(range(label_mean(result).shape[1]))


def all_names(result: Result, names: Sequence[str]) -> list[str]:
    """Return the names of all classes, including those without labelled rows."""
    return with_unseen(names, len(codes_of(result)))


def preview(result: Result, names: Sequence[str], truth: np.ndarray | None) -> str:
    """Return a line on the first, approximate result."""
    counts = ", ".join(
        f"{int((label_numbers.labels(result) == code).sum())} {name}"
        for name, code in zip(all_names(result, names), codes_of(result), strict=True)
    )
    scored = scores.where_known(label_mean(result), truth, result.posterior.labelled)
    accuracy = "" if scored is None else f", accuracy {scores.accuracy(*scored):.4f}"
    method = "few draws" if is_sampled(result) else "expectation propagation"
    return (
        f"Approximate result after {time.perf_counter() - STARTED:.1f} s, by {method}: "
        f"{counts}{accuracy}. Sampling goes on."
    )


def say_result(
    facts: Facts,
    result: Result,
    names: Sequence[str],
    truth: np.ndarray | None,
    ids: np.ndarray | None = None,
) -> None:
    """Say what was inferred, and the verdict with its reasons.

    Labels that are probably wrong are named by their ``ids``, or by the index of their node.
    """
    say_classes(facts, result, names)
    scored = scores.where_known(label_mean(result), truth, result.posterior.labelled)
    if scored is not None:
        facts.say(
            "On {scores[n]} unlabelled nodes: accuracy {scores[accuracy]:.4f}, "
            "expected calibration error {scores[calibration_error]:.4f}",
            scores={
                "n": len(scored[0]),
                "accuracy": scores.accuracy(*scored),
                "calibration_error": scores.expected_calibration_error(*scored),
            },
        )
    facts.say(
        "Mean label variance: {mean_label_variance:.4f}  (0: all labels certain)",
        mean_label_variance=mean_label_variance(result),
    )
    facts.each("{}", notes=lines_on(result))
    say_errors(facts, result)
    say_suspects(facts, result, ids)
    facts.say(settings=dict(result.settings), log_evidence=result.log_evidence)
    from graphuq.report.calibration import with_calibration  # matplotlib: after the first result

    say_verdict(facts, with_calibration(result.trust, scored), result.diagnostics.verdict)


def say_classes(facts: Facts, result: Result, names: Sequence[str]) -> None:
    """Say how many nodes of each class were given and inferred, as a table."""
    probability, rows = result.probabilities.max(axis=1), []
    for name, code in zip(all_names(result, names), codes_of(result), strict=True):
        inferred = label_numbers.labels(result) == code
        sure = probability[inferred]
        rows.append(
            {
                "class": name,
                "given": int((result.posterior.labels == code).sum()),
                "inferred": int(inferred.sum()),
                "mean_probability": float(sure.mean()) if len(sure) else None,
                "above_0.95": int((sure > 0.95).sum()),
            }
        )
    n_nodes, n_labelled = len(result.has_evidence), len(result.posterior.labels)
    facts.say(n_nodes=n_nodes, n_labelled=n_labelled, classes=rows)
    if facts.is_silent:
        return
    from rich.table import Table

    table = Table(title=f"{n_nodes} nodes, {n_labelled} labelled")
    for column in rows[0]:
        table.add_column(column.replace("_", " "), justify="left" if column == "class" else "right")
    for row in rows:
        table.add_row(*map(_shown, row.values()))
    facts.show(table)


def _shown(value: Any) -> str:
    """Return a cell of the table of classes."""
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def say_errors(facts: Facts, result: Result) -> None:
    """Say the expected number of wrong labels, if it is known."""
    free = len(result.has_evidence) - len(result.posterior.labelled)
    try:
        errors = expected_errors(result)
    except IncompatibleParts:  # a point has no uncertainty
        return
    facts.say(
        "Errors left, by the model: about {errors_left[expected]:.0f} of {errors_left[n]} "
        "unlabelled nodes (90 % interval {errors_left[lower]:.0f} to {errors_left[upper]:.0f})",
        errors_left={
            "expected": errors.expected,
            "lower": errors.lower,
            "upper": errors.upper,
            "n": free,
        },
    )


def say_suspects(facts: Facts, result: Result, ids: np.ndarray | None = None) -> None:
    """Name the labels to check, if there are some."""
    names = np.arange(len(result.has_evidence)) if ids is None else ids
    rows = suspect_labels(result, 5, likely_wrong=True).to_dict(orient="records")
    found = [{"id": names[row["node"]], **row} for row in rows]
    template = "{id} (given {given}; {other} has probability {other_probability:.2f})"
    shown = {"rows": ", ".join(template.format_map(row) for row in found)}
    facts.say("labels to check: {rows}" if found else "", labels_to_check=found, shown=shown)


def say_tuned(
    facts: Facts,
    labels: np.ndarray,
    names: Sequence[str],
    truth: np.ndarray | None,
    given: np.ndarray,
) -> None:
    """Say the result with class proportions; the table before it is without them."""
    counts = {str(name): int((labels == name).sum()) for name in names}
    words = "With the class proportions: " + ", ".join(
        f"{n} {count}" for n, count in counts.items()
    )
    tuned: dict[str, Any] = {"counts": counts}
    if truth is not None:
        scored = (given == "") & np.isin(truth, list(names))
        tuned["accuracy"] = float((labels == truth)[scored].mean())
        words += f"; accuracy {tuned['accuracy']:.4f}"
    facts.say("{words}", with_class_proportions=tuned, shown={"words": words})
