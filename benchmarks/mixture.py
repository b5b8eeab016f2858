"""Points of known classes, as many as one likes: Gaussian clusters that touch."""

import numpy as np

RANK, SPREAD, NOISE = 10, 1.8, 0.1  # dimensions of the clusters; of their centres; of all others


def mixture(n_rows, width=50, n_classes=10, clusters=4, seed=0):
    """Rows in single precision, and their classes; each class has a few clusters of unit width."""
    rng = np.random.default_rng(seed)
    n_clusters = n_classes * clusters
    centres = SPREAD * rng.normal(size=(n_clusters, RANK)).astype(np.float32)
    into = np.linalg.qr(rng.normal(size=(width, RANK)))[0].T.astype(np.float32)
    own = rng.integers(n_clusters, size=n_rows)
    features = np.empty((n_rows, width), np.float32)
    for begin in range(0, n_rows, 100_000):
        part = own[begin : begin + 100_000]
        inner = centres[part] + rng.standard_normal((len(part), RANK), dtype=np.float32)
        noise = NOISE * rng.standard_normal((len(part), width), dtype=np.float32)
        features[begin : begin + 100_000] = inner @ into + noise
    return features, own % n_classes
