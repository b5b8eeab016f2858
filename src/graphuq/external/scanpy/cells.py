"""The parts of an AnnData object that graphuq reads: neighbours, features and known types."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from graphuq.classifier.unlabelled_words import without_words
from graphuq.errors import require
from graphuq.graphs import Graph, from_adjacency
from graphuq.graphs.annotated import find_connectivities, stored_connectivities
from graphuq.utils.extras import require_extra

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


def annotated(adata: Any, argument: str = "adata") -> Any:
    """Return an object with the parts of AnnData: itself, or the table of a SpatialData object.

    Raises
    ------
    InvalidInput
        If it lacks a part, or there is not one table.
    """
    tables: Any = getattr(adata, "tables", None)
    if hasattr(tables, "keys") and not hasattr(adata, "obs"):
        require(
            len(tables) == 1,
            argument,
            f"the tables {list(tables.keys())}",
            "give one of them, such as sdata.tables['table']",
        )
        adata = next(iter(tables.values()))
    require(
        all(hasattr(adata, name) for name in ("obs", "obsm", "obsp", "uns", "obs_names")),
        argument,
        f"an object of type {type(adata).__name__}",
        "give an AnnData object, as anndata.read_h5ad returns it",
    )
    return adata


def has_neighbors(adata: Any, neighbors_key: str | None = None) -> bool:
    """Return whether an AnnData object holds a graph of neighbours."""
    return find_connectivities(adata, neighbors_key) is not None


def cell_graph(adata: Any, neighbors_key: str | None = None) -> Graph:
    """Return the graph of neighbours that is stored in an AnnData object, with names of cells.

    Raises
    ------
    InvalidInput
        If there is no such graph; see `stored_connectivities`.
    """
    graph = from_adjacency(sparse.csr_array(stored_connectivities(adata, neighbors_key)))
    return dataclasses.replace(graph, names=np.asarray(adata.obs_names, dtype=object))


def representation(adata: Any, use_rep: str, argument: str = "adata") -> Any:
    """Return features of cells: "X", or an entry of ``obsm``, or "rna:X" of a modality.

    Raises
    ------
    InvalidInput
        If there is no such entry.
    """
    if use_rep == "X" and hasattr(adata, "X"):
        return in_memory(adata.X)
    values = entry_of(adata, "obsm", use_rep)
    require(
        values is not None,
        "use_rep",
        f"{use_rep!r} is not in {argument}.obsm",
        f"use 'X' or one of {list(adata.obsm.keys())}"
        + "".join(f", or such as {f'{name}:X_pca'!r}" for name in modalities(adata)),
    )
    return in_memory(values)


def in_memory(values: Any) -> Any:
    """Return an array or a sparse matrix, also of an object that is backed by its file."""
    values = values.to_memory() if hasattr(values, "to_memory") else values
    return values if sparse.issparse(values) else np.asarray(values)


def entry_of(adata: Any, attribute: str, key: str) -> Any:
    """Return an entry of ``obsm`` or ``obsp``, of a MuData object also "rna:key", or None.

    Raises
    ------
    InvalidInput
        If the modality has other cells.
    """
    own = getattr(adata, attribute)
    if key in own:
        return own[key]
    modality, _, name = key.partition(":")
    part = modalities(adata).get(modality)
    if part is None or not (name == "X" or name in getattr(part, attribute)):
        return None
    require(
        list(part.obs_names) == list(adata.obs_names),
        "adata",
        f"the modality {modality!r} has other cells, or another order",
        "keep the cells of all modalities, as by muon.pp.intersect_obs(mdata)",
    )
    return part.X if name == "X" else getattr(part, attribute)[name]


def modalities(adata: Any) -> Any:
    """Return the modalities of a MuData object by name; none of an AnnData object."""
    found = getattr(adata, "mod", None)
    return found if hasattr(found, "keys") else {}


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
