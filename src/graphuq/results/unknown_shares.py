"""Class shares that the labels do not tell, but the unlabelled nodes.

To the fit, numbers n_k of labels that someone chose for each class are shares of the classes: its
probabilities ``q_ik`` are those of a population with the shares ``t_k = (2 + n_k) / (2K + J)``.
With the shares s the class of node i has the probability

    p_ik ∝ q_ik s_k / t_k

(Saerens, Latinne & Decaestecker 2002). The shares have a Dirichlet prior, and the unlabelled nodes
are evidence about them, as far as the fit tells classes apart. See docs/theory/class_shares.md,
"Labels chosen class by class". Few labels of two classes weigh fields instead, which integrates the
shares (`graphuq.inference.model_average.class_shares`).
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from graphuq.inference.model_average import weigh_shares
from graphuq.posterior.posterior import Posterior
from graphuq.results.summaries import NodeSummaries

if TYPE_CHECKING:
    from graphuq.results.result import Result

PRIOR_COUNT = 2.0  # nodes of each class that the prior is worth; docs/archive/class_shares.md
SWEEPS, TOLERANCE = 500, 1e-9  # of the shares


def has_unknown_shares(posterior: Posterior) -> bool:
    """Return whether someone chose how many labels of each class, and no field has weights."""
    return posterior.label_design == "by-class" and not weigh_shares(posterior)


def estimated_shares(result: "Result") -> Float[np.ndarray, " K"] | None:
    """Return the shares of the classes that the unlabelled nodes tell, or None.

    They are estimated if someone chose how many labels each class has (``label_design`` of
    `graphuq.models.Average`), and there are no ``class_proportions``. With two classes each has at
    least fifteen labels. The probabilities of `Result` have them already.

    Returns
    -------
    numpy.ndarray, shape (K,), or None

    Examples
    --------
    Three clouds of 20, 60 and 120 points, with three labels each:

    >>> import numpy as np, graphuq as gq
    >>> codes = np.repeat([0, 1, 2], [20, 60, 120])
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + 4 * np.eye(3)[codes][:, :2]
    >>> y = np.full(200, -1)
    >>> for k in range(3):
    ...     y[np.flatnonzero(codes == k)[:3]] = k
    >>> classifier = gq.GraphClassifier(inference="expectation-propagation").fit(X, y)
    >>> gq.results.estimated_shares(classifier.result_).round(1).tolist()
    [0.2, 0.3, 0.5]
    """
    posterior = result.posterior
    free = _free(posterior)
    if not has_unknown_shares(posterior) or not len(free):
        return None
    # Shares that made these probabilities are the only ones that they lead to.
    return _updated(result.probabilities[free], len(posterior.labels))


def share_odds(result: "Result") -> Float[np.ndarray, " K"] | None:
    """Return what the probabilities were multiplied by: estimated shares by those of the labels.

    It is None where `estimated_shares` is.
    """
    shares = estimated_shares(result)
    return None if shares is None else shares / label_shares(result.posterior)


def label_shares(posterior: Posterior) -> Float[np.ndarray, " K"]:
    """Return the class shares t of the labels, as the fit takes them."""
    n_classes, several = posterior.likelihood.min_classes, posterior.likelihood.has_codes
    codes = np.asarray(posterior.labels if several else posterior.labels > 0, dtype=int)
    counts = np.bincount(codes, minlength=n_classes)
    return np.asarray((PRIOR_COUNT + counts) / (PRIOR_COUNT * n_classes + counts.sum()))


def with_shares(summaries: NodeSummaries, posterior: Posterior) -> NodeSummaries:
    """Return summaries of all nodes with probabilities of unknown shares, if they are unknown.

    Labelled nodes keep theirs: their class is known.
    """
    free = _free(posterior)
    if not has_unknown_shares(posterior) or not len(free):
        return summaries
    given = label_shares(posterior)
    shares = shares_of(summaries.probabilities[free], len(posterior.labels), given)
    found = multiplied(summaries, shares / given)
    for name in ("label_mean", "label_mcse"):
        own, before = getattr(found, name), getattr(summaries, name)
        own[posterior.labelled] = before[posterior.labelled]
    return found


def shares_of(
    q: Float[np.ndarray, "N K"], n_labels: int, given: Float[np.ndarray, " K"]
) -> Float[np.ndarray, " K"]:
    """Return the shares under which nodes with these probabilities have them, too.

    Parameters
    ----------
    q : numpy.ndarray, shape (N, K)
        Class probabilities of the unlabelled nodes for the shares ``given``.
    n_labels : int
        J. All unlabelled nodes together count as at most J: what is unknown of a class is unknown
        of all its nodes.
    given : numpy.ndarray, shape (K,)
        t, positive; their sum is 1.
    """
    shares = np.full(q.shape[1], 1 / q.shape[1])
    for _ in range(SWEEPS):
        p = q * (shares / given)
        before, shares = shares, _updated(p / p.sum(axis=1, keepdims=True), n_labels)
        if np.abs(shares - before).max() < TOLERANCE:
            break
    return shares


def _updated(p: Float[np.ndarray, "N K"], n_labels: int) -> Float[np.ndarray, " K"]:
    """Return the mode of the Dirichlet posterior, given the classes that nodes seem to have.

    Nodes count as J c, where c says how often two draws of a node's class agree, more than by
    chance: 0 if all classes are equally probable, 1 if all are certain.
    """
    n_classes = p.shape[1]
    agreement = (p**2).sum(axis=1).mean()
    count = n_labels * max((agreement * n_classes - 1) / (n_classes - 1), 0.0)
    total = PRIOR_COUNT * n_classes + count
    return np.asarray((PRIOR_COUNT + count * p.mean(axis=0)) / total)


def multiplied(summaries: NodeSummaries, odds: Float[np.ndarray, " K"]) -> NodeSummaries:
    """Return summaries whose probabilities are multiplied by numbers and normalised again."""
    before = summaries.probabilities
    p = before * odds
    p /= p.sum(axis=1, keepdims=True)
    return summaries.with_probabilities(p, changed_error(summaries.mcse, before, p))


def changed_error(
    error: Float[np.ndarray, "B K"],
    before: Float[np.ndarray, "B K"],
    p: Float[np.ndarray, "B K"],
    power: float = 1.0,
) -> Float[np.ndarray, "B K"]:
    """Return Monte-Carlo errors after log odds were shifted, and multiplied by a power.

    Errors change by ``power p'(1 − p') / p(1 − p)``.
    """
    spread = before * (1 - before)
    factor = np.divide(p * (1 - p), spread, out=np.ones_like(p), where=spread > 0)
    return np.asarray(error * factor * power)


def _free(posterior: Posterior) -> np.ndarray:
    """Return the nodes without a label whose component has one."""
    free = np.array(posterior.has_evidence)
    free[posterior.labelled] = False
    return np.flatnonzero(free)
