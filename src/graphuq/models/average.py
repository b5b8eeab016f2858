"""The default model: an average over components that were learnt from other data sets."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtr, softmax

from graphuq.errors import IncompatibleParts, require
from graphuq.inference.model_average import N_CHECKED, keep_screened, screened
from graphuq.likelihoods import Probit
from graphuq.models.base import Model, eigenpairs_of
from graphuq.models.labels import Labels
from graphuq.models.learnt_odds import learnt_mixture
from graphuq.posterior.posterior import Posterior
from graphuq.spectrum import Laplacian, SpectralBasis
from graphuq.spectrum.blocks import EIGENPAIRS

ENOUGH_EACH = 2  # labels a class, on average, from which other blocks improve the log score
# (docs/archive/blocks.md)
# Probability from which the components of a block are kept, given all labels, and given 30 of them.
MIN_SHARE, MIN_SHARE_OF_SOME = 1e-2, 1e-3
SHARPNESS = 1.22  # power of probabilities of an average over blocks; docs/archive/blocks.md
MIN_EQUAL = 2  # labels of each class, from which equal numbers tell that someone chose them
CHANCE = 0.05  # of random labels that nearly equal numbers may have, at most, to tell the same
LABEL_DESIGNS = ("auto", "by-class", "random")


@dataclass(frozen=True, repr=False)
class Average(Model):
    """Average over Matérn priors on graphs and functions of the features, for a probit.

    Components and their prior odds were learnt from other data sets; see
    `graphuq.models.learnt_odds`. From two labels a class on, other graphs and functions of the
    features are part of the average if the basis has them, unless the labels, or 30 of them, leave
    them improbable.

    Parameters
    ----------
    label_design : {"auto", "by-class", "random"}, default "auto"
        How the labelled nodes were chosen. "by-class": someone chose how many of each class, so
        that numbers of labels are no evidence about class shares. The posterior of two classes
        takes shares for unknown; with more classes the unlabelled nodes tell them as far as they
        can, and the verdict says what depends on them.
        "random": they are evidence. "auto": by class, if all classes have the same number of
        labels, at least two, or numbers that are more equal than those of about 95 % of random
        draws from equally common classes (by the χ² distribution of Pearson 1900).

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(100, n_features=2)
    >>> basis = gq.Basis.of(gq.graphs.knn_graph(moons.features))
    >>> labels = gq.models.Labels.of(np.where(np.arange(100) % 10, -1, moons.codes()))
    >>> gq.models.Average().posterior(basis, labels).prior.is_mixture
    True
    """

    label_design: str = "auto"

    def __post_init__(self) -> None:
        require(
            isinstance(self.label_design, str) and self.label_design in LABEL_DESIGNS,
            "label_design",
            f"{self.label_design!r}",
            f"use one of {', '.join(LABEL_DESIGNS)}",
        )

    def check(self, labels: Labels) -> None:
        """Raise `IncompatibleParts` for labels that the components were not learnt for."""
        reason = None
        if labels.distributions is not None:
            reason = "certain labels: use gq.models.LargestEvidence() for soft ones"
        elif labels.has_unseen_classes:
            reason = "a known number of classes: leave max_classes out"
        if reason is not None:
            raise IncompatibleParts(f"{self} needs {reason}")

    @property
    def uses_blocks(self) -> bool:
        """Whether blocks of the basis beside its eigenpairs are part of the model."""
        return True

    def posterior(self, basis: SpectralBasis | Laplacian, labels: Labels) -> Posterior:
        """Return the weighted set of posteriors; see `Model.posterior`."""
        self.check(labels)
        if isinstance(basis, Laplacian) or basis.tail_eigenvalue is not None:
            raise IncompatibleParts(
                f"{self} needs eigenpairs without a tail; pass gq.Basis.of(graph), and leave "
                "tail_eigenvalue out"
            )
        if not (basis.blocks and labels.are_enough(ENOUGH_EACH)):
            return self._on(eigenpairs_of(basis), labels)
        average = self._on(basis, labels, SHARPNESS)
        own: Any = basis
        prior: Any = average.prior
        found = screened(average)
        of_blocks, shares = np.array(prior.blocks)[found.numbers], softmax(found.log_weights)
        names = [block.name for block in basis.blocks]
        least = MIN_SHARE if len(labels.codes) <= N_CHECKED else MIN_SHARE_OF_SOME
        kept = [n for n in names if shares[prior.uses(n)[found.numbers]].sum() >= least]
        if kept != names:
            left = own.with_blocks(kept) if kept else eigenpairs_of(basis)
            average = self._on(left, labels, SHARPNESS)
        places = np.arange(basis.n_columns)
        columns = np.concatenate([places[own.columns_of(n)] for n in (EIGENPAIRS, *kept)])
        keep_screened(average, found, of_blocks, columns)
        return average

    def _on(self, basis: SpectralBasis, labels: Labels, sharpness: float = 1.0) -> Posterior:
        n_classes = labels.n_classes
        return Posterior(
            basis,
            learnt_mixture(basis, n_classes, len(labels.codes)),
            Probit(1.0, n_classes, random_labels=True),
            labels.nodes,
            labels.values(n_classes > 2),
            label_weights=labels.weights,
            label_design=self.design_of(labels),
            sharpness=sharpness,
        )

    def design_of(self, labels: Labels) -> str:
        """Return how the labelled nodes were chosen, "by-class" or "random"."""
        if self.label_design != "auto":
            return self.label_design
        if labels.rows_were_chosen:
            return "random"
        counts = np.bincount(labels.codes, minlength=labels.n_classes)
        if counts.min() < MIN_EQUAL:
            return "random"
        spread = ((counts - counts.mean()) ** 2).sum() / counts.mean()
        return "by-class" if chdtr(len(counts) - 1, spread) <= CHANCE else "random"
