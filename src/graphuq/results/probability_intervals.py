"""Intervals of class probabilities: how far they depend on what is unknown of the field.

Given the field u, a label is of class k with the probability ``q_k = p(y = k | u)``, and draws of u
give draws of q. Their mean is not what is reported, which comes from more accurate marginals
(`summaries.tilted`), and which an average's power, experts and unknown class shares change. So q is
multiplied by one number a class, as such shares change it, and normalised again: at each node by
those with which its mean is the reported probability. They exist and are unique (Berry 1994).
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import IncompatibleParts, require
from graphuq.inference.draws import Draws
from graphuq.results.diagnostics import node_rows, rows_outside
from graphuq.results.errors_left import N_DRAWS, refuse_point
from graphuq.results.joint_draws import coefficients_and_components
from graphuq.results.leaving_out import label_shares
from graphuq.results.summaries import Rows, latent_draws
from graphuq.results.summaries.base import BLOCK_ELEMENTS, Link, slices
from graphuq.results.summaries.binary import expected_label
from graphuq.results.summaries.ordered import cuts, grade_shares
from graphuq.results.summaries.random_label import class_shares

if TYPE_CHECKING:
    from graphuq.results.result import Result

SWEEPS, TOLERANCE = 30, 5e-4  # of the means of q
MAX_STEP = 2.0  # of the logarithms of numbers, in a sweep
LEAST = 1e-6  # probability of a class in a draw, so that a number can make it larger


def probability_interval(
    result: "Result", probability: float = 0.9, nodes: Any = None
) -> Float[np.ndarray, "n K 2"]:
    """Return an interval of each class probability, between whose ends the probability lies.

    The probability ``p(y = k | u)`` of a label depends on the field u, which labels do not tell
    exactly; `Result.probabilities` are its mean. A wide interval says that no label is near. A
    narrow one at 1/2 says that the node lies between classes, and that more labels will not help.
    Tails are equal, at 500 draws. Where a few of them bring the mean beyond the end of all others,
    as near 0 and 1, the probability is the end.

    Parameters
    ----------
    result : Result
        Of any number of classes, from draws or an approximation.
    probability : float, default 0.9
        Of each interval, in (0, 1).
    nodes : array_like of int, shape (n,), optional
        All by default. 70,000 nodes of 10 classes take about a minute.

    Raises
    ------
    InvalidInput
        If ``probability`` is not in (0, 1).
    IncompatibleParts
        If the result is a point, or the noise of a label is learnt or not that of the label alone.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> codes = np.repeat([0, 1, 2], 50)
    >>> X = np.random.default_rng(0).normal(size=(150, 2)) + 4 * np.eye(3)[codes][:, :2]
    >>> y = np.where(np.arange(150) % 10, -1, codes)
    >>> result = gq.GraphClassifier().fit(X, y).result_
    >>> ends = gq.results.probability_interval(result)
    >>> p = result.probabilities
    >>> ends.shape, bool(((ends[:, :, 0] <= p) & (p <= ends[:, :, 1])).all())
    ((150, 3, 2), True)
    """
    at = np.arange(len(result.probabilities)) if nodes is None else np.atleast_1d(nodes)
    return ProbabilityIntervals(result).at(at, probability)


class ProbabilityIntervals:
    """Intervals of `probability_interval`, from the same draws of the field at each call.

    Parameters
    ----------
    result : Result
    """

    def __init__(self, result: "Result") -> None:
        posterior, answer = result.posterior, result.answer
        refuse_point(result)
        likelihood = posterior.likelihood.unshifted
        if likelihood.uses_all_nodes or likelihood.learnt:
            raise IncompatibleParts(
                "intervals of class probabilities need noise of each label that is known, which "
                f"{likelihood} has not; use gq.credible_interval, which is of u"
            )
        if not isinstance(answer, Draws) and not posterior.spectrum.has_eigenpairs:
            raise IncompatibleParts(
                "intervals of class probabilities need eigenpairs of the graph, or draws; fit "
                'with inference="sampling"'
            )
        self._result, self._field, self._likelihood = result, posterior.field, likelihood
        self._link: Link = posterior.likelihood.link
        self._draws = _thinned(answer) if isinstance(answer, Draws) else None
        if self._draws is not None:
            return
        rng = np.random.default_rng(0)
        coefficients, numbers = coefficients_and_components(answer, posterior, N_DRAWS, rng)
        self._coefficients = coefficients.astype(np.float32)
        self._tail = posterior.field.one_class.tail_std * rng.normal(size=coefficients.shape[:2])
        if cuts(self._link) and numbers is not None and len(self._link[1]) > 1:
            self._link = (np.zeros(0), self._link[1][numbers], self._link[2])

    def at(
        self, nodes: Int[np.ndarray, " n"], probability: float = 0.9
    ) -> Float[np.ndarray, "n K 2"]:
        """Return the intervals at nodes."""
        rows = node_rows(self._result.posterior)[nodes]
        return self.at_rows(rows, self._result.probabilities[nodes], probability)

    def of_prediction(
        self,
        eigenvectors: Float[np.ndarray, "M L"],
        scale: Float[np.ndarray, " M"],
        nodes: Int[np.ndarray, " M"],
        p: Float[np.ndarray, "M K"],
        probability: float = 0.9,
    ) -> Float[np.ndarray, "M K 2"]:
        """Return the intervals at rows, each of which is a node or, where that is −1, outside."""
        posterior, ends = self._result.posterior, np.empty((*p.shape, 2))
        is_out = nodes < 0
        inside = node_rows(posterior)[nodes[~is_out]]
        ends[~is_out] = self.at_rows(inside, p[~is_out], probability)
        if is_out.any():
            outside = rows_outside(posterior, eigenvectors[is_out], scale[is_out])
            ends[is_out] = self.at_rows(outside, p[is_out], probability)
        return ends

    def at_rows(
        self, rows: Rows, p: Float[np.ndarray, "B K"], probability: float = 0.9
    ) -> Float[np.ndarray, "B K 2"]:
        """Return the intervals at rows of the basis, whose classes have the probabilities p.

        Classes after the first K, such as those without a label, are left out.
        """
        require(0 < probability < 1, "probability", f"{probability!r}", "use a number in (0, 1)")
        ends = np.empty((*p.shape, 2))
        for part in slices(len(p), BLOCK_ELEMENTS // (N_DRAWS * p.shape[1])):
            q = self._shares(self._fields(rows[part]))[:, :, : p.shape[1]]
            ends[part] = _ends_around(p[part], with_means(q, p[part]), probability)
        return ends

    def _fields(self, rows: Rows) -> Float[np.ndarray, "B S n"]:
        """Return the fields at rows in each draw; n is 1 for two classes and for grades."""
        if self._draws is not None:
            u = latent_draws(self._draws, self._field, rows).reshape(
                len(rows.scale), -1, self._field.n_fields
            )
            present = self._draws.hyperparameters.get("n_classes")
            if present is not None:
                u[:, np.arange(self._field.n_fields) >= present.reshape(-1, 1)] = -np.inf
            return u
        basis = np.asarray(rows.eigenvectors, dtype=np.float32)
        u = np.tensordot(basis, self._coefficients, axes=(1, 2)).astype(np.float64)
        return (u + self._tail) * rows.scale[:, None, None] + rows.shift[:, None, None]

    def _shares(self, u: Float[np.ndarray, "B S n"]) -> Float[np.ndarray, "B S K"]:
        """Return the probability of each class as a label, given u."""
        link, nothing = self._link, np.zeros(len(u))
        if cuts(link):
            weights, scales, thresholds = link
            if len(weights) == 0:  # each draw has a scale
                return grade_shares(u[:, :, 0], scales, (np.ones(1), np.zeros(1), thresholds))
            return grade_shares(u[:, :, 0], nothing[:, None], link)
        if u.shape[2] > 1:
            if link is not None:
                return class_shares(u, link)
            codes = np.arange(float(u.shape[2]))
            q = label_shares(self._likelihood, u, codes)
        elif link is not None:
            label = expected_label(u[:, :, 0], nothing, link)
            return np.stack([1 - label, 1 + label], axis=2) / 2
        else:
            q = label_shares(self._likelihood, u[:, :, 0], np.array([-1.0, 1.0]))
        return np.asarray(q / q.sum(axis=2, keepdims=True))


def with_means(
    q: Float[np.ndarray, "B S K"], p: Float[np.ndarray, "B K"]
) -> Float[np.ndarray, "B S K"]:
    """Return class probabilities in draws, multiplied by a number a class, whose means are p.

    The logarithms of the numbers are the minimum of a convex function, by Newton's method with
    short steps. Where q is 0 or 1 in nearly all draws, some means stay apart from p.
    """
    found = np.maximum(q, LEAST).astype(np.float32)
    found *= (np.maximum(p, LEAST) / found.mean(axis=1))[:, None].astype(np.float32)
    found /= found.sum(axis=2, keepdims=True)
    open_, own, n_classes = np.arange(len(p)), found.copy(), p.shape[1]
    for _ in range(SWEEPS):
        means = own.mean(axis=1, dtype=np.float64)
        far = np.abs(p[open_] - means).max(axis=1) > TOLERANCE
        open_, own, means = open_[far], own[far], means[far]
        if not len(open_):
            break
        slopes = (own.swapaxes(1, 2) @ own) / -own.shape[1] + 1 / n_classes**2
        slopes += np.eye(n_classes) * (means + LEAST)[:, None]
        step = np.linalg.solve(slopes, (p[open_] - means)[:, :, None]).swapaxes(1, 2)
        own *= np.exp(np.clip(step, -MAX_STEP, MAX_STEP)).astype(np.float32)
        own /= own.sum(axis=2, keepdims=True)
        found[open_] = own
    return found


def _ends_around(
    p: Float[np.ndarray, "B K"], q: Float[np.ndarray, "B S K"], probability: float
) -> Float[np.ndarray, "B K 2"]:
    """Return ends with equal tails, or p where it is beyond an end."""
    tail = (1 - probability) / 2
    lower, upper = np.quantile(q, [tail, 1 - tail], axis=1)
    return np.stack([np.minimum(lower, p), np.maximum(upper, p)], axis=2)


def _thinned(draws: Draws) -> Draws:
    """Return at most `N_DRAWS` evenly spaced draws."""
    stride = -(-draws.n_chains * draws.n_samples // N_DRAWS)
    values = {name: v[:, ::stride] for name, v in draws.hyperparameters.items()}
    tail = None if draws.tail_std is None else draws.tail_std[:, ::stride]
    return replace(draws, white=draws.white[:, ::stride], hyperparameters=values, tail_std=tail)
