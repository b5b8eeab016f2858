"""Scores against the truth; nothing below this floor may know the truth."""

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
