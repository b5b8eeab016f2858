"""Covariance matrix of the coordinates of a few classes, with the methods of `ClassCovariance`."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int

from graphuq.inference.label_leads import LabelLeads, Leads, LeadsAt

ROWS = 1_024  # whose products with all forms are in memory together


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
        return 16 * self.n_classes + 2 * len(self.matrix) // self.n_classes

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
    """The methods of `FieldsAt` for the blocks of a matrix, shape (K, K, r, r).

    Forms of the loadings are computed in single precision. Those of differences of two classes are
    subtracted before, so that what the classes have in common cancels in double precision.
    """

    def __init__(
        self,
        blocks: Float[np.ndarray, "K K r r"],
        loadings: Float[np.ndarray, "B r"],
        at_labels: LabelLeads | None,
    ) -> None:
        self.blocks, self.loadings, self._at_labels = blocks, loadings, at_labels
        self._single = loadings.astype(np.float32)
        self.variance = _quadratic(self._single, np.einsum("kkrs->rks", blocks))

    def apart(self, top: Int[np.ndarray, " B"]) -> Float[np.ndarray, "B K"]:
        """Return ``Var(u_t − u_k)`` of class t of each node and all k."""
        self._top, self._apart = top, np.empty_like(self.variance)
        within = np.einsum("kkrs->krs", self.blocks)
        for t in np.unique(top):
            at = np.flatnonzero(top == t)
            forms = within[t] + within - self.blocks[:, t] - self.blocks[t]
            self._apart[at] = _quadratic(self._single[at], forms.transpose(1, 0, 2))
        return self._apart

    def shared_with(
        self, top: Int[np.ndarray, " B"], a: Int[np.ndarray, " B"], b: Int[np.ndarray, " B"]
    ) -> Float[np.ndarray, " B"]:
        """Return ``Cov(u_t − u_a, u_t − u_b)`` of three classes of each node, after `apart`."""
        n_classes, between, blocks = len(self.blocks), np.empty(len(top)), self.blocks
        for pair in np.unique(a * n_classes + b):
            k, other = divmod(int(pair), n_classes)
            at = np.flatnonzero((a == k) & (b == other))
            form = blocks[k, k] + blocks[other, other] - blocks[k, other] - blocks[other, k]
            between[at] = _quadratic(self._single[at], form[:, None])[:, 0]
        rows = np.arange(len(top))
        return np.asarray((self._apart[rows, a] + self._apart[rows, b] - between) / 2)

    def leads(self) -> LeadsAt | None:
        """Return the leads at the nearest label of each node, after `apart`; see `FieldsAt`."""
        return None if self._at_labels is None else self._at_labels.at(self.loadings, self._top)


def _quadratic(
    loadings: Float32[np.ndarray, "B r"], forms: Float[np.ndarray, "r K r"]
) -> Float[np.ndarray, "B K"]:
    """Return ``l F_k l`` of each row l and positive semi-definite matrix F_k."""
    flat = np.ascontiguousarray(forms, dtype=np.float32).reshape(len(forms), -1)
    found = np.empty((len(loadings), forms.shape[1]))
    for begin in range(0, len(loadings), ROWS):
        some = loadings[begin : begin + ROWS]
        products = (some @ flat).reshape(len(some), -1, len(forms))
        found[begin : begin + ROWS] = (products @ some[:, :, None])[:, :, 0]
    return np.maximum(found, 0.0)
