"""Simulated points with known classes, for any number of rows: overlapping Gaussian clusters.

This module is not a benchmark; `bench_scale.py` and `bench_unequal.py` use it.
"""

import numpy as np
from scipy.special import logsumexp

RANK = 10  # dimensions of the space that has the clusters
SPREAD = 1.8  # standard deviation of the centres; clusters have a standard deviation of 1
NOISE = 0.1  # standard deviation of the noise in all dimensions
RARE_DISTANCE = 3.5  # from the centre of a rare cluster to that of a common one


def mixture(n_rows, width=50, n_classes=10, clusters=4, seed=0):
    """Return rows in single precision and their classes.

    Each class has a few clusters of unit standard deviation.
    """
    rng = np.random.default_rng(seed)
    n_clusters = n_classes * clusters
    centres = SPREAD * rng.normal(size=(n_clusters, RANK)).astype(np.float32)
    into = np.linalg.qr(rng.normal(size=(width, RANK)))[0].T.astype(np.float32)
    cluster = rng.integers(n_clusters, size=n_rows)
    features, _ = _points(cluster, centres, into, rng)
    return features, cluster % n_classes


def unequal(n_rows, share=0.03, width=15, common=30, rare=3, seed=0):
    """Return rows, whether each is of the rare class, and the true probability of that.

    Each rare cluster lies beside a common one. The true probability is that of Bayes' rule with
    known clusters; no classifier can have a better expected score.
    """
    rng = np.random.default_rng(seed)
    centres = SPREAD * rng.normal(size=(common, RANK))
    offset = rng.normal(size=(rare, RANK))
    offset *= RARE_DISTANCE / np.linalg.norm(offset, axis=1, keepdims=True)
    centres = np.concatenate([centres, centres[:rare] + offset]).astype(np.float32)
    into = np.linalg.qr(rng.normal(size=(width, RANK)))[0].T.astype(np.float32)
    shares = np.append(np.full(common, (1 - share) / common), np.full(rare, share / rare))
    cluster = rng.choice(common + rare, n_rows, p=shares)
    features, inner = _points(cluster, centres, into, rng)
    logs = [
        np.log(p) - ((inner - centre) ** 2).sum(axis=1) / 2
        for p, centre in zip(shares, centres, strict=True)
    ]
    truth = logsumexp(logs[common:], axis=0) - logsumexp(logs, axis=0)
    return features, cluster >= common, np.exp(truth)


def _points(cluster, centres, into, rng):
    """Return points around the centres of their clusters, embedded with noise, and before that."""
    inner = np.empty((len(cluster), into.shape[0]), np.float32)
    features = np.empty((len(cluster), into.shape[1]), np.float32)
    for begin in range(0, len(cluster), 100_000):
        block = slice(begin, begin + 100_000)
        part = cluster[block]
        inner[block] = centres[part] + rng.standard_normal((len(part), RANK), dtype=np.float32)
        noise = NOISE * rng.standard_normal(features[block].shape, dtype=np.float32)
        features[block] = inner[block] @ into + noise
    return features, inner
