"""Numbers of every node that follow from the class probabilities alone."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import entr

from graphuq.results import uncertainty

if TYPE_CHECKING:
    from graphuq.results.result import Result


def label_mean(result: "Result") -> Float[np.ndarray, "N *K"]:
    """Return ``E S(u)`` of each node.

    Returns
    -------
    numpy.ndarray, shape (N,) or (N, K)
        For two classes ``E sign(u)``, in [−1, 1] (Bertozzi et al. 2018, (8)): the probability of
        the second class minus that of the first. For more classes S is the unit vector of the
        largest field, and the means are the probabilities of the classes.
    """
    p = result.probabilities
    return p if result.posterior.likelihood.has_codes else p[:, 1] - p[:, 0]


def label_mcse(result: "Result") -> Float[np.ndarray, "N *K"]:
    """Return the Monte-Carlo standard error of `label_mean`, shape (N,) or (N, K)."""
    error = result.mcse
    return error if result.posterior.likelihood.has_codes else error[:, 0] + error[:, 1]


def label_variance(result: "Result") -> Float[np.ndarray, " N"]:
    """Return ``E|S(u)|² − |E S(u)|² = 1 − |label_mean|²`` of each node, in [0, 1]."""
    mean = label_mean(result)
    return np.asarray(1 - (mean**2).reshape(len(mean), -1).sum(axis=1))


def mean_label_variance(result: "Result") -> float:
    """Return the label variance averaged over all nodes (Bertozzi et al. 2018, (9))."""
    return float(label_variance(result).mean())


def class_codes(result: "Result") -> Int[np.ndarray, " N"]:
    """Return each node's most probable class as an index of `Result.classes`.

    Of two equally probable classes it is the second one; of several, the first.
    """
    p = result.probabilities
    if result.posterior.likelihood.has_codes:
        return np.asarray(p.argmax(axis=1))
    return (p[:, 1] >= p[:, 0]).astype(np.int64)


def labels(result: "Result") -> Float[np.ndarray, " N"]:
    """Return each node's most probable label, as the posterior codes it.

    Returns
    -------
    numpy.ndarray, shape (N,)
        −1 or +1 (+1 on a tie); for more classes, codes from 0.
    """
    codes = class_codes(result).astype(np.float64)
    return codes if result.posterior.likelihood.has_codes else 2 * codes - 1


def entropy(result: "Result") -> Float[np.ndarray, " N"]:
    """Return ``−Σ p log p`` over the classes of each node, in [0, log K]."""
    return np.asarray(entr(result.probabilities).sum(axis=1))


def margin(result: "Result") -> Float[np.ndarray, " N"]:
    """Return the probability of the most probable class minus that of the next, in [0, 1]."""
    return uncertainty.margin(result.probabilities)


def rank_by_uncertainty(result: "Result") -> Int[np.ndarray, " N"]:
    """Return node indices from the least to the most certain, by `margin`."""
    return uncertainty.rank_by_uncertainty(result.probabilities)


def most_uncertain(result: "Result", n: int = 20) -> Int[np.ndarray, " n"]:
    """Return the n least certain unlabelled nodes, the least certain first.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
    >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
    >>> result = classifier.fit(moons.features, y).result_
    >>> gq.most_uncertain(result, 3).shape
    (3,)
    """
    return _unlabelled_in(result, rank_by_uncertainty(result))[:n]


def most_certain(result: "Result", n: int = 20) -> Int[np.ndarray, " n"]:
    """Return the n most certain unlabelled nodes, the most certain first."""
    return _unlabelled_in(result, rank_by_uncertainty(result)[::-1])[:n]


def with_classes(result: "Result", names: Any) -> "Result":
    """Return the result with names of the classes, in the order of their codes.

    Classes without a name are numbered: "unseen 1", "unseen 2" and so on.

    Raises
    ------
    InvalidInput
        If there are more names than classes.
    """
    return dataclasses.replace(result, classes=names)


def is_labelled(result: "Result") -> Bool[np.ndarray, " N"]:
    """Return whether each node was given a label."""
    labelled = np.zeros(len(result.has_evidence), dtype=bool)
    labelled[result.posterior.labelled] = True
    return labelled


def _unlabelled_in(result: "Result", order: Int[np.ndarray, " N"]) -> Int[np.ndarray, " M"]:
    return order[~is_labelled(result)[order]]
