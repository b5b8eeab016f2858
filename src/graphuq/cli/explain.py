"""``graphuq explain``: the verdict on a stored fit, and why a row has its class."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from graphuq.cli.facts import Facts, the_facts
from graphuq.cli.fits import Posterior

if TYPE_CHECKING:
    from graphuq.cli.fits import Fit

N_NEAR = 5  # labelled rows that are named


def explain(
    posterior: Posterior,
    row: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Name of a row, to explain its class, too."),
    ] = None,
) -> None:
    """Say how far to rely on a fit, and which labelled rows a row is closest to.

    Closeness is the correlation of a smooth field on the graph of all rows, from −1 to 1.

    Example: graphuq explain out/posterior.nc 17
    """
    from graphuq.cli.fits import read_fit
    from graphuq.cli.verdict import say_verdict

    fit, facts = read_fit(posterior), the_facts()
    node = None if row is None else fit.node(row)
    result = fit.classifier.result_
    say_verdict(facts, result.trust, result.diagnostics.verdict)
    facts.say(settings=dict(result.settings), log_evidence=result.log_evidence)
    if node is not None:
        _say_row(facts, fit, node)


def _say_row(facts: Facts, fit: "Fit", node: int) -> None:
    """Say what is inferred of a row, and the labelled rows that are close to it."""
    result, answer = fit.classifier.result_, fit.row(node)
    facts.say(
        "\n{row[id]}: {row[label]} with probability {row[probability]:.2f}, margin "
        "{row[margin]:.2f}, rank {row[rank]} of {n_rows} from the least certain",
        row=answer,
        n_rows=len(result.has_evidence),
    )
    if not answer["has_evidence"]:
        facts.say("{note}", note="No label is in its component of the graph: it is a guess.")
    facts.each(
        "  {class}: {probability:.2f}",
        classes=[
            {"class": str(name), "probability": answer[f"probability_{name}"]}
            for name in result.classes
        ],
    )
    facts.each("  closest label: {id}, {given} ({closeness:.2f})", closest=_closest(fit, node))


def _closest(fit: "Fit", node: int) -> list[dict[str, Any]]:
    """Return the labelled rows that are closest to a row; none, if the fit has no eigenpairs."""
    from graphuq.labelling.similarity import Similarity

    posterior = fit.classifier.result_.posterior
    basis: Any = posterior.spectrum
    if not basis.has_eigenpairs:
        return []
    labelled = np.setdiff1d(posterior.labelled, [node])
    similarity = Similarity(getattr(basis, "spectrum", basis))  # a basis has other blocks, too
    found = similarity.closest(node, labelled, N_NEAR)
    closeness = similarity.to(node, found)
    ids, given = fit.answers["id"], fit.answers["given"]
    return [
        {"id": ids[k], "given": given[k], "closeness": value}
        for k, value in zip(found, closeness, strict=True)
    ]
