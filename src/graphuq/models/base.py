"""What a model is: a value that turns a basis and labels into a weighted set of posteriors."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from graphuq.inference.model_average import likeliest_component
from graphuq.models.labels import Labels
from graphuq.posterior.posterior import Posterior
from graphuq.spectrum import Basis, Laplacian, SpectralBasis
from graphuq.utils.shown import shown_call


@dataclasses.dataclass(frozen=True, repr=False)
class Model(ABC):
    """Prior and likelihood of the labels, or a rule that finds them.

    A subclass is a small immutable value that defines `posterior`. It never asks which method will
    run, and no method changes it.
    """

    @abstractmethod
    def posterior(self, basis: SpectralBasis | Laplacian, labels: Labels) -> Posterior:
        """Return the posterior of the field given labels.

        With a `Mixture` for its prior it is a weighted set of posteriors.

        Parameters
        ----------
        basis : Basis, Spectrum or Laplacian
        labels : Labels

        Raises
        ------
        IncompatibleParts
            If the model is not made for this basis or these labels.
        """

    def posteriors(
        self, basis: SpectralBasis | Laplacian, several: Sequence[Labels]
    ) -> list[Posterior]:
        """Return the posterior of each of several tags, by default as if it were alone.

        Parameters
        ----------
        basis : Basis, Spectrum or Laplacian
        several : sequence of Labels
            One for each tag, on the same nodes; not all of them need to label the same rows.
        """
        return [self.posterior(basis, labels) for labels in several]

    def check(self, labels: Labels) -> None:
        """Raise, before a graph is made, if the model is not made for these labels.

        Raises
        ------
        InvalidInput, IncompatibleParts
            If it is not.
        """
        return None

    def select(self, basis: SpectralBasis | Laplacian, labels: Labels) -> "Model":
        """Return the model that is used for these labels: this one, unless it chooses another."""
        return self

    @property
    def replaces_average(self) -> bool:
        """Whether it is one quick model in place of an average, with no part of the user's own."""
        return False

    @property
    def needs_eigenpairs(self) -> bool:
        """Whether a `Laplacian` is not enough."""
        return True

    @property
    def needs_features(self) -> bool:
        """Whether the basis must hold the features of all rows."""
        return False

    @property
    def takes_order(self) -> bool:
        """Whether the order of classes is part of the model."""
        return False

    @property
    def averages_in_order(self) -> bool:
        """Whether ordered classes lead to an average, which approximations alone serve."""
        return False

    @property
    def uses_blocks(self) -> bool:
        """Whether blocks of the basis beside its eigenpairs are part of the model."""
        return False

    def likeliest_number(self, posterior: Posterior) -> int:
        """Return the number of the component of a mixture that the labels leave most probable."""
        return likeliest_component(posterior)

    def used(self, posterior: Posterior) -> "Model":
        """Return the model with everything that the labels chose as numbers."""
        return self

    def __repr__(self) -> str:
        return shown_call(self)


def eigenpairs_of(basis: Any) -> Any:
    """Return the eigenpairs of a basis alone, or the Laplacian itself."""
    return basis.spectrum if isinstance(basis, Basis) else basis
