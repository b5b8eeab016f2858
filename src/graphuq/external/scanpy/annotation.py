"""What is written into an AnnData object: columns of ``obs``, probabilities, settings, colours."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int
from scipy.special import entr

from graphuq.classifier.classifier import GraphClassifier
from graphuq.errors import require
from graphuq.external.scanpy.cells import KnownTypes
from graphuq.external.scanpy.novelty import novelty
from graphuq.results.uncertainty import margin, rank_by_uncertainty
from graphuq.utils.checks import require_number
from graphuq.utils.extras import require_extra
from graphuq.utils.version import __version__

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN_COLOR = "#c8c8c8"


def check_threshold(min_probability: float) -> None:
    """Raise `InvalidInput` unless the threshold is a probability."""
    require_number("min_probability", min_probability, 0.0)
    require(
        min_probability <= 1, "min_probability", f"{min_probability}", "use a number from 0 to 1"
    )


def annotate(
    adata: Any,
    classifier: GraphClassifier,
    known: KnownTypes,
    rows: Int[np.ndarray, " M"],
    *,
    reference: Any,
    labels_key: str,
    key_added: str,
    min_probability: float,
    settings: dict[str, Any],
) -> None:
    """Write the numbers of some nodes of a fitted classifier into an AnnData object.

    Parameters
    ----------
    adata : anndata.AnnData
        M cells.
    classifier : GraphClassifier
        Fitted to texts.
    known : KnownTypes
        Types of all nodes of the classifier.
    rows : numpy.ndarray of int, shape (M,)
        Node of each cell.
    reference : anndata.AnnData
        The object with the column ``labels_key``.
    labels_key, key_added : str
    min_probability : float
    settings : dict
        Further entries of ``uns[key_added]``, which h5ad files can store.
    """
    result = classifier.result_
    unseen = classifier.unseen_class_probability_[rows]
    names = [str(name) for name in classifier.classes_]
    probabilities = classifier.label_distributions_[rows] * (1 - unseen[:, None])
    labels = np.array(classifier.transduction_[rows], dtype=object)
    chosen = np.array([names.index(str(label)) for label in labels])
    probability = probabilities[np.arange(len(rows)), chosen]
    is_open = (probability < min_probability) | ~result.has_evidence[rows]
    label_mean = result.label_mean[rows]
    rank = np.empty(len(rows), dtype=np.int64)
    rank[rank_by_uncertainty(label_mean)] = np.arange(1, len(rows) + 1)
    every = np.column_stack([probabilities, unseen])
    with_open = list(dict.fromkeys([*known.categories, known.unknown]))
    columns = {
        "": _categorical(np.where(is_open, known.unknown, labels), with_open),
        "_label": _categorical(labels, known.categories),
        "_probability": probability,
        "_entropy": entr(every).sum(axis=1),
        "_margin": margin(label_mean),
        "_rank": rank,
        "_has_evidence": result.has_evidence[rows],
        "_novelty": novelty(result)[rows],
        "_labelled": np.array([known.values[row] is not None for row in rows]),
    }
    for suffix, values in columns.items():
        adata.obs[key_added + suffix] = values
    order = [names.index(name) for name in known.categories]
    adata.obsm[f"{key_added}_probabilities"] = probabilities[:, order]
    adata.uns[key_added] = {
        "labels_key": labels_key,
        "types": np.array(known.categories, dtype=object),
        "min_probability": float(min_probability),
        "unknown": known.unknown,
        "n_labelled": sum(value is not None for value in known.values),
        "n_unknown": int(is_open.sum()),
        **settings,
        **_model(classifier),
    }
    _write_colors(adata, key_added, known, reference, labels_key)


def _model(classifier: GraphClassifier) -> dict[str, Any]:
    """Return model and verdict in a form that h5ad files can store."""
    result = classifier.result_
    numbers = {
        name: float(value)
        for name, value in result.hyperparameters.items()
        if np.ndim(value) == 0 and value is not None
    }
    return {
        "prior": " ".join(repr(result.posterior.prior).split()),
        "likelihood": " ".join(repr(result.posterior.likelihood).split()),
        "inference": result.diagnostics.verdict,
        "hyperparameters": numbers,
        "verdict": result.trust.level,
        "verdict_reasons": "\n".join(result.trust.reasons),
        "graphuq_version": __version__,
    }


def _categorical(values: np.ndarray, categories: list[str]) -> "pd.Categorical":
    """Return a categorical column; a category that does not occur stays, for its colour."""
    require_extra("tables")
    import pandas as pd

    return pd.Categorical(values.astype(object), categories=np.array(categories, dtype=object))


def _write_colors(
    adata: Any, key_added: str, known: KnownTypes, reference: Any, labels_key: str
) -> None:
    """Give the new columns the colours of the column with the known types.

    If that is in the same object and has none, it gets some, so that all plots agree.
    """
    from matplotlib.colors import to_hex

    from graphuq.plots import class_colors

    palette = class_colors(max(1, len(known.categories)))
    color = {name: to_hex(palette(k)) for k, name in enumerate(known.categories)}
    column, stored = reference.obs[labels_key], reference.uns.get(f"{labels_key}_colors")
    names = [str(name) for name in column.cat.categories] if hasattr(column, "cat") else []
    if stored is not None and len(stored) == len(names):
        color |= dict(zip(names, map(str, stored), strict=True))
    elif names and stored is None and reference is adata:
        own = [color.get(name, UNKNOWN_COLOR) for name in names]
        adata.uns[f"{labels_key}_colors"] = np.array(own, dtype=object)
    ordered = [color[name] for name in known.categories]
    adata.uns[f"{key_added}_label_colors"] = np.array(ordered, dtype=object)
    adata.uns[f"{key_added}_colors"] = np.array([*ordered, UNKNOWN_COLOR], dtype=object)
