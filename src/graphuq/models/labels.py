"""Labels as models take them."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import require


class Labels(NamedTuple):
    """Which nodes have labels, and what is known of each.

    Attributes
    ----------
    nodes : numpy.ndarray of int, shape (J,)
        Labelled nodes.
    codes : numpy.ndarray of int, shape (J,)
        Class of each, from 0; of a soft label the most probable one.
    n_classes : int
        K, at least 2. Each class has a label, unless labels are soft or ordered.
    weights : numpy.ndarray, shape (J,), optional
        Weight of each label; see `graphuq.Posterior`.
    distributions : numpy.ndarray, shape (J, K), optional
        Probabilities of the classes of soft labels.
    max_classes : int, optional
        Largest possible number of classes, if more than K; by default K.
    ordered : bool, default False
        Whether codes are those of grades, the lowest first, some of which may have no label.
    rows_were_chosen : bool, default False
        Whether rows, and not numbers of labels of each class, were chosen: for one of several tags,
        or some of them because `graphuq.acquisition.query` proposed them. Then equal numbers are
        chance.
    """

    nodes: Int[np.ndarray, " J"]
    codes: Int[np.ndarray, " J"]
    n_classes: int
    weights: Float[np.ndarray, " J"] | None = None
    distributions: Float[np.ndarray, "J K"] | None = None
    max_classes: int | None = None
    ordered: bool = False
    rows_were_chosen: bool = False

    @staticmethod
    def of(y: Any) -> "Labels":
        """Return the labels of an array with a code for each node.

        Parameters
        ----------
        y : array_like of int, shape (N,)
            Class of each node, from 0, or −1 if it is unknown. Each class has a label.

        Raises
        ------
        InvalidInput
            If codes are no integers, or a class from 0 to the largest has no label.
        """
        codes = np.asarray(y)
        remedy = "give one class a node, from 0, or −1 if it is unknown"
        require(codes.ndim == 1 and codes.dtype.kind in "iu", "labels", f"{codes.dtype}", remedy)
        nodes = np.flatnonzero(codes >= 0)
        found = np.unique(codes[nodes])
        require(
            len(found) > 1 and found[-1] == len(found) - 1,
            "labels",
            f"the classes {found.tolist()}",
            "give at least two classes, numbered from 0 without a gap",
        )
        return Labels(nodes, codes[nodes].astype(np.int64), len(found))

    @property
    def has_unseen_classes(self) -> bool:
        """Whether there may be classes without a label."""
        return self.max_classes is not None and self.max_classes > self.n_classes

    @property
    def has_several(self) -> bool:
        """Whether there are, or may be, more than two classes."""
        return max(self.n_classes, self.max_classes or 0) > 2

    def values(self, multiclass: bool) -> Int[np.ndarray, " J"]:
        """Return the labels as likelihoods take them: codes, or ±1."""
        return self.codes if multiclass else 2 * self.codes - 1
