"""The rule behind ``model="auto"``: the one place where the default model is decided."""

from dataclasses import dataclass

from graphuq.inference.near_classes import are_many
from graphuq.models.average import Average
from graphuq.models.base import Model
from graphuq.models.evidence import LargestEvidence
from graphuq.models.labels import Labels
from graphuq.models.likeliest import Likeliest
from graphuq.models.ordered import OrderedAverage
from graphuq.posterior.posterior import Posterior
from graphuq.spectrum import Laplacian, SpectralBasis

MAX_AVERAGED = 1_500  # labels up to which averages over models are nearly as quick as one


@dataclass(frozen=True, repr=False)
class Auto(Model):
    """The default: an average over models, unless the labels or the basis exclude it.

    ==================================================  ====================
    labels and basis                                    model
    ==================================================  ====================
    ordered classes, three or more                      `OrderedAverage()`
    soft labels; more classes than have labels; a tail  `LargestEvidence()`
    over 50 classes, and 12,000 classes × labels        `Likeliest()`
    up to 1,500 labels                                  `Average()`
    more labels                                         `Likeliest()`
    ==================================================  ====================

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(100, n_features=2)
    >>> basis = gq.Basis.of(gq.graphs.knn_graph(moons.features))
    >>> labels = gq.models.Labels.of(np.where(np.arange(100) % 10, -1, moons.codes()))
    >>> gq.models.Auto().select(basis, labels)
    Average()
    """

    @property
    def takes_order(self) -> bool:
        """Whether the order of classes is part of the model."""
        return True

    @property
    def averages_in_order(self) -> bool:
        """Whether ordered classes lead to an average, which approximations alone serve."""
        return True

    def check(self, labels: Labels) -> None:
        """Raise `IncompatibleParts` for ordered classes with labels that are soft or weighted."""
        if labels.ordered and labels.n_classes > 2:
            OrderedAverage().check(labels)

    def select(self, basis: SpectralBasis | Laplacian, labels: Labels) -> Model:
        """Return the model for these labels on this basis."""
        if labels.ordered and labels.n_classes > 2:
            return OrderedAverage()
        has_tail = not isinstance(basis, Laplacian) and basis.tail_eigenvalue is not None
        if labels.distributions is not None or labels.has_unseen_classes or has_tail:
            return LargestEvidence()
        n_labels = len(labels.codes)
        if n_labels > MAX_AVERAGED or are_many(n_labels, labels.n_classes):
            return Likeliest()
        return Average()

    def posterior(self, basis: SpectralBasis | Laplacian, labels: Labels) -> Posterior:
        """Return the posterior of the selected model; see `Model.posterior`."""
        return self.select(basis, labels).posterior(basis, labels)
