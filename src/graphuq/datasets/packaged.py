"""Data sets that other packages bring: a scene and a table of measurements."""

import csv
import dataclasses
import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.datasets.base import Dataset
from graphuq.errors import StorageError

CROPS = (
    "Alfalfa", "Corn-notill", "Corn-mintill", "Corn", "Grass-pasture", "Grass-trees",
    "Grass-pasture-mowed", "Hay-windrowed", "Oats", "Soybean-notill", "Soybean-mintill",
    "Soybean-clean", "Wheat", "Woods", "Buildings-Grass-Trees-Drives", "Stone-Steel-Towers",
)  # fmt: skip
BODY = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
SIDE, N_BANDS = 145, 200


class PackagedFile(NamedTuple):
    """One file of a data set in an installed package.

    Attributes
    ----------
    package : str
    path : str
        Path of the file in the folder of the package.
    sha256 : str
    """

    package: str
    path: str
    sha256: str


BANDS = PackagedFile(
    "tensorly",
    "datasets/data/Indian_pines_corrected.npy",
    "8f038e4d81569e38ebfc72a15c9984c150de42580ab260be10a13442e912e451",
)
TRUTH = PackagedFile(
    "tensorly",
    "datasets/data/Indian_pines_gt.npy",
    "44610d21625b311b05b8e0c4ba9a6cc755c2fbb9df48e4d89419024aa6ad3f9d",
)
PENGUINS = PackagedFile(
    "palmerpenguins",
    "data/penguins.csv",
    "f204db2c753b0937caac3cb35258562c14f073e4bbc76be24b4c51ce22767a93",
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PixelDataset(Dataset):
    """Pixels of a scene, row by row; the class is "" where nobody knows it.

    Attributes
    ----------
    places : numpy.ndarray of int, shape (N, 2)
        Row and column of each pixel.
    """

    places: np.ndarray = dataclasses.field(default_factory=lambda: np.empty((0, 2), dtype=int))

    @property
    def bands(self) -> Float[np.ndarray, "B R C"]:
        """The scene as `graphuq.graphs.pixel_graph` takes it; NaN where a pixel is missing."""
        n_rows, n_columns = self.places.max(axis=0) + 1
        values = np.full((self.features.shape[1], n_rows, n_columns), np.nan)
        values[:, *self.places.T] = np.asarray(self.features).T
        return values

    def _of_rows(self, rows: Int[np.ndarray, " n"]) -> "PixelDataset":
        return dataclasses.replace(super()._of_rows(rows), places=self.places[rows])


def load_indian_pines(folder: str | Path | None = None) -> PixelDataset:
    """Load the scene Indian Pines: 145 × 145 pixels, 200 bands, 10,249 of them of 16 known crops.

    Parameters
    ----------
    folder : path, optional
        Folder that holds ``datasets/data/Indian_pines_corrected.npy`` and ``…_gt.npy``; by default
        that of the package tensorly, whose wheel brings them.

    Returns
    -------
    PixelDataset

    Raises
    ------
    StorageError
        If tensorly is not installed, or a file is missing or has another checksum.
    """
    values = np.load(_find(BANDS, folder)).astype(np.float64)
    codes = np.load(_find(TRUTH, folder)).astype(int).ravel()
    if values.shape[0] != N_BANDS:
        values = np.moveaxis(values, -1, 0)
    return PixelDataset(
        features=np.ascontiguousarray(values.reshape(N_BANDS, -1).T),
        classes=np.array(["", *CROPS])[codes],
        name="Indian Pines",
        source="Baumgardner, Biehl & Landgrebe 2015, doi:10.4231/R7RX991C, CC BY 3.0",
        description="Reflectance of the Indian Pines test site by AVIRIS, 12 June 1992; "
        "pixels row by row, bands of water vapour left out.",
        places=np.argwhere(np.ones((SIDE, SIDE), dtype=bool)),
    )


def load_penguins(folder: str | Path | None = None) -> Dataset:
    """Load the Palmer penguins: four measurements of 342 birds of three species.

    Parameters
    ----------
    folder : path, optional
        Folder that holds ``data/penguins.csv``; by default that of the package palmerpenguins.

    Returns
    -------
    Dataset
        Classes "Adelie" (151), "Chinstrap" (68) and "Gentoo" (123). Two birds without measurements
        are left out.

    Raises
    ------
    StorageError
        If palmerpenguins is not installed, or the file is missing or has another checksum.
    """
    with _find(PENGUINS, folder).open(newline="", encoding="utf-8") as file:
        birds = [bird for bird in csv.DictReader(file) if bird[BODY[0]] not in ("", "NA")]
    return Dataset(
        features=np.array([[float(bird[name]) for name in BODY] for bird in birds]),
        classes=np.array([bird["species"] for bird in birds]),
        name="penguins",
        source="Horst, Hill & Gorman 2020, palmerpenguins, CC0",
        feature_names=BODY,
        description="Penguins of the Palmer Archipelago: millimetres of bill and flipper, grams.",
    )


def _find(file: PackagedFile, folder: str | Path | None) -> Path:
    """Return the path of a file in a folder, or in its package, with the right checksum."""
    if folder is None:
        spec = find_spec(file.package)
        if spec is None or spec.origin is None:
            raise StorageError(
                f"'{file.path}' is part of the package {file.package}, which is not installed; run "
                f"pip install {file.package}, or pass the folder that holds it as folder=..."
            )
        folder = Path(spec.origin).parent
    path = Path(folder) / file.path
    if not path.exists():
        raise StorageError(f"'{path}' is missing; install {file.package} again")
    if hashlib.sha256(path.read_bytes()).hexdigest() != file.sha256:
        raise StorageError(
            f"'{path}' has the wrong checksum: it is truncated or another edition; replace it"
        )
    return path
