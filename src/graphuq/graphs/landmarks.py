"""Landmarks, a few points that represent many rows."""

import numpy as np
from jaxtyping import Float
from scipy import sparse

from graphuq.errors import InvalidInput, require
from graphuq.graphs.inputs import Features
from graphuq.utils.extras import require_extra

CHOICES = ("auto", "k-means", "uniform")
SWEEPS = 10  # iterations of k-means
ROWS_PER_LANDMARK = 64  # number of rows per landmark that k-means uses


def choose_landmarks(
    features: Features, n_landmarks: int, metric: str, choice: str, rng: np.random.Generator
) -> Float[np.ndarray, "m d"] | sparse.csr_array:
    """Choose rows uniformly at random, or the centres of k-means (Zhang & Kwok 2010).

    Parameters
    ----------
    features : numpy.ndarray or scipy.sparse.csr_array, shape (N, d)
    n_landmarks : int
        Number m of landmarks.
    metric : {"euclidean", "cosine"}
    choice : {"auto", "k-means", "uniform"}
        "auto" uses k-means for dense features with Euclidean distances, else "uniform".
    rng : numpy.random.Generator

    Returns
    -------
    numpy.ndarray or scipy.sparse.csr_array, shape (m, d)

    Raises
    ------
    InvalidInput
        If the choice is unknown, or k-means is asked of sparse features or cosine distances.
    MissingPackage
        If k-means is used and the extra ``graphuq[neighbors]`` is not installed.
    """
    require(
        choice in CHOICES, "landmarks", f"{choice!r} is unknown", f"use one of {', '.join(CHOICES)}"
    )
    k_means_applies = not sparse.issparse(features) and metric == "euclidean"
    n_rows = features.shape[0]
    if choice == "k-means" and not k_means_applies:
        raise InvalidInput(
            "landmarks",
            "'k-means' needs dense features and Euclidean distances",
            "use 'uniform' or 'auto'",
        )
    if choice == "uniform" or not k_means_applies or n_landmarks == n_rows:
        rows = np.sort(rng.choice(n_rows, n_landmarks, replace=False))
        return features[rows] if sparse.issparse(features) else features[rows].astype(np.float64)
    sample = np.sort(
        rng.choice(n_rows, min(n_rows, ROWS_PER_LANDMARK * n_landmarks), replace=False)
    )
    require_extra("neighbors")
    import faiss

    kmeans = faiss.Kmeans(
        features.shape[1],
        n_landmarks,
        niter=SWEEPS,
        seed=int(rng.integers(2**31)),
        min_points_per_centroid=1,
        max_points_per_centroid=ROWS_PER_LANDMARK,
    )
    kmeans.train(np.ascontiguousarray(features[sample], dtype=np.float32))
    return np.asarray(kmeans.centroids, dtype=np.float64)
