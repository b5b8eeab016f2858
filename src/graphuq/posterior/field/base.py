"""The prior where labels are seen, as a map from white coordinates: of one field, or several."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from graphuq.priors import SpectralStd
from graphuq.utils.arrays import Array


class Field(eqx.Module):
    """The prior at the labelled nodes, as a map from white coordinates."""

    @property
    def n_fields(self) -> int:
        """Fields at a node: one, or one for each class."""
        return 1

    @property
    def alike(self) -> bool:
        """Whether those of all classes have one law."""
        return True

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of white coordinates."""

    @abstractmethod
    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Field ``u_L`` at the labelled nodes; of several classes, classes last."""

    def matrix(self) -> Float[Array, "J n"]:
        """F of ``u_L = F x``, of two classes."""
        columns = jax.vmap(self.at_labelled, out_axes=1)(jnp.eye(self.dimension))
        return np.asarray(columns)


class NoisyField(Field):
    """``u_L + γ ε``: the field's own white coordinates, and after them the noise of each number."""

    field: Field
    noise_std: Float[Array, ""] | float
    n_labels: int

    @property
    def n_fields(self) -> int:
        """As many as without noise."""
        return self.field.n_fields

    @property
    def dimension(self) -> int:
        """Number of white coordinates, noise included."""
        return self.field.dimension + self.n_labels * self.n_fields

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Field and noise at the labelled nodes."""
        n = self.field.dimension
        u = self.field.at_labelled(white[:n])
        return u + self.noise_std * white[n:].reshape(u.shape)

    def matrix(self) -> Float[Array, "J n"]:
        """The field's, and beside it that of the noise."""
        return np.hstack([self.field.matrix(), self.noise_std * np.eye(self.n_labels)])


class ClassField(Field):
    """A field for each of K classes, independent and of one law: their white coordinates in turn.

    Attributes
    ----------
    field : LabelledField, or any other
        Of each class.
    n_classes : int
    """

    field: Any
    n_classes: int = eqx.field(static=True)

    @property
    def n_fields(self) -> int:
        """One for each class."""
        return self.n_classes

    @property
    def dimension(self) -> int:
        """Number of white coordinates of all classes."""
        return self.n_classes * self.field.dimension

    def by_class(self, white: Float[Array, "*S n"]) -> Float[Array, "*S K m"]:
        """The white coordinates of each class."""
        shape = (*white.shape[:-1], self.n_classes, self.field.dimension)
        return white.reshape(shape)

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J K"]:
        """Field ``u_L`` at the labelled nodes, classes last."""
        fields: Array = jax.vmap(self.field.at_labelled, out_axes=-1)(self.by_class(white))
        return fields


def of_one_class(field: Any) -> Any:
    """The field of each class."""
    return field.field if isinstance(field, ClassField) else field


class NodeField(Field):
    """The plain N-dimensional form ``u = Q (s ξ) + s̄ (z − Q Qᵀ z)`` of the papers' algorithms.

    Its white coordinates are (ξ, z), ℓ + N of them. Kept to test the labelled-node forms.
    """

    eigenvectors: Float[Array, "N L"]
    std: SpectralStd
    scale: Float[Array, " N"]
    labelled: Array

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return sum(self.eigenvectors.shape)

    def at_nodes(self, white: Float[Array, " n"]) -> Float[Array, " N"]:
        """Field u at all nodes (Bertozzi et al. 2018, (11) and the corrected (14))."""
        n_eigenpairs = self.eigenvectors.shape[1]
        xi, z = white[:n_eigenpairs], white[n_eigenpairs:]
        r = z - self.eigenvectors @ (self.eigenvectors.T @ z)
        return self.scale * (self.eigenvectors @ (self.std.modes * xi) + self.std.tail * r)

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """Field ``u_L`` at the labelled nodes."""
        return jnp.asarray(self.at_nodes(white))[self.labelled]
