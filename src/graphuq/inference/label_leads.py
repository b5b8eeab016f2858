"""How leads at labels vary with the fields elsewhere, given the covariance of all coordinates.

A label of class t says that its noisy value v of class t is ahead of the fields of all other
classes: its leads are ``h_k = v − u_k``. A summary exchanges the Gaussian sites of the leads at the
label that is nearest to a node for their exact factors (`graphuq.results.summaries.tilted`).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.class_covariance import DenseCovariance, Leads, LeadsAt

MAX_NUMBERS = 20_000_000  # of covariances with leads


class LabelLeads(NamedTuple):
    """Leads of all labels, and their covariance with the white coordinates.

    Attributes
    ----------
    leads : Leads
    variance : numpy.ndarray, shape (J, K)
    directions : numpy.ndarray, shape (J, K, r)
        Covariance of ``x_t − x_k`` and the lead over class k, where t is the class of the label
        and x_k are the coordinates of class k. A row l of loadings has ``l · direction``.
    factor : numpy.ndarray, shape (J, r)
        F, the loadings of the labels.
    """

    leads: Leads
    variance: Float[np.ndarray, "J K"]
    directions: Float[np.ndarray, "J K r"]
    factor: Float[np.ndarray, "J r"]

    @staticmethod
    def of(
        covariance: DenseCovariance, leads: Leads, factor: Float[np.ndarray, "J r"]
    ) -> "LabelLeads | None":
        """Return them, or None if they are too many numbers."""
        n_labels, r = factor.shape
        n_classes = covariance.n_classes
        if n_labels * n_classes * r > MAX_NUMBERS:
            return None
        blocks, rows, own = covariance.blocks, np.arange(n_labels), leads.codes
        share = leads.precision / leads.precision.sum(axis=1, keepdims=True)
        # Covariances of the coordinates of class k with v, and with the fields of the label.
        with_v = np.zeros((n_classes, n_labels, r))
        with_own_class, of_top = np.empty_like(with_v), np.empty_like(with_v)
        for k in range(n_classes):
            for other in range(n_classes):
                found = factor @ blocks[other, :, k]  # Cov(u_other(j), x_k)
                with_v[k] += share[:, other, None] * found
                if other == k:
                    with_own_class[k] = found
            top = own == k
            for other in range(n_classes):
                of_top[other, top] = factor[top] @ blocks[other, :, k]  # Cov(u_other(j), x_t)
        directions = with_v[own, rows] - of_top - with_v + with_own_class
        field = np.einsum("jr,kjr->jk", factor, with_own_class)
        between = np.einsum("jr,kjr->jk", factor, with_v)  # Cov(u_k(j), v)
        of_v = (share * between).sum(axis=1) + 1 / leads.precision.sum(axis=1)
        variance = of_v[:, None] + field - 2 * between
        return LabelLeads(leads, variance, np.swapaxes(directions, 0, 1), factor)

    def at(self, loadings: Float[np.ndarray, "B r"], top: Int[np.ndarray, " B"]) -> LeadsAt:
        """Return the leads at the label of class t that is nearest to each node.

        It is that with the largest prior correlation. Without a label of the class there are
        numbers that are not finite.
        """
        lengths = np.maximum((self.factor**2).sum(axis=1), np.finfo(float).tiny)
        label = np.zeros(len(top), dtype=np.int64)
        known = np.zeros(len(top), dtype=bool)
        for t in np.unique(top):
            at, labels = np.flatnonzero(top == t), np.flatnonzero(self.leads.codes == t)
            if len(labels):
                tells = (loadings[at] @ self.factor[labels].T) ** 2 / lengths[labels]
                label[at], known[at] = labels[tells.argmax(axis=1)], True
        covariance = np.einsum("br,bkr->bk", loadings, self.directions[label])
        covariance[~known] = np.nan
        own = self.leads
        sites = own.mean[label], own.precision[label], own.shift[label]
        return LeadsAt(covariance, self.variance[label], *sites, own.noise_std)
