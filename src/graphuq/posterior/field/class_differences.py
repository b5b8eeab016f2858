"""Differences between the field of each label's class and the fields of the other classes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Float, Int

from graphuq.posterior.field.base import ClassField, Field
from graphuq.posterior.field.conditioning import FieldMoments
from graphuq.posterior.field.labelled import LowRankField
from graphuq.utils.arrays import Array


class ClassDifferenceField(Field):
    """Class differences ``h_jk = u_jy − u_jk`` for each label j of class y and other class k.

    These J (K − 1) numbers depend on the white coordinates of all classes, concatenated.

    Attributes
    ----------
    field : LowRankField
        Field of each class.
    codes : array of int, shape (J,)
        Class of each label.
    n_classes : int
    """

    field: LowRankField
    codes: Int[Array, " J"]
    n_classes: int

    @staticmethod
    def of(field: ClassField, labels: Float[Array, " J"]) -> "ClassDifferenceField":
        """Make the class differences of some labels."""
        return ClassDifferenceField(
            field.field, jnp.asarray(labels).astype(jnp.int32), field.n_classes
        )

    @property
    def dimension(self) -> int:
        """Number of white coordinates of all classes."""
        return self.n_classes * self.field.dimension

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, " m"]:
        """Return the class differences at the labelled nodes."""
        u = ClassField(self.field, self.n_classes).at_labelled(white)
        return self.other_classes(jnp.take_along_axis(u, self.codes[:, None], axis=1) - u)

    def other_classes(self, values: Float[Array, "J K"]) -> Float[Array, " m"]:
        """Return the entries of the other classes, flattened."""
        return jnp.take_along_axis(values, self._others(), axis=1).ravel()

    def _others(self) -> Int[Array, "J M"]:
        others = jnp.arange(self.n_classes - 1)[None, :]
        return others + (others >= self.codes[:, None])

    def label_sites(
        self, precision: Float[Array, " m"], shift: Float[Array, " m"]
    ) -> tuple[Float[Array, "J K K"], Float[Array, "J K"]]:
        """Return the sites of each label together, as a site of its K fields.

        Precision ``Σ_k τ_k (e_y − e_k)(e_y − e_k)ᵀ`` and shift ``Σ_k ν_k (e_y − e_k)``.
        """
        own = jax.nn.one_hot(self.codes, self.n_classes, dtype=jnp.asarray(precision).dtype)
        rows = jnp.arange(len(own))[:, None]
        zero = jnp.zeros_like(own)
        tau = zero.at[rows, self._others()].set(precision.reshape(len(own), -1))
        nu = zero.at[rows, self._others()].set(shift.reshape(len(own), -1))
        weights = -(own[:, :, None] * tau[:, None, :] + tau[:, :, None] * own[:, None, :])
        diagonal = tau + own * tau.sum(axis=1)[:, None]
        weights = weights + jnp.eye(self.n_classes)[None] * diagonal[:, :, None]
        return weights, own * nu.sum(axis=1)[:, None] - nu

    @eqx.filter_jit
    def condition(self, precision: Float[Array, " m"], shift: Float[Array, " m"]) -> FieldMoments:
        """Return the field given sites at the differences, by a Cholesky factor of order K r."""
        factor = jnp.asarray(self.field.factor)
        n_classes, r = self.n_classes, factor.shape[1]
        weights, pull = self.label_sites(precision, shift)
        lower = jnp.linalg.cholesky(precision_of(factor, weights))
        covariance = cho_solve((lower, True), jnp.eye(n_classes * r))
        white_mean = covariance @ (pull.T @ factor).ravel()
        u = factor @ white_mean.reshape(n_classes, r).T
        spread = covariances_at(factor, covariance)
        cross = jnp.take_along_axis(spread, self.codes[:, None, None], axis=1)[:, 0]  # (J, K)
        variances = jnp.diagonal(spread, axis1=1, axis2=2)
        own_variance = jnp.take_along_axis(variances, self.codes[:, None], axis=1)
        mean = jnp.take_along_axis(u, self.codes[:, None], axis=1) - u
        return FieldMoments(
            mean=self.other_classes(mean),
            variance=self.other_classes(own_variance + variances - 2 * cross),
            white_mean=white_mean,
            white_covariance=covariance,
            log_normalizer=0.5 * (pull * u).sum() - jnp.log(jnp.diagonal(lower)).sum(),
        )


def precision_of(
    factor: Float[Array, "J r"], weights: Float[Array, "J K K"]
) -> Float[Array, "n n"]:
    """Return ``I + Σ_j W_j ⊗ F_jᵀ F_j`` with symmetric W_j: a posterior precision of K classes."""
    n_classes, r = weights.shape[1], factor.shape[1]
    above, right = np.triu_indices(n_classes)
    upper = jax.lax.map(
        lambda column: factor.T @ (column[:, None] * factor), weights[:, above, right].T
    )
    blocks = jnp.zeros((n_classes, n_classes, r, r), factor.dtype)
    blocks = blocks.at[right, above].set(upper).at[above, right].set(upper)  # symmetric blocks
    together = blocks.transpose(0, 2, 1, 3).reshape(n_classes * r, n_classes * r)
    return jnp.eye(n_classes * r) + together


def covariances_at(
    factor: Float[Array, "J r"], covariance: Float[Array, "n n"]
) -> Float[Array, "J K K"]:
    """Return the covariance of the K fields at each labelled node, from that of the coordinates."""
    r = factor.shape[1]
    n_classes = len(covariance) // r
    columns = jax.lax.map(  # F Σ_k·, one class with all others
        lambda rows: ((factor @ rows).reshape(-1, n_classes, r) * factor[:, None, :]).sum(axis=2),
        jnp.asarray(covariance).reshape(n_classes, r, n_classes * r),
    )
    return jnp.swapaxes(columns, 0, 1)
