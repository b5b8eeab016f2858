"""Quadratic functions of the features as columns of a basis.

A class may follow the features more closely than the neighbours: a line separates two classes, and
no cluster shows it. A field that knows this is a random quadratic function of the features x, with
the covariance ``(1 + x·x')²``. Its columns F are such that F Fᵀ is this covariance, up to the
approximation of Nyström from 100 nodes (Williams & Seeger 2001).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.linalg import eigh

from graphuq.graphs.features import row_blocks
from graphuq.graphs.inputs import Features
from graphuq.spectrum.feature_block import FeatureBlock

N_LANDMARKS = 100  # nodes from which the covariance is known; more gained nothing on 61 data sets
SMALLEST = 1e-6  # eigenvalue of the landmarks' covariance, relative to the largest, that is kept
QUADRATIC = "quadratic"


@dataclass(frozen=True, eq=False, repr=False)
class QuadraticFunctions(FeatureBlock):
    """Block of up to 100 columns, whose covariance is ``(1 + x·x')²``.

    Attributes
    ----------
    features : array_like or sparse matrix, shape (N, d)
        They are divided by one number, so that the mean squared length of a row is 1. Dense ones
        are centred first.
    rng : int, default 0
        Of the 100 nodes that are drawn.

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers.
    """

    rng: int = 0
    name = QUADRATIC

    @cached_property
    def _centred(self) -> tuple[Float[np.ndarray, " d"], float, list[slice]]:
        """Return the centre, the sum of squares of all rows less it, and the blocks of rows."""
        features: Any = self.features
        n_rows, width = features.shape
        is_sparse = sparse.issparse(features)
        centre = np.zeros(width) if is_sparse else np.asarray(features.mean(axis=0, dtype=float))
        blocks = list(row_blocks(n_rows, width))
        return centre, sum(_squares(features[block], centre) for block in blocks), blocks

    @property
    def width(self) -> int:
        """Number of features that vary, 0 if all rows are equal and there are no functions."""
        features: Any = self.features
        return int(features.shape[1]) if self._centred[1] > 0 else 0

    @cached_property
    def values(self) -> Float[np.ndarray, "N m"]:
        """Columns F with ``F Fᵀ ≈ (1 + x·x')²``, none if all rows are equal."""
        features: Any = self.features
        centre, total, blocks = self._centred
        n_rows = features.shape[0]
        if total == 0:
            return np.zeros((n_rows, 0))
        rng = np.random.default_rng(self.rng)
        landmarks = np.sort(rng.permutation(n_rows)[:N_LANDMARKS])
        known = (_dense(features[landmarks]) - centre).T * (n_rows / total)
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
