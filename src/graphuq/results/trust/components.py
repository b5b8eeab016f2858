"""Check that every component of the graph has a label."""

from typing import TYPE_CHECKING

from graphuq.results.trust.base import Check

if TYPE_CHECKING:
    from graphuq.results.result import Result

MAX_SHARE = 0.0  # one node without evidence is worth a sentence, since its label is a guess


def check_components(result: "Result") -> Check:
    """Check that the labels inform every node: no component of the graph is without a label."""
    missing = int((~result.has_evidence).sum())
    n_nodes = len(result.has_evidence)
    share = missing / n_nodes
    if missing == 0:
        sentence = "Every component of the graph has a label."
        return Check(share, MAX_SHARE, "green", sentence)
    return Check(
        share,
        MAX_SHARE,
        "amber",
        f"{missing} of {n_nodes} nodes ({share:.1%}) have no label in their component of "
        "the graph, so that their probabilities come from the prior alone. Label one node of each "
        "component, or join components by more edges (n_neighbors).",
    )
