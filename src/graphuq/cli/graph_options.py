"""Options of graph and Laplacian, which ``graphuq classify`` and ``graphuq regress`` share."""

import contextlib
from typing import Any

from graphuq.errors import InvalidInput, require


def graph_options(
    *, n_neighbors: int | None, tail_eigenvalue: str, **options: Any
) -> dict[str, Any]:
    """Return keyword arguments of an estimator from the options of graph and Laplacian.

    Parameters
    ----------
    n_neighbors : int or None
    tail_eigenvalue : str
        Text of ``--tail-eigenvalue``.
    **options
        Options that an estimator takes as they are.

    Raises
    ------
    InvalidInput
        If ``--tail-eigenvalue`` is unknown.
    """
    return {
        **options,
        "n_neighbors": "auto" if n_neighbors is None else n_neighbors,
        "tail_eigenvalue": parse_tail(tail_eigenvalue),
    }


def parse_tail(tail: str) -> bool | float | str:
    """Turn the text of ``--tail-eigenvalue`` into what `laplacian_spectrum` takes."""
    words: dict[str, bool | str] = {"none": False, "last": True, "mean": "mean"}
    if tail in words:
        return words[tail]
    with contextlib.suppress(ValueError):
        return float(tail)
    raise InvalidInput(
        "--tail-eigenvalue", f"{tail!r} is unknown", "use none, last, mean or a number"
    )


def parse_n_eigenpairs(text: str | None, n_nodes: int) -> int | str:
    """Turn the text of ``--n-eigenpairs`` into a number or "auto"."""
    if text is None or text == "auto":
        return "auto"
    if text == "all":
        return n_nodes
    require(
        text.isdecimal() and text.isascii(),
        "--n-eigenpairs",
        f"{text!r}",
        "give a whole number, 'all' or 'auto'",
    )
    return int(text)
