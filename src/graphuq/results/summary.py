"""A result as text."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from graphuq.results.average_parts import block_weights
from graphuq.results.label_numbers import class_codes, is_labelled
from graphuq.results.reported import lines_on

if TYPE_CHECKING:
    from graphuq.results.result import Result

CERTAIN = 0.95  # probability of the most probable class from which a node counts as certain


class Summary(str):
    """Text that an interactive session shows as it is printed."""

    def __repr__(self) -> str:
        return str(self)


def summary_of(result: "Result") -> Summary:
    """Return what was given, what was inferred, and how far to rely on it, as text."""
    codes, probability = class_codes(result), result.probabilities.max(axis=1)
    given = _counts(_codes(result, result.posterior.labels), result)
    inferred = _counts(codes, result)
    total = np.bincount(codes, probability, minlength=len(result.classes))
    mean = [f"{t / n:.3f}" if n else "-" for t, n in zip(total, inferred, strict=True)]
    rows = zip(map(str, result.classes), map(str, given), map(str, inferred), mean, strict=True)
    header = ("class", "given", "inferred", "mean probability")
    uncertain = int((probability[~is_labelled(result)] < CERTAIN).sum())
    trust = result.trust
    lines = [
        *str(trust).splitlines(),
        "",
        f"{len(result.has_evidence)} nodes, {len(result.posterior.labels)} labelled, "
        f"{len(result.classes)} classes",
        "",
        *_aligned([header, *rows]),
        "",
        f"Uncertain: {uncertain} unlabelled nodes have a probability below {CERTAIN}.",
    ]
    lines += lines_on(result)
    if parts := block_weights(result):
        shown = ", ".join(f"{name} {share:.2f}" for name, share in parts.items())
        lines.append(f"Share of each part of the average: {shown}.")
    lines += [f"Hyperparameter {line}." for line in _hyperparameter_lines(result)]
    if result.log_evidence is not None:
        lines.append(f"Log evidence: {result.log_evidence:.2f}.")
    if trust.checks["convergence"].ok:  # otherwise it is among the reasons
        lines.append(result.diagnostics.verdict)
    return Summary("\n".join(lines))


def _codes(result: "Result", labels: np.ndarray) -> Int[np.ndarray, " n"]:
    """Return labels −1 and +1, or codes, as indices of classes."""
    codes = labels if result.posterior.likelihood.is_multiclass else labels > 0
    return np.asarray(codes).astype(np.int64)


def _counts(codes: Int[np.ndarray, " n"], result: "Result") -> list[int]:
    counts: list[int] = np.bincount(codes, minlength=len(result.classes)).tolist()
    return counts


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
