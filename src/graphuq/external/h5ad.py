"""Files of annotated data, which need the package anndata."""

from pathlib import Path
from typing import Any

from graphuq.errors import StorageError
from graphuq.utils.extras import require_extra
from graphuq.utils.files import atomic_write
from graphuq.utils.gate import reading, require_file, require_sound_hdf5


def read_h5ad(path: Path) -> Any:
    """Read an AnnData object from a file.

    Raises
    ------
    StorageError
        If the file cannot be read.
    MissingPackage
        If the extra ``graphuq[anndata]`` is not installed.
    """
    require_extra("anndata")
    import anndata

    require_file(path)
    require_sound_hdf5(path)
    with reading(path, "h5ad file"):
        return anndata.read_h5ad(path)


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
