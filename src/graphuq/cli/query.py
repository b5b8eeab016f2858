"""``graphuq query``: which rows of a stored fit to label next."""

from typing import Annotated

import typer

from graphuq.cli.facts import the_facts
from graphuq.cli.fits import Posterior


def query(
    posterior: Posterior,
    n: Annotated[int, typer.Option(metavar="NUMBER", help="Number of rows.")] = 10,
    rule: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How rows are chosen: stochastic-margin, margin, entropy, …, as "
            "graphuq.acquisition.query takes it.",
        ),
    ] = "auto",
) -> None:
    """Name the rows to label next, the most useful first, with what is inferred of them.

    Once they have labels, classify again with --model 'Average("random")', which says that nobody
    chose how many labels each class has.

    Example: graphuq query out/posterior.nc --n 5
    """
    from graphuq.cli.fits import read_fit

    fit = read_fit(posterior)
    rows = fit.classifier.query(n, rule)
    the_facts().each(
        "{id}: {label} with probability {probability:.2f}", next=[fit.row(int(k)) for k in rows]
    )
