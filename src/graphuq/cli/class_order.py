"""Options ``--ordered`` and ``--class-order`` of ``graphuq classify``: the names of grades."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphuq.cli.columns import refuse_given
from graphuq.errors import require

REMEDY = "write them from the lowest to the highest: --class-order low,mid,high"


def check_order(ordered: bool, order: str | None, beside: Mapping[str, Any]) -> bool:
    """Return whether classes have an order, beside which some options are refused.

    Raises
    ------
    InvalidInput
        If one of these is given.
    """
    has_order = ordered or order is not None
    if has_order:
        option = "--ordered" if order is None else "--class-order"
        refuse_given(beside, option, "leave one of the two out")
    return has_order


def names_in_order(given: np.ndarray, order: str | None) -> list[str]:
    """Return the names of the grades, the lowest first.

    Parameters
    ----------
    given : numpy.ndarray of str, shape (N,)
        Class of each labelled row; empty where unlabelled.
    order : str or None
        Names with commas between them. Without it the classes are numbers.

    Raises
    ------
    InvalidInput
        If a label is not in the order, a name repeats, or classes are no numbers.
    """
    labels = sorted(set(given.tolist()) - {""})
    if order is not None:
        names = [name.strip() for name in order.split(",")]
        require(
            len(names) > 1 and all(names) and len(set(names)) == len(names),
            "--class-order",
            f"{order!r}",
            f"name different classes; {REMEDY}",
        )
        others = [name for name in labels if name not in names]
        require(
            not others,
            "--class-order",
            f"{order!r} without the label {others[:1]}",
            "add it at its place, or correct the label",
        )
        return names
    numbers = [_number(name) for name in labels]
    require(
        bool(np.isfinite(numbers).all()),
        "--ordered",
        f"given beside classes that are text: {labels[:5]}",
        REMEDY,
    )
    return [name for _, name in sorted(zip(numbers, labels, strict=True))]


def _number(text: str) -> float:
    """Return the number of a text, or NaN."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
