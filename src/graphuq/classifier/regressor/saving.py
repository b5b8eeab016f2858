"""A fitted regressor as one NetCDF file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphuq.classifier.saving import describe_features, params_from, stored_params
from graphuq.classifier.types import Groups
from graphuq.errors import StorageError
from graphuq.evidence.weighed import Weighed
from graphuq.graphs import FeatureSpace
from graphuq.models.numbers import DEVIATIONS
from graphuq.priors import Prior
from graphuq.results.storage import read_tree, write_tree
from graphuq.spectrum import Basis
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import reading
from graphuq.utils.serialization import from_json, to_json

if TYPE_CHECKING:
    import xarray as xr

    from graphuq.classifier.regressor.regressor import GraphRegressor


def save_regressor(regressor: "GraphRegressor", path: str | Path, extra: Groups = None) -> None:
    """Write all that prediction needs to one file.

    Parameters
    ----------
    regressor : GraphRegressor
        A fitted regressor.
    path : path
    extra : dict of str to xarray.Dataset, optional
        Further groups of arrays, by name.

    Raises
    ------
    StorageError
        If the file cannot be written, or a class of the user's own cannot be found again by name.
    """
    require_extra("files")
    import xarray as xr

    posterior, space = regressor.posterior_, regressor._feature_space
    engine = posterior.engine
    stored = xr.Dataset() if space is None else space.to_dataset()
    stored.attrs |= {
        "n_features": regressor.n_features_in_,
        "params": json.dumps(stored_params(regressor)),
        "prior": to_json(engine.prior, "prior"),
        "field_std": engine.field_std,
        "noise_std": engine.noise_std,
        "linear_std": engine.linear_std,
        "location": posterior.location,
        "spread": posterior.spread,
    }
    if hasattr(regressor, "feature_names_in_"):
        stored["feature_names"] = ("feature", regressor.feature_names_in_.astype(str))
    if regressor.exposure_ is not None:
        stored["exposure"] = ("row", regressor.exposure_)
    given = {name: ("labelled_node", values) for name, values in posterior.stored_arrays().items()}
    names, values, shares = posterior.weighed
    weighed = {"value": (("choice", "hyperparameter"), values), "weight": ("choice", shares)}
    groups = {"regressor": stored, "spectrum": engine.spectrum.to_dataset()}
    groups |= {"given": xr.Dataset(given)} | (extra or {})
    groups["weighed"] = xr.Dataset(weighed, attrs={"names": json.dumps(names)})
    write_tree(xr.DataTree.from_dict(groups), path)


def load_regressor(kind: "type[GraphRegressor]", path: str | Path) -> "GraphRegressor":
    """Read the regressor that `save_regressor` wrote, as an instance of the given class.

    Raises
    ------
    StorageError
        If the file is missing, truncated, without a regressor, or of another version.
    """
    tree = read_tree(path)
    if "regressor" not in tree.children:
        raise StorageError(f"'{path}' holds no regressor; use graphuq.load")
    with reading(path, "regressor"):
        return regressor_from(kind, tree)


def regressor_from(kind: "type[GraphRegressor]", tree: "xr.DataTree") -> "GraphRegressor":
    """Return the regressor of the groups of a file; its posterior is computed again."""
    stored, given = tree["regressor"].to_dataset(), tree["given"].to_dataset()
    known = set(kind._get_param_names())
    params = {name: value for name, value in params_from(stored).items() if name in known}
    space = FeatureSpace.from_dataset(stored) if "local_scales" in stored else None
    if space is None:
        params.setdefault("graph", "precomputed")
    regressor = kind(**params)
    describe_features(regressor, stored, space)
    regressor.exposure_ = np.asarray(stored["exposure"]) if "exposure" in stored else None
    attrs = stored.attrs
    settings = {name: float(attrs[name]) for name in DEVIATIONS}
    regressor._describe(
        regressor.get_model().posterior_kind.restored(
            Basis.from_dataset(tree["spectrum"].to_dataset()),
            from_json(attrs["prior"], Prior),
            settings,
            {str(name): np.asarray(values) for name, values in given.items()},
            _weighed_from(tree["weighed"].to_dataset()),
            float(attrs["location"]),
            float(attrs["spread"]),
        )
    )
    return regressor


def _weighed_from(stored: "xr.Dataset") -> Weighed:
    """Return the hyperparameters over which answers are averaged."""
    names = tuple(json.loads(stored.attrs["names"]))
    return Weighed(names, np.asarray(stored["value"]), np.asarray(stored["weight"]))
