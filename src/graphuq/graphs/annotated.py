"""Graph of neighbours in an object with annotations of its rows: AnnData, MuData.

Neither package is imported. An object is used by its attributes ``obsp`` and ``uns``.
"""

from typing import Any

from graphuq.errors import require

DEFAULT_KEY = "neighbors"


def stored_connectivities(adata: Any, neighbors_key: str | None = None) -> Any:
    """Return the matrix of the graph of neighbours, as scanpy stores it.

    Parameters
    ----------
    adata : anndata.AnnData
    neighbors_key : str, optional
        Entry of ``uns`` whose ``connectivities_key`` names the matrix in ``obsp``; by default
        "neighbors", and "connectivities" if that entry names none. Files of scanpy before 1.5
        hold the matrix in the entry itself.

    Raises
    ------
    InvalidInput
        If there is no such graph.
    """
    matrix = find_connectivities(adata, neighbors_key)
    shown = "" if neighbors_key is None else f", key_added={neighbors_key!r}"
    found = [name for name, entry in adata.uns.items() if "connectivities_key" in _mapping(entry)]
    spaces = sorted(name for name in adata.obsm if name != "spatial")
    representations = " or ".join(f"use_rep={name!r}" for name in [*spaces, "X"])
    require(
        matrix is not None,
        "neighbors_key",
        f"no graph {_connectivities_key(adata, neighbors_key)!r} in adata.obsp",
        f"run scanpy.pp.neighbors(adata{shown}), or pass {representations}"
        + (f", or one of {found}" if found else ""),
    )
    return matrix


def find_connectivities(adata: Any, neighbors_key: str | None = None) -> Any:
    """Return the matrix of a graph of neighbours, wherever scanpy wrote it, or None."""
    key = _connectivities_key(adata, neighbors_key)
    if key in adata.obsp:
        return adata.obsp[key]
    name = DEFAULT_KEY if neighbors_key is None else neighbors_key
    return _mapping(adata.uns.get(name)).get("connectivities")


def _connectivities_key(adata: Any, neighbors_key: str | None) -> str:
    entry = _mapping(adata.uns.get(DEFAULT_KEY if neighbors_key is None else neighbors_key))
    default = "connectivities" if neighbors_key in (None, DEFAULT_KEY) else str(neighbors_key)
    return str(entry.get("connectivities_key", default))


def _mapping(entry: Any) -> Any:
    """Return an entry of ``uns`` if it is a mapping, else an empty one."""
    return entry if hasattr(entry, "keys") else {}
