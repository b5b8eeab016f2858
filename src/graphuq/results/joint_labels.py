"""Labels of many nodes, drawn together, with the probabilities that are reported at each node.

Draws of the field say which nodes have a class together. How often a node has it, they do not say
exactly: reported probabilities come from more accurate marginals (`summaries.tilted`), and an
average over blocks and class shares change them. So each node receives its most probable class in
as many draws as its probability says, those in which the field of the class leads most. What is
left goes to the other classes in turn. Ordered classes have one field, and the draws in which it
is smallest have the lowest class. This is a copula: the order of draws is that of the field, and
the marginals are given.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.results.joint_draws import draws_and_components
from graphuq.results.summaries.base import Link, slices
from graphuq.results.summaries.ordered import cuts, one_link

if TYPE_CHECKING:
    from graphuq.results.result import Result

BLOCK_NODES = 200  # nodes whose draws are sorted at a time
TINY = np.finfo(float).tiny


def joint_labels(
    result: "Result",
    nodes: Int[np.ndarray, " n"],
    n_draws: int,
    rng: np.random.Generator,
    probabilities: Float[np.ndarray, "n K"] | None = None,
) -> Int[np.ndarray, "n S"]:
    """Return codes of the labels of nodes, drawn together from the posterior.

    A node has each class in its share of the draws, up to rounding, which is random.

    Parameters
    ----------
    result : Result
    nodes : numpy.ndarray of int, shape (n,)
    n_draws : int
        S.
    rng : numpy.random.Generator
    probabilities : numpy.ndarray, shape (n, K), optional
        Of the classes at the nodes, in place of those that are reported.
    """
    p = result.probabilities[nodes] if probabilities is None else probabilities
    u, link = field_draws(result, nodes, n_draws, rng)
    codes = np.empty(u.shape[:2], dtype=np.int64)
    for part in slices(len(u), BLOCK_NODES):
        noisy = with_noise(u[part], link, rng)
        codes[part] = in_order(noisy, p[part], rng) if cuts(link) else _in_turn(noisy, p[part], rng)
    return codes


def link_of(result: "Result") -> Link:
    """Return the link of a result; of a mixture with one noise for all components."""
    return one_link(result.posterior.likelihood.link, result.answer)


def in_order(
    u: Float[np.ndarray, "B S 1"], p: Float[np.ndarray, "B K"], rng: np.random.Generator
) -> Int[np.ndarray, "B S"]:
    """Return the ordered class of each node in each draw: draws of small u have low classes.

    Numbers of draws are rounded at random.
    """
    n_draws = u.shape[1]
    place = u[:, :, 0].argsort(axis=1).argsort(axis=1) + rng.random((len(p), 1))
    ends = np.cumsum(p, axis=1)[:, :-1] * n_draws
    return np.asarray((place[:, :, None] >= ends[:, None, :]).sum(axis=2))


def _in_turn(
    u: Float[np.ndarray, "B S K"], p: Float[np.ndarray, "B K"], rng: np.random.Generator
) -> Int[np.ndarray, "B S"]:
    """Return the label of each node in each draw, one class after the other; overwrites u."""
    codes, order = np.empty(u.shape[:2], dtype=np.int64), np.argsort(-p, axis=1)
    free, left = np.ones(codes.shape, dtype=bool), np.ones(len(p))
    for place in range(p.shape[1]):
        rows = np.flatnonzero(free.any(axis=1))
        own = order[rows, place]
        share = np.minimum(p[rows, own] / np.maximum(left[rows], TINY), 1.0)
        if place == p.shape[1] - 1:
            share = np.ones(len(rows))
        taken = draws_that_lead(u[rows], own, share, free[rows], rng)
        codes[rows] = np.where(taken, own[:, None], codes[rows])
        free[rows] &= ~taken
        left[rows] -= p[rows, own]
        u[rows, :, own] = -np.inf
    return codes


def field_draws(
    result: "Result", nodes: Int[np.ndarray, " n"], n_draws: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "n S K"], Link]:
    """Return joint draws of the field of each class, and their link.

    Two classes have opposite fields, ordered ones have one. Each component of an average of ordered
    classes has a noise of its own, and so has each draw: the link then has no weights, and a scale
    for each draw.
    """
    posterior = result.posterior
    u, numbers = draws_and_components(result.answer, posterior, nodes, n_draws, rng)
    link = posterior.likelihood.link
    if cuts(link) and numbers is not None and len(link[1]) > 1:
        link = (np.zeros(0), np.asarray(link[1])[numbers], link[2])
    if posterior.likelihood.is_ordered:
        return u, link
    return (np.concatenate([-u, u], axis=2) / np.sqrt(2) if u.shape[2] == 1 else u), link


def with_noise(
    u: Float[np.ndarray, "n S K"], link: Link, rng: np.random.Generator
) -> Float[np.ndarray, "n S K"]:
    """Return the field with the noise of a label, if a label is random given the field.

    The link is that of `field_draws`.
    """
    if link is None:
        return u
    weights, scales = link[:2]
    own = scales if len(weights) == 0 else rng.choice(scales, u.shape[1], p=weights)
    return u + own[:, None] * rng.normal(size=u.shape)


def draws_that_lead(
    u: Float[np.ndarray, "n S K"],
    codes: Int[np.ndarray, " n"],
    shares: Float[np.ndarray, " n"],
    among: Bool[np.ndarray, "n S"],
    rng: np.random.Generator,
) -> Bool[np.ndarray, "n S"]:
    """Return in which draws the field of a class is farthest above all others.

    Parameters
    ----------
    u : numpy.ndarray, shape (n, S, K)
        Field of each class; −inf for one that is out.
    codes : numpy.ndarray of int, shape (n,)
        Class of each node.
    shares : numpy.ndarray, shape (n,)
        Share of the draws of each node, in [0, 1].
    among : numpy.ndarray of bool, shape (n, S)
        Draws of each node of which it is a share.
    rng : numpy.random.Generator
        Rounds numbers of draws at random.
    """
    rows = np.arange(len(codes))
    others = u.copy()
    others[rows, :, codes] = -np.inf
    lead = np.where(among, u[rows, :, codes] - others.max(axis=2), -np.inf)
    place = (-lead).argsort(axis=1).argsort(axis=1) + rng.random((len(codes), 1))
    return np.asarray(among & (place < (shares * among.sum(axis=1))[:, None]))
