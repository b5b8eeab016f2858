"""Points of known classes, as many as one likes: Gaussian clusters that touch."""

import numpy as np
from scipy.special import logsumexp

RANK, SPREAD, NOISE = 10, 1.8, 0.1  # dimensions of the clusters; of their centres; of all others
RARE_APART = 3.5  # of a rare cluster's centre from a common one's


def mixture(n_rows, width=50, n_classes=10, clusters=4, seed=0):
    """Rows in single precision, and their classes; each class has a few clusters of unit width."""
    rng = np.random.default_rng(seed)
    n_clusters = n_classes * clusters
    centres = SPREAD * rng.normal(size=(n_clusters, RANK)).astype(np.float32)
    into = np.linalg.qr(rng.normal(size=(width, RANK)))[0].T.astype(np.float32)
    own = rng.integers(n_clusters, size=n_rows)
    features, _ = _points(own, centres, into, rng)
    return features, own % n_classes


def unequal(n_rows, share=0.03, width=15, common=30, rare=3, seed=0):
    """Rows, whether each is of the rare class, and the true probability that it is.

    Each rare cluster lies beside a common one; the probability is that of Bayes' rule with the
    clusters known, which nothing can beat.
    """
    rng = np.random.default_rng(seed)
    centres = SPREAD * rng.normal(size=(common, RANK))
    apart = rng.normal(size=(rare, RANK))
    apart *= RARE_APART / np.linalg.norm(apart, axis=1, keepdims=True)
    centres = np.concatenate([centres, centres[:rare] + apart]).astype(np.float32)
    into = np.linalg.qr(rng.normal(size=(width, RANK)))[0].T.astype(np.float32)
    shares = np.append(np.full(common, (1 - share) / common), np.full(rare, share / rare))
    own = rng.choice(common + rare, n_rows, p=shares)
    features, inner = _points(own, centres, into, rng)
    logs = [
        np.log(p) - ((inner - centre) ** 2).sum(axis=1) / 2
        for p, centre in zip(shares, centres, strict=True)
    ]
    truth = logsumexp(logs[common:], axis=0) - logsumexp(logs, axis=0)
    return features, own >= common, np.exp(truth)


def _points(own, centres, into, rng):
    """Points about the centres of their clusters, embedded with noise; and not embedded."""
    inner = np.empty((len(own), into.shape[0]), np.float32)
    features = np.empty((len(own), into.shape[1]), np.float32)
    for begin in range(0, len(own), 100_000):
        block = slice(begin, begin + 100_000)
        part = own[block]
        inner[block] = centres[part] + rng.standard_normal((len(part), RANK), dtype=np.float32)
        noise = NOISE * rng.standard_normal(features[block].shape, dtype=np.float32)
        features[block] = inner[block] @ into + noise
    return features, inner
