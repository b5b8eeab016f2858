"""Base of Gaussian fields: the prior at the labelled nodes as a map from white coordinates."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.priors import SpectralStd
from graphuq.utils.arrays import Array, mapped
from graphuq.utils.part import Part, part_field


class Field(Part):
    """Prior at the labelled nodes, as a map from white coordinates.

    Attributes
    ----------
    is_low_rank : bool
        Whether ``u_L = F x`` with all of x and a stored ``factor`` F; see `LowRankField`.
    """

    is_low_rank: ClassVar[bool] = False

    @property
    def n_fields(self) -> int:
        """Number of fields at a node: 1, or one for each class."""
        return 1

    @property
    def one_class(self) -> Any:
        """The field of each class; itself if there is only one field."""
        return self

    @property
    def classes_share_prior(self) -> bool:
        """Whether the fields of all classes have the same prior distribution."""
        return True

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of white coordinates."""

    @abstractmethod
    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Return the field ``u_L`` at the labelled nodes; multiclass fields have classes last."""

    def matrix(self) -> Float[Array, "J n"]:
        """Return F of ``u_L = F x``, for binary fields."""
        return mapped(self.at_labelled, np.eye(self.dimension)).T


class NoisyField(Field):
    """Field with noise, ``u_L + γ ε``.

    The white coordinates are those of the field, followed by one noise coordinate ε for each
    component of ``u_L``.
    """

    field: Field
    noise_std: Float[Array, ""] | float
    n_labels: int

    @property
    def n_fields(self) -> int:
        """Number of fields at a node, as without noise."""
        return self.field.n_fields

    @property
    def dimension(self) -> int:
        """Number of white coordinates, noise included."""
        return self.field.dimension + self.n_labels * self.n_fields

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Return field plus noise at the labelled nodes."""
        n = self.field.dimension
        u = self.field.at_labelled(white[:n])
        return u + self.noise_std * white[n:].reshape(u.shape)

    def matrix(self) -> Float[Array, "J n"]:
        """Return ``[F, γ I]``."""
        return np.hstack([self.field.matrix(), self.noise_std * np.eye(self.n_labels)])


class ClassField(Field):
    """Independent fields with the same distribution, one for each of K classes.

    The white coordinates of the classes are concatenated.

    Attributes
    ----------
    field : LabelledField or another Field
        Field of each class.
    n_classes : int
    """

    field: Any
    n_classes: int = part_field(static=True)

    @property
    def n_fields(self) -> int:
        """Number of classes K."""
        return self.n_classes

    @property
    def one_class(self) -> Any:
        """Field of each class."""
        return self.field

    @property
    def dimension(self) -> int:
        """Number of white coordinates of all classes."""
        return self.n_classes * self.field.dimension

    def by_class(self, white: Float[Array, "*S n"]) -> Float[Array, "*S K m"]:
        """Split the white coordinates by class."""
        shape = (*white.shape[:-1], self.n_classes, self.field.dimension)
        return white.reshape(shape)

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J K"]:
        """Return the field ``u_L`` at the labelled nodes, classes last."""
        fields: Array = mapped(self.field.at_labelled, self.by_class(white)).T
        return fields


class NodeField(Field):
    """Plain N-dimensional form ``u = Q (s ξ) + s̄ (z − Q Qᵀ z)`` of the papers' algorithms.

    Its ℓ + N white coordinates are (ξ, z). It serves to test the forms at the labelled nodes.
    """

    eigenvectors: Float[Array, "N L"]
    std: SpectralStd
    scale: Float[Array, " N"]
    labelled: Array

    @property
    def dimension(self) -> int:
        """Number of white coordinates, ℓ + N."""
        return sum(self.eigenvectors.shape)

    def at_nodes(self, white: Float[Array, " n"]) -> Float[Array, " N"]:
        """Return the field u at all nodes (Bertozzi et al. 2018, (11) and the corrected (14))."""
        n_eigenpairs = self.eigenvectors.shape[1]
        xi, z = white[:n_eigenpairs], white[n_eigenpairs:]
        r = z - self.eigenvectors @ (self.eigenvectors.T @ z)
        return self.scale * (self.eigenvectors @ (self.std.modes * xi) + self.std.tail * r)

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """Return the field ``u_L`` at the labelled nodes."""
        return self.at_nodes(white)[self.labelled]
