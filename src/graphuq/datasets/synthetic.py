"""Data sets that need no file: two moons, and the digits that scikit-learn includes."""

from collections.abc import Collection

import numpy as np
from sklearn.datasets import load_digits as sklearn_digits

from graphuq.datasets.base import Dataset
from graphuq.errors import require
from graphuq.utils.checks import generator, require_integer, require_number


def two_moons(
    n_nodes: int = 2000,
    n_features: int = 100,
    noise_std: float = 0.06,
    *,
    rng: int | np.random.Generator = 0,
) -> Dataset:
    """Simulate two half circles in R^d with noise (Bertozzi et al. 2018, §5.1.1).

    One class is the upper half of the unit circle about (0, 0), the other the lower half of the
    unit circle about (1, 0.5). Points are uniform along each half circle. Gaussian noise is added
    in all ``n_features`` dimensions.

    Parameters
    ----------
    n_nodes : int, default 2000
        Number of points; half of them, rounded up, lie on the upper moon.
    n_features : int, default 100
        Dimension d >= 2.
    noise_std : float, default 0.06
        Standard deviation σ >= 0 of the noise.
    rng : int or numpy.random.Generator, default 0

    Returns
    -------
    Dataset
        Classes 0 (upper) and 1 (lower), in random order.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> import graphuq as gq
    >>> moons = gq.datasets.two_moons()
    >>> moons
    Dataset('two moons', shape (2000, 100), classes 0, 1)
    """
    require_integer("n_nodes", n_nodes, 2)
    require_integer("n_features", n_features, 2)
    require_number("noise_std", noise_std, 0.0)
    rng = generator(rng)
    classes = rng.permutation(np.arange(n_nodes) % 2)
    angle = rng.uniform(0, np.pi, n_nodes)
    features = np.zeros((n_nodes, n_features))
    features[:, 0] = np.where(classes == 0, np.cos(angle), 1 - np.cos(angle))
    features[:, 1] = np.where(classes == 0, np.sin(angle), 0.5 - np.sin(angle))
    features += noise_std * rng.normal(size=features.shape)
    return Dataset(
        features,
        classes,
        "two moons",
        "made by graphuq",
        description=f"Two half circles in {n_features} dimensions with Gaussian noise of standard "
        f"deviation {noise_std} (Bertozzi et al. 2018, §5.1.1).",
    )


def load_digits(digits: tuple[int, ...] | None = None) -> Dataset:
    """Load scikit-learn's 1,797 handwritten digits, as 8×8 grey levels from 0 to 16.

    Parameters
    ----------
    digits : tuple of int, optional
        Digits to load; all ten by default.

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidInput
        If ``digits`` is not a tuple of digits.
    """
    digits = check_digits(digits)
    features, classes = sklearn_digits(return_X_y=True)
    kept = np.isin(classes, digits)
    return Dataset(
        features=features[kept],
        classes=classes[kept],
        name=digits_name("digits", digits),
        source="scikit-learn (UCI optical digits, CC BY 4.0)",
        feature_names=tuple(f"pixel{i}" for i in range(features.shape[1])),
        description="Handwritten digits: 8×8 grey levels from 0 to 16.",
    )


def check_digits(digits: Collection[int] | None) -> tuple[int, ...]:
    """Return the digits as a tuple, all ten for None, or raise `InvalidInput`."""
    digits = range(10) if digits is None else digits
    valid = np.iterable(digits) and len(digits) > 0 and set(digits) <= set(range(10))
    require(valid, "digits", f"{digits!r}", "use a tuple of digits from 0 to 9")
    return tuple(digits)


def digits_name(name: str, digits: tuple[int, ...]) -> str:
    """Return the name of a data set of digits, which lists them unless it holds all ten."""
    return name if len(digits) == 10 else f"{name} {digits}"
