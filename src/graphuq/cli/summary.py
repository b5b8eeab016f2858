"""What is printed at the end of a run."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from graphuq import scores
from graphuq.result import Result


def print_summary(
    result: Result, names: tuple[str, str], truth: np.ndarray | None, output: Path
) -> None:
    """Print a table of what came out, the verdict, and where the files are."""
    console = Console()
    table = Table(title=f"{result.n_nodes} nodes, {len(result.posterior.labels)} labelled")
    for column in ("class", "given", "inferred", "mean probability", "surer than 0.95"):
        table.add_column(column, justify="left" if column == "class" else "right")
    probability = result.class_probabilities.max(axis=1)
    for name, sign in zip(names, (-1, 1), strict=True):
        inferred = result.labels == sign
        sure = probability[inferred]
        table.add_row(
            name,
            str(int((result.posterior.labels == sign).sum())),
            str(int(inferred.sum())),
            f"{sure.mean():.3f}" if len(sure) else "–",
            str(int((sure > 0.95).sum())),
        )
    console.print(table)
    if truth is not None and np.isfinite(truth).any():
        known = np.isfinite(truth)
        known[result.posterior.labelled] = False
        if known.any():
            accuracy = scores.accuracy(result.label_mean[known], truth[known])
            console.print(f"Accuracy on {known.sum()} unlabelled nodes: {accuracy:.4f}")
    console.print(f"Mean label variance: {result.mean_label_variance:.4f}  (0 sure, 1 torn)")
    if (missing := int((~result.has_evidence).sum())) > 0:
        console.print(f"{missing} nodes have no evidence: no label in their component.")
    console.print(result.diagnostics.verdict, soft_wrap=True)
    for name in ("predictions.csv", "posterior.nc", "report.html"):
        console.print(f"  {output / name}", soft_wrap=True, highlight=False)
