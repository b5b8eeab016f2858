"""Class probabilities under the exact factors of the nearest label, in place of its sites.

A Gaussian has tails in which a label contradicts its class, and with many classes most of the
probability is lost there: each of them takes a little. At a node the label that tells most of it
has one factor ``Φ(h_k / γ)`` for each class k. Given this factor in place of its Gaussian site,
the probability that the likeliest class t is ahead of class k is that of an orthant of two
dimensions. These are the tilted marginals of expectation propagation, as in Cseke & Heskes (2011).
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr, ndtri, owens_t

from graphuq.inference.label_leads import LeadsAt

TINY = 1e-9  # deviations from zero that `both_positive` resolves
LEAST = 1e-15  # probability of a pair of classes
MAX_CORRELATION = 1 - 1e-7


def tilted_mean(
    mean: Float[np.ndarray, "B K"],
    variance: Float[np.ndarray, "B K"],
    top: Int[np.ndarray, " B"],
    leads: LeadsAt,
) -> Float[np.ndarray, "B K"]:
    """Return means of independent fields with the tilted probability of each pair t and k.

    Parameters
    ----------
    mean, variance : numpy.ndarray, shape (B, K)
        Of independent fields that stand for those at each node.
    top : numpy.ndarray of int, shape (B,)
        Class t of each node, of the largest mean.
    leads : LeadsAt
    """
    rows = np.arange(len(mean))
    ahead = mean[rows, top, None] - mean
    spread = variance[rows, top, None] + variance
    with np.errstate(all="ignore"):  # what is not finite keeps its mean
        cavity = 1 / (1 / leads.variance - leads.precision)
        before = cavity * (leads.mean / leads.variance - leads.shift)
        slope = leads.covariance / leads.variance
        rest = np.maximum(spread - slope * leads.covariance, 0.0)
        deviation = np.sqrt(rest + slope**2 * cavity)
        total = np.sqrt(cavity + leads.noise_std**2)
        at = (ahead + slope * (before - leads.mean)) / deviation
        correlation = slope * cavity / (deviation * total)
        behind = both_positive(before / total, -at, -correlation) / ndtr(before / total)
        moved = np.sqrt(spread) * ndtri(np.clip(behind, LEAST, 1 - LEAST))
    found = mean[rows, top, None] + moved
    keeps = ~(np.isfinite(found) & (cavity > 0))
    keeps[rows, top] = True
    return np.where(keeps, mean, found)


def both_positive(
    a: Float[np.ndarray, "*n"], b: Float[np.ndarray, "*n"], correlation: Float[np.ndarray, "*n"]
) -> Float[np.ndarray, "*n"]:
    """Return the probability that two normal variables with these means are both positive.

    Their variances are 1. It is Owen's (1956) formula with his function T.
    """
    r = np.clip(correlation, -MAX_CORRELATION, MAX_CORRELATION)
    root = np.sqrt(1 - r**2)
    a = np.where(np.abs(a) < TINY, TINY, a)
    b = np.where(np.abs(b) < TINY, TINY, b)
    found = 0.5 * (ndtr(a) + ndtr(b) - (a * b < 0))
    found -= owens_t(a, (b - r * a) / (a * root)) + owens_t(b, (a - r * b) / (b * root))
    return np.asarray(np.clip(found, 0.0, 1.0))
