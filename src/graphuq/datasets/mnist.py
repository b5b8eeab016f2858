"""MNIST: 70,000 handwritten digits."""

import gzip
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

from graphuq.datasets.base import Dataset, RemoteFile, locate
from graphuq.errors import require

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
            # A copy rebuilt from a tone-mapped one: grey levels differ by at most 1.
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
    seed: int = 0,
) -> Dataset:
    """Handwritten digits, 28×28 grey levels in [0, 1], training and test images together.

    Parameters
    ----------
    digits : tuple of int, optional
        Which digits; all ten by default. ``(4, 9)`` is the hardest pair of Bertozzi et al.
    n_each : int, optional
        At most so many of each, chosen at random.
    n_components : int, optional
        Project onto this many leading principal components *of the chosen images*
        (50 in Bertozzi et al. 2018, §5.1.3).
    folder : path, optional
        Data folder that holds ``mnist/*.gz``; see `graphuq.datasets`.
    seed : int, default 0
        Of the choice.

    Returns
    -------
    Dataset

    Raises
    ------
    StorageError
        If a file is missing or corrupt.
    """
    digits = tuple(range(10)) if digits is None else digits
    require(
        len(digits) > 0 and set(digits) <= set(range(10)),
        "digits",
        f"{digits}",
        "use digits from 0 to 9",
    )
    images = np.concatenate([_read(f"{part}-images-idx3-ubyte", folder) for part in PARTS])
    classes = np.concatenate([_read(f"{part}-labels-idx1-ubyte", folder) for part in PARTS])
    rng = np.random.default_rng(seed)
    rows = []
    for digit in digits:
        found = np.flatnonzero(classes == digit)
        if n_each is not None:
            found = rng.choice(found, size=min(n_each, len(found)), replace=False)
        rows.append(np.sort(found))
    kept = np.concatenate(rows)
    features = images[kept].reshape(len(kept), -1) / 255.0
    if n_components is not None:
        features = PCA(n_components, random_state=seed).fit_transform(features)
    return Dataset(
        features=features,
        classes=classes[kept].astype(np.int64),
        name=f"mnist {digits}",
        source="LeCun, Cortes & Burges, CC BY-SA 3.0",
        feature_names=tuple(f"x{i}" for i in range(features.shape[1])),
    )


def _read(name: str, folder: str | Path | None) -> np.ndarray:
    """One IDX file: a magic number with the number of dimensions, their sizes, the bytes."""
    content = gzip.decompress(locate(FILES[name], folder).read_bytes())
    n_dimensions = content[3]
    shape = np.frombuffer(content, ">i4", n_dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)
