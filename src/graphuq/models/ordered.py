"""The default model of ordered classes: an average over components, with one set of thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import softmax

from graphuq.distributions import Categorical
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.evidence.thresholds import learn_thresholds, thresholds_of_shares
from graphuq.inference import ExpectationPropagation
from graphuq.inference.model_average import likeliest_of_block, likely_places, stratified
from graphuq.likelihoods import Ordered
from graphuq.models.average import Average
from graphuq.models.labels import Labels
from graphuq.models.learnt_odds import learnt_mixture
from graphuq.models.mixture import Mixture, changed
from graphuq.posterior.posterior import Posterior
from graphuq.spectrum import Laplacian, SpectralBasis
from graphuq.utils.arrays import parallel_map

N_COMPARED, MORE = 100, 3  # labels that are compared first; factor of those that are next
BEHIND = 8.0  # log weight behind the largest, from which a component is left out
MIN_WEIGHT, MAX_FITTED = 0.05, 5  # share of the likeliest component, and number of components, by
# which thresholds are learnt
SCREENING = ExpectationPropagation(tolerance=1e-2)  # of a mean, in standard deviations


@dataclass(frozen=True, repr=False)
class OrderedAverage(Average):
    """Average over priors on graphs and functions of the features, for ordered classes.

    Components and prior odds are those of `Average`, each with the `Ordered` likelihood. Field and
    noise together have variance 1 at an average node in every component, so that thresholds are
    normal quantiles of class shares and all components have the same. They maximise the evidence
    of the likeliest components; see `graphuq.evidence.thresholds` and docs/theory/labels.md,
    "Ordered classes". Grades may be without labels.

    Parameters
    ----------
    label_design : {"auto", "by-class", "random"}, default "auto"
        As for `Average`.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> x = np.linspace(0, 1, 90)[:, None]
    >>> basis = gq.Basis.of(gq.graphs.knn_graph(x))
    >>> grades = np.where(np.arange(90) % 9 == 0, (3 * x[:, 0]).astype(int).clip(max=2), -1)
    >>> labels = gq.models.Labels.of(grades)._replace(ordered=True)
    >>> posterior = gq.models.OrderedAverage().posterior(basis, labels)
    >>> posterior.likelihood.n_classes, posterior.n_fields
    (3, 1)
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
        """Raise `IncompatibleParts` for labels without order, or with weights."""
        super().check(labels)
        if not labels.ordered:
            raise IncompatibleParts(
                f"{self} needs the order of the classes: set ordered=True, or a list of classes"
            )
        if labels.weights is not None and (labels.weights != 1).any():
            raise IncompatibleParts(
                f"{self} takes no weights of labels: leave sample_weight out, or the order"
            )

    def posteriors(
        self, basis: SpectralBasis | Laplacian, several: Sequence[Labels]
    ) -> list[Posterior]:
        """Return the posterior of each of several grades by itself."""
        return [self.posterior(basis, labels) for labels in several]

    def posterior(self, basis: SpectralBasis | Laplacian, labels: Labels) -> Posterior:
        """Return the weighted set of posteriors; see `Model.posterior`."""
        self.check(labels)
        if isinstance(basis, Laplacian) or basis.tail_eigenvalue is not None:
            raise IncompatibleParts(
                f"{self} needs eigenpairs without a tail; leave tail_eigenvalue out"
            )
        learnt = learnt_mixture(basis, labels.n_classes, len(labels.codes))
        mixture, noise = of_unit_variance(learnt)
        first = thresholds_of_shares(np.bincount(labels.codes, minlength=labels.n_classes))
        made = Posterior(
            basis,
            mixture,
            Ordered(first, noise),
            labels.nodes,
            labels.codes,
            label_design=self.design_of(labels),
        )
        log_weights, likely = _screened(made)
        first_ones = np.flatnonzero(likely)
        first_ones = first_ones[np.argsort(-log_weights[likely], kind="stable")][:MAX_FITTED]
        shares = softmax(log_weights[first_ones])
        most = first_ones[shares >= MIN_WEIGHT * shares[0]]
        several = [made.component(number) for number in most.tolist()]
        kept, odds = _with_odds(log_weights, likely, mixture.log_probabilities)
        thresholds = learn_thresholds(several, mixture.log_probabilities[most], 1.0)
        components = tuple(mixture.components[m] for m in kept.tolist())
        prior = Mixture(components, Categorical(odds))
        return replace(made, prior=prior, likelihood=Ordered(thresholds, noise[kept]))

    def likeliest_number(self, posterior: Posterior) -> int:
        """Return the number of the component that the labels leave most probable."""
        mixture: Any = posterior.prior
        numbers = np.arange(mixture.n_components)
        evidence = _evidence(posterior, np.arange(len(posterior.labels)), numbers)
        weights = softmax(mixture.log_probabilities + evidence)
        return likeliest_of_block(posterior, numbers, weights)


def of_unit_variance(mixture: Mixture) -> tuple[Mixture, Float[np.ndarray, " M"]]:
    """Return a mixture made for noise 1, scaled so that field and noise have the variance 1.

    Returns
    -------
    mixture : Mixture
    noise_std : numpy.ndarray, shape (M,)
        γ of each component.
    """
    variances = np.array([sum(term.scale**2 for term in terms) for terms in mixture.components])
    noise = 1 / np.sqrt(1 + variances)
    components = tuple(
        tuple(changed(term, {"scale": term.scale * std}) for term in terms)
        for terms, std in zip(mixture.components, noise.tolist(), strict=True)
    )
    return changed(mixture, {"components": components}), noise


def _screened(
    posterior: Posterior,
) -> tuple[Float[np.ndarray, " M"], Bool[np.ndarray, " M"]]:
    """Return the log of prior odds times evidence of each component, and which are likely.

    All are compared given 100 labels, those that are left given three times as many, and so on, as
    in `graphuq.inference.model_average.likely_components`. It is −inf without a fixed point.
    """
    mixture: Any = posterior.prior
    order = stratified(np.asarray(posterior.labels).astype(int))
    n_all, n_labels = len(order), min(N_COMPARED, len(order))
    blocks, numbers = np.array(mixture.blocks), np.arange(mixture.n_components)
    found = np.full(len(numbers), -np.inf)
    while True:
        logs = mixture.log_probabilities[numbers] + _evidence(posterior, order[:n_labels], numbers)
        found[numbers] = logs
        if not np.isfinite(logs).any():
            raise InvalidInput(
                "y",
                "labels for which expectation propagation finds no fixed point",
                "check labels and features, or leave the order of the classes out",
            )
        reach = float(np.sqrt(n_all - n_labels))
        numbers = numbers[likely_places(logs, blocks[numbers], BEHIND, reach)]
        if MORE * n_labels >= n_all:
            return found, np.isin(np.arange(len(found)), numbers)
        n_labels *= MORE


def _evidence(
    posterior: Posterior, some: Int[np.ndarray, " j"], numbers: Int[np.ndarray, " m"]
) -> Float[np.ndarray, " m"]:
    """Return the log evidence of some labels of each of these components."""
    few = replace(posterior, labelled=posterior.labelled[some], labels=posterior.labels[some])

    def of_component(number: int) -> float:
        try:
            return float(SCREENING.fit(few.component(number).plain_target).log_evidence)
        except InvalidInput:
            return -np.inf

    return np.array(parallel_map(of_component, numbers.tolist()))


def _with_odds(
    log_weights: Float[np.ndarray, " M"],
    likely: Bool[np.ndarray, " M"],
    log_prior: Float[np.ndarray, " M"],
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Return the numbers of the components that are left, and their odds.

    The least likely one stays, with the odds of all that are left out: the evidence of the average
    is that of all components.
    """
    odds = np.exp(log_prior)
    if likely.all():
        return np.arange(len(odds)), odds
    last = int(np.where(likely, np.inf, log_weights).argmin())
    kept = np.append(np.flatnonzero(likely), last)
    return kept, np.append(odds[likely], odds[~likely].sum())
