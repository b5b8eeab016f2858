"""Types of all cells from the known types of a few."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from graphuq.classifier.classifier import GraphClassifier
from graphuq.errors import require
from graphuq.external.scanpy.annotation import annotate, check_threshold
from graphuq.external.scanpy.cell_graphs import CellGraphs
from graphuq.external.scanpy.cells import KnownTypes, annotated, known_types
from graphuq.models import LargestEvidence


def label_cells(
    adata: Any,
    labels_key: str,
    *,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    spatial_key: str | None = "auto",
    library_key: str | None = "auto",
    unlabelled: Sequence[Any] | None = None,
    key_added: str = "gq",
    min_probability: float = 0.5,
    classifier: GraphClassifier | None = None,
) -> GraphClassifier:
    """Infer the type of every cell from the cells whose type is known.

    Parameters
    ----------
    adata : anndata.AnnData
        It is changed in place. Also a MuData object, or a SpatialData object with one table.
    labels_key : str
        Column of ``obs`` with the known types.
    neighbors_key : str, optional
        Where ``scanpy.pp.neighbors`` stored its graph (its ``key_added``): the entry
        ``connectivities_key`` of ``uns[neighbors_key]`` names a matrix in ``obsp``. By default
        "neighbors".
    use_rep : str, optional
        "X" or an entry of ``obsm``, of which graphuq makes its own graph of nearest neighbours,
        instead of the stored graph. "rna:X_pca" is that of a modality.
    spatial_key : str or None, default "auto"
        Places of cells in a tissue, which are used beside expression: a graph in ``obsp``, such as
        that of ``squidpy.gr.spatial_neighbors``, or coordinates in ``obsm``, of which graphuq joins
        each cell to the 10 nearest. "auto": "spatial_connectivities" or else "spatial", if there is
        one. None: expression alone.
    library_key : str or None, default "auto"
        Column of ``obs`` with the slide of each cell. Cells of two slides are never neighbours in
        space. "auto": "library_id", or the region of a SpatialData table, if there is one. None:
        all places are in one system.
    unlabelled : sequence, optional
        Values of the column that mean an unknown type, besides missing ones. The first text
        that is not empty names cells whose type stays open. By default ``("", "Unknown")`` and
        such words as "unassigned" and "nan", which a warning names.
    key_added : str, default "gq"
        Start of the names of what is written.
    min_probability : float, default 0.5
        Smallest probability of the most probable type, in [0, 1]. Below it, the type is open.
    classifier : GraphClassifier, optional
        Settings of model and inference; by default those of `GraphClassifier`.

    Returns
    -------
    GraphClassifier
        Fitted; its ``result_`` has the posterior, ``trust`` and label checks. It writes

        - ``obs[key_added]`` : type, or ``"Unknown"`` below ``min_probability`` and without
          evidence;
        - ``obs`` columns ``_label`` (type without threshold), ``_probability`` and all others of
          docs/files.md, after ``key_added``; the type that was given is in ``_given``;
        - ``obs[key_added + "_novelty"]`` : share of known cells that are less uncertain when
          predicted from the other known cells: near 1 for a new type, or between types;
        - ``obsm[key_added + "_probabilities"]``, shape (N, K) : columns in the order of
          ``uns[key_added]["types"]``;
        - ``uns[key_added]`` : types, settings, hyperparameters and the verdict;
        - ``uns[key_added + "_colors"]`` and the like : colours of the types, those of
          ``labels_key`` if it has some.

    Raises
    ------
    InvalidInput
        If the column, the graph, the representation or the places are missing, graph and
        representation are both named, or fewer than two types are known.

    Examples
    --------
    >>> import numpy as np, pandas as pd, graphuq as gq
    >>> from types import SimpleNamespace
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> names = pd.Index([f"cell{k}" for k in range(200)])
    >>> few = np.where(np.arange(200) < 20, np.array(["B", "T"])[moons.classes], "Unknown")
    >>> cells = SimpleNamespace(obs=pd.DataFrame({"few": few}, index=names), obs_names=names,
    ...                         obsm={"X_pca": moons.features}, obsp={}, uns={})  # an AnnData
    >>> _ = gq.external.scanpy.label_cells(cells, "few", use_rep="X_pca")
    >>> cells.obs.columns.tolist()[:4]
    ['few', 'gq', 'gq_label', 'gq_probability']
    """
    check_threshold(min_probability)
    adata = annotated(adata)
    settings = GraphClassifier() if classifier is None else classifier
    graphs = CellGraphs(neighbors_key, use_rep, spatial_key, library_key)
    fitted, known, source = fit_cells(adata, labels_key, graphs, unlabelled, settings)
    annotate(
        adata,
        fitted,
        known,
        np.arange(len(known.values)),
        reference=adata,
        labels_key=labels_key,
        key_added=key_added,
        min_probability=min_probability,
        settings={"source": source},
    )
    return fitted


def fit_cells(
    adata: Any,
    labels_key: str,
    graphs: CellGraphs,
    unlabelled: Sequence[Any] | None,
    classifier: GraphClassifier | None,
) -> tuple[GraphClassifier, KnownTypes, str]:
    """Fit a classifier to the cells; return it, the known types, and where the graph is from.

    Without a classifier, that of `quick_classifier` is used, and of a tissue the default.

    Raises
    ------
    InvalidInput
        As for `label_cells`.
    """
    graphs.check()
    known = known_types(adata, labels_key, unlabelled)
    check_types(known, labels_key)
    graph, X, source = graphs.of(adata)
    if classifier is not None:
        settings = clone(classifier)
    else:
        in_tissue = isinstance(graph, Mapping)
        settings = GraphClassifier() if in_tissue else quick_classifier(known)
    settings.set_params(missing_label=None)
    if graph is not None:
        settings.set_params(graph=graph)
    return settings.fit(X, known.values), known, source


def quick_classifier(known: KnownTypes) -> GraphClassifier:
    """Return settings that answer in about a second, also with thousands of known types.

    Expectation propagation of a softmax likelihood, or of a probit for two types.
    """
    likelihood = "softmax" if len(known.categories) > 2 else "auto"
    model = LargestEvidence(likelihood=likelihood)
    return GraphClassifier(model=model, inference="expectation-propagation")


def check_types(known: KnownTypes, labels_key: str) -> None:
    """Raise `InvalidInput` unless two types are known."""
    require(
        len(known.categories) > 1,
        "labels_key",
        f"{labels_key!r} has the types {known.categories}",
        "label cells of two types or more; unlabelled= says which values mean no type",
    )
