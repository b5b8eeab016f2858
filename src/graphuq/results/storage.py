"""NetCDF files: the groups of a result, written whole and checked when they are read.

Every class stores itself (``to_dataset``, ``to_datasets``, or `graphuq.utils.serialization` for
priors and likelihoods). This module only assembles the tree of groups.
"""

import contextlib
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.errors import StorageError
from graphuq.inference import GaussianApproximation, GaussianMixture, Point
from graphuq.inference.draws import Draws
from graphuq.likelihoods import Likelihood
from graphuq.posterior.experts import Expert
from graphuq.posterior.field import (
    ClassField,
    CoefficientField,
    LowRankField,
    TailField,
)
from graphuq.posterior.posterior import Posterior
from graphuq.priors import Prior
from graphuq.spectrum import Basis, CovarianceColumns, SpectralBasis
from graphuq.utils.checks import is_integer
from graphuq.utils.extras import require_extra
from graphuq.utils.files import atomic_write
from graphuq.utils.gate import reading, require_file
from graphuq.utils.output_folder import newest
from graphuq.utils.serialization import from_json, to_json, to_plain
from graphuq.utils.version import __version__

if TYPE_CHECKING:
    import xarray as xr

    from graphuq.results.result import Result

FORMAT = 2  # raised when older versions can no longer read the files
MARK = b"\ngraphuq sha256 "  # before the checksum at the end of a file
END = len(MARK) + 64
ROUNDING = 1e-6  # of a stored probability
FIELDS = {kind.__name__: kind for kind in (CoefficientField, LowRankField, TailField)}
EXPERT = "expert_"  # prefix of the name under which an expert's withheld answers are stored
STORED = ("probabilities", "mcse", "latent_mean", "latent_std", "has_evidence")
Answer = Draws | GaussianApproximation | GaussianMixture | Point


def version() -> str:
    """Return the version of graphuq."""
    return __version__


def write_tree(tree: "xr.DataTree", path: str | Path) -> None:
    """Write groups of arrays to one NetCDF file, whole or not at all.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    tree.attrs |= {"graphuq_format": FORMAT, "graphuq_version": version()}
    # In memory first: HDF5 crashes the process at exit when the disk fills up during a write.
    with _on_this_machine():
        content = tree.to_netcdf(engine="h5netcdf")
    # Released even if the disk is full: Python 3.13 complains of a view that outlives its buffer.
    with content, atomic_write(path) as temporary, open(temporary, "wb") as file:
        file.write(content)
        file.write(MARK + hashlib.sha256(content).hexdigest().encode())


def _on_this_machine() -> Any:
    """Return a context in which xarray asks no cluster of Dask for a lock of what is in memory."""
    dask: Any = sys.modules.get("dask")
    return contextlib.nullcontext() if dask is None else dask.config.set(scheduler="synchronous")


def to_tree(result: "Result") -> "xr.DataTree":
    """Return a result as groups of arrays, from which `from_tree` makes an equal one.

    Raises
    ------
    StorageError
        If the class of a prior or likelihood cannot be found again by its name.
    """
    attributes = posterior_attributes(result.posterior) | {
        "classes": json.dumps(to_plain(result.classes, "classes")),
        "diagnostics": json.dumps(result.diagnostics.to_plain()),
        "settings": json.dumps(dict(result.settings)),
    }
    groups = {
        **result.answer.to_datasets(),
        **node_groups({name: getattr(result, name) for name in STORED}),
        **posterior_groups(result.posterior),
    }
    return tree_of(groups, attributes)


def tree_of(groups: "Mapping[str, xr.Dataset]", attributes: Mapping[str, Any]) -> "xr.DataTree":
    """Return groups of arrays as a tree with attributes."""
    require_extra("files")
    import xarray as xr

    tree = xr.DataTree.from_dict(dict(groups))
    tree.attrs |= dict(attributes)
    return tree


def read_tree(path: str | Path) -> "xr.DataTree":
    """Read into memory a file that `write_tree` wrote.

    Raises
    ------
    StorageError
        If the file is missing, truncated, not written by graphuq, or of another format.
    """
    require_extra("files")
    import xarray as xr

    path = require_file(newest(path))
    with reading(path, "result"):
        _check_sum(path)
        with open(path, "rb") as handle, xr.open_datatree(handle, engine="h5netcdf") as file:
            # `DataTree.load` leaves a variable unread that has the name of another group.
            groups = {group.path: group.to_dataset(inherit=False).load() for group in file.subtree}
            tree = xr.DataTree.from_dict(groups)
    found = tree.attrs.get("graphuq_format")
    if found is None:
        raise StorageError(f"'{path}' was not written by graphuq")
    if not is_integer(found) or int(found) != FORMAT:
        raise StorageError(
            f"'{path}' has format {found} (graphuq {tree.attrs.get('graphuq_version')}), "
            f"this graphuq reads format {FORMAT}; run the fit again"
        )
    return tree


def _check_sum(path: Path) -> None:
    """Refuse a file that does not end with its checksum, which readers of NetCDF ignore.

    Raises
    ------
    StorageError
        If there is no checksum.
    ValueError
        If the checksum is not that of the file.
    """
    left, digest = path.stat().st_size - END, hashlib.sha256()
    with open(path, "rb") as file:
        while left > 0 and (part := file.read(min(left, 1 << 24))):
            digest.update(part)
            left -= len(part)
        end = file.read(END)
    if not end.startswith(MARK):
        raise StorageError(
            f"'{path}' was not written by graphuq, or is truncated: it does not end with a checksum"
        )
    if end != MARK + digest.hexdigest().encode():
        raise ValueError("its checksum is wrong: it was changed since it was written")


def checked_nodes(
    nodes: "xr.Dataset", names: Sequence[str], posterior: Posterior
) -> dict[str, np.ndarray]:
    """Return the arrays of nodes, whose sizes and values are possible.

    Raises
    ------
    ValueError
        If they are not.
    """
    arrays = {name: nodes[name].to_numpy() for name in names}
    p, wanted = arrays["probabilities"], (posterior.spectrum.n_nodes, posterior.n_classes)
    for name, values in arrays.items():
        if values.shape[:1] != (posterior.spectrum.n_nodes,) or values.dtype.kind not in "fiub":
            raise ValueError(f"{name} has shape {values.shape}")
    if not p.shape == arrays["mcse"].shape == wanted:
        raise ValueError(f"probabilities of shape {p.shape} instead of {wanted}")
    if not (np.isfinite(p).all() and p.min() >= -ROUNDING and p.max() <= 1 + ROUNDING):
        raise ValueError("probabilities that are not within 0 and 1")
    return arrays


def posterior_groups(posterior: Posterior) -> "dict[str, xr.Dataset]":
    """Return the spectrum, the field and the labels of a posterior."""
    return {
        "spectrum": posterior.spectrum.to_dataset(),
        "field": posterior.field.one_class.to_dataset(),
        **label_groups(posterior),
    }


def label_groups(posterior: Posterior) -> "dict[str, xr.Dataset]":
    """Return the labels and their nodes, in the groups in which ArviZ expects them."""
    require_extra("files")
    import xarray as xr

    observed = xr.Dataset({"label": ("labelled_node", posterior.labels)})
    constant = xr.Dataset({"labelled": ("labelled_node", posterior.labelled)})
    if posterior.label_weights is not None:
        constant["label_weights"] = ("labelled_node", posterior.label_weights)
    if posterior.prior_mean is not None:
        at = "node" if isinstance(posterior.prior_mean, np.ndarray) else ()
        constant["prior_mean"] = (at, posterior.prior_mean)
    for k, expert in enumerate(posterior.experts):
        constant[f"{EXPERT}{k}"] = (("labelled_node", "class"), expert.withheld)
        constant[f"{EXPERT}{k}"].attrs["name"] = expert.name
    return {"observed_data": observed, "constant_data": constant}


def posterior_attributes(posterior: Posterior) -> dict[str, Any]:
    """Return the prior and the likelihood as JSON, and the flags of a posterior.

    Raises
    ------
    StorageError
        If the class of a part cannot be found again by its name, or a field cannot be written.
    """
    return {
        "prior": to_json(posterior.prior, "prior"),
        "likelihood": to_json(posterior.likelihood.unshifted, "likelihood"),
        "per_class": int(posterior.per_class),
        "label_design": posterior.label_design,
        "sharpness": posterior.sharpness,
        "chosen_by_evidence": json.dumps(dict(posterior.chosen_by_evidence)),
    }


def posterior_from(groups: "Mapping[str, xr.Dataset]", attributes: Mapping[str, Any]) -> Posterior:
    """Return the posterior from its groups and attributes."""
    posterior = Posterior(
        _basis_from(groups["spectrum"]),
        from_json(attributes["prior"], Prior),
        from_json(attributes["likelihood"], Likelihood),
        groups["constant_data"]["labelled"].to_numpy(),
        groups["observed_data"]["label"].to_numpy(),
        per_class=bool(attributes["per_class"]),
        label_design=attributes["label_design"],
        sharpness=float(attributes["sharpness"]),
        chosen_by_evidence=json.loads(attributes["chosen_by_evidence"]),
        label_weights=groups["constant_data"].get("label_weights"),
        prior_mean=groups["constant_data"].get("prior_mean"),
        experts=_experts_from(groups["constant_data"]),
    )
    # The draws are in the coordinates of the stored field. Linear algebra on another machine may
    # find rotated coordinates, so the field is not computed again.
    posterior.__dict__["field"] = _field_from(groups["field"], posterior)
    return posterior


def _experts_from(stored: "xr.Dataset") -> tuple[Expert, ...]:
    """Return the experts in the order in which they were stored."""
    n_experts = sum(str(name).startswith(EXPERT) for name in stored)
    arrays = [stored[f"{EXPERT}{k}"] for k in range(n_experts)]
    return tuple(Expert(str(array.attrs["name"]), array.to_numpy()) for array in arrays)


def _field_from(stored: "xr.Dataset", posterior: Posterior) -> Any:
    """Return a field as it was stored, one for each class."""
    field: Any = FIELDS[stored.attrs["class"]].from_dataset(stored)
    return ClassField(field, posterior.n_fields) if posterior.likelihood.is_multiclass else field


def _basis_from(stored: "xr.Dataset") -> SpectralBasis | CovarianceColumns:
    if "columns" in stored:
        return CovarianceColumns.from_dataset(stored)
    values = stored["eigenvalues"].to_numpy()
    shape = stored["eigenvectors"].shape if "eigenvectors" in stored else (None, *values.shape)
    if shape[1:] != values.shape or not np.isfinite(values).all():
        raise ValueError(f"eigenvalues of shape {values.shape} do not fit, or are not finite")
    basis = Basis.from_dataset(stored)
    return basis if basis.blocks else basis.spectrum


def answer_from(groups: "Mapping[str, xr.Dataset]", posterior: Posterior) -> Answer:
    """Return what the sampler or the approximation found, from its groups."""
    if "mixture" in groups:
        return GaussianMixture.from_datasets(groups, lambda stored: _field_from(stored, posterior))
    if "point" in groups:
        return Point.from_datasets(groups)
    if "gaussian" in groups:
        return GaussianApproximation.from_datasets(groups)
    return Draws.from_datasets(groups)


def node_groups(arrays: Mapping[str, np.ndarray]) -> "dict[str, xr.Dataset]":
    """Return arrays of shape (N,) or (N, K) as one group named ``nodes``."""
    require_extra("files")
    import xarray as xr

    stored = {name: (("node", "class")[: a.ndim], a) for name, a in arrays.items()}
    return {"nodes": xr.Dataset(stored)}
