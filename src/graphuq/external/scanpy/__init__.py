"""Cell types for AnnData objects, as a tool in the way of scanpy.

Functions take an ``anndata.AnnData`` object and write into it. Neither anndata nor scanpy is
imported: an object is used by its attributes ``obs``, ``obsm``, ``obsp`` and ``uns``.
"""

from graphuq.external.scanpy.label_cells import label_cells
from graphuq.external.scanpy.per_cluster import per_cluster
from graphuq.external.scanpy.per_patch import per_patch
from graphuq.external.scanpy.suggest_cells import suggest_cells
from graphuq.external.scanpy.transfer import transfer

__all__ = ["label_cells", "per_cluster", "per_patch", "suggest_cells", "transfer"]
