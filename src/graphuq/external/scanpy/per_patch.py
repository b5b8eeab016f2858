"""Composition of patches of a tissue, with intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.classifier.classifier import GraphClassifier
from graphuq.errors import require
from graphuq.external.scanpy.cell_graphs import JOINT
from graphuq.external.scanpy.cells import annotated, entry_of
from graphuq.external.scanpy.places import PLACES, SPACE, coordinates, slides_of
from graphuq.results.average_parts import block_weights
from graphuq.results.result import Result
from graphuq.results.shares_of_groups import group_shares
from graphuq.utils.checks import require_positive
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd


def per_patch(
    adata: Any,
    classifier: GraphClassifier,
    patch_key: str | None = None,
    *,
    side: float | None = None,
    spatial_key: str = PLACES,
    library_key: str | None = "auto",
    key_added: str = "gq",
    probability: float = 0.9,
) -> "pd.DataFrame":
    """Return which share of the cells of each patch has each type, with an interval.

    Neighbouring cells are right or wrong together, which the interval takes into account: it comes
    from joint draws (`graphuq.results.group_shares`). It is about the types of these cells, not
    about a larger tissue from which they come.

    Where the labels choose expression alone, the answers of cells do not depend on their places.
    Squares (``side``) then tell more: a square with many sure cells of a type has more of it among
    the unsure ones. So the share of a square is not just the mean probability of its cells; it
    takes expression of a type to be alike in all squares. Patches of ``patch_key`` may have been
    made from expression, and have the mean probability.

    Parameters
    ----------
    adata : anndata.AnnData
        The cells of the fit. With ``side``, ``obs[key_added + "_patch"]`` receives the patch of
        each cell.
    classifier : GraphClassifier
        What `label_cells` returned for these cells.
    patch_key : str, optional
        Column of ``obs`` with the patch of each cell, such as a region or a cluster.
    side : float, optional
        Side of square patches, in units of the places; in place of ``patch_key``.
    spatial_key : str, default "spatial"
        Coordinates in ``obsm``, for ``side``.
    library_key : str or None, default "auto"
        As for `label_cells`: squares of two slides are two patches.
    key_added : str, default "gq"
    probability : float, default 0.9
        Of each interval, in (0, 1).

    Returns
    -------
    pandas.DataFrame
        One row a patch and type: ``patch``, ``type``, ``n_cells``, ``share``, ``lower`` and
        ``upper``.

    Raises
    ------
    InvalidInput
        If not one of ``patch_key`` and ``side`` is given, a column is missing, or the classifier is
        of other cells.
    IncompatibleParts
        If the classifier has no draws and no Gaussian, as with ``inference="map"``.
    """
    require_extra("tables")
    import pandas as pd

    adata = annotated(adata)
    n_cells, n_nodes = len(adata.obs_names), len(classifier.result_.has_evidence)
    require(
        n_cells == n_nodes,
        "classifier",
        f"{n_nodes} nodes for {n_cells} cells",
        "give what label_cells returned for these cells",
    )
    require(
        (patch_key is None) != (side is None),
        "patch_key",
        f"{patch_key!r} beside side={side!r}",
        "give a column of obs, or the side of squares",
    )
    if side is not None:
        patches = _squares(adata, side, spatial_key, library_key)
        adata.obs[f"{key_added}_patch"] = pd.Categorical(patches)
    else:
        require(
            patch_key in adata.obs.columns,
            "patch_key",
            f"{patch_key!r} is not in adata.obs",
            f"use one of {[str(name) for name in adata.obs.columns]}",
        )
        column = adata.obs[patch_key]
        patches = column.astype(object).where(column.notna(), None).to_numpy()
    unseen = 0.0 if side is None else _without_space(classifier.result_)
    shares = group_shares(classifier.result_, patches, probability, unseen=unseen).to_dataframe()
    names = {"group": "patch", "class": "type", "n_rows": "n_cells"}
    return shares.rename(columns=names).astype({"type": str})


def _without_space(result: Result) -> float:
    """Return the posterior probability of the components that use no places."""
    weights = block_weights(result) or {result.posterior.spectrum.settings.get("name", ""): 1.0}
    found = [w for name, w in weights.items() if not {SPACE, JOINT} & set(name.split(" + "))]
    return min(sum(found), 1.0)


def _squares(adata: Any, side: float, spatial_key: str, library_key: str | None) -> np.ndarray:
    """Return the square of each cell, by slide, column and row of squares."""
    require_positive("side", side)
    values = entry_of(adata, "obsm", spatial_key)
    require(
        values is not None,
        "spatial_key",
        f"{spatial_key!r} is not in adata.obsm",
        f"use one of {list(adata.obsm.keys())}",
    )
    places = coordinates(values, spatial_key)
    cells = np.floor((places - places.min(axis=0)) / side).astype(int)
    slides = slides_of(adata, library_key)
    corners = np.column_stack([slides, cells]) if slides.any() else cells
    return np.array([" ".join(map(str, row)) for row in corners], dtype=object)
