"""Scores against the truth; nothing below this floor may know the truth."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.errors import InvalidInput, require
from graphuq.results.uncertainty import class_probabilities, rank_by_uncertainty


def accuracy(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    labelled: Any = None,
) -> float:
    """Share of nodes whose most probable label is the true one.

    Parameters
    ----------
    label_mean : numpy.ndarray, shape (N,) or (N, K)
        In [−1, 1]; or of several classes their probabilities. Of labels that tie each counts its
        share: no order of the data may break ties.
    truth : numpy.ndarray, shape (N,)
        −1 or +1; or the code of the class, from 0.
    labelled : array_like of int, optional
        Nodes left out, since their labels were given.

    Examples
    --------
    >>> import numpy as np
    >>> accuracy(np.array([0.9, -0.2, 0.0, 0.4]), np.array([1.0, -1.0, 1.0, -1.0]))
    0.625
    >>> accuracy(np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]]), np.array([0, 1]))
    0.75
    """
    return float(_rightness(*_probability(label_mean, truth, labelled)).mean())


def accuracy_by_certainty(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    shares: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 1.0),
    labelled: Any = None,
) -> dict[float, float]:
    """Accuracy of the most certain share of the nodes, for several shares in (0, 1]."""
    judged = np.flatnonzero(_judged(label_mean, truth, labelled))
    ranked = judged[rank_by_uncertainty(label_mean[judged])[::-1]]
    return {
        share: accuracy(label_mean[top], truth[top])
        for share in shares
        for top in [ranked[: max(1, round(share * len(ranked)))]]
    }


def brier_score(
    label_mean: Float[np.ndarray, "N *K"], truth: np.ndarray, labelled: Any = None
) -> float:
    """Half the mean squared error of the classes' probabilities, in [0, 1] (Brier 1950).

    Of two classes that is the squared error of either; 0.25 for a coin.
    """
    probability, codes = _probability(label_mean, truth, labelled)
    error = probability - (np.arange(probability.shape[1])[None, :] == codes[:, None])
    return float(0.5 * (error**2).sum(axis=1).mean())


def log_score(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    labelled: Any = None,
    floor: float = 1e-6,
) -> float:
    """Mean of ``−log`` of the probability given to the true label; log K by chance (Good 1952).

    Parameters
    ----------
    label_mean : numpy.ndarray, shape (N,) or (N, K)
    truth : numpy.ndarray, shape (N,)
        −1 or +1, or the code of the class.
    labelled : array_like of int, optional
        Nodes left out.
    floor : float, default 1e-6
        Least probability charged, so that one sure mistake does not make the score infinite.
    """
    probability, codes = _probability(label_mean, truth, labelled)
    given = probability[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(given, floor)).mean())


@dataclasses.dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """How often the labels are right that are given with a certain confidence.

    Attributes
    ----------
    confidence, accuracy : numpy.ndarray, shape (B,)
        Mean probability of the most probable label in each bin that holds a node, in [1/K, 1],
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
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    labelled: Any = None,
    n_bins: int = 10,
) -> ReliabilityCurve:
    """Accuracy by confidence, in bins of equal width on [1/K, 1].

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
    probability, codes = _probability(label_mean, truth, labelled)
    n_classes = probability.shape[1]
    confidence, right = probability.max(axis=1), _rightness(probability, codes)
    share = (n_classes * confidence - 1) / (n_classes - 1)
    bins = np.clip((share * n_bins).astype(int), 0, n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    held = count > 0
    return ReliabilityCurve(
        confidence=np.bincount(bins, confidence, n_bins)[held] / count[held],
        accuracy=np.bincount(bins, right, n_bins)[held] / count[held],
        count=count[held],
    )


def expected_calibration_error(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    labelled: Any = None,
    n_bins: int = 10,
) -> float:
    """Of `reliability_curve`, in [0, 1]."""
    return reliability_curve(label_mean, truth, labelled, n_bins).expected_calibration_error


def _probability(
    label_mean: Float[np.ndarray, "N *K"], truth: np.ndarray, labelled: Any
) -> tuple[Float[np.ndarray, "M K"], Int[np.ndarray, " M"]]:
    """Probability of each class at the judged nodes, and the code of the true one."""
    judged = _judged(label_mean, truth, labelled)
    codes = np.asarray(truth)[judged]
    codes = (codes if label_mean.ndim == 2 else codes > 0).astype(int)
    probability = class_probabilities(label_mean[judged])
    outside = codes[(codes < 0) | (codes >= probability.shape[1])]
    require(
        len(outside) == 0,
        "truth",
        f"class {outside[:1].tolist()} is none of {probability.shape[1]}",
        "code the true classes from 0",
    )
    return probability, codes


def _rightness(
    probability: Float[np.ndarray, "M K"], codes: Int[np.ndarray, " M"]
) -> Float[np.ndarray, " M"]:
    """1 where the most probable class is the true one, 1/n where n tie and it is among them."""
    level = probability == probability.max(axis=1)[:, None]
    return level[np.arange(len(codes)), codes] / level.sum(axis=1)


def where_known(
    label_mean: Float[np.ndarray, "N *K"], truth: np.ndarray | None, labelled: Any
) -> tuple[Float[np.ndarray, "M *K"], Float[np.ndarray, " M"]] | None:
    """Label means and truth of the unlabelled nodes whose truth is known (not NaN), if any."""
    if truth is None:
        return None
    known = np.isfinite(truth)
    known[labelled] = False
    return (label_mean[known], truth[known]) if known.any() else None


def _judged(
    label_mean: Float[np.ndarray, "N *K"],
    truth: np.ndarray,
    labelled: Any,
) -> Bool[np.ndarray, " N"]:
    require(
        np.shape(label_mean)[:1] == np.shape(truth),
        "truth",
        f"shape {np.shape(truth)} beside {np.shape(label_mean)[:1]} label means",
        "give one true label a node",
    )
    judged = np.ones(len(label_mean), dtype=bool)
    if labelled is not None:
        judged[labelled] = False
    if not judged.any():
        raise InvalidInput("labelled", "every node is labelled", "leave some to judge by")
    return judged
