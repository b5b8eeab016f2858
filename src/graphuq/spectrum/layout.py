"""Places of the nodes in the plane, for maps: similar nodes lie side by side."""

import numpy as np
from jaxtyping import Float, Float32, Int
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from graphuq.spectrum.basis import NodeBasis
from graphuq.spectrum.spectrum import Spectrum
from graphuq.utils.arrays import parallel_map
from graphuq.utils.checks import seed_number

MAX_MODES = 100  # smoothest eigenvectors that a place depends on
MAX_LANDMARKS = 2000  # nodes that t-SNE arranges; 5 s on one core
PERPLEXITY = 50.0  # of t-SNE: number of neighbours that count
N_STEPS = 400  # of t-SNE
N_NEAREST = 10  # landmarks beside which another node is placed
BLOCK_NODES = 2000


def node_layout(
    basis: NodeBasis,
    nodes: Int[np.ndarray, " n"],
    first: Int[np.ndarray, " m"] | None = None,
    rng: int | np.random.Generator = 0,
) -> Float[np.ndarray, "n 2"]:
    """Return places of some nodes in the unit square, the same for the same seed.

    Two nodes are similar if a smooth Gaussian field is correlated at them. t-SNE (van der Maaten &
    Hinton 2008) arranges at most `MAX_LANDMARKS` nodes by these similarities, and each other node
    is placed among its most similar landmarks. Distances within a cluster mean something; those
    between clusters, and the size of a cluster, mean little.

    Parameters
    ----------
    basis : NodeBasis
        Eigenpairs, or columns of a covariance.
    nodes : numpy.ndarray of int, shape (n,)
    first : numpy.ndarray of int, shape (m,), optional
        Positions in ``nodes`` that should be landmarks, such as those of the labelled nodes; they
        are at most half of all. The others are chosen at random.
    rng : int or numpy.random.Generator, default 0

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features), n_eigenpairs=20)
    >>> node_layout(spectrum, np.arange(200)).shape
    (200, 2)
    """
    rows = correlation_rows(basis, nodes)
    seed = seed_number(rng)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(nodes))
    if first is not None:
        order = np.concatenate([rng.permutation(first)[: MAX_LANDMARKS // 2], order])
        order = order[np.sort(np.unique(order, return_index=True)[1])]
    landmarks = order[:MAX_LANDMARKS]
    places = _arranged(rows[landmarks], seed)
    if len(landmarks) < len(nodes):
        places = _among(rows, rows[landmarks], places)
    else:
        places = places[np.argsort(landmarks)]
    low, width = places.min(axis=0, initial=np.inf), np.ptp(places, axis=0) if len(nodes) else 1.0
    return np.asarray(np.where(width > 0, (places - low) / np.where(width > 0, width, 1.0), 0.5))


def correlation_rows(basis: NodeBasis, nodes: Int[np.ndarray, " n"]) -> Float32[np.ndarray, "n L"]:
    """Return rows whose inner products are the correlations of a smooth Gaussian field.

    The field has variance ``1 / (λ_k + λ̄)²`` along eigenvector k, where λ̄ is the mean of the
    eigenvalues. Covariance columns are the rows of the prior's own field. A row is zero if its
    node's component has no label.
    """
    if isinstance(basis, Spectrum):
        # The only constant mode says nothing; several ones tell components apart.
        is_constant = basis.n_components == 1 and not basis.is_signed
        skipped = 1 if is_constant and basis.n_eigenpairs > 1 else 0
        used = slice(skipped, min(skipped + MAX_MODES, basis.n_eigenpairs))
        values = np.asarray(basis.eigenvalues)[used]
        scale = 1 / (values + values.mean()) if values.any() else np.ones(len(values))
        rows = np.asarray(basis.eigenvectors[nodes])[:, used] * scale
    else:
        rows = np.asarray(basis.basis[nodes])[:, :-1]  # the last column is the residual
    length = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.where(length > 0, length, 1.0), dtype=np.float32)


def _arranged(rows: Float32[np.ndarray, "m L"], seed: int) -> Float[np.ndarray, "m 2"]:
    """Return places of the landmarks by t-SNE, which starts from two principal components."""
    if len(rows) < 2 or rows.shape[1] < 2:
        return np.c_[rows.astype(np.float64), np.zeros((len(rows), 2))][:, :2]
    start = PCA(2, svd_solver="full").fit_transform(rows.astype(np.float64))
    spread = float(start[:, 0].std())
    if len(rows) < 5 or spread == 0:
        return np.asarray(start)
    method = TSNE(
        init=1e-4 / spread * start,
        perplexity=min(PERPLEXITY, (len(rows) - 1) / 3),
        max_iter=N_STEPS,
        random_state=seed,
    )
    with threadpool_limits(1):  # sums of several threads depend on their order
        return np.asarray(method.fit_transform(rows), dtype=np.float64)


def _among(
    rows: Float32[np.ndarray, "n L"],
    landmarks: Float32[np.ndarray, "m L"],
    places: Float[np.ndarray, "m 2"],
) -> Float[np.ndarray, "n 2"]:
    """Return means of the places of the nearest landmarks, with weights ``d_max / d − 1``.

    d is the squared distance, and d_max that of the first landmark that no longer counts, so that
    places do not jump.
    """
    found = np.empty((len(rows), 2))

    def fill(at: int) -> None:
        block = slice(at, at + BLOCK_NODES)
        distance = np.maximum(2 - 2 * rows[block] @ landmarks.T, np.finfo(np.float32).eps)
        near = np.argpartition(distance, N_NEAREST, axis=1)[:, : N_NEAREST + 1]
        close = np.take_along_axis(distance, near, axis=1).astype(np.float64)
        weight = close.max(axis=1, keepdims=True) / close - 1
        weight = np.where(weight.any(axis=1, keepdims=True), weight, 1.0)
        weight /= weight.sum(axis=1, keepdims=True)
        found[block] = np.einsum("ij,ijk->ik", weight, places[near])

    parallel_map(fill, range(0, len(rows), BLOCK_NODES))
    return found
