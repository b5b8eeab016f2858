"""Class probabilities of a probit posterior to a known error, in code that shares nothing with it.

A label says which of K fields, each with its own noise, is the largest. The differences between
the field of the label and the others are then positive: a Gaussian vector of J (K − 1) numbers, of
which P(all > 0) is the evidence. The simulator of Geweke, Hajivassiliou and Keane draws it number
by number from truncated normals, with the product of their masses as its weight. Points are those
of Sobol, scrambled anew in each replicate, by which the error is measured. Given the differences,
the fields at any node are independent Gaussians, and the probability of each class is an integral
over one number.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import qmc

N_REPLICATES = 16
STEP, REACH = 0.5, 7.0  # of the trapezoid rule, in standard deviations
SMALLEST = 1e-300  # variance in place of zero, and smallest mass


class Exact(NamedTuple):
    """Probabilities of the classes, shape (N, K), and their standard errors."""

    probabilities: np.ndarray
    errors: np.ndarray


def covariance_of(weights, tau, alpha):
    """Return the covariance of ``Matern(tau, alpha)`` on a graph, by all of its eigenpairs.

    Null vectors of a connected graph are left out. Those of a disconnected one have the variance
    of the smoothest other vector.
    """
    n_nodes, degrees = len(weights), weights.sum(axis=1)
    n_null = n_components(weights)
    values, q = np.linalg.eigh(np.eye(n_nodes) - weights / np.sqrt(np.outer(degrees, degrees)))
    variances = (np.maximum(values, 0) + tau**2) ** -alpha
    variances[:n_null] = 0.0 if n_null == 1 else variances[n_null]
    return n_nodes / variances.sum() * (q * variances) @ q.T


def n_components(weights):
    """Return the number of connected components, by powers of the adjacency."""
    reached = (np.eye(len(weights)) + (weights > 0)) > 0
    for _ in range(len(weights).bit_length()):
        reached = (reached.astype(float) @ reached.astype(float)) > 0
    return len({row.tobytes() for row in reached})


def posterior_of(
    covariances, log_prior, noise_std, labelled, codes, n_classes, noisy, n_points, seed
):
    """Return the class probabilities of an average over Gaussian fields of given covariances.

    ``noisy`` says whether the class of a node has noise of its own. ``n_points`` is a power of 2.
    Two classes have one field, which is positive for class 1.
    """
    fields = np.asarray(covariances)
    labelled, codes = np.asarray(labelled), np.asarray(codes)
    given = fields[:, labelled]  # (M, J, N)
    blocks = given[:, :, labelled] + noise_std**2 * np.eye(len(labelled))
    gains = np.swapaxes(np.linalg.solve(blocks, given), 1, 2)  # (M, N, J)
    variances = np.diagonal(fields, axis1=1, axis2=2) - np.einsum("mnj,mjn->mn", gains, given)
    stds = np.sqrt(np.maximum(variances, 0) + noisy * noise_std**2 + SMALLEST)
    dimension = len(codes) * (1 if n_classes == 2 else n_classes - 1)
    found = []
    for rng in np.random.default_rng(seed).spawn(N_REPLICATES):
        points = qmc.Sobol(dimension, seed=rng).random(n_points)
        logs, z = _simulate(blocks, codes, n_classes, points)
        member, point, weights = _kept(logs + np.asarray(log_prior)[:, None], rng)
        found.append(_classes(gains[member], stds[member], z[member, point], weights))
    return Exact(np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(N_REPLICATES))


def _kept(logs, rng):
    """Return members and points with their weights: of several members as many points of all."""
    shares = np.exp(logs - logsumexp(logs))
    n_members, n_points = shares.shape
    if n_members == 1:
        return np.zeros(n_points, dtype=int), np.arange(n_points), shares[0]
    places = (np.arange(n_points) + rng.uniform()) / n_points
    chosen = np.searchsorted(np.cumsum(shares.ravel()), places).clip(max=shares.size - 1)
    member, point = np.unravel_index(chosen, shares.shape)
    return member, point, np.full(n_points, 1 / n_points)


def _simulate(blocks, codes, n_classes, points):
    """Return log weights, shape (M, S), and noisy fields at the labels, (M, S, J) or (M, S, J, K).

    Fields of several classes are given without their mean over the classes, which no class depends
    on.
    """
    if n_classes == 2:
        signs = 2.0 * codes - 1
        logs, d = _positive(np.outer(signs, signs) * blocks, points)
        return logs, d * signs
    j = np.arange(len(codes))
    others = np.array([[k for k in range(n_classes) if k != y] for y in codes])
    contrast = np.zeros((len(codes), n_classes - 1, len(codes), n_classes))
    for place in range(n_classes - 1):
        contrast[j, place, j, codes] += 1.0
        contrast[j, place, j, others[:, place]] -= 1.0
    matrix = contrast.reshape(len(codes) * (n_classes - 1), -1)
    wide = np.array([np.kron(block, np.eye(n_classes)) for block in blocks])
    logs, d = _positive(matrix @ wide @ matrix.T, points)
    d = d.reshape(len(blocks), len(points), len(codes), n_classes - 1)
    z = np.empty((*d.shape[:3], n_classes))
    z[:, :, j, codes] = d.sum(axis=3) / n_classes
    for place in range(n_classes - 1):
        z[:, :, j, others[:, place]] = z[:, :, j, codes] - d[..., place]
    return logs, z


def _positive(covariances, points):
    """Return log weights and values of Gaussian vectors, given that all of each is positive."""
    factors = np.linalg.cholesky(covariances)  # (M, D, D)
    e = np.zeros((len(factors), *points.shape))
    logs = np.zeros(e.shape[:2])
    for i in range(points.shape[1]):
        ahead = np.einsum("msd,md->ms", e[:, :, :i], factors[:, i, :i])
        mass = ndtr(ahead / factors[:, i, i, None])
        with np.errstate(divide="ignore"):
            logs += np.log(mass)
        e[:, :, i] = -ndtri(np.maximum(points[:, i] * mass, SMALLEST))
    return logs, e @ np.swapaxes(factors, 1, 2)


def _classes(gains, stds, z, weights):
    """Return the weighted mean over points of the probability of each class at each node.

    ``gains`` has the shape (S, N, J), ``stds`` (S, N), and ``z`` (S, J) or (S, J, K).
    """
    if z.ndim == 2:
        positive = weights @ ndtr(np.einsum("snj,sj->sn", gains, z) / stds)
        return np.stack([weights.sum() - positive, positive], axis=1)
    means = np.einsum("snj,sjk->nsk", gains, z) / stds.T[:, :, None]
    t = np.arange(-REACH, REACH + STEP / 2, STEP)
    density = STEP * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    p = np.empty((len(means), means.shape[2]))
    for k in range(means.shape[2]):
        gaps = np.delete(means[:, :, [k]] - means, k, axis=2)
        for node, own in enumerate(gaps):
            p[node, k] = weights @ (ndtr(t[None, :, None] + own[:, None, :]).prod(axis=2) @ density)
    return p
