"""Null vectors of a Laplacian, as a prior takes them."""

from typing import Any

from graphuq.errors import IncompatibleParts


def null_vectors_included(constant: bool | None, spectrum: Any) -> bool:
    """Return whether null vectors are part of the series; with None, if the graph is disconnected.

    Raises
    ------
    IncompatibleParts
        If they are not, and isolated nodes have no other mode.
    """
    included = spectrum.n_components > 1 if constant is None else constant
    if not included and (n_isolated := int((spectrum.degrees == 0).sum())):
        raise IncompatibleParts(
            f"include_constant=False leaves u = 0 at {n_isolated} isolated node(s); "
            "use include_constant=None, or drop those nodes"
        )
    return included
