"""Covariance matrix of the coordinates of a few classes, with the methods of `ClassCovariance`."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.label_leads import LabelLeads, Leads, LeadsAt


class DenseCovariance(NamedTuple):
    """A matrix of the coordinates of all classes.

    Attributes
    ----------
    matrix : numpy.ndarray, shape (K r, K r)
    n_classes : int
        K.
    at_labels : LabelLeads, optional
        See `with_leads`.
    """

    matrix: Float[np.ndarray, "n n"]
    n_classes: int
    at_labels: LabelLeads | None = None

    @property
    def blocks(self) -> Float[np.ndarray, "K r K r"]:
        """The matrix by classes."""
        shape = self.n_classes, len(self.matrix) // self.n_classes
        return self.matrix.reshape(*shape, *shape)

    @property
    def n_numbers(self) -> int:
        """How many numbers `at` needs for a node, about."""
        return len(self.matrix)

    def mean_of_classes(self) -> Float[np.ndarray, "r r"]:
        """Return the covariance within a class, over all classes."""
        return np.asarray(np.einsum("kikj->ij", self.blocks) / self.n_classes)

    def draws(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "S K r"]:
        """Return draws of the coordinates of all classes, of mean zero."""
        root = np.linalg.cholesky(self.matrix)
        return np.asarray((rng.normal(size=(n, len(root))) @ root.T).reshape(n, self.n_classes, -1))

    def with_leads(
        self, leads: Leads, factor: Float[np.ndarray, "J r"], n_rows: int
    ) -> "DenseCovariance":
        """Return the same with the leads of the labels, for so many nodes in all.

        The factor has the loadings of the labels.
        """
        return self._replace(at_labels=LabelLeads.of(self.blocks, leads, factor, n_rows))

    def at(self, loadings: Float[np.ndarray, "B r"]) -> "DenseFieldsAt":
        """Return the covariances of the K fields at nodes, given their loadings."""
        return DenseFieldsAt(np.swapaxes(self.blocks, 1, 2), loadings, self.at_labels)


class DenseFieldsAt:
    """The methods of `FieldsAt` for the blocks of a matrix, shape (K, K, r, r)."""

    def __init__(
        self,
        blocks: Float[np.ndarray, "K K r r"],
        loadings: Float[np.ndarray, "B r"],
        at_labels: LabelLeads | None,
    ) -> None:
        self.blocks, self.loadings, self._at_labels = blocks, loadings, at_labels
        own = np.einsum("kkrs->rks", blocks)
        self.variance = np.maximum(_quadratic(loadings, _side_by_side(own)), 0.0)

    def apart(self, top: Int[np.ndarray, " B"]) -> Float[np.ndarray, "B K"]:
        """Return ``Var(u_t − u_k)`` of class t of each node and all k."""
        self._top = top
        self._with_top, rows = np.empty_like(self.variance), np.arange(len(top))
        for t in np.unique(top):
            at = np.flatnonzero(top == t)
            forms = _side_by_side(self.blocks[:, t].transpose(1, 0, 2))
            self._with_top[at] = _quadratic(self.loadings[at], forms)
        found = self.variance[rows, top, None] + self.variance - 2 * self._with_top
        return np.maximum(found, 0.0)

    def shared_with(
        self, top: Int[np.ndarray, " B"], a: Int[np.ndarray, " B"], b: Int[np.ndarray, " B"]
    ) -> Float[np.ndarray, " B"]:
        """Return ``Cov(u_t − u_a, u_t − u_b)`` of three classes of each node, after `apart`."""
        n_classes, between = len(self.blocks), np.empty(len(top))
        for pair in np.unique(a * n_classes + b):
            k, other = divmod(int(pair), n_classes)
            at = np.flatnonzero((a == k) & (b == other))
            between[at] = _quadratic(self.loadings[at], self.blocks[k, other])[:, 0]
        rows = np.arange(len(top))
        with_a, with_b = self._with_top[rows, a], self._with_top[rows, b]
        return np.asarray(self.variance[rows, top] - with_a - with_b + between)

    def leads(self) -> LeadsAt | None:
        """Return the leads at the nearest label of each node, after `apart`; see `FieldsAt`."""
        return None if self._at_labels is None else self._at_labels.at(self.loadings, self._top)


def _side_by_side(forms: Float[np.ndarray, "r K r"]) -> Float[np.ndarray, "r m"]:
    return np.ascontiguousarray(forms).reshape(len(forms), -1)


def _quadratic(
    loadings: Float[np.ndarray, "B r"], forms: Float[np.ndarray, "r m"]
) -> Float[np.ndarray, "B K"]:
    """Return ``l F_k l`` of each row l and matrix F_k, given the matrices side by side."""
    products = (loadings @ forms).reshape(len(loadings), -1, loadings.shape[1])
    return np.asarray(np.einsum("bkr,br->bk", products, loadings))
