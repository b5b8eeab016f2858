"""Agreement of people who label: Krippendorff's alpha, with an interval over items."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from graphuq.errors import require

COVERAGE = 0.9
N_RESAMPLES = 2_000
N_AT_ONCE = 50  # so that memory stays small


class Agreement(NamedTuple):
    """Agreement of several people about the same items.

    Attributes
    ----------
    alpha : float
        1 if they always agree, 0 as by chance, negative if they contradict each other.
    lower, upper : float
        Ends of the 90 % interval.
    n_items : int
        Items that at least two people labelled.
    """

    alpha: float
    lower: float
    upper: float
    n_items: int


def krippendorff_alpha(readings: Iterable[Mapping[str, str]], random_state: int = 0) -> Agreement:
    r"""Return how far people agree, beyond chance, about unordered classes.

    With n values in items of at least two values, ``1 − D_o / D_e``: the observed disagreement is
    the share of different values among pairs within an item, each item with the weight of its
    number of values m; the expected one is that among pairs of any two of the n values
    (Krippendorff 2019, Content Analysis, chapter 12, nominal data). Items of one value do not
    count.

    Parameters
    ----------
    readings : iterable of mapping of str to str
        For each item, the class that each person gave.
    random_state : int, default 0
        Seed of the bootstrap.

    Returns
    -------
    Agreement
        The interval is of the percentiles .05 and .95 of 2,000 bootstrap samples of items. If all
        items agree, samples do, too; its lower end is then that of ``1 − p / D_e``, where p is
        the upper end by Clopper and Pearson (1934) for the share of items that differ.

    Raises
    ------
    InvalidInput
        If no item has labels of two people, or all labels are of one class, so that agreement
        by chance is certain.

    Examples
    --------
    >>> from graphuq.labelling import krippendorff_alpha
    >>> both = [{"ada": "cat", "bob": "cat"}, {"ada": "dog", "bob": "dog"}]
    >>> krippendorff_alpha([*both, {"ada": "cat", "bob": "dog"}]).alpha.__round__(3)
    0.444
    """
    pairable = [list(by.values()) for by in readings if len(by) > 1]
    remedy = "let two people label some of the items"
    require(pairable, "readings", "no item with labels of two people", remedy)
    names = sorted({label for labels in pairable for label in labels})
    require(len(names) > 1, "readings", "labels of one class only", "wait for another class")
    code = {name: k for k, name in enumerate(names)}
    counts = np.zeros((len(pairable), len(names)))
    for item, labels in enumerate(pairable):
        for label in labels:
            counts[item, code[label]] += 1
    rng = np.random.default_rng(random_state)
    n = len(counts)
    parts = [
        _alpha(counts, rng.multinomial(n, np.full(n, 1 / n), size=N_AT_ONCE).astype(float))
        for _ in range(N_RESAMPLES // N_AT_ONCE)
    ]
    drawn = np.concatenate(parts)
    tail = (1 - COVERAGE) / 2
    # A sample of one class alone has no alpha; where it is seen there is no disagreement in it.
    lower, upper = np.quantile(np.where(np.isnan(drawn), 1.0, drawn), (tail, 1 - tail))
    alpha = float(_alpha(counts, np.ones((1, n)))[0])
    if alpha == 1:
        share = 1 - tail ** (1 / n)
        lower = 1 - share / _chance(counts)
    return Agreement(alpha, float(lower), float(upper), n)


def _chance(counts: Float[np.ndarray, "items K"]) -> float:
    """Return the share of different values among pairs of any two values."""
    n_each = counts.sum(axis=0)
    n = n_each.sum()
    return float((n**2 - (n_each**2).sum()) / (n * (n - 1)))


def _alpha(
    counts: Float[np.ndarray, "items K"], weights: Float[np.ndarray, "S items"]
) -> Float[np.ndarray, " S"]:
    """Return alpha of weighted items; NaN where all values are of one class."""
    m = counts.sum(axis=1)
    within = (m**2 - (counts**2).sum(axis=1)) / (m - 1)  # Σ of different pairs, an item
    n_each = weights @ counts
    n = weights @ m
    among = (n**2 - (n_each**2).sum(axis=1)) / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(among > 0, 1 - (weights @ within) / among, np.nan)
