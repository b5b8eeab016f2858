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
SMALLEST = 1e-300  # standard deviation in place of zero
MAX_NUMBERS = 4_000_000  # in one array of the integrals


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
    found = np.array(
        [
            _replicate(
                covariances, log_prior, noise_std, labelled, codes, n_classes, noisy, n_points, rng
            )
            for rng in np.random.default_rng(seed).spawn(N_REPLICATES)
        ]
    )
    return Exact(found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(N_REPLICATES))


def _replicate(covariances, log_prior, noise_std, labelled, codes, n_classes, noisy, n_points, rng):
    labelled, codes = np.asarray(labelled), np.asarray(codes)
    dimension = len(codes) * (1 if n_classes == 2 else n_classes - 1)
    points = qmc.Sobol(dimension, seed=rng).random(n_points)
    log_weights, latents = [], []
    for covariance in covariances:
        block = covariance[np.ix_(labelled, labelled)] + noise_std**2 * np.eye(len(labelled))
        logs, z = _simulate(block, codes, n_classes, points)
        log_weights.append(logs)
        latents.append(z)
    total = np.array(log_weights) + np.asarray(log_prior)[:, None]
    shares = np.exp(total - logsumexp(total))
    if len(covariances) > 1:  # as many points of all, by their weights
        places = (np.arange(n_points) + rng.uniform()) / n_points
        chosen = np.searchsorted(np.cumsum(shares.ravel()), places).clip(max=shares.size - 1)
        counts = np.bincount(chosen, minlength=shares.size).reshape(shares.shape) / n_points
    else:
        counts = shares
    p = 0.0
    for covariance, z, weight in zip(covariances, latents, counts, strict=True):
        used = weight > 0
        if used.any():
            block = covariance[np.ix_(labelled, labelled)] + noise_std**2 * np.eye(len(labelled))
            gain = np.linalg.solve(block, covariance[labelled]).T
            variance = np.diagonal(covariance) - (gain * covariance[:, labelled]).sum(axis=1)
            std = np.sqrt(np.maximum(variance, 0) + noisy * noise_std**2)
            p = p + _classes(gain, std, z[used], weight[used])
    return p


def _simulate(block, codes, n_classes, points):
    """Return the log weight of each point, and the noisy fields at the labels, (S, J, K) or (S, J).

    Fields of several classes are given without their mean over the classes, which no class depends
    on.
    """
    if n_classes == 2:
        signs = 2.0 * codes - 1
        logs, d = _positive(np.outer(signs, signs) * block, points)
        return logs, d * signs
    j = np.arange(len(codes))
    others = np.array([[k for k in range(n_classes) if k != y] for y in codes])
    contrast = np.zeros((len(codes), n_classes - 1, len(codes), n_classes))
    for place in range(n_classes - 1):
        contrast[j, place, j, codes] += 1.0
        contrast[j, place, j, others[:, place]] -= 1.0
    matrix = contrast.reshape(len(codes) * (n_classes - 1), -1)
    logs, d = _positive(matrix @ np.kron(block, np.eye(n_classes)) @ matrix.T, points)
    d = d.reshape(len(points), len(codes), n_classes - 1)
    z = np.empty((len(points), len(codes), n_classes))
    z[:, j, codes] = d.sum(axis=2) / n_classes
    for place in range(n_classes - 1):
        z[:, j, others[:, place]] = z[:, j, codes] - d[:, :, place]
    return logs, z


def _positive(covariance, points):
    """Return log weights and values of a Gaussian vector, given that all of it is positive."""
    factor = np.linalg.cholesky(covariance)
    e = np.zeros_like(points)
    logs = np.zeros(len(points))
    for i, row in enumerate(factor):
        mass = ndtr(e[:, :i] @ row[:i] / row[i])
        with np.errstate(divide="ignore"):
            logs += np.log(mass)
        e[:, i] = -ndtri(np.maximum(points[:, i] * mass, SMALLEST))
    return logs, e @ factor.T


def _classes(gain, std, z, weights):
    """Return the weighted mean of the probability of each class at each node."""
    std = np.maximum(std, SMALLEST)
    if z.ndim == 2:
        positive = ndtr(z @ gain.T / std).T @ weights
        return np.stack([weights.sum() - positive, positive], axis=1)
    t = np.arange(-REACH, REACH + STEP / 2, STEP)
    density = STEP * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    p = np.empty((len(gain), z.shape[2]))
    for node, row in enumerate(gain):
        mean = np.einsum("j,sjk->sk", row, z) / std[node]
        found = np.zeros(z.shape[2])
        size = max(1, MAX_NUMBERS // (z.shape[2] * len(t)))
        for begin in range(0, len(mean), size):
            part, own = mean[begin : begin + size], weights[begin : begin + size]
            for k in range(z.shape[2]):
                gaps = np.delete(part[:, [k]] - part, k, axis=1)
                product = ndtr(t[None, :, None] + gaps[:, None, :]).prod(axis=2)
                found[k] += own @ (product @ density)
        p[node] = found
    return p
