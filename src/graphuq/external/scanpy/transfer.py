"""Types of the cells of one data set from those of another."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from graphuq.classifier.classifier import GraphClassifier
from graphuq.errors import require
from graphuq.external.scanpy.annotation import annotate, check_threshold
from graphuq.external.scanpy.cells import (
    annotated,
    in_memory,
    known_types,
    representation,
)
from graphuq.external.scanpy.label_cells import check_types, quick_classifier
from graphuq.utils.checks import require_integer

N_COMPONENTS = 50  # principal components of shared genes


def transfer(
    reference: Any,
    query: Any,
    labels_key: str,
    *,
    use_rep: str | None = None,
    unlabelled: Sequence[Any] | None = None,
    key_added: str = "gq",
    min_probability: float = 0.5,
    max_per_type: int = 200,
    classifier: GraphClassifier | None = None,
    rng: int | np.random.Generator = 0,
) -> GraphClassifier:
    """Infer the types of cells of a query from those of a reference, with uncertainty.

    One graph joins the cells of both, so that cells of the query inform each other. It cannot
    undo differences between batches: for data of other laboratories or chemistries, use a
    representation that was integrated.

    Parameters
    ----------
    reference : anndata.AnnData
        Cells with known types; it is not changed.
    query : anndata.AnnData
        Cells without; it receives what `label_cells` writes.
    labels_key : str
        Column of ``reference.obs`` with the types.
    use_rep : str, optional
        Entry of ``obsm`` of both, in the same space, such as "X_scVI". By default up to 50
        principal components of the genes that both have: those of ``X`` of the reference, which
        should be normalised and logarithmic in both.
    unlabelled, key_added, min_probability
        As for `label_cells`.
    max_per_type : int, default 200
        Number of known types that are used, for each type, at most: a random choice. The
        other cells of the reference are in the graph without their types.
    classifier : GraphClassifier, optional
        Settings; by default expectation propagation, since with many known types sampling
        takes minutes and gains little.
    rng : int or numpy.random.Generator, default 0
        Chooses the cells of ``max_per_type``.

    Returns
    -------
    GraphClassifier
        Fitted to the cells of the reference, followed by those of the query.

    Raises
    ------
    InvalidInput
        If a column or representation is missing, the two differ in width, or they share fewer
        than two genes.
    """
    check_threshold(min_probability)
    require_integer("max_per_type", max_per_type, 1)
    reference, query = annotated(reference, "reference"), annotated(query, "query")
    known = known_types(reference, labels_key, unlabelled, "reference")
    check_types(known, labels_key)
    X, source = _joint_features(reference, query, use_rep)
    n_reference, n_query = len(known.values), len(query.obs_names)
    y = np.full(n_reference + n_query, None, dtype=object)
    rng = np.random.default_rng(rng)
    for name in known.categories:
        rows = np.flatnonzero(known.values == name)
        rows = rng.permutation(rows)[:max_per_type]
        y[rows] = name
    settings = quick_classifier(known) if classifier is None else clone(classifier)
    fitted = settings.set_params(missing_label=None).fit(X, y)
    annotate(
        query,
        fitted,
        known._replace(values=y),
        np.arange(n_reference, n_reference + n_query),
        reference=reference,
        labels_key=labels_key,
        key_added=key_added,
        min_probability=min_probability,
        settings={"source": source, "n_reference": n_reference, "max_per_type": max_per_type},
    )
    return fitted


def _joint_features(reference: Any, query: Any, use_rep: str | None) -> tuple[Any, str]:
    """Return features of the reference's cells and then the query's, and what they are."""
    if use_rep is None:
        return _principal_components(reference, query)
    parts = [
        representation(adata, use_rep, name)
        for adata, name in ((reference, "reference"), (query, "query"))
    ]
    widths = [part.shape[1] for part in parts]
    require(
        widths[0] == widths[1],
        "use_rep",
        f"{use_rep!r} has {widths[0]} columns in reference and {widths[1]} in query",
        "give a representation of both in one space, or None for components of shared genes",
    )
    stack = sparse.vstack if any(map(sparse.issparse, parts)) else np.vstack
    return stack(parts), f"nearest neighbours in {use_rep}"


def _principal_components(reference: Any, query: Any) -> tuple[np.ndarray, str]:
    """Return principal components of the reference's shared genes, for the cells of both."""
    from sklearn.decomposition import PCA

    genes = reference.var_names.intersection(query.var_names)
    require(
        len(genes) > 1,
        "query",
        f"{len(genes)} genes in common with reference",
        "use the same kind of gene names in var_names, or pass use_rep",
    )
    both = (reference, query)
    parts = [in_memory(adata.X)[:, adata.var_names.get_indexer(genes)] for adata in both]
    n_components = min(N_COMPONENTS, len(genes) - 1, parts[0].shape[0] - 1)
    projection = PCA(n_components, svd_solver="arpack", random_state=0).fit(parts[0])
    components = np.vstack([projection.transform(part) for part in parts])
    return components, f"{n_components} principal components of {len(genes)} shared genes"
