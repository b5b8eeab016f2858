"""Class proportions: the threshold moved so that known, or estimated, ones hold.

What few labels leave least known is the level of the whole field: all of it may lie on one side of
zero, in the right order (Zhu, Lafferty & Ghahramani 2003, §4, whose "tuned" columns these are).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq
from scipy.special import erf

from graphuq.errors import require

SWEEPS = 200  # over classes, each in turn given its share
OVER_HALF = 0.5 + 1e-9  # least probability of a given label: above any other class, by no tie
FLOOR = 1e-12  # of probabilities whose logarithm is taken


class ClassThreshold(NamedTuple):
    """What moves labels and probabilities.

    Attributes
    ----------
    for_labels, for_probabilities : numpy.ndarray
        Of two classes the level of u that takes the place of zero, shape (1,); of several what is
        added to the logarithm of each class's probability, shape (K,). Two of each: shares of
        labels are one condition, mean probabilities another. Nodes that tie, as in a component
        without labels, are labelled alike: counts are then as near as they can be.
    """

    for_labels: Float[np.ndarray, " K"]
    for_probabilities: Float[np.ndarray, " K"]

    def codes(self, summaries: Any) -> Int[np.ndarray, " M"]:
        """Codes of classes, of nodes with ``latent_mean``, or with ``label_mean`` of several."""
        if len(self.for_labels) == 1:
            return (summaries.latent_mean > self.for_labels[0]).astype(np.int64)
        logs = np.log(np.maximum(summaries.label_mean, FLOOR)) + self.for_labels
        return np.asarray(logs.argmax(axis=1))

    def probabilities(
        self, summaries: Any, link: tuple[np.ndarray, np.ndarray] | None
    ) -> Float[np.ndarray, "M K"]:
        """Of two classes with ``latent_mean`` and ``latent_std``, u taken as Gaussian."""
        if len(self.for_labels) == 1:
            moved = summaries.latent_mean - self.for_probabilities[0]
            plus = (1 + mean_label(moved, summaries.latent_std, link)) / 2
            return np.stack([1 - plus, plus], axis=1)
        return reweighted(summaries.label_mean, self.for_probabilities)


def estimated_proportions(
    labels: np.ndarray, classes: Sequence[Any] | np.ndarray
) -> Float[np.ndarray, " K"]:
    """Shares of the given labels, one more of each class counted than there is (Laplace's rule).

    Examples
    --------
    >>> estimated_proportions(np.array([0, 0, 0, 1]), [0, 1]).round(3).tolist()
    [0.667, 0.333]
    """
    counts = np.array([(labels == name).sum() for name in classes]) + 1.0
    return np.asarray(counts / counts.sum())


def checked_proportions(proportions: Any, n_classes: int) -> Float[np.ndarray, " K"]:
    """Positive shares that add to one, in the order of the classes.

    Raises
    ------
    InvalidInput
        If they are not as many as classes, not positive, or add to something else.
    """
    shares = np.asarray(proportions, dtype=float)
    require(
        shares.shape == (n_classes,) and bool((shares > 0).all()),
        "proportions",
        f"{proportions!r} of {n_classes} classes",
        "give one positive share a class",
    )
    require(
        abs(shares.sum() - 1) < 1e-6,
        "proportions",
        f"{proportions!r} add to {shares.sum():.6g}",
        "give shares that add to 1",
    )
    return shares / shares.sum()


def shares_of(
    proportions: Any, names: Any, codes: Int[np.ndarray, " J"], max_classes: int | None
) -> Float[np.ndarray, " K"] | None:
    """What a user says of proportions: shares by place or by name, "labels", or None.

    Raises
    ------
    InvalidInput
        If it is none of these, or unseen classes are to be found at the same time.
    """
    if proportions is None:
        return None
    require(
        max_classes is None,
        "class_proportions",
        f"{proportions!r} beside max_classes",
        "use one of the two: shares of unseen classes are learnt",
    )
    if isinstance(proportions, str):
        require(proportions == "labels", "class_proportions", f"{proportions!r}", "use 'labels'")
        return estimated_proportions(codes, range(len(names)))
    if isinstance(proportions, Mapping):
        known = set(proportions) == set(names.tolist())
        own = sorted(map(str, proportions))
        require(known, "class_proportions", f"of {own}", f"give those of {names.tolist()}")
        proportions = [proportions[name] for name in names.tolist()]
    return checked_proportions(proportions, len(names))


def tuning_of_two(
    mean: Float[np.ndarray, " N"],
    std: Float[np.ndarray, " N"],
    link: tuple[np.ndarray, np.ndarray] | None,
    share: float,
) -> ClassThreshold:
    """Levels of u above which there are so many nodes, and so much probability.

    Parameters
    ----------
    mean, std : numpy.ndarray, shape (N,)
        Of u, taken as Gaussian, at the nodes among which the share holds.
    link : tuple or None
        See `Likelihood.link`.
    share : float
        Of the class +1.
    """
    ranked = np.sort(mean)[::-1]
    n_above = min(max(round(share * len(mean)), 0), len(mean))
    padded = np.concatenate([[ranked[0] + 1], ranked, [ranked[-1] - 1]])
    level = (padded[n_above] + padded[n_above + 1]) / 2
    reach = 1 + abs(mean).max() + 40 * (std.max() + _width(link))

    def excess(c: float) -> float:
        return float(mean_label(mean - c, std, link).mean() + 1 - 2 * share)

    found = brentq(excess, -reach, reach, xtol=1e-12)
    return ClassThreshold(np.array([level]), np.array([found]))


def mean_label(
    mean: Float[np.ndarray, " N"],
    std: Float[np.ndarray, " N"],
    link: tuple[np.ndarray, np.ndarray] | None,
) -> Float[np.ndarray, " N"]:
    """Mean label of Gaussian u."""
    weights, scales = (np.ones(1), np.zeros(1)) if link is None else link
    spread = np.sqrt(2 * (std[:, None] ** 2 + scales[None, :] ** 2)).clip(1e-150)
    total: Float[np.ndarray, " N"] = erf(mean[:, None] / spread) @ weights
    return total


def _width(link: tuple[np.ndarray, np.ndarray] | None) -> float:
    return 0.0 if link is None else float(link[1].max())


def tuning_of_several(
    probability: Float[np.ndarray, "N K"], proportions: Float[np.ndarray, " K"]
) -> ClassThreshold:
    """Offsets of the log probabilities under which shares of labels, and means, are the given.

    For labels each class in turn is given the nodes that lead most (coordinate ascent on the dual
    of the assignment that keeps most log probability); for probabilities, which
    `ClassThreshold` multiplies and normalises again, the classes' weights are scaled until their
    means fit (Saerens, Latinne &
    Decaestecker 2002 estimate such weights).
    """
    logs = np.log(np.maximum(probability, FLOOR))
    logs = logs + np.random.default_rng(0).uniform(0, 1e-9, logs.shape)  # ties, at random
    n_nodes, n_classes = logs.shape
    counts = np.round(proportions * n_nodes).astype(int)
    offset = np.zeros(n_classes)
    for _ in range(SWEEPS):
        before = offset.copy()
        for k in range(n_classes):
            others = np.delete(logs + offset, k, axis=1).max(axis=1)
            lead = np.sort(logs[:, k] - others)[::-1]
            padded = np.concatenate([[lead[0] + 1], lead, [lead[-1] - 1]])
            offset[k] = -(padded[counts[k]] + padded[counts[k] + 1]) / 2
        offset -= offset.mean()
        if abs(offset - before).max() < 1e-10:
            break
    weights = np.log(proportions / np.maximum(probability.mean(axis=0), FLOOR))
    for _ in range(10 * SWEEPS):
        shares = reweighted(probability, weights).mean(axis=0)
        step = np.log(proportions / np.maximum(shares, FLOOR))
        weights += step
        if abs(step).max() < 1e-10:
            break
    return ClassThreshold(offset, weights - weights.mean())


def keep_given(
    moved: Float[np.ndarray, "M K"],
    unmoved: Float[np.ndarray, "M K"],
    codes: Int[np.ndarray, " M"],
) -> Float[np.ndarray, "M K"]:
    """Return the moved probabilities, except at labelled nodes, which keep their own.

    Proportions hold among the unlabelled nodes, so they say nothing about labelled ones. If the
    posterior at a labelled node favours another class, the given class is raised to just over one
    half: the threshold moves as far as that node, and no farther.

    Parameters
    ----------
    moved, unmoved : numpy.ndarray, shape (M, K)
        Probabilities with and without the threshold.
    codes : numpy.ndarray of int, shape (M,)
        Given class of each node, or −1.
    """
    probability = moved.copy()
    nodes = np.flatnonzero(codes >= 0)
    own = unmoved[nodes]
    turned = np.flatnonzero(own.argmax(axis=1) != codes[nodes])
    given = codes[nodes][turned]
    rest = 1 - own[turned, given]
    own[turned] *= ((1 - OVER_HALF) / rest)[:, None]
    own[turned, given] = OVER_HALF
    probability[nodes] = own
    return probability


def reweighted(
    probability: Float[np.ndarray, "N K"], offset: Float[np.ndarray, " K"]
) -> Float[np.ndarray, "N K"]:
    """Probabilities whose logarithms are moved, normalised again."""
    logs = np.log(np.maximum(probability, FLOOR)) + offset
    moved = np.exp(logs - logs.max(axis=1)[:, None])
    return np.asarray(moved / moved.sum(axis=1)[:, None])
