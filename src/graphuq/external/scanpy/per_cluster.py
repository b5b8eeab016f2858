"""Types of clusters from the probabilities of their cells."""

from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.errors import require
from graphuq.external.scanpy.annotation import categorical, check_threshold, write_colors
from graphuq.external.scanpy.cells import annotated
from graphuq.external.scanpy.suggest_cells import table_of_types
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd


def per_cluster(
    adata: Any, cluster_key: str, *, key_added: str = "gq", min_probability: float = 0.5
) -> "pd.DataFrame":
    """Return the type of each cluster, and how mixed the cluster is.

    Parameters
    ----------
    adata : anndata.AnnData
        With what `label_cells` or `transfer` wrote. ``obs[key_added + "_cluster"]`` receives
        the type of the cluster of each cell.
    cluster_key : str
        Column of ``obs`` with the clusters, such as "leiden".
    key_added : str, default "gq"
        As given to `label_cells`.
    min_probability : float, default 0.5
        Smallest share of a cluster's most frequent type. Below it, the cluster's type is open.

    Returns
    -------
    pandas.DataFrame
        One row a cluster: ``n_cells``, ``n_labelled``; ``label``, ``probability``, ``runner_up``
        and ``runner_up_probability``, where a probability is the expected share of the cells of
        the cluster that have this type; ``entropy`` of the mean cell in nats, which is large if
        single cells are uncertain and not if types are mixed; ``n_unknown``.

    Raises
    ------
    InvalidInput
        If a column is missing, or `label_cells` was not called before.
    """
    require_extra("tables")
    import pandas as pd

    adata = annotated(adata)
    check_threshold(min_probability)
    require(
        f"{key_added}_probabilities" in adata.obsm,
        "key_added",
        f"no {key_added}_probabilities in adata.obsm",
        "call label_cells first, with the same key_added",
    )
    require(
        cluster_key in adata.obs.columns,
        "cluster_key",
        f"{cluster_key!r} is not in adata.obs",
        f"use one of {[str(name) for name in adata.obs.columns]}",
    )
    names = [str(name) for name in adata.uns[key_added]["types"]]
    types = pd.DataFrame(
        np.asarray(adata.obsm[f"{key_added}_probabilities"]), index=adata.obs.index, columns=names
    )
    unknown = str(adata.uns[key_added]["unknown"])
    clusters = adata.obs[cluster_key]
    groups = adata.obs.groupby(clusters.to_numpy(), observed=True)
    shares = types.groupby(clusters.to_numpy(), observed=True).mean()
    if isinstance(clusters.dtype, pd.CategoricalDtype):
        shares = shares.loc[[name for name in clusters.cat.categories if name in shares.index]]
    table = table_of_types(shares.to_numpy(), names, shares.index)
    table.insert(0, "n_cells", groups.size().loc[shares.index])
    table.insert(1, "n_labelled", groups[f"{key_added}_given"].count().loc[shares.index])
    table["entropy"] = groups[f"{key_added}_entropy"].mean().loc[shares.index]
    is_open = adata.obs[key_added].astype(object) == unknown
    table["n_unknown"] = is_open.groupby(clusters.to_numpy()).sum().loc[shares.index]
    table.index.name = cluster_key
    decided = table["label"].where(table["probability"] >= min_probability, unknown)
    found = clusters.map(decided).astype(object).to_numpy()
    adata.obs[f"{key_added}_cluster"] = categorical(found, [*names, unknown])
    colors = map(str, adata.uns[key_added]["type_colors"])
    write_colors(adata, f"{key_added}_cluster", dict(zip(names, colors, strict=True)))
    return table
