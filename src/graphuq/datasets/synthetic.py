"""Data sets that need no file: two moons, and the digits that scikit-learn carries."""

import numpy as np
from sklearn.datasets import load_digits as sklearn_digits

from graphuq.datasets.base import Dataset
from graphuq.errors import require


def two_moons(
    n_nodes: int = 2000,
    n_features: int = 100,
    noise_std: float = 0.06,
    *,
    seed: int | np.random.Generator = 0,
) -> Dataset:
    """Two half circles in R^d with noise (Bertozzi et al. 2018, §5.1.1).

    Upper half of the unit circle about (0, 0), lower half of that about (1, 0.5), points
    uniform along each, then Gaussian noise in all ``n_features`` dimensions.

    Parameters
    ----------
    n_nodes : int, default 2000
        Half of them, rounded up, on the upper moon.
    n_features : int, default 100
        d >= 2.
    noise_std : float, default 0.06
        σ >= 0.
    seed : int or numpy.random.Generator, default 0

    Returns
    -------
    Dataset
        Classes 0 (upper) and 1 (lower), in random order.
    """
    require(n_nodes >= 2, "n_nodes", f"{n_nodes}", "use 2 or more")
    require(n_features >= 2, "n_features", f"{n_features}", "use 2 or more")
    require(noise_std >= 0, "noise_std", f"{noise_std}", "use 0 or more")
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.arange(n_nodes) % 2)
    angle = rng.uniform(0, np.pi, n_nodes)
    features = np.zeros((n_nodes, n_features))
    features[:, 0] = np.where(classes == 0, np.cos(angle), 1 - np.cos(angle))
    features[:, 1] = np.where(classes == 0, np.sin(angle), 0.5 - np.sin(angle))
    features += noise_std * rng.normal(size=features.shape)
    return Dataset(features, classes, "two moons", "made by graphuq")


def load_digits(digits: tuple[int, ...] | None = None) -> Dataset:
    """1,797 handwritten digits, 8×8 grey levels from 0 to 16; comes with scikit-learn.

    Parameters
    ----------
    digits : tuple of int, optional
        Which digits; all ten by default.

    Returns
    -------
    Dataset
    """
    digits = tuple(range(10)) if digits is None else digits
    require(
        len(digits) > 0 and set(digits) <= set(range(10)),
        "digits",
        f"{digits}",
        "use digits from 0 to 9",
    )
    features, classes = sklearn_digits(return_X_y=True)
    kept = np.isin(classes, digits)
    return Dataset(
        features=features[kept],
        classes=classes[kept],
        name=f"digits {digits}",
        source="scikit-learn (UCI optical digits, CC BY 4.0)",
        feature_names=tuple(f"pixel{i}" for i in range(features.shape[1])),
    )
