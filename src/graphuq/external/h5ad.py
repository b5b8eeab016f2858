"""Files of annotated data, which need the package anndata."""

from pathlib import Path
from typing import Any

from graphuq.errors import StorageError
from graphuq.utils.files import atomic_write


def read_h5ad(path: Path) -> Any:
    """Read an AnnData object from a file.

    Raises
    ------
    StorageError
        If anndata is not installed, or the file cannot be read.
    """
    try:
        import anndata
    except ModuleNotFoundError:
        raise StorageError(
            f"'{path.name}' needs the package anndata; run pip install 'graphuq[anndata]'"
        ) from None
    try:
        return anndata.read_h5ad(path)
    except (OSError, ValueError, KeyError) as error:
        raise StorageError(f"'{path}' is not a readable h5ad file ({error})") from None


def write_h5ad(adata: Any, path: Path) -> None:
    """Write an AnnData object to a file, whole or not at all.

    Raises
    ------
    StorageError
        If the object holds something that the format cannot store.
    """
    with atomic_write(path) as temporary:
        try:
            adata.write_h5ad(temporary)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise StorageError(f"'{path}' cannot be written ({error})") from None
