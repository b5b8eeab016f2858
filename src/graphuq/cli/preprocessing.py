"""The affine map from the columns of a file to the features of the graph."""

import dataclasses

import numpy as np
import xarray as xr
from jaxtyping import Float
from sklearn.decomposition import PCA

from graphuq.errors import InvalidInput, require


@dataclasses.dataclass(frozen=True, eq=False)
class Preprocessing:
    """``(x − shift) @ matrix``: scaling to unit deviation and principal components, if any."""

    shift: Float[np.ndarray, " d"]
    matrix: Float[np.ndarray, "d k"]

    def __call__(self, features: Float[np.ndarray, "N d"]) -> Float[np.ndarray, "N k"]:
        """Apply the map."""
        require(
            features.shape[1] == len(self.shift),
            "file",
            f"{features.shape[1]} feature columns",
            f"the fit had {len(self.shift)}",
        )
        return (features - self.shift) @ self.matrix

    def to_dataset(self) -> xr.Dataset:
        """As arrays, to be stored."""
        return xr.Dataset(
            {"shift": ("column", self.shift), "matrix": (("column", "k"), self.matrix)}
        )

    @classmethod
    def from_dataset(cls, dataset: xr.Dataset) -> "Preprocessing":
        """From stored arrays."""
        return cls(dataset["shift"].to_numpy(), dataset["matrix"].to_numpy())


def fit_preprocessing(
    features: Float[np.ndarray, "N d"], scaling: str, n_components: int | None
) -> Preprocessing | None:
    """Choose the map; None where features are taken as they are.

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
    shift = features.mean(axis=0)
    matrix = np.eye(width)
    if scaling == "standard":
        deviation = features.std(axis=0)
        matrix = np.diag(1 / np.where(deviation > 0, deviation, 1.0))
    if n_components is not None:
        pca = PCA(n_components, random_state=0).fit((features - shift) @ matrix)
        matrix = matrix @ pca.components_.T
    return Preprocessing(shift, matrix)
