"""Class proportions: a threshold that gives classes known or estimated shares.

Few labels determine the order of nodes better than the level of the whole field, all of which may
lie on one side of zero. The results are the "tuned" columns of Zhu, Lafferty & Ghahramani (2003,
§4).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq
from scipy.special import erf

from graphuq.errors import require
from graphuq.results.summaries.base import Link
from graphuq.utils.checks import array_of

if TYPE_CHECKING:
    from graphuq.results.result import Result

SWEEPS = 200  # maximum number of sweeps over classes; each step gives one class its share
OVER_HALF = 0.5 + 1e-9  # least probability of a given label: above any other class, by no tie
FLOOR = 1e-12  # least probability whose logarithm is taken


class ClassThreshold(NamedTuple):
    """Threshold between classes that changes labels and probabilities.

    Attributes
    ----------
    for_labels, for_probabilities : numpy.ndarray
        For two classes: the level of u that replaces zero, shape (1,). For more: a number added
        to the log probability of each class, shape (K,). Labels and probabilities have one each,
        because shares of labels and mean probabilities are different conditions. Nodes that tie,
        as in a component without labels, have the same label; counts are then as close as
        possible.
    """

    for_labels: Float[np.ndarray, " K"]
    for_probabilities: Float[np.ndarray, " K"]

    def codes(self, summaries: Any) -> Int[np.ndarray, " M"]:
        """Return class codes from ``latent_mean`` (two classes) or ``probabilities`` (more)."""
        if len(self.for_labels) == 1:
            return (summaries.latent_mean > self.for_labels[0]).astype(np.int64)
        logs = np.log(np.maximum(summaries.probabilities, FLOOR)) + self.for_labels
        return np.asarray(logs.argmax(axis=1))

    def probabilities(self, summaries: Any, link: Link) -> Float[np.ndarray, "M K"]:
        """Return probabilities; for two classes u is Gaussian with the given mean and std."""
        if len(self.for_labels) == 1:
            moved = summaries.latent_mean - self.for_probabilities[0]
            plus = (1 + mean_label(moved, summaries.latent_std, link)) / 2
            return np.stack([1 - plus, plus], axis=1)
        return reweighted(summaries.probabilities, self.for_probabilities)


def estimated_proportions(
    labels: np.ndarray, classes: Sequence[Any] | np.ndarray
) -> Float[np.ndarray, " K"]:
    """Return the shares of the given labels, with one added to each count (Laplace's rule).

    Examples
    --------
    >>> estimated_proportions(np.array([0, 0, 0, 1]), [0, 1]).round(3).tolist()
    [0.667, 0.333]
    """
    counts = np.array([(labels == name).sum() for name in classes]) + 1.0
    return np.asarray(counts / counts.sum())


def checked_proportions(
    proportions: Any, n_classes: int, argument: str = "proportions"
) -> Float[np.ndarray, " K"]:
    """Return positive shares that add to one, in the order of the classes.

    Errors name ``argument``.

    Raises
    ------
    InvalidInput
        If there is not one share for each class, or they are not positive or do not add to one.
    """
    remedy = "give one positive share for each class"
    given = array_of(proportions, argument, remedy)
    require(
        given.shape == (n_classes,) and given.dtype.kind in "iuf" and bool((given > 0).all()),
        argument,
        f"{proportions!r} for {n_classes} classes",
        remedy,
    )
    shares = given.astype(np.float64)
    require(
        abs(shares.sum() - 1) < 1e-6,
        argument,
        f"{proportions!r} add to {shares.sum():.6g}",
        "give shares that add to 1",
    )
    return shares / shares.sum()


def shares_of(
    proportions: Any, names: Any, codes: Int[np.ndarray, " J"], max_classes: int | None
) -> Float[np.ndarray, " K"] | None:
    """Return shares of the classes from what the user gave, or None.

    Shares may be given by position or by name; "labels" means those of the given labels.

    Raises
    ------
    InvalidInput
        If proportions are anything else, or are given beside ``max_classes``.
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
        require(known, "class_proportions", f"{own} are named", f"name {names.tolist()}")
        proportions = [proportions[name] for name in names.tolist()]
    return checked_proportions(proportions, len(names), "class_proportions")


def class_thresholds(result: "Result", proportions: Any) -> ClassThreshold | None:
    """Return thresholds that give the classes these shares among the unlabelled nodes.

    See Zhu, Lafferty & Ghahramani 2003, §4, and `ClassThreshold`.

    Parameters
    ----------
    result : Result
    proportions : array_like, shape (K,)
        Positive shares that add up to 1; for two classes those of −1 and of +1.

    Returns
    -------
    ClassThreshold or None
        None if every node is labelled, so that no node can move.
    """
    posterior = result.posterior
    free = np.setdiff1d(np.arange(len(result.has_evidence)), posterior.labelled)
    shares = checked_proportions(proportions, posterior.n_classes)
    if len(free) == 0:
        return None
    if posterior.likelihood.has_codes:
        return thresholds_of_several(result.probabilities[free], shares)
    mean, std = result.latent_mean[free], result.latent_std[free]
    return thresholds_of_two(mean, std, posterior.likelihood.link, float(shares[1]))


def thresholds_of_two(
    mean: Float[np.ndarray, " N"],
    std: Float[np.ndarray, " N"],
    link: Link,
    share: float,
) -> ClassThreshold:
    """Return levels of u above which the share of nodes, and of probability, is as given.

    Parameters
    ----------
    mean, std : numpy.ndarray, shape (N,)
        Mean and standard deviation of u, taken as Gaussian, at the nodes of the shares.
    link : tuple or None
        See `Likelihood.link`.
    share : float
        Share of the class +1, in (0, 1).
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
    link: Link,
) -> Float[np.ndarray, " N"]:
    """Return the mean label for Gaussian u."""
    weights, scales = (np.ones(1), np.zeros(1)) if link is None else link[:2]
    spread = np.sqrt(2 * (std[:, None] ** 2 + scales[None, :] ** 2)).clip(1e-150)
    total: Float[np.ndarray, " N"] = erf(mean[:, None] / spread) @ weights
    return total


def _width(link: Link) -> float:
    return 0.0 if link is None else float(link[1].max())


def thresholds_of_several(
    probability: Float[np.ndarray, "N K"], proportions: Float[np.ndarray, " K"]
) -> ClassThreshold:
    """Return offsets of log probabilities that give the classes their proportions.

    For labels, each class in turn receives the nodes with the largest lead. This is coordinate
    ascent on the dual of the assignment with the largest total log probability. Probabilities are
    multiplied by weights of the classes and normalised again; the weights are scaled until the
    means fit. Saerens, Latinne & Decaestecker (2002) estimate such weights.
    """
    logs = np.log(np.maximum(probability, FLOOR))
    logs = logs + np.random.default_rng(0).uniform(0, 1e-9, logs.shape)  # break ties at random
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
    """Return probabilities with an offset added to their logarithms, normalised again."""
    logs = np.log(np.maximum(probability, FLOOR)) + offset
    moved = np.exp(logs - logs.max(axis=1)[:, None])
    return np.asarray(moved / moved.sum(axis=1)[:, None])
