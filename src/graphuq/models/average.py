"""The default model: an average over components that were learnt from other data sets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import chdtr, logsumexp, softmax

from graphuq.distributions import Categorical
from graphuq.errors import IncompatibleParts, require
from graphuq.inference.model_average import Screened, keep_screened, screened
from graphuq.likelihoods import Probit
from graphuq.models.base import Model, eigenpairs_of
from graphuq.models.common_component import common_log_odds
from graphuq.models.few_variables import log_prior_of_sets, with_few_variables
from graphuq.models.labels import Labels
from graphuq.models.learnt_odds import learnt_mixture
from graphuq.models.mixture import Mixture, changed
from graphuq.posterior.posterior import Posterior
from graphuq.spectrum import Basis, Laplacian, SpectralBasis
from graphuq.spectrum.blocks import EIGENPAIRS

MIN_SHARE = 1e-2  # probability from which the components of a block are kept, given all labels
SHARPNESS = 0.39  # log power of an average's probabilities, with one label a class
MIN_EQUAL = 2  # labels of each class, from which equal numbers tell that someone chose them
CHANCE = 0.05  # of random labels that nearly equal numbers may have, at most, to tell the same
LABEL_DESIGNS = ("auto", "by-class", "random")


@dataclass(frozen=True, repr=False)
class Average(Model):
    """Average over Matérn priors on graphs and functions of the features, for a probit.

    Components and their prior odds were learnt from other data sets; see
    `graphuq.models.learnt_odds`. Other graphs and functions of the features are part of the average
    if the basis has them, unless the labels, or 30 of them, leave them improbable.

    Parameters
    ----------
    label_design : {"auto", "by-class", "random"}, default "auto"
        How the labelled nodes were chosen. "by-class": someone chose how many of each class, so
        that numbers of labels are no evidence about class shares. The posterior of two classes
        takes shares for unknown; with more classes the unlabelled nodes tell them as far as they
        can, and the verdict says what depends on them.
        "random": they are evidence. "auto": by class, if all classes have the same number of
        labels, at least two, or numbers that are more equal than those of about 95 % of random
        draws from equally common classes (by the χ² distribution of Pearson 1900). Rows that
        `graphuq.acquisition.query` proposed lie where classes meet, which makes numbers equal, so
        that with labels of such rows "auto" is "random".

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
        own = self._checked(basis, labels)
        if not own.blocks:
            return self._on(eigenpairs_of(own), labels)
        own = with_few_variables(own, labels)
        average = self._on(own, labels)
        prior: Any = average.prior
        return _of_odds(average, screened(average), prior.log_probabilities)

    def posteriors(
        self, basis: SpectralBasis | Laplacian, several: Sequence[Labels]
    ) -> list[Posterior]:
        """Return weighted sets, whose odds each tag learns from the labels of all others, too.

        See `graphuq.models.common_component`. One tag alone has the posterior of `posterior`.
        """
        if len(several) == 1:
            return [self.posterior(basis, several[0])]
        checked = [self._checked(basis, labels) for labels in several]
        bases: list[Any] = [eigenpairs_of(basis)] * len(several)
        if checked[0].blocks:
            bases = [with_few_variables(checked[0], one) for one in several]
        n_labels = round(float(np.mean([len(labels.codes) for labels in several])))
        made = [self._on(*pair, n_labels) for pair in zip(bases, several, strict=True)]
        found = [screened(one) for one in made]
        mixture: Any = made[0].prior
        of_sets = [log_prior_of_sets(one) for one in made]  # part of a tag's own evidence
        log_prior = mixture.log_probabilities - of_sets[0]
        log_prior -= logsumexp(log_prior)
        evidences = np.array([one.log_weights for one in found]) - log_prior
        odds = common_log_odds(log_prior, evidences)
        return [
            _of_odds(one, known._replace(log_weights=logs + given), given + own_set)
            for one, known, logs, given, own_set in zip(
                made, found, evidences, odds, of_sets, strict=True
            )
        ]

    def _checked(self, basis: SpectralBasis | Laplacian, labels: Labels) -> Any:
        """Return the basis; raise `IncompatibleParts` if it, or labels, cannot be used."""
        self.check(labels)
        if isinstance(basis, Laplacian) or basis.tail_eigenvalue is not None:
            raise IncompatibleParts(
                f"{self} needs eigenpairs without a tail; pass gq.Basis.of(graph), and leave "
                "tail_eigenvalue out"
            )
        return basis

    def _on(
        self,
        basis: SpectralBasis,
        labels: Labels,
        n_labels: int | None = None,
    ) -> Posterior:
        n_classes, n_labels = labels.n_classes, n_labels or len(labels.codes)
        return Posterior(
            basis,
            learnt_mixture(basis, n_classes, n_labels),
            Probit(1.0, n_classes, random_labels=True),
            labels.nodes,
            labels.values(n_classes > 2),
            label_weights=labels.weights,
            label_design=self.design_of(labels),
            sharpness=sharpness_of(n_labels, n_classes),
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


def sharpness_of(n_labels: int, n_classes: int) -> float:
    """Return the power of the probabilities of an average.

    It falls to 1 as labels tell the components apart; see docs/theory/average.md, "An average is
    too cautious".
    """
    return float(np.exp(SHARPNESS * np.sqrt(n_classes / n_labels)))


def _likely_blocks(average: Posterior, found: Screened) -> list[str] | None:
    """Return the blocks that the screening leaves probable, or None for all of them."""
    prior: Any = average.prior
    names = [block.name for block in average.spectrum.blocks]
    if found.n_more:  # some labels alone: more of them may yet lift a block that is behind
        left = found.numbers[found.near(np.array(prior.blocks)[found.numbers])]
        kept = [name for name in names if prior.uses(name)[left].any()]
    else:
        shares = softmax(found.log_weights)
        kept = [n for n in names if shares[prior.uses(n)[found.numbers]].sum() >= MIN_SHARE]
    return None if kept == names else kept


def _screened_before(
    posterior: Posterior, average: Posterior, found: Screened, kept: list[str] | None
) -> Posterior:
    """Return a posterior that keeps what was screened of an average, on some of its blocks."""
    own, prior = average.spectrum, average.prior
    names: Any = [block.name for block in own.blocks] if kept is None else kept
    places = np.arange(own.n_columns)
    columns = np.concatenate([places[own.columns_of(n)] for n in (EIGENPAIRS, *names)])
    of_blocks = np.array(prior.blocks)[found.numbers]  # type: ignore[attr-defined]
    keep_screened(posterior, found, of_blocks, columns)
    return posterior


def _of_odds(average: Posterior, found: Screened, log_odds: Float[np.ndarray, " M"]) -> Posterior:
    """Return an average with other odds of its components, without improbable blocks."""
    mixture: Any = average.prior
    odds = np.exp(log_odds - log_odds.max())
    prior: Any = changed(mixture, {"component": Categorical(odds)})
    own: Any = average.spectrum
    if not isinstance(own, Basis) or not own.blocks:
        return replace(average, prior=prior)
    kept = _likely_blocks(average, found)
    if kept is None:
        return _screened_before(replace(average, prior=prior), average, found, None)
    blocks = {EIGENPAIRS, *kept}
    has = [all(term.block in blocks for term in terms) for terms in mixture.components]
    few = [terms for terms, is_kept in zip(mixture.components, has, strict=True) if is_kept]
    left = own.with_blocks(kept) if kept else eigenpairs_of(own)
    less = replace(average, spectrum=left, prior=Mixture(few, Categorical(odds[has])))
    return _screened_before(less, average, found, kept)
