"""Scores against the truth; nothing below this floor may know the truth."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from graphuq.errors import InvalidInput, require


def accuracy(
    label_mean: Float[np.ndarray, " N"],
    truth: np.ndarray,
    labelled: Any = None,
) -> float:
    """Share of nodes whose more probable label is the true one.

    Parameters
    ----------
    label_mean : numpy.ndarray, shape (N,)
        In [−1, 1]. An exact 0 counts one half: no order of the data may break ties.
    truth : numpy.ndarray, shape (N,)
        −1 or +1.
    labelled : array_like of int, optional
        Nodes left out, since their labels were given.

    Examples
    --------
    >>> import numpy as np
    >>> accuracy(np.array([0.9, -0.2, 0.0, 0.4]), np.array([1.0, -1.0, 1.0, -1.0]))
    0.625
    """
    judged = _judged(label_mean, truth, labelled)
    agreement = np.sign(label_mean[judged]) * truth[judged]
    return float((agreement > 0).mean() + 0.5 * (agreement == 0).mean())


def accuracy_by_certainty(
    label_mean: Float[np.ndarray, " N"],
    truth: np.ndarray,
    shares: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 1.0),
    labelled: Any = None,
) -> dict[float, float]:
    """Accuracy of the most certain share of the nodes, for several shares in (0, 1]."""
    judged = np.flatnonzero(_judged(label_mean, truth, labelled))
    shuffled = np.random.default_rng(0).permutation(judged)
    ranked = shuffled[np.argsort(-np.abs(label_mean[shuffled]), kind="stable")]
    return {
        share: accuracy(label_mean[top], truth[top])
        for share in shares
        for top in [ranked[: max(1, round(share * len(ranked)))]]
    }


def brier_score(
    label_mean: Float[np.ndarray, " N"], truth: np.ndarray, labelled: Any = None
) -> float:
    """Mean squared error of the probability of +1, in [0, 1]; 0.25 for a coin (Brier 1950)."""
    probability, positive = _probability(label_mean, truth, labelled)
    return float(((probability - positive) ** 2).mean())


def log_score(
    label_mean: Float[np.ndarray, " N"],
    truth: np.ndarray,
    labelled: Any = None,
    floor: float = 1e-6,
) -> float:
    """Mean of ``−log`` of the probability given to the true label; log 2 for a coin (Good 1952).

    Parameters
    ----------
    label_mean : numpy.ndarray, shape (N,)
    truth : numpy.ndarray, shape (N,)
        −1 or +1.
    labelled : array_like of int, optional
        Nodes left out.
    floor : float, default 1e-6
        Least probability charged, so that one sure mistake does not make the score infinite.
    """
    probability, positive = _probability(label_mean, truth, labelled)
    given = np.where(positive, probability, 1 - probability)
    return float(-np.log(np.maximum(given, floor)).mean())


@dataclasses.dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """How often the labels are right that are given with a certain confidence.

    Attributes
    ----------
    confidence, accuracy : numpy.ndarray, shape (B,)
        Mean probability of the more probable label in each bin that holds a node, in [1/2, 1],
        and the share of nodes for which it is the true one.
    count : numpy.ndarray, shape (B,)
        Nodes in the bin.
    """

    confidence: Float[np.ndarray, " B"]
    accuracy: Float[np.ndarray, " B"]
    count: np.ndarray

    @property
    def expected_calibration_error(self) -> float:
        """Mean over nodes of |confidence − accuracy| in their bin (Naeini et al. 2015)."""
        weights = self.count / self.count.sum()
        return float(weights @ np.abs(self.confidence - self.accuracy))


def reliability_curve(
    label_mean: Float[np.ndarray, " N"],
    truth: np.ndarray,
    labelled: Any = None,
    n_bins: int = 10,
) -> ReliabilityCurve:
    """Accuracy by confidence, in bins of equal width on [1/2, 1].

    Examples
    --------
    >>> import numpy as np
    >>> curve = reliability_curve(np.array([0.9, 0.9, -0.9, 0.1]), np.array([1.0, 1, 1, 1]))
    >>> curve.confidence.round(2).tolist(), curve.accuracy.round(2).tolist()
    ([0.55, 0.95], [1.0, 0.67])
    >>> round(curve.expected_calibration_error, 3)
    0.325
    """
    require(n_bins >= 1, "n_bins", f"{n_bins}", "use 1 or more")
    probability, positive = _probability(label_mean, truth, labelled)
    confidence = np.maximum(probability, 1 - probability)
    # A tie is half right: no order of the classes may decide it.
    right = np.where(probability == 0.5, 0.5, (probability > 0.5) == positive)
    bins = np.minimum(((2 * confidence - 1) * n_bins).astype(int), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    held = count > 0
    return ReliabilityCurve(
        confidence=np.bincount(bins, confidence, n_bins)[held] / count[held],
        accuracy=np.bincount(bins, right, n_bins)[held] / count[held],
        count=count[held],
    )


def expected_calibration_error(
    label_mean: Float[np.ndarray, " N"],
    truth: np.ndarray,
    labelled: Any = None,
    n_bins: int = 10,
) -> float:
    """Of `reliability_curve`, in [0, 1]."""
    return reliability_curve(label_mean, truth, labelled, n_bins).expected_calibration_error


def _probability(
    label_mean: Float[np.ndarray, " N"], truth: np.ndarray, labelled: Any
) -> tuple[Float[np.ndarray, " M"], Bool[np.ndarray, " M"]]:
    """Probability of +1 at the judged nodes, and whether it is the truth."""
    judged = _judged(label_mean, truth, labelled)
    return (1 + label_mean[judged]) / 2, np.asarray(truth)[judged] > 0


def where_known(
    label_mean: Float[np.ndarray, " N"], truth: np.ndarray | None, labelled: Any
) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]] | None:
    """Label means and truth of the unlabelled nodes whose truth is known (not NaN), if any."""
    if truth is None:
        return None
    known = np.isfinite(truth)
    known[labelled] = False
    return (label_mean[known], truth[known]) if known.any() else None


def _judged(
    label_mean: Float[np.ndarray, " N"],
    truth: np.ndarray,
    labelled: Any,
) -> Bool[np.ndarray, " N"]:
    require(
        np.shape(label_mean) == np.shape(truth),
        "truth",
        f"shape {np.shape(truth)} beside {np.shape(label_mean)} label means",
        "give one true label a node",
    )
    judged = np.ones(len(label_mean), dtype=bool)
    if labelled is not None:
        judged[labelled] = False
    if not judged.any():
        raise InvalidInput("labelled", "every node is labelled", "leave some to judge by")
    return judged
