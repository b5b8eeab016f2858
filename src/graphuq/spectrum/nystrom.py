"""Nyström extension: eigenpairs of a complete graph that is too large to store."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import eigh

from graphuq.errors import InvalidInput, require
from graphuq.graphs.features import check_features
from graphuq.graphs.landmarks import choose_landmarks
from graphuq.graphs.row_distances import all_distances
from graphuq.graphs.weights import SelfTuning, WeightFunction, weight_function
from graphuq.spectrum.checks import check_not_graph
from graphuq.spectrum.solve import check_tail, fix_signs, tail_value
from graphuq.spectrum.spectrum import Spectrum
from graphuq.utils.checks import check_integer
from graphuq.utils.progress import Progress

BLOCK_ELEMENTS = 4_000_000  # weights in memory: 32 MB
RANK_TOLERANCE = 1e-10  # relative size below which an eigenvalue counts as zero
RESIDUAL_ROWS = 300  # nodes at which residuals are evaluated


Features: TypeAlias = "np.ndarray | sparse.csr_array"


def nystrom_spectrum(
    X: ArrayLike | sparse.sparray | sparse.spmatrix,
    weights: str | WeightFunction = "cosine",
    *,
    scale: float | None = None,
    n_eigenpairs: int = 50,
    n_landmarks: int | None = None,
    landmarks: str = "auto",
    tail_eigenvalue: bool | float = False,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
) -> Spectrum:
    r"""Approximate the smallest eigenpairs of the symmetric Laplacian of a complete graph.

    Only weights to m landmarks are computed, ``C`` (N×m). All others are approximated by
    ``W ≈ C A⁺ Cᵀ`` with A the weights between landmarks (Fowlkes, Belongie, Chung & Malik
    2004, made orthogonal in one pass; Bertozzi et al. 2018, §5.1.4). The zero diagonal of a weight
    matrix is preserved. Eigenpairs are Rayleigh-Ritz pairs of
    ``D^{-1/2} (C A⁺ Cᵀ − I) D^{-1/2}`` in the span of ``D^{-1/2} C``, and the null vector
    ``D^{1/2} 1``, which is exact. Cosine weights of d features have rank d, so that C A⁺ Cᵀ = W if
    ``n_landmarks > d``.

    The computation is by row blocks; memory is X and N × ``n_eigenpairs`` numbers.

    Parameters
    ----------
    X : array_like, shape (N, d)
        Finite features.
    weights : {"cosine", "gaussian"} or WeightFunction
        Positive semi-definite weights that are 1 at distance 0 and need no local scale.
    scale : float, optional
        Length of the ``"gaussian"`` weights.
    n_eigenpairs : int, default 50
        ℓ, the null vector included.
    n_landmarks : int, optional
        m, from ℓ to N; by default 8 ℓ, or N if that is less.
    landmarks : {"auto", "k-means", "uniform"}, default "auto"
        The centres of k-means, from 64 rows each, or random rows. "auto" is k-means for dense
        features with Euclidean distances, where eigenvalues are two to four times as accurate.
        With the cosine, whose weights have low rank, it makes no difference.
    tail_eigenvalue : bool or float, default False
        See `laplacian_spectrum`.
    rng : int or numpy.random.Generator, default 0
        Seed of the choice of landmarks.
    progress : callable, optional

    Returns
    -------
    Spectrum
        Its residuals are estimates of ``|L q − λ q|`` with the true weights, from 300 random nodes.

    Raises
    ------
    InvalidInput
        If features are not finite, an option is unknown or out of range, weights are negative, or
        ℓ exceeds the rank that the landmarks have.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> X = np.random.default_rng(0).uniform(size=(5000, 4))
    >>> spectrum = gq.nystrom_spectrum(X, n_eigenpairs=4)
    >>> spectrum.eigenvectors.shape, float(spectrum.eigenvalues[0])
    ((5000, 4), 0.0)
    """
    check_not_graph(X)
    check_integer("n_eigenpairs", n_eigenpairs, "use an integer from 2 on")
    if n_landmarks is not None:
        check_integer("n_landmarks", n_landmarks, "use an integer from n_eigenpairs to N")
    check_tail(tail_eigenvalue)
    features = check_features(X)
    n_nodes = features.shape[0]
    weight = weight_function(weights, scale)
    if isinstance(weight, SelfTuning):
        raise InvalidInput(
            "weights",
            f"{weight} needs the neighbours of every node",
            "use 'cosine' or 'gaussian', or knn_graph and laplacian_spectrum",
        )
    m = min(n_nodes, 8 * n_eigenpairs) if n_landmarks is None else n_landmarks
    require(
        1 < n_eigenpairs <= m <= n_nodes,
        "n_landmarks",
        f"{m} landmarks for {n_eigenpairs} eigenpairs of {n_nodes} nodes",
        "use n_eigenpairs from 2 on, and at least as many landmarks, at most one a node",
    )
    rng = np.random.default_rng(rng)
    chosen = choose_landmarks(features, m, weight.metric, landmarks, rng)
    kernel = _Kernel(features, weight, progress)
    values, vectors = eigh(kernel.between(chosen, chosen))
    kept = values > RANK_TOLERANCE * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept])  # A^{-1/2}

    # One pass for the degrees, one for what the Ritz problem needs, one for the vectors.
    sums = sum(block.sum(axis=0) for _, block in kernel.blocks(chosen, "degrees"))
    to_degree = root @ (root.T @ sums)
    degrees = np.empty(n_nodes)
    gram, scaled_gram = np.zeros((2, root.shape[1], root.shape[1]))
    along, scaled_along = np.zeros((2, root.shape[1]))
    for part, block in kernel.blocks(chosen, "spectrum"):
        degrees[part] = block @ to_degree - 1  # no node is its own neighbour
        require(
            bool((degrees[part] > 0).all()),
            "weights",
            f"{weight} gives some nodes no positive degree",
            "use a larger scale, or knn_graph",
        )
        rooted = (block @ root) / np.sqrt(degrees[part])[:, None]
        halved = rooted / np.sqrt(degrees[part])[:, None]
        gram += rooted.T @ rooted
        scaled_gram += halved.T @ halved
        along += rooted.T @ np.sqrt(degrees[part])
        scaled_along += halved.sum(axis=0)
    total = degrees.sum()
    along, scaled_along = along / np.sqrt(total), scaled_along / np.sqrt(total)
    eigenvalues, to_vectors = _ritz_pairs(
        gram, scaled_gram, along, scaled_along, n_nodes / total, n_eigenpairs - 1
    )
    null = np.sqrt(degrees / total)
    eigenvectors = np.empty((n_nodes, n_eigenpairs))
    eigenvectors[:, 0] = null
    for part, block in kernel.blocks(chosen, "eigenvectors"):
        rooted = (block @ root) / np.sqrt(degrees[part])[:, None]
        eigenvectors[part, 1:] = (rooted - null[part, None] * along) @ to_vectors
    fix_signs(eigenvectors)
    eigenvalues = np.concatenate([[0.0], eigenvalues])
    rows = rng.choice(n_nodes, min(n_nodes, RESIDUAL_ROWS), replace=False)
    return Spectrum(
        eigenvalues=eigenvalues,
        eigenvectors=eigenvectors,
        residuals=_residuals(kernel, degrees, eigenvalues, eigenvectors, rows),
        tail_eigenvalue=tail_value(tail_eigenvalue, eigenvalues, n_nodes, float(n_nodes)),
        components=np.zeros(n_nodes, dtype=np.int64),
        degrees=degrees,
        node_scale=np.ones(n_nodes),
        settings={
            "graph": "complete",
            "weights": repr(weight),
            "laplacian": "symmetric",
            "n_eigenpairs": n_eigenpairs,
            "tail_eigenvalue": tail_eigenvalue,
            "solver": f"nystrom, {m} landmarks",
            "landmarks": landmarks,
        },
    )


class _Kernel:
    """Weights between rows, computed on demand; 1 from a row to itself."""

    def __init__(
        self, features: Features, weight: WeightFunction, progress: Progress | None
    ) -> None:
        self.features, self.weight, self.progress = features, weight, progress

    def between(self, rows: Features, points: Features) -> Float[np.ndarray, "R m"]:
        """Return weights from some rows of features to others, in double precision."""
        distances = all_distances(
            points.astype(np.float64), self.weight.metric, rows.astype(np.float64)
        )
        one = np.ones((1, 1))
        return self.weight.weight(np.maximum(distances, 0.0), one, one)

    def blocks(self, points: Features, phase: str) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield weights of all rows to a few points, by blocks of rows."""
        n_nodes, size = self.features.shape[0], max(1, BLOCK_ELEMENTS // points.shape[0])
        for begin in range(0, n_nodes, size):
            part = slice(begin, min(begin + size, n_nodes))
            yield part, self.between(self.features[part], points)
            if self.progress is not None:
                self.progress(phase, part.stop, n_nodes, np.nan)


def _ritz_pairs(
    gram: np.ndarray,
    scaled_gram: np.ndarray,
    along: np.ndarray,
    scaled_along: np.ndarray,
    null_energy: float,
    n_pairs: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues of the Laplacian, and the map from Z without null part to eigenvectors.

    With Z = D^{-1/2} C A^{-1/2} and q the null vector, ``Z' = Z − q (qᵀ Z)`` has the Gram matrix
    G = ZᵀZ − g gᵀ, and ``Z'ᵀ (Z Zᵀ − D⁻¹) Z' = G G − Z'ᵀ D⁻¹ Z'``.
    """
    gram = gram - np.outer(along, along)
    cross = np.outer(along, scaled_along)
    diagonal = scaled_gram - cross - cross.T + null_energy * np.outer(along, along)
    values, vectors = eigh(gram)
    kept = values > RANK_TOLERANCE * values[-1]
    require(
        int(kept.sum()) >= n_pairs,
        "n_eigenpairs",
        f"{n_pairs + 1} pairs of weights whose rank is {int(kept.sum()) + 1} at these landmarks",
        f"use at most {int(kept.sum()) + 1}, or more landmarks",
    )
    basis = vectors[:, kept] / np.sqrt(values[kept])
    affinity, turn = eigh(basis.T @ (gram @ gram - diagonal) @ basis)
    largest = np.argsort(-affinity)[:n_pairs]
    return 1 - affinity[largest], basis @ turn[:, largest]


def _residuals(
    kernel: _Kernel,
    degrees: np.ndarray,
    eigenvalues: np.ndarray,
    eigenvectors: np.ndarray,
    rows: np.ndarray,
) -> Float[np.ndarray, " L"]:
    """Estimate ``|L q − λ q|`` from its entries at some rows."""
    applied = np.zeros((len(rows), len(eigenvalues)))
    for part, block in kernel.blocks(kernel.features[rows], "residuals"):
        applied += block.T @ (eigenvectors[part] / np.sqrt(degrees[part])[:, None])
    at_rows = eigenvectors[rows]
    applied -= at_rows / np.sqrt(degrees[rows])[:, None]
    applied /= np.sqrt(degrees[rows])[:, None]
    misfit = (1 - eigenvalues) * at_rows - applied
    return np.sqrt((misfit**2).mean(axis=0) * len(degrees))
