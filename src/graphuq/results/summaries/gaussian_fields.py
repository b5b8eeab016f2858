"""Class probabilities of K Gaussian fields at a node, by quadrature. Compiled by Numba.

If the fields are independent with means m_k and deviations s_k, the largest is class k with
probability ``∫ φ((t − m_k)/s_k)/s_k ∏_{l ≠ k} Φ((t − m_l)/s_l) dt``. A trapezoid rule has an error
below 1e-5.

Fields given labels depend on each other, and only their differences matter. They are replaced by
independent ones. With the class t of the largest mean, ``v_t + v_k = Var(u_t − u_k)`` for all k,
and ``v_t = Cov(u_t − u_a, u_t − u_b)`` for its two closest rivals a and b. This is exact for three
classes; for more, other pairs of rivals have approximate variances.
"""

from typing import Any, no_type_check

import numpy as np
from jaxtyping import Float

from graphuq.inference import GaussianApproximation
from graphuq.inference.class_covariance import of_classes
from graphuq.posterior.field import ClassField
from graphuq.results.summaries.base import (
    BLOCK_ELEMENTS,
    Link,
    NodeSummaries,
    Rows,
    conditional_distribution,
    slices,
)
from graphuq.results.summaries.random_label import REACH, STEPS_PER_UNIT, TABLES
from graphuq.results.summaries.tilted import tilted_mean
from graphuq.utils.arrays import njit_cached, parallel_map

WIDTH = 5.0  # deviations on both sides of a mean, outside of which nothing is integrated
STEP = 0.6  # step of the trapezoid rule, in the smallest deviation of a class that matters
MAX_POINTS = 400  # of the rule, reached if deviations differ by a factor of more than 20


def gaussian_summaries(
    answer: GaussianApproximation, field: ClassField, rows: Rows, link: Link = None
) -> NodeSummaries:
    """Return means and deviations at nodes under a Gaussian approximation of several classes.

    There is no Monte-Carlo error. A link adds the noise of the label to each field.
    """
    n_classes = field.n_classes
    mean = np.asarray(field.by_class(np.asarray(answer.white_mean)[None]))[0]  # (K, r)
    covariance = of_classes(answer.white_covariance, n_classes)
    weights, scales = (np.ones(1), np.zeros(1)) if link is None else link
    found = NodeSummaries(*np.zeros((4, len(rows.scale), n_classes)))
    if answer.leads is not None:
        factor = np.asarray(field.field.factor)
        covariance = covariance.with_leads(answer.leads, factor, len(rows.scale))

    def fill(part: slice) -> None:
        loadings, std = conditional_distribution(field.field, rows[part])
        latent_mean = loadings @ mean.T
        fields = covariance.at(loadings)
        apart = _independent_variances(fields, latent_mean)
        leads = fields.leads()
        found.latent_mean[part] = latent_mean
        found.latent_std[part] = np.sqrt(fields.variance + std[:, None] ** 2)
        for weight, scale in zip(weights, scales, strict=True):
            own = apart + std[:, None] ** 2 + scale**2
            center = latent_mean
            if leads is not None:
                center = tilted_mean(latent_mean, own, latent_mean.argmax(axis=1), leads)
            found.label_mean[part] += weight * largest_shares(center, np.sqrt(own))

    parallel_map(fill, slices(len(rows.scale), 4 * BLOCK_ELEMENTS // covariance.n_numbers))
    return found


def largest_shares(
    mean: Float[np.ndarray, "B K"], std: Float[np.ndarray, "B K"]
) -> Float[np.ndarray, "B K"]:
    """Return the probability that each of K independent Gaussians is the largest.

    Parameters
    ----------
    mean, std : numpy.ndarray, shape (B, K)
        Deviations may be 0; Gaussians that are equal share the probability. One below a 240th
        of the range of all Gaussians counts as that.
    """
    shares = np.empty(mean.shape)
    _fill_shares(
        np.ascontiguousarray(mean, dtype=np.float64),
        np.ascontiguousarray(std, dtype=np.float64),
        TABLES,
        shares,
    )
    return shares


def _independent_variances(fields: Any, mean: Float[np.ndarray, "B K"]) -> Float[np.ndarray, "B K"]:
    """Return variances of independent fields that stand for the dependent ones at each node."""
    rows, top = np.arange(len(mean)), mean.argmax(axis=1)
    apart = fields.apart(top)
    if mean.shape[1] == 2:
        return apart.sum(axis=1, keepdims=True) / 2 + np.zeros_like(mean)
    # Of the rivals, the two with the best chances to be ahead of the top.
    behind = mean[rows, top, None] - mean
    chances = -np.divide(behind, np.sqrt(apart), where=apart > 0, out=np.full_like(mean, np.inf))
    chances[rows, top] = -np.inf
    a, b = np.sort(np.argpartition(-chances, 1, axis=1)[:, :2], axis=1).T
    of_rivals = np.where(np.arange(mean.shape[1]) == top[:, None], np.inf, apart)
    common = np.clip(fields.shared_with(top, a, b), 0.0, of_rivals.min(axis=1))
    found = apart - common[:, None]
    found[rows, top] = common
    return np.asarray(found)


@njit_cached
@no_type_check
def _fill_shares(mean: Any, std: Any, table: Any, shares: Any) -> None:
    n_rows, n_classes = mean.shape
    rival = np.empty(n_classes, np.int64)
    value = np.empty(n_classes)
    for i in range(n_rows):
        lower = upper = -np.inf
        for k in range(n_classes):
            lower = max(lower, mean[i, k] - WIDTH * std[i, k])
            upper = max(upper, mean[i, k] + WIDTH * std[i, k])
        n, smallest, total = 0, np.inf, 0.0
        for k in range(n_classes):
            shares[i, k] = 0.0
            if mean[i, k] + WIDTH * std[i, k] >= lower:
                rival[n] = k
                n += 1
                smallest = min(smallest, std[i, k])
        if n == 1 or upper == lower:
            for c in range(n):
                shares[i, rival[c]] = 1.0 / n
            continue
        # The rule resolves no smaller deviation; a field of deviation 0 is given this one.
        resolved = (upper - lower) / (STEP * (MAX_POINTS - 2.0) - WIDTH)
        lower -= WIDTH * resolved * (smallest < resolved)
        smallest = max(smallest, resolved)
        n_points = 2 + int((upper - lower) / (STEP * smallest))
        step = (upper - lower) / (n_points - 1)
        for g in range(n_points):
            t, product = lower + g * step, 1.0
            for c in range(n):
                k = rival[c]
                deviation = max(std[i, k], resolved)
                at = (t - mean[i, k]) / deviation
                at = min(max((at + REACH) * STEPS_PER_UNIT, 0.0), len(table) - 1.001)
                place = int(at)
                share = at - place
                product *= table[place, 0] + share * (table[place + 1, 0] - table[place, 0])
                hazard = table[place, 1] + share * (table[place + 1, 1] - table[place, 1])
                value[c] = hazard / deviation
            for c in range(n):
                shares[i, rival[c]] += product * value[c]
        for c in range(n):
            total += shares[i, rival[c]]
        for c in range(n):
            shares[i, rival[c]] /= total
