r"""Compositions of groups whose nodes are alike only by their classes.

A model that does not join the nodes of a group takes their errors for independent. Yet a group
where many nodes are surely of one class has probably more of it among the unsure ones, too. Let the
composition s_g of group g have the prior Dirichlet(κ m), with the mean class shares m, and let the
features of a node depend on the group by its class alone. With ``p_i`` given these features the
probabilities in group g are

    p_ik ∝ p_ik s_gk / m_k,

as of Saerens, Latinne & Decaestecker (2002) for one group with known s. Compositions, labels and κ
are drawn in turn (Gibbs sampling): s_g given labels is a Dirichlet distribution, and κ has a grid.
Groups that do not differ have a large κ, and nearly the p_i that they had.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

BURN_IN = 100
CONCENTRATIONS = np.geomspace(0.5, 5000.0, 60)  # κ, equally probable beforehand
LEAST = 1e-12  # share of a class


def compositions(
    p: Float[np.ndarray, "n K"],
    of_group: Int[np.ndarray, " n"],
    n_draws: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "S G K"]:
    """Return draws of the composition of each group, as ratios ``s_gk / m_k``.

    Parameters
    ----------
    p : numpy.ndarray, shape (n, K)
        Class probabilities of nodes, which do not depend on the group but by the features.
    of_group : numpy.ndarray of int, shape (n,)
        Number of the group of each node, from 0.
    n_draws : int
        S.
    rng : numpy.random.Generator
    """
    mean, n_groups = np.maximum(p.mean(axis=0), LEAST), int(of_group.max()) + 1
    n_nodes, kappa = np.bincount(of_group), 10.0
    share = np.tile(mean, (n_groups, 1))
    found = np.empty((n_draws, *share.shape))
    for t in range(-BURN_IN, n_draws):
        below = in_groups(p, share / mean, of_group).cumsum(axis=1)[:, :-1]
        labels = (rng.random((len(p), 1)) > below).sum(axis=1)
        counts = np.zeros(share.shape)
        np.add.at(counts, (of_group, labels), 1.0)
        kappa = _drawn_concentration(counts, n_nodes, mean, rng)
        share = rng.standard_gamma(kappa * mean + counts) + LEAST
        share /= share.sum(axis=1, keepdims=True)
        if t >= 0:
            found[t] = share / mean
    return found


def in_groups(
    p: Float[np.ndarray, "n K"], ratios: Float[np.ndarray, "G K"], of_group: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n K"]:
    """Return class probabilities of nodes in groups of known composition."""
    weighted = p * ratios[of_group]
    return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


def _drawn_concentration(
    counts: Float[np.ndarray, "G K"],
    n_nodes: Int[np.ndarray, " G"],
    mean: Float[np.ndarray, " K"],
    rng: np.random.Generator,
) -> float:
    """Draw κ given the labels: counts of a group have a Dirichlet-multinomial distribution."""
    a = CONCENTRATIONS[:, None, None] * mean
    logs = (gammaln(a + counts) - gammaln(a)).sum(axis=(1, 2))
    whole = CONCENTRATIONS[:, None]
    logs += (gammaln(whole) - gammaln(whole + n_nodes)).sum(axis=1)
    weights = np.exp(logs - logs.max())
    return float(rng.choice(CONCENTRATIONS, p=weights / weights.sum()))
