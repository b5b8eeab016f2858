"""Cells whose type a person should look up next."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.acquisition.base import Rule
from graphuq.acquisition.query import query
from graphuq.classifier.classifier import GraphClassifier
from graphuq.errors import require
from graphuq.external.scanpy.cell_graphs import CellGraphs
from graphuq.external.scanpy.cells import annotated
from graphuq.external.scanpy.label_cells import fit_cells
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd


def suggest_cells(
    adata: Any,
    labels_key: str,
    n: int = 10,
    *,
    rule: str | Rule = "auto",
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    spatial_key: str | None = "auto",
    library_key: str | None = "auto",
    unlabelled: Sequence[Any] | None = None,
    key_added: str = "gq",
    classifier: GraphClassifier | None = None,
    rng: int | np.random.Generator = 0,
) -> "pd.DataFrame":
    """Return the cells whose types would help most, a diverse batch of them.

    Parameters
    ----------
    adata : anndata.AnnData
        ``obs[key_added + "_next"]`` receives the place of each suggested cell from 1, and 0 for
        all others.
    labels_key : str
        Column of ``obs`` with the known types.
    n : int, default 10
        Number of cells.
    rule : str or Rule, default "auto"
        See `graphuq.acquisition.query`. After each cell the posterior is conditioned as if its
        type were known, so that the cells do not repeat each other.
    neighbors_key, use_rep, spatial_key, library_key, unlabelled, key_added
        As for `label_cells`.
    classifier : GraphClassifier, optional
        What `label_cells` returned, which is then used as it is; or settings. By default
        expectation propagation, and of a tissue the default of `GraphClassifier`.
    rng : int or numpy.random.Generator, default 0

    Returns
    -------
    pandas.DataFrame
        One row a cell, the most useful first, with its name as index: ``label``, ``probability``,
        ``runner_up`` and ``runner_up_probability``.

    Raises
    ------
    InvalidInput
        As for `label_cells`, or if a fitted classifier is of other cells.
    """
    require_extra("tables")
    import pandas as pd

    adata = annotated(adata)
    fitted = classifier
    if fitted is None or not hasattr(fitted, "result_"):
        graphs = CellGraphs(neighbors_key, use_rep, spatial_key, library_key)
        fitted, _, _ = fit_cells(adata, labels_key, graphs, unlabelled, fitted)
    n_cells, n_nodes = len(adata.obs_names), len(fitted.result_.has_evidence)
    require(
        n_nodes == n_cells,
        "classifier",
        f"{n_nodes} nodes for {n_cells} cells",
        "give what label_cells returned for these cells, or leave it out",
    )
    rows = query(fitted.result_, n, rule, rng=rng)
    place = np.zeros(n_cells, dtype=np.int64)
    place[rows] = np.arange(1, len(rows) + 1)
    adata.obs[f"{key_added}_next"] = place
    return table_of_types(
        fitted.label_distributions_[rows],
        [str(name) for name in fitted.classes_],
        pd.Index(np.asarray(adata.obs_names)[rows], name="cell"),
    )


def table_of_types(
    probabilities: np.ndarray, names: Sequence[str], index: "pd.Index"
) -> "pd.DataFrame":
    """Return the two most probable types of each row, with their probabilities.

    Parameters
    ----------
    probabilities : numpy.ndarray, shape (M, K)
    names : sequence of str, length K
    index : pandas.Index, length M
    """
    require_extra("tables")
    import pandas as pd

    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]
    best, next_best = np.take_along_axis(probabilities, order, axis=1).T
    labels = np.array(names, dtype=object)[order]
    columns = {"label": labels[:, 0], "probability": best}
    columns |= {"runner_up": labels[:, 1], "runner_up_probability": next_best}
    return pd.DataFrame(columns, index=index)
