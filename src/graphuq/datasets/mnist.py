"""MNIST, a data set of 70,000 handwritten digits."""

import gzip
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

from graphuq.datasets.base import Dataset, RemoteFile, choose_rows, locate
from graphuq.datasets.synthetic import check_digits, digits_name
from graphuq.utils.checks import generator, seed_number

ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist/"
FILES = {
    name: RemoteFile(
        path=f"mnist/{name}.gz",
        sha256=checksums[0],
        address=f"{ADDRESS}{name}.gz",
        also_accepted=checksums[1:],
    )
    for name, checksums in {
        "train-images-idx3-ubyte": (
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            # Copy rebuilt from a tone-mapped edition; its grey levels differ by at most 1.
            "d5c6e7c023f54bcd49137addee7289556514929995ea0e99fd1681f812f3b19d",
        ),
        "train-labels-idx1-ubyte": (
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        "t10k-images-idx3-ubyte": (
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        "t10k-labels-idx1-ubyte": (
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    }.items()
}
PARTS = ("train", "t10k")


def load_mnist(
    digits: tuple[int, ...] | None = None,
    n_each: int | None = None,
    *,
    n_components: int | None = None,
    folder: str | Path | None = None,
    rng: int | np.random.Generator = 0,
) -> Dataset:
    """Load MNIST training and test images together, as 28×28 grey levels in [0, 1].

    Parameters
    ----------
    digits : tuple of int, optional
        Digits to load; all ten by default. ``(4, 9)`` is the hardest pair of Bertozzi et al.
    n_each : int, optional
        Maximum number of images of each digit, chosen at random; all by default.
    n_components : int, optional
        Project onto this many leading principal components *of the chosen images*
        (50 in Bertozzi et al. 2018, §5.1.3). By default images are not projected.
    folder : path, optional
        Data folder that holds ``mnist/*.gz``; see `graphuq.datasets`.
    rng : int or numpy.random.Generator, default 0
        Seed of the random choice of images and of the principal components.

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidInput
        If ``digits`` is not a tuple of digits.
    StorageError
        If a file is missing or corrupt.
    """
    digits = check_digits(digits)
    images = np.concatenate([_read_idx(f"{part}-images-idx3-ubyte", folder) for part in PARTS])
    classes = np.concatenate([_read_idx(f"{part}-labels-idx1-ubyte", folder) for part in PARTS])
    seed = seed_number(rng)
    rng = generator(seed)
    kept = np.concatenate([choose_rows(classes == digit, n_each, rng) for digit in digits])
    features = images[kept].reshape(len(kept), -1) / 255.0
    if n_components is not None:
        features = PCA(n_components, random_state=seed).fit_transform(features)
    return Dataset(
        features=features,
        classes=classes[kept].astype(np.int64),
        name=digits_name("mnist", digits),
        source="LeCun, Cortes & Burges, CC BY-SA 3.0",
        feature_names=tuple(f"x{i}" for i in range(features.shape[1])),
        description="Handwritten digits: 28×28 grey levels in [0, 1]"
        + (f", projected onto {n_components} principal components." if n_components else "."),
    )


def _read_idx(name: str, folder: str | Path | None) -> np.ndarray:
    """Read an IDX file: a magic number with the number of dimensions, their sizes, the bytes."""
    content = gzip.decompress(locate(FILES[name], folder).read_bytes())
    n_dimensions = content[3]
    shape = np.frombuffer(content, ">i4", n_dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)
