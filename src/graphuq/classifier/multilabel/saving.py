"""A fit of several tags as one NetCDF file, in which what tags share is written once."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.saving import classifier_from, stored_params, tree_of_classifier
from graphuq.classifier.types import Groups
from graphuq.results.storage import write_tree
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import reading
from graphuq.utils.serialization import from_plain, to_plain

if TYPE_CHECKING:
    import xarray as xr

    from graphuq.classifier.multilabel.classifier import MultilabelClassifier

NAME = "tag_{}"  # of the group of a tag, by its number


def save_tags(classifier: "MultilabelClassifier", path: str | Path, extra: Groups = None) -> None:
    """Write all that prediction needs; see `MultilabelClassifier.save`."""
    require_extra("files")
    import xarray as xr

    tree = xr.DataTree()
    for name, dataset in (extra or {}).items():
        tree[name] = xr.DataTree(dataset)
    known: dict[str, list[tuple[str, xr.DataArray]]] = {}  # arrays that are written, and where
    for t, one in enumerate(classifier.estimators_):
        own, node = tree_of_classifier(one), xr.DataTree()
        places: dict[str, dict[str, str]] = {}
        node.attrs |= own.attrs
        for name, child in own.children.items():
            group, place = child.to_dataset(), f"{NAME.format(t)}/{name}"
            places[name] = _places(group, place, known)
            shared = [array for array, at in places[name].items() if at != place]
            node[name] = xr.DataTree(group.drop_vars(shared))
        node.attrs["places"] = json.dumps(places)
        tree[NAME.format(t)] = node
    tree.attrs["tags"] = json.dumps(to_plain(classifier.classes_, "classes_"))
    own_params = None if classifier.estimator is None else stored_params(classifier.estimator)
    tree.attrs["estimator"] = json.dumps(own_params)
    write_tree(tree, path)


def _places(group: Any, place: str, known: dict[str, list[tuple[str, Any]]]) -> dict[str, str]:
    """Return, in order, the group in which each array is written; note those that are new."""
    found = {}
    for name, array in group.data_vars.items():
        same = [at for at, first in known.get(name, ()) if array.identical(first)]
        found[name] = same[0] if same else place
        if not same:
            known.setdefault(name, []).append((place, array))
    return found


def is_of_tags(tree: "xr.DataTree") -> bool:
    """Return whether a file holds a fit of several tags."""
    return "tags" in tree.attrs


def tags_from(
    kind: "type[MultilabelClassifier]", tree: "xr.DataTree", path: str | Path
) -> "MultilabelClassifier":
    """Return the classifier of tags in a tree that was read from ``path``.

    Raises
    ------
    StorageError
        If the tree is incomplete.
    """
    import xarray as xr

    with reading(path, "tags"):
        names = np.asarray(from_plain(json.loads(tree.attrs["tags"])))
        own = json.loads(tree.attrs["estimator"])
        given = None
        if own is not None:
            given = GraphClassifier(**{name: from_plain(value) for name, value in own.items()})
        fits: list[Any] = []
        for t in range(len(names)):
            node = tree[NAME.format(t)]
            whole: Any = node.copy()
            for name, places in json.loads(node.attrs["places"]).items():
                arrays = {array: tree[place][array] for array, place in places.items()}
                whole[name] = xr.DataTree(xr.Dataset(arrays, attrs=node[name].attrs))
            fits.append(classifier_from(GraphClassifier, whole, path))
        classifier = kind(given)
        classifier.classes_, classifier.estimators_ = names, fits
        classifier._describe()
        return classifier
