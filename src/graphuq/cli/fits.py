"""A stored fit with the names of its rows, for commands that ask it something."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from graphuq.errors import InvalidInput, require
from graphuq.utils.near_names import did_you_mean

if TYPE_CHECKING:
    from graphuq.classifier.classifier import GraphClassifier

Posterior = Annotated[
    Path,
    typer.Argument(
        metavar="POSTERIOR",
        help="File posterior.nc of classify. Rows have the names of the predictions beside it.",
    ),
]


class Fit(NamedTuple):
    """A classifier, and one row of answers for each of its N rows.

    Attributes
    ----------
    classifier : GraphClassifier
    answers : dict of str to numpy.ndarray, shape (N,)
        The columns that docs/files.md describes.
    """

    classifier: "GraphClassifier"
    answers: dict[str, np.ndarray]

    def row(self, node: int) -> dict[str, Any]:
        """Return the answer of a row: its id, label, probabilities and so on."""
        return {name: values[node] for name, values in self.answers.items()}

    def node(self, name: str) -> int:
        """Return the number of the row with an id.

        Raises
        ------
        InvalidInput
            If no row has this id.
        """
        ids = self.answers["id"]
        found = np.flatnonzero(ids == name)
        if not len(found):
            remedy = did_you_mean(name, ids, f"use one such as {', '.join(ids[:3].tolist())}")
            raise InvalidInput("ID", f"{name!r} is the id of no row", remedy)
        return int(found[0])


def read_fit(posterior: Path) -> Fit:
    """Read a classifier, and the ids of its rows from the predictions in the same folder.

    Without predictions, ids are the numbers of the rows from 0.

    Raises
    ------
    StorageError, InvalidInput
        If a file cannot be read, or is of another fit.
    """
    from graphuq.classifier.answers import columns_of_fit
    from graphuq.classifier.classifier import GraphClassifier
    from graphuq.classifier.multilabel.saving import is_of_tags
    from graphuq.classifier.saving import classifier_from
    from graphuq.cli.frames import as_text, read_frame
    from graphuq.results.storage import read_tree

    tree = read_tree(posterior)
    require(
        not is_of_tags(tree),
        "POSTERIOR",
        "holds several tags",
        "read tags.csv beside it, or use graphuq.load(path).of(tag) and query in Python",
    )
    classifier = classifier_from(GraphClassifier, tree, posterior)
    n_rows = len(classifier.result_.has_evidence)
    ids = np.arange(n_rows).astype(str)
    for path in sorted(posterior.parent.glob("predictions.*")):
        ids = as_text(read_frame(path, ["id"])["id"])
        require(
            len(ids) == n_rows,
            "POSTERIOR",
            f"has {n_rows} rows, and '{path.name}' beside it {len(ids)}",
            "give the file of the same fit",
        )
        break
    return Fit(classifier, columns_of_fit(classifier, ids))
