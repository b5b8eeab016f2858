"""Labels that are known before anybody labels."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphuq.classifier.labels import split_labels
from graphuq.errors import require
from graphuq.labelling.names import check_name


def known_labels(y: Any, n_items: int) -> Mapping[int, str]:
    """Return the labels that are known already, by row.

    Raises
    ------
    InvalidInput
        If there is not one value for each item.
    """
    if y is None:
        return {}
    values, given = split_labels(y, -1, needed=False)
    require(len(values) == n_items, "y", f"{len(values)} values", f"give {n_items}, one an item")
    rows = np.flatnonzero(given)
    return {int(row): check_name(str(values[row]), "y") for row in rows}
