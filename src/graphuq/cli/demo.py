"""``graphuq demo``: the main job on a data set that is always there."""

from pathlib import Path
from typing import Annotated

import typer

from graphuq.utils.files import check_writable

DIGITS, N_LABELLED = (4, 9), 4


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path(
        "out/demo"
    ),
    seed: Annotated[int, typer.Option(help="Of the labels chosen and of the chains.")] = 0,
    quiet: Annotated[bool, typer.Option(help="No progress bar, no table.")] = False,
) -> None:
    """Tell 361 handwritten fours and nines apart from four labelled images of each."""
    check_writable(output)
    import numpy as np

    from graphuq.cli.fitting import fit_and_write
    from graphuq.cli.tables import Table
    from graphuq.datasets import load_digits

    data = load_digits(DIGITS)
    truth = np.array([f"digit {c}" for c in data.classes])
    rng = np.random.default_rng(seed)
    given = np.full(len(truth), "", dtype=truth.dtype)
    for name in np.unique(truth):
        chosen = rng.choice(np.flatnonzero(truth == name), N_LABELLED, replace=False)
        given[chosen] = name
    if not quiet:
        print(
            f"{len(truth)} images of handwritten fours and nines, {2 * N_LABELLED} of them "
            "labelled: which is which, and which should a person look at?\n"
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
        {"graph": "knn", "random_state": seed},
        output,
        title="graphuq demo: handwritten fours and nines",
        image_shape=(8, 8),
        quiet=quiet,
    )
