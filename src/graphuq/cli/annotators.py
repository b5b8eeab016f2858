"""Option ``--annotator-columns`` of ``graphuq classify``: labels by several people."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.cli.columns import refuse_given
from graphuq.cli.facts import Facts
from graphuq.errors import require

if TYPE_CHECKING:
    import pandas as pd

OF_LABELS = ("labels", "label_column")


def annotators_from(text: str | None, beside: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns, none without the option.

    Parameters
    ----------
    text : str or None
        Names with commas between them.
    beside : dict
        Other options, none of which may be given with this one.

    Raises
    ------
    InvalidInput
        If a name is empty or repeats, or another option excludes this one.
    """
    if text is None:
        return []
    refuse_given(beside, "--annotator-columns", "leave one of the two out")
    return names_in(text, "--annotator-columns", "ann,bob,cyd")


def names_in(text: str, option: str, example: str) -> list[str]:
    """Return the names of different columns, which have commas between them."""
    names = [name.strip() for name in text.split(",")]
    require(
        all(names) and len(set(names)) == len(names),
        option,
        f"{text!r}",
        f"name different columns, with commas between them: {example}",
    )
    return names


def check_annotator_column(
    column: str | None, labels: Any, columns: str | None, beside: Mapping[str, Any]
) -> None:
    """Raise `InvalidInput` for a column of people without a file of labels, or beside others.

    Parameters
    ----------
    column : str or None
        Value of ``--annotator-column``.
    labels : path or None
        File of labels.
    columns : str or None
        Value of ``--annotator-columns``.
    beside : dict
        Other options; labels and their column may be given, and no other.
    """
    if column is None:
        return
    require(
        labels is not None,
        "--annotator-column",
        "given without --labels",
        "give the file with a line for each label, or --annotator-columns for columns of FILE",
    )
    others = {name: value for name, value in beside.items() if name not in OF_LABELS}
    refuse_given(others | {"annotator_columns": columns}, "--annotator-column", "leave one out")


def joined(given: np.ndarray) -> np.ndarray:
    """Return the labels of each row as one text; rows of one label stay as they are."""
    if given.ndim == 1:
        return given
    return np.array(["; ".join(label for label in row if label) for row in given.tolist()])


def say_annotators(facts: Facts, table: "pd.DataFrame") -> None:
    """Say how often each annotator is right."""
    facts.each(
        "{annotator}: {accuracy:.0%} of {n_labels} labels right "
        "(90 % interval {lower:.0%} to {upper:.0%})",
        annotators=table.to_dict("records"),
    )
