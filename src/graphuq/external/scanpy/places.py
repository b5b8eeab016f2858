"""Graph of the places of cells in a tissue, beside that of their expression."""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse

from graphuq.errors import GraphRepairWarning, GraphuqWarning, require
from graphuq.external.scanpy.cells import entry_of
from graphuq.graphs import Graph, from_adjacency, knn_graph
from graphuq.utils.user_warnings import held_warnings, warn_user

EXPRESSION, SPACE = "expression", "space"  # names of the graphs
PLACES, CONNECTIVITIES, LIBRARY = "spatial", "spatial_connectivities", "library_id"
ATTRIBUTES = "spatialdata_attrs"  # entry of ``uns`` that names the column of regions
N_PLACES = 10  # neighbours of a cell in its slide


def warn_of_unused_places(adata: Any, by: str) -> None:
    """Warn that the places of cells in an object are not used, where these are stored.

    Parameters
    ----------
    adata : anndata.AnnData
    by : str
        What does not use them.

    Warns
    -----
    GraphuqWarning
        If ``obsp`` or ``obsm`` has places under their usual names.
    """
    found = [
        f"{part}['{key}']"
        for key, part in ((CONNECTIVITIES, "obsp"), (PLACES, "obsm"))
        if key in getattr(adata, part)
    ]
    if found:
        warn_user(
            f"{' and '.join(found)}: {by} does not use places of cells; "
            "graphuq.external.scanpy.label_cells does",
            GraphuqWarning,
        )


def space_graph(adata: Any, spatial_key: str | None, library_key: str | None) -> Graph | None:
    """Return the graph of the places of cells, without edges between slides, or None.

    Parameters
    ----------
    adata : anndata.AnnData
    spatial_key : str or None
        "auto", None, or a name in ``obsp`` or ``obsm``; see `label_cells`.
    library_key : str or None
        "auto", None, or a column of ``obs`` with the slide of each cell.

    Raises
    ------
    InvalidInput
        If a name is unknown, coordinates are not finite, or there are slides without a column.

    Warns
    -----
    GraphRepairWarning
        If a stored graph has edges between slides, which are left out.
    """
    key = spatial_key
    if key == "auto":
        known = (CONNECTIVITIES, "obsp"), (PLACES, "obsm")
        key = next((k for k, part in known if k in getattr(adata, part)), None)
    if key is None:
        return None
    edges, places = entry_of(adata, "obsp", key), entry_of(adata, "obsm", key)
    require(
        edges is not None or places is not None,
        "spatial_key",
        f"{key!r} is neither in adata.obsp nor in adata.obsm",
        f"use one of {[*adata.obsp.keys(), *adata.obsm.keys()]}, or None",
    )
    slides = slides_of(adata, library_key)
    if edges is not None:
        weights = _within(sparse.csr_array(edges), slides, key)
    else:
        weights = _neighbours_in_place(coordinates(places, key), slides)
    with held_warnings():  # slides are not joined, and neighbours may be one-sided
        return from_adjacency(weights, symmetrize="union")


def slides_of(adata: Any, library_key: str | None) -> np.ndarray:
    """Return the slide of each cell, as a number from 0.

    Raises
    ------
    InvalidInput
        If there is no such column, it has gaps, or several slides have none.
    """
    key = library_key
    if key == "auto":
        entry = adata.uns.get(ATTRIBUTES)
        region = entry.get("region_key") if hasattr(entry, "get") else None
        named = (LIBRARY, region)
        key = next((name for name in named if name in adata.obs.columns), None)
    if key is None:
        stored = adata.uns.get(PLACES)
        n_slides = len(stored) if hasattr(stored, "keys") else 1
        require(
            n_slides < 2 or library_key is None,
            "library_key",
            f"{n_slides} slides in adata.uns['{PLACES}'], and no column '{LIBRARY}' in adata.obs",
            "name the column with the slide of each cell, or None if all places are in one system",
        )
        return np.zeros(len(adata.obs_names), dtype=np.int64)
    require(
        key in adata.obs.columns,
        "library_key",
        f"{key!r} is not in adata.obs",
        f"use one of {[str(name) for name in adata.obs.columns]}",
    )
    column = adata.obs[key]
    n_missing = int(column.isna().sum())
    require(n_missing == 0, "library_key", f"{key!r} is empty for {n_missing} cell(s)", "fill it")
    return np.unique(column.astype(str), return_inverse=True)[1]


def coordinates(values: Any, key: str) -> Float[np.ndarray, "N 2"]:
    """Return coordinates of cells as numbers.

    Raises
    ------
    InvalidInput
        If they are not two or three finite numbers a cell.
    """
    places = np.asarray(values, dtype=np.float64)
    require(
        places.ndim == 2 and places.shape[1] in (2, 3),
        "spatial_key",
        f"{key!r} has the shape {places.shape}",
        "give two or three coordinates a cell",
    )
    n_bad = int((~np.isfinite(places)).any(axis=1).sum())
    require(
        n_bad == 0,
        "spatial_key",
        f"{key!r} is NaN or infinite for {n_bad} cell(s)",
        "drop these cells, or use spatial_key=None",
    )
    return places


def _within(weights: sparse.csr_array, slides: np.ndarray, key: str) -> sparse.csr_array:
    """Return weights without those between slides."""
    edges = weights.tocoo()
    kept = slides[edges.row] == slides[edges.col]
    n_between = int((~kept & (edges.data > 0)).sum())
    if n_between == 0:
        return weights
    warn_user(
        f"spatial_key: {n_between} entries of {key!r} join cells of two slides, and are left out",
        GraphRepairWarning,
    )
    found = (edges.data[kept], (edges.row[kept], edges.col[kept]))
    return sparse.csr_array(found, shape=weights.shape)


def _neighbours_in_place(places: Float[np.ndarray, "N 2"], slides: np.ndarray) -> sparse.csr_array:
    """Return the weights of the nearest neighbours within each slide."""
    n = len(places)
    rows, columns, weights = [], [], []
    for own in (np.flatnonzero(slides == s) for s in range(int(slides.max()) + 1)):
        if len(own) < 2:
            continue
        with held_warnings():
            part = knn_graph(places[own], min(N_PLACES, len(own) - 1)).weights
        edges = sparse.coo_array(part)
        rows.append(own[edges.row])
        columns.append(own[edges.col])
        weights.append(edges.data)
    require(len(rows) > 0, "library_key", "one cell a slide", "name the column of slides")
    ends = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.concatenate(weights), ends), shape=(n, n))
