"""The page of ``graphuq label`` for what was read."""

from typing import TYPE_CHECKING, Any

from scipy import sparse

import graphuq
from graphuq.cli.columns import without_missing
from graphuq.cli.preprocessing import fit_preprocessing
from graphuq.cli.tags import tags_of_texts
from graphuq.errors import require
from graphuq.graphs import Graph
from graphuq.labelling.features import default_classifier

if TYPE_CHECKING:
    from graphuq.labelling.server import LabellingPage


def open_page(
    source: Any,
    settings: dict[str, Any],
    preprocessing: tuple[str, int | None],
    order: bool | list[str],
    missing: list[str] | None,
    tags: bool,
    **options: Any,
) -> "LabellingPage":
    """Return the page of what was read, which is served.

    Parameters
    ----------
    source : Source
    settings : dict
        Parameters of `GraphClassifier` that were given.
    preprocessing : tuple of str and int or None
        Scaling, and number of principal components.
    order : bool or list of str
        As the parameter ``ordered`` of `graphuq.label`.
    missing : list of str or None
        Texts of labels that mean none.
    tags : bool
        Whether an item may have several classes.
    **options
        Others of `graphuq.label`.
    """
    X, (scaling, pca) = source.features, preprocessing
    scaled = scaling != "none" or pca is not None
    if source.is_graph:
        of_graph = [name for name in settings if name != "model"]
        _refuse(bool(of_graph) or scaled, "options of a graph", "the graph of the file")
    if isinstance(X, Graph):
        settings, X = {**settings, "graph": X}, None
    elif X is None or sparse.issparse(X):
        _refuse(scaled, "--scaling or --pca", "words, pixels or a sparse matrix")
    elif (mapping := fit_preprocessing(X, scaling, pca)) is not None:
        X = mapping(X)
    if source.is_graph and X is not None:
        settings = {**settings, "graph": "precomputed"}
    classifier = default_classifier(order).set_params(**settings)
    known = source.labels
    if known is not None:
        known = without_missing(known, missing).astype(object)
        known = tags_of_texts(known[:, None], ["label"]) if tags else known
    return graphuq.label(X, source.items, y=known, tags=tags, classifier=classifier, **options)


def _refuse(is_given: bool, what: str, beside: str) -> None:
    require(not is_given, what, f"given beside {beside}", "leave them out")
