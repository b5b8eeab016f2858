"""NetCDF files: written whole, read with suspicion; and parts of a model as plain data."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
import xarray as xr
from scipy import sparse

import graphuq.graphs
from graphuq.distributions import Distribution
from graphuq.errors import StorageError
from graphuq.graphs import FeatureSpace
from graphuq.inference import GaussianApproximation, Point
from graphuq.inference.draws import Draws
from graphuq.spectrum import CovarianceColumns, ProductBasis, Spectrum
from graphuq.utils.files import atomic_write

FORMAT = 1
HYPERPARAMETER = "hyperparameter_"  # before the name of its variable


def version() -> str:
    """Version of the installed graphuq."""
    from importlib.metadata import version as installed

    return installed("graphuq")


def write_tree(tree: xr.DataTree, path: str | Path) -> None:
    """Write groups of arrays to one NetCDF file, whole or not at all.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    tree.attrs |= {"graphuq_format": FORMAT, "graphuq_version": version()}
    # In memory first: HDF5 crashes the process at exit when the disk fills up beneath it.
    content = tree.to_netcdf(engine="h5netcdf")
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def read_tree(path: str | Path) -> xr.DataTree:
    """Read a file of `write_tree` into memory.

    Raises
    ------
    StorageError
        If it is missing, truncated, of something else, or of another format.
    """
    if not Path(path).is_file():
        raise StorageError(f"there is no file '{path}'")
    try:
        with open(path, "rb") as handle, xr.open_datatree(handle, engine="h5netcdf") as file:
            tree = file.load()
    except Exception as error:  # HDF5 raises what it likes on a damaged file
        raise StorageError(
            f"'{path}' is not a readable result ({type(error).__name__}); it may be truncated"
        ) from None
    found = tree.attrs.get("graphuq_format")
    if found is None:
        raise StorageError(f"'{path}' was not written by graphuq")
    if int(found) != FORMAT:
        raise StorageError(
            f"'{path}' has format {int(found)} (graphuq {tree.attrs.get('graphuq_version')}), "
            f"this graphuq reads format {FORMAT}; run the fit again"
        )
    return tree


def part_to_json(part: Any) -> str:
    """A prior, likelihood or weight function as JSON: its class name and its fields."""
    fields = {field.name: _plain(getattr(part, field.name)) for field in dataclasses.fields(part)}
    return json.dumps({"class": type(part).__name__, **fields})


def _plain(value: Any) -> Any:
    if isinstance(value, Distribution):
        return {"distribution": value.name, "parameters": value.parameters}
    return value.tolist() if isinstance(value, np.ndarray) else value


def _from_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return Distribution(value["distribution"], tuple(value["parameters"]))
    return np.array(value) if isinstance(value, list) else value


def part_from_json(text: str, module: Any) -> Any:
    """The part that `part_to_json` wrote, from the module that exports its class."""
    fields = json.loads(text)
    name = fields.pop("class")
    if name not in module.__all__:
        raise StorageError(f"unknown part {name!r}: the file is of another version of graphuq")
    return getattr(module, name)(**{key: _from_plain(value) for key, value in fields.items()})


def arrays_of(part: eqx.Module, prefix: str) -> xr.Dataset:
    """The array fields of a module as variables, each with dimensions of its own."""
    variables = {
        field.name: xr.DataArray(
            value, dims=[f"{prefix}_{field.name}_{axis}" for axis in range(value.ndim)]
        )
        for field in dataclasses.fields(part)
        for value in [np.asarray(getattr(part, field.name), dtype=np.float64)]
    }
    return xr.Dataset(variables, attrs={"class": type(part).__name__})


def arrays_to(dataset: xr.Dataset, classes: tuple[type, ...]) -> Any:
    """The module that `arrays_of` took apart."""
    (kind,) = (c for c in classes if c.__name__ == dataset.attrs["class"])
    values = {name: array.to_numpy() for name, array in dataset.items()}
    return kind(**{str(k): float(v) if v.ndim == 0 else v for k, v in values.items()})


def basis_group(basis: Spectrum | CovarianceColumns) -> xr.Dataset:
    """Return the arrays and attributes of a spectrum, or of covariance columns without a graph."""
    arrays: dict[str, Any] = {
        name: ("node", getattr(basis, name)) for name in ("components", "degrees", "node_scale")
    }
    attrs: dict[str, Any] = {"settings": json.dumps(dict(basis.settings))}
    if isinstance(basis, CovarianceColumns):
        arrays["columns"] = ("node", "column"), basis.columns
        arrays["labelled"] = "labelled_node", basis.labelled
        return xr.Dataset(arrays, attrs=attrs | {"beta": basis.beta, "shift": basis.shift})
    arrays |= {name: ("pair", getattr(basis, name)) for name in ("eigenvalues", "residuals")}
    tail = np.nan if basis.tail_eigenvalue is None else basis.tail_eigenvalue
    arrays |= basis_to_arrays(basis.eigenvectors)
    return xr.Dataset(arrays, attrs=attrs | {"tail": tail})


def basis_from_group(dataset: xr.Dataset) -> Spectrum | CovarianceColumns:
    """Return what `basis_group` stored."""
    names = ("components", "degrees", "node_scale")
    shared: dict[str, Any] = {name: dataset[name].to_numpy() for name in names}
    shared["settings"] = json.loads(dataset.attrs["settings"])
    if "columns" in dataset:
        return CovarianceColumns(
            columns=dataset["columns"].to_numpy(),
            labelled=dataset["labelled"].to_numpy(),
            beta=float(dataset.attrs["beta"]),
            shift=float(dataset.attrs["shift"]),
            **shared,
        )
    tail = float(dataset.attrs["tail"])
    return Spectrum(
        eigenvalues=dataset["eigenvalues"].to_numpy(),
        eigenvectors=basis_from(dataset),
        residuals=dataset["residuals"].to_numpy(),
        tail_eigenvalue=None if np.isnan(tail) else tail,
        **shared,
    )


def basis_to_arrays(basis: np.ndarray | ProductBasis) -> dict[str, Any]:
    """Eigenvectors as variables: the array, or what makes those of a grid."""
    if isinstance(basis, ProductBasis):
        return {
            "waves": (("pair", "axis"), basis.waves),
            "sizes": ("axis", np.array(basis.sizes)),
            "periodic": ("axis", np.array(basis.periodic)),
        }
    return {"eigenvectors": (("node", "pair"), basis)}


def basis_from(dataset: xr.Dataset) -> np.ndarray | ProductBasis:
    """What `basis_to_arrays` took apart."""
    if "waves" in dataset:
        sizes, periodic = dataset["sizes"].to_numpy().tolist(), dataset["periodic"].to_numpy()
        return ProductBasis(sizes, periodic.tolist(), dataset["waves"].to_numpy())
    return dataset["eigenvectors"].to_numpy()


def space_to_arrays(space: FeatureSpace | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables and attributes of a feature space; features that are sparse stay so."""
    if space is None:
        return {}, {}
    arrays: dict[str, Any] = {"local_scales": ("node", space.local_scales)}
    if sparse.issparse(space.features):
        stored = sparse.csr_array(space.features)
        arrays |= {
            "feature_values": ("entry", stored.data),
            "feature_columns": ("entry", stored.indices),
            "feature_rows": ("row_end", stored.indptr),
        }
    else:
        arrays["features"] = (("node", "feature"), space.features)
    if space.neighbors is not None:
        arrays["neighbors"] = (("node", "neighbor"), space.neighbors)
    return arrays, {
        "weight": part_to_json(space.weight),
        "n_neighbors": space.n_neighbors,
        "complete": int(space.complete),
        "radius": -1.0 if space.radius is None else space.radius,
        "width": space.features.shape[1],
    }


def space_from(stored: xr.Dataset) -> FeatureSpace | None:
    """What `space_to_arrays` took apart."""
    if "local_scales" not in stored:
        return None
    if "features" in stored:
        features: Any = stored["features"].to_numpy()
    else:
        names = ("feature_values", "feature_columns", "feature_rows")
        shape = (stored.sizes["node"], int(stored.attrs["width"]))
        features = sparse.csr_array(tuple(stored[name].to_numpy() for name in names), shape=shape)
    radius = float(stored.attrs.get("radius", -1.0))
    return FeatureSpace(
        features=features,
        weight=part_from_json(stored.attrs["weight"], graphuq.graphs),
        local_scales=stored["local_scales"].to_numpy(),
        n_neighbors=int(stored.attrs["n_neighbors"]),
        complete=bool(stored.attrs["complete"]),
        radius=None if radius < 0 else radius,
        neighbors=stored["neighbors"].to_numpy() if "neighbors" in stored else None,
    )


def draws_groups(draws: Draws, latent: dict[str, np.ndarray]) -> dict[str, xr.Dataset]:
    """Draws as ArviZ has them; ``latent`` holds u at monitored nodes under names ``u[node]``."""
    posterior: dict[str, Any] = {"white": (("chain", "draw", "coordinate"), draws.white)}
    coordinates = {}
    if latent:
        posterior["u"] = (("chain", "draw", "monitored_node"), np.stack([*latent.values()], -1))
        places = [name[2:-1].split(",") for name in latent]
        coordinates["monitored_node"] = [int(place[0]) for place in places]
        if len(places[0]) > 1:
            posterior["monitored_class"] = ("monitored_node", [int(place[1]) for place in places])
    for name, values in draws.hyperparameters.items():
        axes = ["chain", "draw", f"{name}_index"][: values.ndim]
        posterior[HYPERPARAMETER + name] = (axes, values)
    stats: dict[str, Any] = {
        "log_likelihood": (("chain", "draw"), draws.log_likelihood),
        "acceptance_rate": (("chain", "draw"), draws.acceptance),
    }
    if draws.tail_std is not None:
        stats["tail_std"] = (("chain", "draw", "class")[: draws.tail_std.ndim], draws.tail_std)
    reference = {}
    if draws.reference is not None:
        stats["log_ratio"] = (("chain", "draw"), draws.log_ratio)
        reference = {"reference": gaussian_group(draws.reference)}
    return {
        **reference,
        "posterior": xr.Dataset(posterior, coords=coordinates),
        "sample_stats": xr.Dataset(
            stats,
            attrs={
                "step_size": draws.step_size,
                "n_warmup": draws.n_warmup,
                "thin": draws.thin,
                "stopped_by": draws.stopped_by,
                "seconds": draws.seconds,
            },
        ),
    }


def gaussian_group(gaussian: GaussianApproximation) -> xr.Dataset:
    """A Gaussian answer as arrays and attributes."""
    axes = ("labelled_node", "class")[: gaussian.labelled_mean.ndim]
    return xr.Dataset(
        {
            "white_mean": ("seen", gaussian.white_mean),
            "white_covariance": (("seen", "seen_again"), gaussian.white_covariance),
            "labelled_mean": (axes, gaussian.labelled_mean),
            "labelled_variance": (axes, gaussian.labelled_variance),
            "labelled_label_mean": (axes, gaussian.labelled_label_mean),
        },
        attrs={
            "log_evidence": gaussian.log_evidence,
            "n_iterations": gaussian.n_iterations,
            "seconds": gaussian.seconds,
            "description": gaussian.description,
        },
    )


def point_group(point: Point) -> xr.Dataset:
    """A point as arrays and attributes."""
    values = point._asdict()
    arrays = {"seen": ("seen", values.pop("seen")), "labelled": ("node", values.pop("labelled"))}
    return xr.Dataset(arrays, attrs=values)


def answer_from(tree: xr.DataTree) -> Draws | GaussianApproximation | Point:
    """The answer that `draws_groups`, `gaussian_group` or `point_group` took apart."""
    if "point" in tree.children:
        group = tree["point"].to_dataset()
        return Point(
            seen=group["seen"].to_numpy(),
            labelled=group["labelled"].to_numpy(),
            objective=float(group.attrs["objective"]),
            n_iterations=int(group.attrs["n_iterations"]),
            seconds=float(group.attrs["seconds"]),
            description=str(group.attrs["description"]),
        )
    if "gaussian" in tree.children:
        return _gaussian_from(tree["gaussian"].to_dataset())
    reference = None
    if "reference" in tree.children:
        reference = _gaussian_from(tree["reference"].to_dataset())
    stats = tree["sample_stats"]
    return Draws(
        white=tree["posterior"]["white"].to_numpy(),
        log_likelihood=stats["log_likelihood"].to_numpy(),
        acceptance=stats["acceptance_rate"].to_numpy(),
        step_size=float(stats.attrs["step_size"]),
        n_warmup=int(stats.attrs["n_warmup"]),
        thin=int(stats.attrs["thin"]),
        stopped_by=str(stats.attrs["stopped_by"]),
        seconds=float(stats.attrs["seconds"]),
        reference=reference,
        log_ratio=None if reference is None else stats["log_ratio"].to_numpy(),
        hyperparameters={
            str(name).removeprefix(HYPERPARAMETER): values.to_numpy()
            for name, values in tree["posterior"].data_vars.items()
            if str(name).startswith(HYPERPARAMETER)
        },
        tail_std=stats["tail_std"].to_numpy() if "tail_std" in stats else None,
    )


def _gaussian_from(group: xr.Dataset) -> GaussianApproximation:
    return GaussianApproximation(
        **{str(name): array.to_numpy() for name, array in group.items()},
        log_evidence=float(group.attrs["log_evidence"]),
        n_iterations=int(group.attrs["n_iterations"]),
        seconds=float(group.attrs["seconds"]),
        description=str(group.attrs["description"]),
    )
