"""Columns that are functions of the features, beside the eigenvectors of a graph.

A class may follow the features more closely than the neighbours: a line separates two classes, and
no cluster shows it. A field that knows this is a random quadratic function of the features x, with
the covariance ``(1 + x·x')²``. `with_feature_columns` adds columns F to a spectrum, such that F Fᵀ
is this covariance, up to the approximation of Nyström from 100 nodes (Williams & Seeger 2001).
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.linalg import eigh

from graphuq.errors import InvalidInput, require
from graphuq.graphs.features import check_features, row_blocks
from graphuq.graphs.inputs import Features, MatrixLike
from graphuq.spectrum.closed_form import ProductBasis
from graphuq.spectrum.spectrum import Spectrum

N_LANDMARKS = 100  # nodes from which the covariance is known; more gained nothing on 61 data sets
SMALLEST = 1e-6  # eigenvalue of the landmarks' covariance, relative to the largest, that is kept


def with_feature_columns(spectrum: Spectrum, features: MatrixLike, seed: int = 0) -> Spectrum:
    """Return a spectrum with columns of quadratic functions of the features.

    They follow the eigenvectors and have the eigenvalue ∞, so that a prior on the graph gives them
    no variance. `MaternMixture` has components that use them instead of the eigenvectors. Columns
    that the spectrum had before are replaced.

    Parameters
    ----------
    spectrum : Spectrum
        Without a tail.
    features : array_like or sparse matrix, shape (N, d)
        They are divided by one number, so that the mean squared length of a row is 1. Dense ones
        are centred first.
    seed : int, default 0
        Of the 100 nodes that are drawn.

    Returns
    -------
    Spectrum
        Up to 100 columns more. The same spectrum if all rows of the features are equal.

    Raises
    ------
    InvalidInput
        If there is not one row of finite numbers for each node, or the spectrum has a tail or is
        that of a grid.

    Examples
    --------
    >>> import graphuq as gq
    >>> moons = gq.datasets.two_moons(100)
    >>> spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features), n_eigenpairs=20)
    >>> more = gq.with_feature_columns(spectrum, moons.features[:, :2])
    >>> more.n_eigenpairs, more.n_columns  # 1, x, y, x², xy and y² span six more
    (20, 26)
    """
    rows = check_features(features, "features")
    require(
        rows.shape[0] == spectrum.n_nodes,
        "features",
        f"{rows.shape[0]} rows beside {spectrum.n_nodes} nodes",
        "give one row for each node",
    )
    if spectrum.tail_eigenvalue is not None or isinstance(spectrum.eigenvectors, ProductBasis):
        raise InvalidInput(
            "spectrum", f"{spectrum}", "compute eigenpairs of a graph, without tail_eigenvalue"
        )
    columns = _columns(rows, np.random.default_rng(seed))
    own = without_feature_columns(spectrum)
    if columns is None:
        return own
    n_more = columns.shape[1]
    return dataclasses.replace(
        own,
        eigenvalues=np.append(own.eigenvalues, np.full(n_more, np.inf)),
        eigenvectors=np.hstack([own.eigenvectors, columns / own.node_scale[:, None]]),
        residuals=np.append(own.residuals, np.zeros(n_more)),
    )


def without_feature_columns(spectrum: Spectrum) -> Spectrum:
    """Return the spectrum without its columns of features.

    Parameters
    ----------
    spectrum : Spectrum

    Returns
    -------
    Spectrum
        The same object if it has none.
    """
    n_pairs = spectrum.n_eigenpairs
    if n_pairs == spectrum.n_columns:
        return spectrum
    return dataclasses.replace(
        spectrum,
        eigenvalues=spectrum.eigenvalues[:n_pairs],
        eigenvectors=np.asarray(spectrum.eigenvectors)[:, :n_pairs],
        residuals=spectrum.residuals[:n_pairs],
    )


def _columns(features: Features, rng: np.random.Generator) -> Float[np.ndarray, "N m"] | None:
    """Return columns F with ``F Fᵀ ≈ (1 + x·x')²``, or None if all rows are equal."""
    n_rows, width = features.shape
    is_sparse = sparse.issparse(features)
    centre = np.zeros(width) if is_sparse else np.asarray(features.mean(axis=0, dtype=np.float64))
    blocks = list(row_blocks(n_rows, width))
    total = sum(_squares(features[block], centre) for block in blocks)
    if total == 0:
        return None
    landmarks = np.sort(rng.permutation(n_rows)[:N_LANDMARKS])
    chosen = features[landmarks]
    known = (_dense(chosen) - centre).T * (n_rows / total)
    covariance = np.concatenate(
        [(1 + _rows(features[block], centre) @ known) ** 2 for block in blocks]
    )
    values, vectors = eigh(covariance[landmarks])
    kept = values > SMALLEST * values[-1]
    return np.asarray(covariance @ (vectors[:, kept] / np.sqrt(values[kept])))


def _rows(some: Features, centre: Float[np.ndarray, " d"]) -> Features:
    return some if sparse.issparse(some) else some - centre


def _dense(some: Features) -> Float[np.ndarray, "n d"]:
    dense: Any = some.toarray() if isinstance(some, sparse.sparray | sparse.spmatrix) else some
    return np.asarray(dense)


def _squares(some: Features, centre: Float[np.ndarray, " d"]) -> float:
    """Return the sum of squares of rows less their centre."""
    rows = _rows(some, centre)
    numbers = np.asarray(rows.data if sparse.issparse(rows) else rows, dtype=np.float64)
    return float((numbers**2).sum())
