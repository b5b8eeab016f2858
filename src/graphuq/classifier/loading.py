"""What estimators and `Result` saved, read from a file of any kind."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.multilabel.classifier import MultilabelClassifier
from graphuq.classifier.multilabel.saving import is_of_tags, tags_from
from graphuq.classifier.regressor.regressor import GraphRegressor
from graphuq.classifier.regressor.saving import regressor_from
from graphuq.classifier.saving import classifier_from
from graphuq.errors import GraphuqWarning, InvalidInput, require
from graphuq.results.loading import from_tree
from graphuq.results.result import Result
from graphuq.results.storage import read_tree
from graphuq.utils.gate import reading
from graphuq.utils.user_warnings import warn_user

if TYPE_CHECKING:
    import xarray as xr


def load(
    path: str | Path, parts: Sequence[str] = ()
) -> GraphClassifier | GraphRegressor | MultilabelClassifier | Result:
    """Read what an estimator or `Result` saved, and return it.

    A class of the user's own, such as a prior, or a classifier derived from one of these, is found
    by its module and its name. No file can make this function import a module: import it first, or
    name it in ``parts``.

    Parameters
    ----------
    path : path
    parts : sequence of str, optional
        Names of modules with classes of your own, which are imported first.

    Returns
    -------
    GraphClassifier, AnnotatorClassifier, MultilabelClassifier, GraphRegressor or Result
        The class that was saved. An estimator predicts without a new fit. It has the parameters of
        the one that was saved. Callbacks, ``checkpoint``, and objects that a file cannot hold (a
        graph, a random generator) have their defaults.

    Raises
    ------
    StorageError
        If the file is missing, truncated, not written by graphuq, or of another version; if a
        class of the user's own cannot be found, or its module is not imported.
    InvalidInput
        If a module in ``parts`` cannot be imported.

    Warns
    -----
    GraphuqWarning
        If the command line transformed the features, which new rows then need as well.
    """
    _import(parts)
    tree = read_tree(path)
    if is_of_tags(tree):
        _warn_of_preprocessing(tree, path)
        return tags_from(MultilabelClassifier, tree, path)
    if "regressor" in tree.children:
        _warn_of_preprocessing(tree, path)
        with reading(path, "regressor"):
            return regressor_from(GraphRegressor, tree)
    if "classifier" not in tree.children:
        return from_tree(tree, path)
    _warn_of_preprocessing(tree, path)
    return classifier_from(GraphClassifier, tree, path)


def _import(parts: Sequence[str]) -> None:
    """Import modules of the user."""
    require(not isinstance(parts, str), "parts", f"{parts!r}", "give a list of names of modules")
    for name in parts:
        try:
            importlib.import_module(name)
        except Exception as error:  # a module of the user may raise anything
            raise InvalidInput(
                "parts",
                f"{name!r} cannot be imported ({type(error).__name__}: {error})",
                "put its folder on PYTHONPATH, and give its name without .py",
            ) from error


def _warn_of_preprocessing(tree: "xr.DataTree", path: str | Path) -> None:
    """Warn if the command line transformed the features of the fit."""
    if "table_encoder" in tree.children and "preprocessing" not in tree.children:
        warn_user(
            f"the features of '{path}' are those of a table encoder; encode new rows by "
            "TableEncoder.load(path).transform(table), or use the command `graphuq predict`",
            GraphuqWarning,
        )
    if "preprocessing" in tree.children:
        warn_user(
            f"'{path}' was written by the command line, which transformed the features; transform "
            "new rows in the same way, or use the command `graphuq predict`; graphuq.results.load "
            "reads the result alone",
            GraphuqWarning,
        )
