"""Scores of results against true labels; no module that computes results imports this one."""

import dataclasses
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from graphuq.errors import InvalidInput, require
from graphuq.results.uncertainty import class_probabilities, rank_by_uncertainty
from graphuq.utils.checks import require_integer

__all__ = [
    "ReliabilityCurve",
    "accuracy",
    "accuracy_by_certainty",
    "brier_score",
    "expected_calibration_error",
    "log_score",
    "reliability_curve",
]


def accuracy(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    labelled: ArrayLike | None = None,
) -> float:
    """Compute the share of nodes whose most probable label is the true one.

    Parameters
    ----------
    label_mean : numpy.ndarray, shape (N,) or (N, K)
        Mean of the label in [−1, 1] for two classes, or the probability of each class. If n
        classes tie, a node counts as 1/n, so that the order of the data cannot break ties.
    truth : numpy.ndarray, shape (N,)
        −1 or +1, or the code of the class, from 0.
    labelled : array_like of int or bool, optional
        Nodes that are left out because their labels were given.

    Returns
    -------
    float
        Accuracy in [0, 1].

    Raises
    ------
    InvalidInput
        If shapes differ, a class is out of range, or no node is left.

    Examples
    --------
    >>> import numpy as np
    >>> accuracy(np.array([0.9, -0.2, 0.0, 0.4]), np.array([1.0, -1.0, 1.0, -1.0]))
    0.625
    >>> accuracy(np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]]), np.array([0, 1]))
    0.75
    """
    return float(_share_right(*_probability(label_mean, truth, labelled)).mean())


def accuracy_by_certainty(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    shares: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 1.0),
    labelled: ArrayLike | None = None,
) -> dict[float, float]:
    """Compute the accuracy on the most certain nodes, for several shares of nodes in (0, 1].

    See `accuracy` for the other parameters.
    """
    label_mean = np.asarray(label_mean)
    scored = np.flatnonzero(_scored_nodes(label_mean, truth, labelled))
    ranked = scored[rank_by_uncertainty(label_mean[scored])[::-1]]
    return {
        share: accuracy(label_mean[top], truth[top])
        for share in shares
        for top in [ranked[: max(1, round(share * len(ranked)))]]
    }


def brier_score(
    label_mean: Float[np.ndarray, "N *K"], truth: np.ndarray, labelled: ArrayLike | None = None
) -> float:
    """Compute half the mean squared error of the class probabilities, in [0, 1] (Brier 1950).

    For two classes this is the squared error of either probability; it is 0.25 if all
    probabilities are 1/2. See `accuracy` for the parameters.
    """
    probability, codes = _probability(label_mean, truth, labelled)
    error = probability - (np.arange(probability.shape[1])[None, :] == codes[:, None])
    return float(0.5 * (error**2).sum(axis=1).mean())


def log_score(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    labelled: ArrayLike | None = None,
    floor: float = 1e-6,
) -> float:
    """Compute the mean of ``−log`` of the true label's probability (Good 1952).

    The score is >= 0, and log K if all K classes are equally probable.

    Parameters
    ----------
    label_mean, truth, labelled
        See `accuracy`.
    floor : float, default 1e-6
        Smallest probability used, so that one certain mistake does not make the score infinite.
    """
    probability, codes = _probability(label_mean, truth, labelled)
    given = probability[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(given, floor)).mean())


@dataclasses.dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Accuracy of the labels as a function of their confidence.

    Attributes
    ----------
    confidence : numpy.ndarray, shape (B,)
        Mean probability of the most probable label in each non-empty bin, in [1/K, 1].
    accuracy : numpy.ndarray, shape (B,)
        Share of nodes in the bin for which that label is the true one.
    count : numpy.ndarray, shape (B,)
        Number of nodes in the bin.
    """

    confidence: Float[np.ndarray, " B"]
    accuracy: Float[np.ndarray, " B"]
    count: np.ndarray

    @property
    def expected_calibration_error(self) -> float:
        """Mean over nodes of ``|confidence − accuracy|`` of their bin (Naeini et al. 2015)."""
        weights = self.count / self.count.sum()
        return float(weights @ np.abs(self.confidence - self.accuracy))


def reliability_curve(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    labelled: ArrayLike | None = None,
    n_bins: int = 10,
) -> ReliabilityCurve:
    """Compute accuracy by confidence, in ``n_bins`` bins of equal width on [1/K, 1].

    See `accuracy` for the other parameters.

    Examples
    --------
    >>> import numpy as np
    >>> curve = reliability_curve(np.array([0.9, 0.9, -0.9, 0.1]), np.array([1.0, 1, 1, 1]))
    >>> curve.confidence.round(2).tolist(), curve.accuracy.round(2).tolist()
    ([0.55, 0.95], [1.0, 0.67])
    >>> round(curve.expected_calibration_error, 3)
    0.325
    """
    require_integer("n_bins", n_bins, 1)
    probability, codes = _probability(label_mean, truth, labelled)
    n_classes = probability.shape[1]
    confidence, right = probability.max(axis=1), _share_right(probability, codes)
    share = (n_classes * confidence - 1) / (n_classes - 1)
    bins = np.clip((share * n_bins).astype(int), 0, n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    filled = count > 0
    return ReliabilityCurve(
        confidence=np.bincount(bins, confidence, n_bins)[filled] / count[filled],
        accuracy=np.bincount(bins, right, n_bins)[filled] / count[filled],
        count=count[filled],
    )


def expected_calibration_error(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    labelled: ArrayLike | None = None,
    n_bins: int = 10,
) -> float:
    """Compute the expected calibration error in [0, 1]; see `ReliabilityCurve`."""
    return reliability_curve(label_mean, truth, labelled, n_bins).expected_calibration_error


def _probability(
    label_mean: Float[np.ndarray, "N *K"], truth: np.ndarray, labelled: ArrayLike | None
) -> tuple[Float[np.ndarray, "M K"], Int[np.ndarray, " M"]]:
    """Return the class probabilities and the true class codes at the scored nodes."""
    label_mean = np.asarray(label_mean)
    scored = _scored_nodes(label_mean, truth, labelled)
    codes = np.asarray(truth)[scored]
    codes = (codes if label_mean.ndim == 2 else codes > 0).astype(int)
    probability = class_probabilities(label_mean[scored])
    outside = codes[(codes < 0) | (codes >= probability.shape[1])]
    require(
        len(outside) == 0,
        "truth",
        f"class {outside[:1].tolist()} with {probability.shape[1]} classes",
        "code the true classes from 0",
    )
    return probability, codes


def _share_right(
    probability: Float[np.ndarray, "M K"], codes: Int[np.ndarray, " M"]
) -> Float[np.ndarray, " M"]:
    """Return 1 if the most probable class is the true one, 1/n if it is among n that tie."""
    level = probability == probability.max(axis=1)[:, None]
    return level[np.arange(len(codes)), codes] / level.sum(axis=1)


def where_known(
    label_mean: Float[np.ndarray, "N *K"], truth: np.ndarray | None, labelled: ArrayLike | None
) -> tuple[Float[np.ndarray, "M *K"], Float[np.ndarray, " M"]] | None:
    """Return label means and truth of the unlabelled nodes of known truth, or None.

    The truth of a node is unknown if it is NaN.
    """
    if truth is None:
        return None
    known, given = np.isfinite(truth), cast(Any, labelled)
    known[given] = False
    return (label_mean[known], truth[known]) if known.any() else None


def _scored_nodes(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    labelled: ArrayLike | None,
) -> Bool[np.ndarray, " N"]:
    """Return the mask of unlabelled nodes, or raise `InvalidInput` if there is none."""
    require(
        np.shape(label_mean)[:1] == np.shape(truth),
        "truth",
        f"shape {np.shape(truth)} beside {np.shape(label_mean)[:1]} label means",
        "give one true label per node",
    )
    require(
        np.asarray(truth).dtype.kind in "biuf",
        "truth",
        f"true labels of type {np.asarray(truth).dtype}",
        "give −1 or +1, or class codes from 0",
    )
    scored = np.ones(len(label_mean), dtype=bool)
    if labelled is not None and np.size(labelled):
        try:
            scored[np.asarray(labelled)] = False
        except IndexError as error:
            raise InvalidInput(
                "labelled", f"{error}", f"give indices or a mask of {len(scored)} nodes"
            ) from None
    if not scored.any():
        raise InvalidInput("labelled", "every node is labelled", "leave some nodes unlabelled")
    return scored
