"""Packages beside the core, each installed by an extra and imported when it is first needed."""

from importlib.util import find_spec

from graphuq.errors import MissingPackage

EXTRAS = {
    "anndata": ("anndata",),
    "arviz": ("arviz", "xarray", "h5netcdf", "h5py"),
    "cli": (
        *("typer", "rich", "pyarrow", "pandas", "xarray", "h5netcdf", "h5py"),
        *("matplotlib", "jinja2"),
    ),
    "dask": ("dask", "distributed", "faiss", "pyarrow", "xarray", "h5netcdf", "h5py"),
    "datasets": ("pooch",),
    "files": ("xarray", "h5netcdf", "h5py"),
    "jax": ("jax", "equinox"),
    "jupyter": ("anywidget",),
    "label": ("starlette", "uvicorn", "jinja2", "pandas", "PIL"),
    "mcp": ("mcp",),
    "neighbors": ("faiss",),
    "networks": ("networkx",),
    "parquet": ("pandas", "pyarrow"),
    "plots": ("matplotlib",),
    "progress": ("rich",),
    "raster": ("rasterio", "jinja2", "matplotlib", "pandas", "PIL", "pyarrow"),
    "report": ("jinja2", "matplotlib", "pandas", "PIL"),
    "store": ("faiss", "pyarrow", "xarray", "h5netcdf", "h5py"),
    "tables": ("pandas",),
}
"""Names by which the packages of each extra are imported."""

DISTRIBUTIONS = {"faiss": "faiss-cpu", "PIL": "pillow"}
"""Names by which packages are installed, where they differ."""


def require_extra(extra: str) -> None:
    """Require that the packages of an extra are installed; none is imported.

    Call it where a feature begins, before the packages are imported.

    Parameters
    ----------
    extra : str
        Name of the extra, one of `EXTRAS`.

    Raises
    ------
    MissingPackage
        If a package is not installed. The message has the command that installs the extra.
    """
    for name in EXTRAS[extra]:
        if not _is_installed(name):
            raise MissingPackage(DISTRIBUTIONS.get(name, name), extra)


def has_extra(extra: str) -> bool:
    """Return whether the packages of an extra are installed."""
    return all(map(_is_installed, EXTRAS[extra]))


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # a finder refuses it, or it is blocked in `sys.modules`
        return False
