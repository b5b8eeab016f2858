"""Cells of an H5AD file: what ``graphuq classify`` reads of them, and writes back."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphuq.classifier.classifier import GraphClassifier
from graphuq.cli.columns import check_column, refuse_given
from graphuq.cli.tables import Table, check_ids
from graphuq.errors import require
from graphuq.external.h5ad import read_h5ad, write_h5ad
from graphuq.external.scanpy.annotation import annotate
from graphuq.external.scanpy.cells import (
    UNLABELLED,
    KnownTypes,
    cell_graph,
    known_types,
    representation,
)
from graphuq.external.scanpy.places import warn_of_unused_places
from graphuq.utils.checks import text_array

KEY = "gq"
GRAPH_OPTIONS = ("scaling", "pca", "n_neighbors", "weights", "metric")
ENCODING_OPTIONS = ("encode", "impute", "kind", "missing_value")
MIN_PROBABILITY = 0.5


def read_cells(
    path: Path,
    options: Mapping[str, Any],
    neighbors_key: str | None,
    use_rep: str | None,
) -> tuple[Table, Any]:
    """Read the graph, or the features, and the known types of the cells of a file.

    Parameters
    ----------
    path : path
    options : dict
        Columns and options of the graph, as they were given: ``label_column``,
        ``truth_column`` and others that may have no meaning here.
    neighbors_key, use_rep : str, optional
        As for `graphuq.external.scanpy.label_cells`.

    Returns
    -------
    Table
        Weights of the stored graph or, with ``use_rep``, features.
    anndata.AnnData

    Raises
    ------
    InvalidInput, StorageError
        If the file cannot be read, a part is missing, or an option has no meaning.
    """
    unused = [
        "id_column",
        "annotator_columns",
        "drop",
        "read",
        *ENCODING_OPTIONS,
        *(GRAPH_OPTIONS if use_rep is None else ()),
    ]
    refuse_given({name: options[name] for name in unused}, "the graph of the cells"
                 if use_rep is None else "an H5AD file", "leave it out, or name features of the "
                 "cells with --use-rep")  # fmt: skip
    require(
        neighbors_key is None or use_rep is None,
        "--use-rep",
        f"{use_rep!r} beside --neighbors-key",
        "give one of the two",
    )
    adata = read_h5ad(path)
    warn_of_unused_places(adata, "graphuq classify")
    ids = text_array(adata.obs_names, "obs_names")
    check_ids(ids, "obs_names")
    columns = {}
    for name in ("label_column", "truth_column"):
        if options[name] is not None:
            check_column(options[name], [str(column) for column in adata.obs.columns])
            values = known_types(adata, options[name], UNLABELLED).values
            texts = ("" if value is None else value for value in values)
            columns[name] = text_array(texts, f"obs[{options[name]!r}]")
    if use_rep is None:
        features, names = cell_graph(adata, neighbors_key).weights, []
    else:
        features = representation(adata, use_rep)
        names = [f"{use_rep}_{k}" for k in range(features.shape[1])]
    return (
        Table(features, ids, columns.get("label_column"), columns.get("truth_column"), names),
        adata,
    )


def write_cells(
    adata: Any, classifier: GraphClassifier, given: np.ndarray, label_column: str | None, path: Path
) -> None:
    """Write the cells with what `graphuq.external.scanpy.label_cells` adds, under "gq".

    Parameters
    ----------
    adata : anndata.AnnData
    classifier : GraphClassifier
        As `fit_and_write` returns it, fitted to codes of classes.
    given : numpy.ndarray of str, shape (N,)
        Known types, empty where unknown; stored as ``obs["gq_given"]`` if they come from a file
        of their own.
    label_column : str or None
    path : path

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    classifier = copy.copy(classifier)
    classifier.transduction_ = classifier.classes_[classifier.transduction_.astype(int)]
    if label_column is None:
        label_column = f"{KEY}_given"
        adata.obs[label_column] = given.astype(object)
    order = known_types(adata, label_column, UNLABELLED).categories
    values = np.array([str(value) or None for value in given], dtype=object)
    categories = [name for name in order if name in set(given.tolist())]
    annotate(
        adata,
        classifier,
        KnownTypes(values, categories, "Unknown"),
        np.arange(len(values)),
        reference=adata,
        labels_key=label_column,
        key_added=KEY,
        min_probability=MIN_PROBABILITY,
        settings={"source": "graphuq classify"},
    )
    write_h5ad(adata, path)
