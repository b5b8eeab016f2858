"""Data sets by name, and as CSV files with a few labels."""

from pathlib import Path

import numpy as np
import pandas as pd

from graphuq import datasets as library
from graphuq.datasets import Dataset, mnist, newsgroups, voting
from graphuq.datasets.base import find_local
from graphuq.errors import InvalidInput, require
from graphuq.utils.checks import generator
from graphuq.utils.files import atomic_write
from graphuq.utils.spreadsheets import without_formulas


def where(name: str, folder: Path | None) -> str:
    """Describe where the files of a data set are on this machine."""
    files = {
        "voting": [voting.FILE],
        "mnist": list(mnist.FILES.values()),
        "newsgroups": [newsgroups.ARCHIVE],
    }.get(name)
    if files is None:
        return "needs no file"
    found = [find_local(file, folder) for file in files]
    here = [path for path in found if path is not None]
    return f"found in {here[0].parent}" if len(here) == len(files) else "not found here"


def load(name: str, folder: Path | None) -> Dataset:
    """Load a data set by its name on the command line."""
    if name == "digits":
        return library.load_digits()
    if name == "two-moons":
        return library.two_moons()
    if name == "newsgroups":
        raise InvalidInput(
            "NAME", "newsgroups has 40,000 columns", "use datasets.load_newsgroups in Python"
        )
    return library.load_voting(folder) if name == "voting" else library.load_mnist(folder=folder)


def keep_classes(
    data: Dataset, wanted: list[str] | None, n_each: int | None, random_state: int
) -> Dataset:
    """Return the rows of some classes, which are given as text, or of all."""
    known = sorted({str(c) for c in data.classes})
    wanted = known if wanted is None else wanted
    for name in wanted:
        require(name in known, "--classes", f"{name!r} is not a class", f"use {known}")
    require(len(wanted) >= 2, "--classes", f"{wanted}", "give two or more, as in 4,9")
    by_text = {str(c): c for c in np.unique(data.classes).tolist()}
    return data.of_classes([by_text[name] for name in wanted], n_each, random_state)


def write(data: Dataset, labels: list[str], csv: Path, random_state: int) -> None:
    """Write the columns id, class and label, and the features, to a CSV file."""
    rng = generator(random_state, "--random-state")
    truth = data.classes.astype(str)
    given = np.full(len(truth), "", dtype=object)
    for entry in labels:
        name, _, count = entry.partition("=")
        if not (count.isdecimal() and count.isascii()):
            raise InvalidInput("--label", f"{entry!r}", "write CLASS=COUNT, as in democrat=3")
        found = np.flatnonzero(truth == name)
        require(len(found) > 0, "--label", f"no row of class {name!r}", f"use {sorted(set(truth))}")
        require(
            int(count) <= len(found),
            "--label",
            f"{count} rows of class {name!r}",
            f"use at most {len(found)}",
        )
        given[rng.choice(found, size=int(count), replace=False)] = name
    names = data.feature_names or tuple(f"x{i}" for i in range(data.features.shape[1]))
    frame = pd.DataFrame(data.features, columns=list(names))
    frame.insert(0, "label", given)
    frame.insert(0, "class", truth)
    frame.insert(0, "id", np.arange(len(truth)))
    with atomic_write(csv) as temporary:
        without_formulas(frame).to_csv(temporary, index=False, float_format="%.8g")
