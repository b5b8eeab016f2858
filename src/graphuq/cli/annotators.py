"""Option ``--annotator-columns`` of ``graphuq classify``: labels by several people."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.cli.columns import refuse_given
from graphuq.errors import require

if TYPE_CHECKING:
    import pandas as pd


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
    names = [name.strip() for name in text.split(",")]
    require(
        all(names) and len(set(names)) == len(names),
        "--annotator-columns",
        f"{text!r}",
        "name different columns, with commas between them: ann,bob,cyd",
    )
    return names


def joined(given: np.ndarray) -> np.ndarray:
    """Return the labels of each row as one text; rows of one label stay as they are."""
    if given.ndim == 1:
        return given
    return np.array(["; ".join(label for label in row if label) for row in given.tolist()])


def print_annotators(table: "pd.DataFrame") -> None:
    """Print how often each annotator is right."""
    for row in table.to_dict("records"):
        print(
            f"{row['annotator']}: {row['accuracy']:.0%} of {row['n_labels']} labels right "
            f"(90 % interval {row['lower']:.0%} to {row['upper']:.0%})"
        )
