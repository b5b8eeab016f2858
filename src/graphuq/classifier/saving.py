"""A fitted classifier as one NetCDF file."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.classifier.types import Groups
from graphuq.errors import StorageError
from graphuq.graphs import FeatureSpace, Graph
from graphuq.results.class_proportions import ClassThreshold
from graphuq.results.label_numbers import with_classes
from graphuq.results.loading import from_tree
from graphuq.results.storage import read_tree, to_tree, write_tree
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import reading
from graphuq.utils.serialization import class_named, from_plain, stored_name, to_plain

if TYPE_CHECKING:
    import xarray as xr

    from graphuq.classifier.classifier import GraphClassifier

NOT_STORED = ("progress",)  # parameters of one run of `fit`


def save_classifier(classifier: "GraphClassifier", path: str | Path, extra: Groups = None) -> None:
    """Write all that prediction needs to one file.

    Parameters
    ----------
    classifier : GraphClassifier
        A fitted classifier. Parameters that are numbers, text, arrays or model parts are stored.
    path : path
    extra : dict of str to xarray.Dataset, optional
        Further groups of arrays, by name.

    Raises
    ------
    StorageError
        If the file cannot be written, or a class of the user's own cannot be found again by name.
    """
    tree = tree_of_classifier(classifier)
    for name, dataset in (extra or {}).items():
        tree[name] = type(tree)(dataset)
    write_tree(tree, path)


def tree_of_classifier(classifier: "GraphClassifier") -> "xr.DataTree":
    """Return a fitted classifier as groups of arrays, from which `classifier_from` makes one."""
    require_extra("files")
    import xarray as xr

    tree = to_tree(with_classes(classifier.result_, classifier.classes_))
    space, threshold = classifier._feature_space, classifier._tuning
    stored = xr.Dataset() if space is None else space.to_dataset()
    stored.attrs |= {
        "class": stored_name(type(classifier), "classifier"),
        "classes": json.dumps(to_plain(classifier.classes_, "classes_")),
        "n_features": classifier.n_features_in_,
        "params": json.dumps(stored_params(classifier)),
        "model": json.dumps(to_plain(classifier.model_, "model_")),
        "withdrawn": json.dumps(classifier.withdrawn_.tolist()),
        "queried": json.dumps(classifier._queried.tolist()),
        "tuning": json.dumps(None if threshold is None else [part.tolist() for part in threshold]),
    }
    for name, array in classifier._more_to_store().items():
        stored[name] = array
    if hasattr(classifier, "feature_names_in_"):
        stored["feature_names"] = ("feature", classifier.feature_names_in_.astype(str))
    tree["classifier"] = xr.DataTree(stored)
    return tree


def load_classifier(kind: "type[GraphClassifier]", path: str | Path) -> "GraphClassifier":
    """Read the classifier that `save_classifier` wrote, of the given class or one derived from it.

    Raises
    ------
    StorageError
        If the file is missing, truncated, without such a classifier, or of another version.
    """
    return classifier_from(kind, read_tree(path), path)


def classifier_from(
    kind: "type[GraphClassifier]", tree: "xr.DataTree", path: str | Path
) -> "GraphClassifier":
    """Return the classifier of the groups of a file."""
    if "classifier" not in tree.children:
        raise StorageError(f"'{path}' holds a result but no classifier; use graphuq.load")
    with reading(path, "classifier"):
        stored = tree["classifier"].to_dataset()
        found = class_named(str(stored.attrs["class"]))
        if not issubclass(found, kind):
            raise StorageError(f"'{path}' holds no {kind.__name__}; use graphuq.load")
        space = FeatureSpace.from_dataset(stored) if "local_scales" in stored else None
        known = set(found._get_param_names())
        params = {k: v for k, v in params_from(stored).items() if k in known}
        if space is None:
            params.setdefault("graph", "precomputed")
        classifier: GraphClassifier = found(**params)
        classifier.classes_ = np.asarray(from_plain(json.loads(stored.attrs["classes"])))
        classifier.result_ = with_classes(from_tree(tree, path), classifier.classes_)
        classifier.model_ = from_plain(json.loads(stored.attrs["model"]))
        describe_features(classifier, stored, space)
        classifier.withdrawn_ = np.array(json.loads(stored.attrs["withdrawn"]), np.int64)
        classifier._queried = np.array(json.loads(stored.attrs["queried"]), np.int64)
        threshold = json.loads(stored.attrs["tuning"])
        classifier._tuning = (
            None if threshold is None else ClassThreshold(*map(np.array, threshold))
        )
        classifier._describe()
        classifier._take_stored(stored)
        return classifier


def describe_features(estimator: Any, stored: "xr.Dataset", space: FeatureSpace | None) -> None:
    """Set what an estimator knows of its features: their number, their names and the space."""
    estimator.n_features_in_ = int(stored.attrs["n_features"])
    if "feature_names" in stored:
        estimator.feature_names_in_ = stored["feature_names"].to_numpy().astype(object)
    estimator._feature_space = space


def stored_params(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator as plain data, without a graph or a generator.

    Raises
    ------
    StorageError
        If a part of the user's own cannot be found again by its name.
    """
    stored = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in NOT_STORED or isinstance(value, Graph):
            continue
        try:
            stored[name] = to_plain(value, name)
        except StorageError:
            if dataclasses.is_dataclass(value):  # a part, without which it would be another model
                raise
    return stored


def params_from(stored: "xr.Dataset") -> dict[str, Any]:
    """Return the parameters that `stored_params` made plain."""
    plain = json.loads(stored.attrs["params"])
    return {name: from_plain(value) for name, value in plain.items()}
