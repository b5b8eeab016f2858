"""Null vectors of a Laplacian, as a prior takes them."""

from typing import Any

from graphuq.errors import IncompatibleParts


def null_vectors_included(constant: bool | None, spectrum: Any) -> bool:
    """Return whether null vectors are part of the series.

    With None they are if the graph is disconnected, or has negative weights: a null vector then
    tells its two sides apart.

    Raises
    ------
    IncompatibleParts
        If they are not, and isolated nodes have no other mode.
    """
    needed = spectrum.n_components > 1 or spectrum.is_signed
    included = needed if constant is None else constant
    if not included and (n_isolated := int((spectrum.degrees == 0).sum())):
        raise IncompatibleParts(
            f"include_constant=False leaves u = 0 at {n_isolated} isolated node(s); "
            "use include_constant=None, or drop those nodes"
        )
    return included
