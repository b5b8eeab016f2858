"""A few points that stand for many rows."""

from typing import Any

import faiss
import numpy as np
from jaxtyping import Float
from scipy import sparse

from graphuq.errors import InvalidInput, require

CHOICES = ("auto", "k-means", "uniform")
SWEEPS, ROWS_A_LANDMARK = 10, 64  # of k-means, and how many rows it looks at


def choose_landmarks(
    features: Any, n_landmarks: int, metric: str, choice: str, rng: np.random.Generator
) -> Float[np.ndarray, "m d"] | sparse.csr_array:
    """Rows drawn uniformly, or the centres of k-means on some of them (Zhang & Kwok 2010).

    "auto": k-means of dense features under Euclidean distances, else uniform.
    """
    require(
        choice in CHOICES, "landmarks", f"{choice!r} is unknown", f"use one of {', '.join(CHOICES)}"
    )
    plain = not sparse.issparse(features) and metric == "euclidean"
    n_rows = features.shape[0]
    if choice == "k-means" and not plain:
        raise InvalidInput(
            "landmarks", "'k-means' of sparse features or cosines", "use 'uniform', or 'auto'"
        )
    if choice == "uniform" or not plain or n_landmarks == n_rows:
        rows = np.sort(rng.choice(n_rows, n_landmarks, replace=False))
        return features[rows] if sparse.issparse(features) else features[rows].astype(np.float64)
    some = np.sort(rng.choice(n_rows, min(n_rows, ROWS_A_LANDMARK * n_landmarks), replace=False))
    kmeans = faiss.Kmeans(
        features.shape[1],
        n_landmarks,
        niter=SWEEPS,
        seed=int(rng.integers(2**31)),
        min_points_per_centroid=1,
        max_points_per_centroid=ROWS_A_LANDMARK,
    )
    kmeans.train(np.ascontiguousarray(features[some], dtype=np.float32))
    return np.asarray(kmeans.centroids, dtype=np.float64)
