"""Scaling and principal components: the affine map from columns to features of the graph."""

import dataclasses
import json
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.linalg import eigh
from sklearn.decomposition import PCA

from graphuq.classifier.table_encoder import TableEncoder
from graphuq.classifier.table_encoder.encoder import GROUP
from graphuq.cli.tables import Table
from graphuq.errors import InvalidInput, require
from graphuq.graphs.features import row_blocks
from graphuq.graphs.inputs import Features
from graphuq.spectrum.solve import fix_signs

WIDE = 3_000  # columns above which principal components are found without a covariance matrix


@dataclasses.dataclass(frozen=True, eq=False)
class Preprocessing:
    """The map ``(x − shift) @ matrix``, which scales columns and projects on components.

    Parameters
    ----------
    shift : numpy.ndarray, shape (d,)
        Means of the columns.
    matrix : numpy.ndarray, shape (d, k)
        Scaling to unit standard deviation, times principal components.
    """

    shift: Float[np.ndarray, " d"]
    matrix: Float[np.ndarray, "d k"]

    def __call__(self, features: Float[np.ndarray, "N d"]) -> Float[np.ndarray, "N k"]:
        """Apply the map to rows, a block at a time, in the precision of the features.

        Raises
        ------
        InvalidInput
            If the number of columns is not that of the fit.
        """
        require(
            features.shape[1] == len(self.shift),
            "file",
            f"{features.shape[1]} feature columns",
            f"give the {len(self.shift)} columns of the fit; name the others with --drop",
        )
        mapped = np.empty((len(features), self.matrix.shape[1]), features.dtype)
        matrix, shift = self.matrix.astype(features.dtype), _as_rows(self.shift, features)
        for part in row_blocks(*features.shape):
            mapped[part] = (features[part] - shift).astype(features.dtype, copy=False) @ matrix
        return mapped

    def to_dataset(self) -> xr.Dataset:
        """Return the arrays of the map, to be stored."""
        return xr.Dataset(
            {"shift": ("column", self.shift), "matrix": (("column", "k"), self.matrix)}
        )

    @classmethod
    def from_dataset(cls, dataset: xr.Dataset) -> "Preprocessing":
        """Return the map with stored arrays."""
        return cls(dataset["shift"].to_numpy(), dataset["matrix"].to_numpy())


def fit_preprocessing(
    features: Float[np.ndarray, "N d"], scaling: str, n_components: int | None
) -> Preprocessing | None:
    """Return the map for some features, or None to use the features unchanged.

    Parameters
    ----------
    features : numpy.ndarray, shape (N, d)
    scaling : {"none", "standard"}
        "standard": divide each column by its standard deviation.
    n_components : int or None
        Number of principal components, of the scaled columns if they are scaled.

    Raises
    ------
    InvalidInput
        If an option is unknown or out of range.
    """
    if scaling not in ("none", "standard"):
        raise InvalidInput("--scaling", f"{scaling!r} is unknown", "use none or standard")
    n_rows, width = features.shape
    if n_components is not None and not 1 <= n_components <= min(n_rows, width):
        raise InvalidInput("--pca", f"{n_components} components", f"use 1 to {min(n_rows, width)}")
    if scaling == "none" and n_components is None:
        return None
    if n_components is not None and width > WIDE and scaling == "none":
        pca = PCA(n_components, svd_solver="randomized", random_state=0).fit(features)
        return Preprocessing(pca.mean_.astype(np.float64), pca.components_.T.astype(np.float64))
    shift, covariance = _moments(features, n_components is not None)
    matrix = np.eye(width)
    if scaling == "standard":
        deviation = np.sqrt(np.diagonal(covariance))
        matrix = np.diag(1 / np.where(deviation > 0, deviation, 1.0))
    if n_components is not None:
        _, vectors = eigh(
            matrix @ covariance @ matrix, subset_by_index=(width - n_components, width - 1)
        )
        fix_signs(vectors)
        matrix = matrix @ vectors[:, ::-1]
    return Preprocessing(shift, matrix)


def preprocess(
    table: Table, graph: str, scaling: str, pca: int | None
) -> tuple[Features, dict[str, xr.Dataset]]:
    """Return scaled and projected features, and what prepares new rows in the same way.

    Returns
    -------
    features : numpy.ndarray, shape (N, k), or scipy.sparse.csr_array
    groups : dict of str to xarray.Dataset
        Groups of a stored model, which `restored` reads.
    """
    features, encoder = table.features, table.encoder
    names = {"name": ("column", np.array(table.feature_names, str))}
    groups = {"columns": xr.Dataset(names, attrs={"table": json.dumps(dict(table.settings))})}
    if encoder is not None:  # it scales columns itself
        scaling = "none"
        groups |= encoder.to_groups()
    preprocessing = None if graph == "precomputed" else fit_preprocessing(features, scaling, pca)
    if preprocessing is None:
        return features, groups
    return preprocessing(features), groups | {"preprocessing": preprocessing.to_dataset()}


class Restored(NamedTuple):
    """How new rows are prepared for a stored model."""

    columns: list[str]
    encoder: TableEncoder | None
    preprocessing: Preprocessing | None


def restored(tree: xr.DataTree) -> Restored:
    """Return what `preprocess` stored."""
    columns, encoder, preprocessing = [], None, None
    if "columns" in tree.children:
        columns = tree["columns"]["name"].to_numpy().tolist()
    if GROUP in tree.children:
        encoder = TableEncoder.from_tree(tree)
    if "preprocessing" in tree.children:
        preprocessing = Preprocessing.from_dataset(tree["preprocessing"].to_dataset())
    return Restored(columns, encoder, preprocessing)


def _moments(
    features: Float[np.ndarray, "N d"], full: bool
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
    """Return the mean and the covariance of rows, or only the diagonal of the covariance.

    Rows are read a block at a time. Products of a block have the precision of the features, and
    their sum is in double. They are taken about the mean of the first block, against cancellation.
    """
    n_rows, width = features.shape
    parts = list(row_blocks(n_rows, width))
    about = _as_rows(features[parts[0]].mean(axis=0, dtype=np.float64), features)
    total, products = np.zeros(width), np.zeros((width, width) if full else width)
    for part in parts:
        rows = (features[part] - about).astype(features.dtype, copy=False)
        total += rows.sum(axis=0, dtype=np.float64)
        products += rows.T @ rows if full else (rows**2).sum(axis=0)
    mean = total / n_rows
    if full:
        return about + mean, products / n_rows - np.outer(mean, mean)
    return about + mean, np.diag(products / n_rows - mean**2)


def _as_rows(values: Float[np.ndarray, " d"], features: Float[np.ndarray, "N d"]) -> np.ndarray:
    """Return numbers in the precision of the features, if that is a floating-point type.

    A difference in single precision is made at once, without a block in double precision.
    """
    return values.astype(features.dtype) if features.dtype.kind == "f" else values
