"""``graphuq demo``: classification of handwritten digits that come with scikit-learn."""

from pathlib import Path
from typing import Annotated

import typer

from graphuq.cli.facts import the_facts
from graphuq.utils.output_folder import output_folder

DIGITS, N_LABELLED = (4, 9), 5  # the two digits, and the labelled images of each


def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Folder for the files that are written."
        ),
    ] = Path("out/demo"),
    random_state: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", help="Random seed: which images are labelled, and the chains."
        ),
    ] = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no progress bar and no table.")
    ] = False,
) -> None:
    """Classify 361 images of handwritten fours and nines from five labelled images of each.

    The output folder receives predictions.csv, report.html and posterior.nc.
    """
    with output_folder(output):
        import numpy as np

        from graphuq.cli.fitting import fit_and_write
        from graphuq.cli.tables import Table
        from graphuq.datasets import load_digits
        from graphuq.utils.checks import generator

        data = load_digits(DIGITS)
        truth = np.array([f"digit {c}" for c in data.classes])
        rng = generator(random_state, "--random-state")
        given = np.full(len(truth), "", dtype=truth.dtype)
        for name in np.unique(truth):
            chosen = rng.choice(np.flatnonzero(truth == name), N_LABELLED, replace=False)
            given[chosen] = name
        facts = the_facts(quiet)
        facts.say(
            "{n_rows} images of handwritten fours and nines, {n_labelled} of them labelled. "
            "Which is which, and which should a person check?\n",
            n_rows=len(truth),
            n_labelled=2 * N_LABELLED,
        )
        table = Table(
            features=data.features,
            ids=np.arange(len(truth)).astype(str),
            labels=given,
            truth=truth,
            feature_names=list(data.feature_names),
        )
        fit_and_write(
            table,
            given,
            {"graph": "knn", "random_state": random_state},
            output,
            title="graphuq demo: handwritten fours and nines",
            image_shape=(8, 8),
            facts=facts,
        )
