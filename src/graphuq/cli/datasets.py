"""``graphuq datasets``: what there is, where it is found, and how to get it as a CSV file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphuq.errors import InvalidInput, require
from graphuq.files import check_writable, written_whole

if TYPE_CHECKING:
    from graphuq.datasets import Dataset

NAMES = {
    "digits": "1,797 digits of 8×8 pixels; comes with scikit-learn",
    "two-moons": "two noisy half circles in 100 dimensions; made on the spot",
    "voting": "435 members of the U.S. House, 16 votes of 1984; voting/house-votes-84.data",
    "mnist": "70,000 digits of 28×28 pixels; mnist/*.gz",
}


def datasets(
    name: Annotated[str | None, typer.Argument(help=f"One of {', '.join(NAMES)}.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write it to this CSV file.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="CLASS=COUNT: label so many at random (may be repeated)."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Your data folder; default $GRAPHUQ_DATA.")
    ] = None,
    classes: Annotated[str | None, typer.Option(help="Keep these classes, as in 4,9.")] = None,
    n_each: Annotated[int | None, typer.Option(help="At most so many rows a class.")] = None,
    seed: Annotated[int, typer.Option(help="Of every random choice.")] = 0,
) -> None:
    """List the data sets; or say where NAME is, and write it as a CSV file.

    The CSV has the columns id, class (the truth), label (the few labels asked for), then features.
    """
    if name is None:
        for known, description in NAMES.items():
            print(f"{known:10} {description}")
        print("\nFiles are looked for in --folder or $GRAPHUQ_DATA, else downloaded and checked.")
        return
    require(name in NAMES, "NAME", f"{name!r} is unknown", f"use one of {', '.join(NAMES)}")
    if csv is not None:
        check_writable(csv.parent)
    data = _load(name, folder)
    if classes is not None:
        data = _keep_classes(data, classes.split(","), n_each, seed)
    print(f"{data.name}: {data.features.shape[0]} rows, {data.features.shape[1]} features")
    print(f"source: {data.source}")
    if csv is not None:
        _write(data, label or [], csv, seed)
        print(f"written to {csv}")


def _load(name: str, folder: Path | None) -> "Dataset":
    from graphuq import datasets as library

    if name == "digits":
        return library.load_digits()
    if name == "two-moons":
        return library.two_moons()
    return library.load_voting(folder) if name == "voting" else library.load_mnist(folder=folder)


def _keep_classes(data: "Dataset", wanted: list[str], n_each: int | None, seed: int) -> "Dataset":
    import numpy as np

    known = sorted({str(c) for c in data.classes})
    for name in wanted:
        require(name in known, "--classes", f"{name!r} is not a class", f"use {known}")
    require(len(wanted) == 2, "--classes", f"{wanted}", "give two classes, as in 4,9")
    by_text = {str(c): c for c in np.unique(data.classes)}
    return data.pair(by_text[wanted[0]], by_text[wanted[1]], n_each, seed)


def _write(data: "Dataset", labels: list[str], csv: Path, seed: int) -> None:
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(seed)
    truth = data.classes.astype(str)
    given = np.full(len(truth), "", dtype=object)
    for entry in labels:
        name, _, count = entry.partition("=")
        if not count.isdigit():
            raise InvalidInput("--label", f"{entry!r}", "write CLASS=COUNT, as in democrat=3")
        found = np.flatnonzero(truth == name)
        require(len(found) > 0, "--label", f"no row of class {name!r}", f"use {sorted(set(truth))}")
        require(
            int(count) <= len(found),
            "--label",
            f"{count} of class {name!r}",
            f"at most {len(found)}",
        )
        given[rng.choice(found, size=int(count), replace=False)] = name
    names = data.feature_names or tuple(f"x{i}" for i in range(data.features.shape[1]))
    frame = pd.DataFrame(data.features, columns=list(names))
    frame.insert(0, "label", given)
    frame.insert(0, "class", truth)
    frame.insert(0, "id", np.arange(len(truth)))
    with written_whole(csv) as temporary:
        frame.to_csv(temporary, index=False, float_format="%.8g")
