"""A fitted classifier ⇄ one NetCDF file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from graphuq.errors import StorageError
from graphuq.results.class_proportions import ClassThreshold
from graphuq.results.loading import result_from_tree
from graphuq.results.storage import read_tree, space_from, space_to_arrays, write_tree


def save_classifier(
    classifier: Any, path: str | Path, extra: dict[str, xr.Dataset] | None = None
) -> None:
    """Write all that prediction needs.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    tree = classifier.result_.to_tree()
    for name, dataset in (extra or {}).items():
        tree[name] = xr.DataTree(dataset)
    tuning = classifier._tuning
    attrs = {
        "classes": json.dumps(classifier.classes_.tolist()),
        "n_features": classifier.n_features_in_,
        "graph": classifier.graph,
        "metric": json.dumps(classifier.metric),
        "out_of_sample": classifier.out_of_sample,
        "tuning": json.dumps(None if tuning is None else [part.tolist() for part in tuning]),
    }
    arrays, of_space = space_to_arrays(classifier._feature_space)
    tree["classifier"] = xr.DataTree(xr.Dataset(arrays, attrs=attrs | of_space))
    write_tree(tree, path)


def load_classifier(kind: Any, path: str | Path) -> Any:
    """Read what `save_classifier` wrote, into a classifier of this class.

    Raises
    ------
    StorageError
        If the file is missing, truncated, without a classifier, or of another version.
    """
    tree = read_tree(path)
    if "classifier" not in tree.children:
        raise StorageError(f"'{path}' holds a result but no classifier; use graphuq.load")
    stored = tree["classifier"].to_dataset()
    classifier = kind(
        graph=stored.attrs["graph"],
        metric=json.loads(stored.attrs.get("metric", "null")),
        out_of_sample=stored.attrs.get("out_of_sample", "mean"),
    )
    classifier.result_ = result_from_tree(tree, path)
    classifier.classes_ = np.array(json.loads(stored.attrs["classes"]))
    classifier.n_features_in_ = int(stored.attrs["n_features"])
    classifier._feature_space = space_from(stored)
    tuning = json.loads(stored.attrs.get("tuning", "null"))
    classifier._tuning = None if tuning is None else ClassThreshold(*map(np.array, tuning))
    return classifier
