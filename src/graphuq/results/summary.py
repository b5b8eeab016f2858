"""A result as text."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Int

from graphuq.results.average_parts import block_weights, few_columns
from graphuq.results.label_numbers import class_codes, is_labelled
from graphuq.results.leaving_out import given_classes
from graphuq.results.reported import lines_on
from graphuq.spectrum.few_variables import FEW_VARIABLES

if TYPE_CHECKING:
    from graphuq.results.result import Result

MOST_COLUMNS = 10  # whose numbers are shown
CERTAIN = 0.95  # probability of the most probable class from which a node counts as certain


class Summary(str):
    """Text that an interactive session shows as it is printed."""

    def __repr__(self) -> str:
        return str(self)


class ClassRow(NamedTuple):
    """What a class got.

    Attributes
    ----------
    name : Any
    given, inferred : int
        Nodes with this label, and nodes whose most probable class it is, labelled ones included.
    probability : float or None
        Mean probability of the class at the inferred nodes; None without any.
    """

    name: Any
    given: int
    inferred: int
    probability: float | None


def class_rows(result: "Result", codes: Int[np.ndarray, " N"] | None = None) -> list[ClassRow]:
    """Return given and inferred nodes of each class, and their mean probability.

    Parameters
    ----------
    result : Result
    codes : numpy.ndarray of int, shape (N,), optional
        Inferred classes; by default the most probable ones.
    """
    n_classes = len(result.classes)
    codes = class_codes(result) if codes is None else codes
    probability = result.probabilities[np.arange(len(codes)), codes]
    given = np.bincount(given_classes(result.posterior), minlength=n_classes)
    inferred = np.bincount(codes, minlength=n_classes)
    total = np.bincount(codes, probability, minlength=n_classes)
    mean = [float(t / n) if n else None for t, n in zip(total, inferred, strict=True)]
    return [
        ClassRow(name, int(given[k]), int(inferred[k]), mean[k])
        for k, name in enumerate(result.classes)
    ]


def summary_of(result: "Result") -> Summary:
    """Return what was given, what was inferred, and how far to rely on it, as text."""
    header = ("class", "given", "inferred", "mean probability")
    rows = [
        (str(name), str(given), str(inferred), "-" if mean is None else f"{mean:.3f}")
        for name, given, inferred, mean in class_rows(result)
    ]
    lines = [
        *str(result.trust).splitlines(),
        "",
        size_line(result),
        "",
        *_aligned([header, *rows]),
        "",
        uncertain_line(result),
        *detail_lines(result),
    ]
    return Summary("\n".join(lines))


def size_line(result: "Result") -> str:
    """Return the numbers of nodes, labels and classes in words."""
    n_nodes, n_labels = len(result.has_evidence), len(result.posterior.labels)
    return f"{n_nodes} nodes, {n_labels} labelled, {len(result.classes)} classes"


def uncertain_line(result: "Result") -> str:
    """Return how many unlabelled nodes are not certain, in a sentence."""
    free = ~is_labelled(result)
    uncertain = int((result.probabilities[free].max(axis=1) < CERTAIN).sum())
    return f"Uncertain: {uncertain} unlabelled nodes have a probability below {CERTAIN}."


def detail_lines(result: "Result") -> list[str]:
    """Return sentences on experts, class shares, parts, hyperparameters and convergence."""
    lines = lines_on(result)
    if parts := block_weights(result):
        shown = ", ".join(f"{name} {share:.2f}" for name, share in parts.items())
        lines.append(f"Share of each part of the average: {shown}.")
        if FEW_VARIABLES in parts and len(columns := few_columns(result)):
            plural = "" if len(columns) == 1 else "s"
            lines.append(f"Few variables: column{plural} {_listed(columns)} of X, from 0.")
    lines += [f"Hyperparameter {line}." for line in _hyperparameter_lines(result)]
    if result.log_evidence is not None:
        lines.append(f"Log evidence: {result.log_evidence:.2f}.")
    if result.trust.checks["convergence"].ok:  # otherwise it is among the reasons
        lines.append(result.diagnostics.verdict)
    return lines


def _listed(columns: np.ndarray) -> str:
    """Return the numbers of at most ten columns, and how many more there are."""
    shown, more = ", ".join(map(str, columns[:MOST_COLUMNS])), len(columns) - MOST_COLUMNS
    return f"{shown} and {more} more" if more > 0 else shown


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Return lines of columns, the first flush left and the others flush right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def quantiles_of_draws(value: np.ndarray) -> tuple[float, float, float] | None:
    """Return the quantiles 0.05, 0.5 and 0.95 of draws that are numbers, or None without any."""
    numbers = value[np.isfinite(value)]
    if not len(numbers):
        return None
    low, median, high = np.quantile(numbers, (0.05, 0.5, 0.95)).tolist()
    return low, median, high


def _hyperparameter_lines(result: "Result") -> list[str]:
    """Return each hyperparameter that the labels determined, with its value or its quantiles."""
    lines = []
    for name, value in result.hyperparameters.items():
        if np.ndim(value) == 0:
            shown = f"{value:.4g}" if isinstance(value, float) else f"{value}"
            lines.append(f"{name}: {shown}, chosen by the evidence")
        elif np.asarray(value).dtype == bool:
            lines.append(f"{name}: true with probability {np.mean(value):.2f}")
        elif np.ndim(value) == 2:
            quantiles = quantiles_of_draws(value)
            if quantiles is not None:
                low, median, high = quantiles
                lines.append(f"{name}: median {median:.4g}, 90 % interval [{low:.4g}, {high:.4g}]")
        else:
            lines.append(f"{name}: {np.shape(value)[2]} values, sampled")
    return lines
