"""A result from its file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from graphuq.results.diagnostics import diagnostics_from
from graphuq.results.result import Result
from graphuq.results.storage import STORED, answer_from, checked_nodes, posterior_from, read_tree
from graphuq.utils.gate import reading
from graphuq.utils.serialization import from_plain

if TYPE_CHECKING:
    import xarray as xr


def load(path: str | Path) -> Result:
    """Read the result in a file of `Result.save` or `GraphClassifier.save`.

    Raises
    ------
    StorageError
        If the file is missing, truncated, not a result, or of another version.
    """
    return from_tree(read_tree(path), path)


def from_tree(tree: "xr.DataTree", path: str | Path) -> Result:
    """Return the result in a tree that was read from ``path``.

    Raises
    ------
    StorageError
        If the tree is incomplete, or a class of the user's own cannot be found.
    """
    groups = {name: child.to_dataset() for name, child in tree.children.items()}
    attributes = {str(name): value for name, value in tree.attrs.items()}
    with reading(path, "result"):
        posterior = posterior_from(groups, attributes)
        arrays = checked_nodes(groups["nodes"], STORED, posterior)
        arrays["has_evidence"] = arrays["has_evidence"].astype(bool)
        return Result(
            **arrays,
            posterior=posterior,
            answer=answer_from(groups, posterior),
            diagnostics=diagnostics_from(json.loads(attributes["diagnostics"])),
            settings=json.loads(attributes["settings"]),
            classes=from_plain(json.loads(attributes.get("classes", "null"))),
        )
