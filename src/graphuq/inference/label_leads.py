"""Leads at labels, and how they vary with the fields elsewhere, given a covariance matrix.

A label of class t says that its noisy value v of class t is ahead of the fields of all other
classes: its leads are ``h_k = v − u_k``. A summary exchanges the Gaussian sites of the leads at the
label that is nearest to a node for their exact factors (`graphuq.results.summaries.tilted`).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

MAX_NUMBERS = 20_000_000  # of covariances with leads


class Leads(NamedTuple):
    """Leads ``h = v − u_k`` of the noisy value of each label's own class, and their sites.

    Attributes
    ----------
    codes : numpy.ndarray of int, shape (J,)
        Own class of each label.
    mean : numpy.ndarray, shape (J, K)
    precision, shift : numpy.ndarray, shape (J, K)
        Sites of the leads.
    noise_std : float
        γ of the factors ``Φ(h / γ)``, which the sites replace.
    """

    codes: Int[np.ndarray, " J"]
    mean: Float[np.ndarray, "J K"]
    precision: Float[np.ndarray, "J K"]
    shift: Float[np.ndarray, "J K"]
    noise_std: float

    @staticmethod
    def of(
        labels: Int[np.ndarray, " J"],
        weights: Float[np.ndarray, "J K"],
        shifts: Float[np.ndarray, "J K"],
        mean: Float[np.ndarray, "J K"],
        noise_std: float,
    ) -> "Leads":
        """Return the leads of nested sites, given the means of the fields at the labels."""
        center = ((weights * mean).sum(axis=1) + shifts.sum(axis=1)) / weights.sum(axis=1)
        return Leads(labels, center[:, None] - mean, weights, shifts, noise_std)


class LeadsAt(NamedTuple):
    """Leads at the label that tells most of each of B nodes, one of the likeliest class there.

    Attributes
    ----------
    covariance : numpy.ndarray, shape (B, K)
        Covariance of ``u_t − u_k`` at the node and the lead over class k.
    variance, mean, precision, shift : numpy.ndarray, shape (B, K)
        Of the lead, and its site.
    noise_std : float
    """

    covariance: Float[np.ndarray, "B K"]
    variance: Float[np.ndarray, "B K"]
    mean: Float[np.ndarray, "B K"]
    precision: Float[np.ndarray, "B K"]
    shift: Float[np.ndarray, "B K"]
    noise_std: float


class LabelLeads(NamedTuple):
    """Leads of the labels under a covariance matrix of the white coordinates.

    Attributes
    ----------
    blocks : numpy.ndarray, shape (K, r, K, r)
        The matrix by classes.
    leads : Leads
    factor : numpy.ndarray, shape (J, r)
        F, the loadings of the labels.
    every : LeadCovariances or None
        Those of all labels; None if each call of `at` computes those that it needs.
    """

    blocks: Float[np.ndarray, "K r K r"]
    leads: Leads
    factor: Float[np.ndarray, "J r"]
    every: "LeadCovariances | None" = None

    @staticmethod
    def of(
        blocks: Float[np.ndarray, "K r K r"],
        leads: Leads,
        factor: Float[np.ndarray, "J r"],
        n_rows: int,
    ) -> "LabelLeads | None":
        """Return them for a number of nodes, or None if they are too many numbers.

        Covariances of all labels, in O(J (K r)²) operations, are computed for many nodes only.
        """
        n_labels, r = factor.shape
        if n_labels * len(blocks) * r > MAX_NUMBERS:
            return None
        found = LabelLeads(blocks, leads, factor)
        many = n_rows >= n_labels
        return found._replace(every=found.covariances(np.arange(n_labels))) if many else found

    def covariances(self, labels: Int[np.ndarray, " j"]) -> "LeadCovariances":
        """Return covariances of the leads of some labels."""
        factor, own = self.factor[labels], self.leads.codes[labels]
        (n_labels, r), n_classes, rows = factor.shape, len(self.blocks), np.arange(len(labels))
        precision = self.leads.precision[labels]
        share = precision / precision.sum(axis=1, keepdims=True)
        shared = (share[:, :, None] * factor[:, None]).reshape(n_labels, -1)
        # Covariances of the coordinates of class k with v, and with the fields of the label.
        with_v = np.zeros((n_classes, n_labels, r))
        with_own_class, of_top = np.empty_like(with_v), np.empty_like(with_v)
        for k in range(n_classes):
            of_class = np.ascontiguousarray(self.blocks[:, :, k])
            with_v[k] = shared @ of_class.reshape(-1, r)
            with_own_class[k] = factor @ of_class[k]
            top = own == k
            of_top[:, top] = factor[top] @ of_class  # Cov(u_other(j), x_t)
        directions = with_v[own, rows] - of_top - with_v + with_own_class
        field = np.einsum("jr,kjr->jk", factor, with_own_class)
        between = np.einsum("jr,kjr->jk", factor, with_v)  # Cov(u_k(j), v)
        of_v = (share * between).sum(axis=1) + 1 / precision.sum(axis=1)
        variance = of_v[:, None] + field - 2 * between
        return LeadCovariances(variance, np.swapaxes(directions, 0, 1))

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
        used, place = np.unique(label, return_inverse=True)
        found = self.covariances(used) if self.every is None else self.every
        place = place if self.every is None else label
        covariance = found.along(loadings, place)
        covariance[~known] = np.nan
        own = self.leads
        sites = own.mean[label], own.precision[label], own.shift[label]
        return LeadsAt(covariance, found.variance[place], *sites, own.noise_std)


class LeadCovariances(NamedTuple):
    """How the leads of some labels vary, and with the white coordinates.

    Attributes
    ----------
    variance : numpy.ndarray, shape (j, K)
    directions : numpy.ndarray, shape (j, K, r)
        Covariance of ``x_t − x_k`` and the lead over class k, where t is the class of the label
        and x_k are the coordinates of class k. A row l of loadings has ``l · direction``.
    """

    variance: Float[np.ndarray, "j K"]
    directions: Float[np.ndarray, "j K r"]

    def along(
        self, loadings: Float[np.ndarray, "B r"], place: Int[np.ndarray, " B"]
    ) -> Float[np.ndarray, "B K"]:
        """Return ``l · direction`` of each row l of loadings and the lead at its place."""
        found = np.empty((len(place), self.variance.shape[1]))
        order = np.argsort(place, kind="stable")
        for rows in filter(len, np.split(order, np.flatnonzero(np.diff(place[order])) + 1)):
            found[rows] = loadings[rows] @ self.directions[place[rows[0]]].T
        return found
