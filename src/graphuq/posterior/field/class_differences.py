"""Leads of the noisy field of each label's class over the fields of the other classes."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.posterior.field.base import ClassField, Field
from graphuq.posterior.field.conditioning import FieldMoments
from graphuq.posterior.field.labelled import LowRankField
from graphuq.utils.arrays import Array, array_namespace, mapped, solve_lower


class ClassDifferenceField(Field):
    """Leads ``h_jk = u_jy + γ z_j − u_jk`` of each label j of class y over each other class k.

    z_j ~ N(0, 1) is the noise of the field of the label's class, which its K − 1 leads share. It
    is integrated in closed form. Without noise the J (K − 1) leads depend on the white
    coordinates of all classes, concatenated.

    Attributes
    ----------
    field : LowRankField
        Field of each class.
    codes : array of int, shape (J,)
        Class of each label.
    n_classes : int
    noise_std : float
        γ > 0, in units of u.
    """

    field: LowRankField
    codes: Int[Array, " J"]
    n_classes: int
    noise_std: Float[Array, ""] | float

    @staticmethod
    def of(
        field: ClassField, labels: Float[Array, " J"], noise_std: float
    ) -> "ClassDifferenceField":
        """Make the leads of some labels."""
        codes = np.asarray(labels).astype(np.int32)  # in JAX, each number of labels is compiled
        gamma = np.asarray(noise_std, dtype=np.float64)  # an array, so that no γ is compiled alone
        return ClassDifferenceField(field.field, codes, field.n_classes, gamma)

    @property
    def dimension(self) -> int:
        """Number of white coordinates of all classes, without the noise."""
        return self.n_classes * self.field.dimension

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, " m"]:
        """Return the leads at the labelled nodes, without the noise."""
        u = ClassField(self.field, self.n_classes).at_labelled(white)
        own = array_namespace(u).take_along_axis(u, self.codes[:, None], axis=1)
        return self.other_classes(own - u)

    def other_classes(self, values: Float[Array, "J K"]) -> Float[Array, " m"]:
        """Return the entries of the other classes, flattened."""
        xp = array_namespace(values)
        others = xp.arange(self.n_classes - 1)[None, :]
        columns = others + (others >= self.codes[:, None])
        return xp.take_along_axis(values, columns, axis=1).ravel()

    def _by_class(self, values: Float[Array, " m"], own: Any) -> Float[Array, "J K"]:
        """Return values of the other classes as a matrix, with another value for the own class."""
        xp = array_namespace(values)
        classes = xp.arange(self.n_classes)[None, :]
        columns = xp.clip(classes - (classes > self.codes[:, None]), 0, self.n_classes - 2)
        rest = xp.take_along_axis(values.reshape(len(self.codes), -1), columns, axis=1)
        return xp.where(classes == self.codes[:, None], own, rest)

    def star(
        self, precision: Float[Array, " m"], shift: Float[Array, " m"]
    ) -> tuple[Float[Array, "J K"], Float[Array, "J K"]]:
        """Return w and ν of each label and class: τ, ν of another class, 1/γ² and 0 of its own."""
        return self._by_class(precision, 1 / self.noise_std**2), self._by_class(shift, 0.0)

    def label_sites(
        self, precision: Float[Array, " m"], shift: Float[Array, " m"]
    ) -> tuple[Float[Array, "J K K"], Float[Array, "J K"]]:
        """Return the sites of each label together, as a site of its K fields.

        The noise is integrated. The precision is ``W = diag(w) − w wᵀ / Σ w`` and the shift
        ``w_k Σν / Σw − ν_k``, with w and ν of `condition`.
        """
        w, nu = self.star(precision, shift)
        total = w.sum(axis=1, keepdims=True)
        share = w / total
        identity = array_namespace(w).eye(self.n_classes, dtype=w.dtype)[None]
        between = (1 - identity) * share[:, :, None] * w[:, None, :]
        # Rows of W sum to 0. ``w_y − w_y² / Σ w`` would cancel for small γ; this sum does not.
        pull = share * nu.sum(axis=1, keepdims=True) - nu
        return identity * between.sum(axis=2)[:, :, None] - between, pull

    def condition(self, precision: Float[Array, " m"], shift: Float[Array, " m"]) -> FieldMoments:
        """Return the field given sites at the leads, by a Cholesky factor of order K r.

        With ``w_y = 1/γ²`` and the precisions ``w_k = τ_k`` of a label, the noisy value
        ``v = u_y + γ z`` is the centre of a star of K Gaussian factors. Given u it has the mean
        ``(Σ w_k u_k + Σ ν_k) / Σ w`` and the variance ``1 / Σ w``.

        Parameters
        ----------
        precision, shift : array, shape (J (K − 1),)
            τ ≥ 0 and ν of each lead.

        Returns
        -------
        FieldMoments
            Mean and variance are those of the leads; white coordinates are those of all classes.
        """
        xp = array_namespace(precision)
        factor = xp.asarray(self.field.factor)
        n_classes, r = self.n_classes, factor.shape[1]
        weights, pull = self.label_sites(precision, shift)
        lower = xp.linalg.cholesky(precision_of(factor, weights))
        inverse = solve_lower(lower, xp.eye(n_classes * r))
        covariance = inverse.T @ inverse
        white_mean = covariance @ (pull.T @ factor).ravel()
        u = factor @ white_mean.reshape(n_classes, r).T
        w, nu = self.star(precision, shift)
        total = w.sum(axis=1, keepdims=True)
        share, offset = w / total, nu.sum(axis=1, keepdims=True) / total
        spread = covariances_at(factor, covariance)
        with_center = (spread * share[:, None, :]).sum(axis=2)  # Cov(u_k, Σ w u / Σ w)
        center_variance = (share * with_center).sum(axis=1, keepdims=True) + 1 / total
        variances = xp.diagonal(spread, axis1=1, axis2=2)
        noise_normalizer = 0.5 * (offset**2 * total - xp.log(self.noise_std**2 * total)).sum()
        normalizer = 0.5 * (pull * u).sum() - xp.log(xp.diagonal(lower)).sum()
        return FieldMoments(
            mean=self.other_classes((share * u).sum(axis=1, keepdims=True) + offset - u),
            variance=self.other_classes(center_variance + variances - 2 * with_center),
            white_mean=white_mean,
            white_covariance=covariance,
            log_normalizer=normalizer + noise_normalizer,
        )


def precision_of(
    factor: Float[Array, "J r"], weights: Float[Array, "J K K"]
) -> Float[Array, "n n"]:
    """Return ``I + Σ_j W_j ⊗ F_jᵀ F_j`` with symmetric W_j: a posterior precision of K classes."""
    xp, (n_classes, r) = array_namespace(weights), (weights.shape[1], factor.shape[1])
    above, right = np.triu_indices(n_classes)
    upper = mapped(
        lambda column: factor.T @ (column[:, None] * factor),
        weights[:, above, right].T,
        together=False,
    )
    pair = np.zeros((n_classes, n_classes), dtype=int)  # symmetric blocks
    pair[above, right] = pair[right, above] = np.arange(len(above))
    blocks = upper[pair]
    together = blocks.transpose(0, 2, 1, 3).reshape(n_classes * r, n_classes * r)
    return xp.eye(n_classes * r) + together


def covariances_at(
    factor: Float[Array, "J r"], covariance: Float[Array, "n n"]
) -> Float[Array, "J K K"]:
    """Return the covariance of the K fields at each labelled node, from that of the coordinates."""
    r = factor.shape[1]
    n_classes = len(covariance) // r
    xp = array_namespace(covariance)
    columns = mapped(  # F Σ_k·, one class with all others
        lambda rows: ((factor @ rows).reshape(-1, n_classes, r) * factor[:, None, :]).sum(axis=2),
        xp.asarray(covariance).reshape(n_classes, r, n_classes * r),
        together=False,
    )
    return xp.swapaxes(columns, 0, 1)
