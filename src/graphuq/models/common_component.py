"""Odds of components that several tags have in common: each learns from the labels of the others.

Tags on one graph are often alike: as smooth, as noisy, and on the same block. A common component
m* is drawn by the prior odds p. Each tag has m* with the probability 1 − ε, or else a component of
its own, drawn by p. With the evidence Z_s(m) of tag s, its likelihood of m* is

    W_s(m) = (1 − ε) Z_s(m) + ε Σ_n p(n) Z_s(n),

and given the labels of all other tags the component of tag t has the prior probability

    Σ_m* p(m*) Π_{s≠t} W_s(m*) ((1 − ε) [m = m*] + ε p(m)) / Σ_m* p(m*) Π_{s≠t} W_s(m*),

which takes the place of p in the average of tag t. This is exact for these evidences, without any
iteration. See docs/theory/tags.md.
"""

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

OWN_SHARE = 0.5  # ε; docs/measurements/tags.md compares values


def common_log_odds(
    log_prior: Float[np.ndarray, " M"],
    log_evidences: Float[np.ndarray, "T M"],
    own_share: float = OWN_SHARE,
) -> Float[np.ndarray, "T M"]:
    """Return the log probabilities of the components of each tag, given labels of all others.

    Parameters
    ----------
    log_prior : numpy.ndarray, shape (M,)
        Log probabilities of the components; they add up to 1.
    log_evidences : numpy.ndarray, shape (T, M)
        log Z; −inf for a component that cannot be fitted to the labels of a tag.
    own_share : float
        ε in (0, 1).
    """
    log_common, log_own = np.log1p(-own_share), np.log(own_share)
    average = logsumexp(log_prior + log_evidences, axis=1, keepdims=True)
    likelihoods = np.logaddexp(log_common + log_evidences - average, log_own)
    found = np.empty(log_evidences.shape)
    for t in range(len(found)):
        common = log_prior + np.delete(likelihoods, t, axis=0).sum(axis=0)
        common -= logsumexp(common)
        found[t] = np.logaddexp(log_common + common, log_own + log_prior)
    return found
