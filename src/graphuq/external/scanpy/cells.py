"""The parts of an AnnData object that graphuq reads: neighbours, features and known types."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from graphuq.classifier.unlabelled_words import without_words
from graphuq.errors import require
from graphuq.graphs import Graph, from_adjacency
from graphuq.utils.extras import require_extra

DEFAULT_KEY = "neighbors"
UNLABELLED = ("", None, "Unknown")  # and other words, where nothing is given


class KnownTypes(NamedTuple):
    """Types that are known, and their order.

    Attributes
    ----------
    values : numpy.ndarray of object, shape (N,)
        Type of each cell as text, None where unknown.
    categories : list of str
        Types that occur, in the order of the categories of the column, else sorted.
    unknown : str
        Name for cells whose type stays open.
    """

    values: np.ndarray
    categories: list[str]
    unknown: str


def check_annotated(adata: Any, argument: str = "adata") -> None:
    """Raise `InvalidInput` unless an object has the parts of an AnnData object."""
    require(
        all(hasattr(adata, name) for name in ("obs", "obsm", "obsp", "uns", "obs_names")),
        argument,
        f"an object of type {type(adata).__name__}",
        "give an AnnData object, as anndata.read_h5ad returns it",
    )


def has_neighbors(adata: Any, neighbors_key: str | None = None) -> bool:
    """Return whether an AnnData object holds a graph of neighbours."""
    return _connectivities(adata, neighbors_key) is not None


def cell_graph(adata: Any, neighbors_key: str | None = None) -> Graph:
    """Return the graph of neighbours that is stored in an AnnData object.

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
    key = _connectivities_key(adata, neighbors_key)
    shown = "" if neighbors_key is None else f", key_added={neighbors_key!r}"
    matrix = _connectivities(adata, neighbors_key)
    found = [name for name, entry in adata.uns.items() if "connectivities_key" in _mapping(entry)]
    require(
        matrix is not None,
        "neighbors_key",
        f"no graph {key!r} in adata.obsp",
        f"run scanpy.pp.neighbors(adata{shown}), or pass use_rep='X_pca'"
        + (f", or one of {found}" if found else ""),
    )
    graph = from_adjacency(sparse.csr_array(matrix))
    return dataclasses.replace(graph, names=np.asarray(adata.obs_names, dtype=object))


def representation(adata: Any, use_rep: str, argument: str = "adata") -> Any:
    """Return features of cells: "X", or an entry of ``obsm``.

    Raises
    ------
    InvalidInput
        If there is no such entry.
    """
    if use_rep == "X":
        return adata.X
    require(
        use_rep in adata.obsm,
        "use_rep",
        f"{use_rep!r} is not in {argument}.obsm",
        f"use 'X' or one of {list(adata.obsm.keys())}",
    )
    values = adata.obsm[use_rep]
    return values if sparse.issparse(values) else np.asarray(values)


def known_types(
    adata: Any, labels_key: str, unlabelled: Sequence[Any] | None, argument: str = "adata"
) -> KnownTypes:
    """Return the known types of cells.

    Parameters
    ----------
    adata : anndata.AnnData
    labels_key : str
        Column of ``obs``.
    unlabelled : sequence or None
        Values that mean an unknown type, besides missing ones. None: "Unknown", and such words
        as "unassigned", which a warning names.

    Raises
    ------
    InvalidInput
        If there is no such column.
    """
    require_extra("tables")
    import pandas as pd

    require(
        labels_key in adata.obs.columns,
        "labels_key",
        f"{labels_key!r} is not in {argument}.obs",
        f"use one of {[str(name) for name in adata.obs.columns]}",
    )
    column = adata.obs[labels_key]
    told = UNLABELLED if unlabelled is None else unlabelled
    texts = {str(value) for value in told if value is not None}
    found = np.array(
        ["" if pd.isna(v) or str(v) in texts else str(v) for v in column], dtype=object
    )
    if unlabelled is None:
        remedy = "unlabelled=('', 'Unknown') makes it a type"
        found = without_words(found, f"{argument}.obs[{labels_key!r}]", remedy)
    values = np.array([value or None for value in found.tolist()], dtype=object)
    present = {value for value in values if value is not None}
    order = sorted(present)
    if isinstance(column.dtype, pd.CategoricalDtype):
        order = [str(name) for name in column.cat.categories if str(name) in present]
    names = [value for value in told if isinstance(value, str) and value]
    return KnownTypes(values, order, names[0] if names else "Unknown")


def _connectivities(adata: Any, neighbors_key: str | None) -> Any:
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
