"""What is written into an AnnData object: columns of ``obs``, probabilities, settings, colours."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from graphuq.classifier.answers import columns_of_fit
from graphuq.classifier.classifier import GraphClassifier
from graphuq.errors import require
from graphuq.external.scanpy.cells import KnownTypes
from graphuq.external.scanpy.novelty import novelty
from graphuq.results.table import ranks
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
    columns = table_of_cells(classifier, known, rows)
    label = columns["label"]
    is_known = np.isin(label, known.categories)
    is_open = (columns["probability"] < min_probability) | ~columns["has_evidence"] | ~is_known
    types = list(dict.fromkeys([*known.categories, *label[~is_known], known.unknown]))
    adata.obs[key_added] = categorical(np.where(is_open, known.unknown, label), types)
    for name, values in columns.items():
        if name != "id":
            written = categorical(values, types) if name in ("label", "given") else values
            adata.obs[column_name(key_added, name)] = written
    adata.obs[f"{key_added}_novelty"] = novelty(result)[rows]
    adata.obsm[f"{key_added}_probabilities"] = np.column_stack(
        [columns[f"probability_{name}"] for name in known.categories]
    )
    colors = _colors_of_types(adata, known, reference, labels_key)
    adata.uns[key_added] = {
        "labels_key": labels_key,
        "types": np.array(known.categories, dtype=object),
        "type_colors": np.array([colors[name] for name in known.categories], dtype=object),
        "min_probability": float(min_probability),
        "unknown": known.unknown,
        "n_labelled": sum(value is not None for value in known.values),
        "n_unknown": int(is_open.sum()),
        **settings,
        **_model(classifier),
    }
    for key in (key_added, f"{key_added}_label"):
        write_colors(adata, key, colors)


def column_name(key_added: str, name: str) -> str:
    """Return the name in ``obs`` of a column of the table; H5AD files cannot hold a slash."""
    return f"{key_added}_{name}".replace("/", "_")


def table_of_cells(
    classifier: GraphClassifier, known: KnownTypes, rows: Int[np.ndarray, " M"]
) -> dict[str, np.ndarray]:
    """Return the table of some nodes, with their ranks among each other and their types as text."""
    columns = {name: v[rows] for name, v in columns_of_fit(classifier, None, known.values).items()}
    label = np.array([str(name) for name in columns["label"]], dtype=object)
    return columns | {"rank": ranks(columns["margin"]), "label": label}


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


def categorical(values: np.ndarray, order: list[str]) -> "pd.Categorical":
    """Return a categorical column of the categories that occur, which scanpy's tools expect."""
    require_extra("tables")
    import pandas as pd

    present = set(values[values != np.array(None)].tolist())
    categories = [name for name in order if name in present]
    return pd.Categorical(values.astype(object), categories=np.array(categories, dtype=object))


def write_colors(adata: Any, key: str, colors: dict[str, str]) -> None:
    """Write the colours of a categorical column, where plots of scanpy expect them."""
    names = adata.obs[key].cat.categories
    found = [colors.get(str(name), UNKNOWN_COLOR) for name in names]
    adata.uns[f"{key}_colors"] = np.array(found, dtype=object)


def _colors_of_types(
    adata: Any, known: KnownTypes, reference: Any, labels_key: str
) -> dict[str, str]:
    """Return the colours of the column with the known types.

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
        write_colors(adata, labels_key, color)
    return color
