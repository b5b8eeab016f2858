"""Hyperparameters by maximum marginal likelihood, which ``"auto"`` stands for."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.evidence.choices import MEAN, checked_names, owner_of, with_values
from graphuq.evidence.criteria import ObservedPrior, binary_likelihood
from graphuq.evidence.hyperpriors import MEAN_HYPERPRIOR, hyperpriors_of
from graphuq.evidence.labellings import labellings_of, with_certain_labels
from graphuq.evidence.quasi_newton import FAILED, minimize_loss
from graphuq.inference.expectation_propagation import (
    ExpectationPropagation,
    dampings_of,
    field_slopes,
    iterate_sites,
    likelihood_slopes,
    log_evidence,
)
from graphuq.posterior.field import SeriesField
from graphuq.posterior.posterior import Posterior
from graphuq.priors import SpectralStd
from graphuq.utils.arrays import parallel_map
from graphuq.utils.concurrency import require_no_fork

TOLERANCE, MAX_SWEEPS, MAX_ITERATIONS = 1e-4, 300, 40  # the evidence error is its square
DISCRETE = ("include_constant", "truncation")  # chosen among a few values, without derivatives
TRUNCATION_RATIO = 2**0.5  # between successive candidates
TRUNCATION_LOG_STD = 0.5  # in the hyperprior of the truncation, around ℓ
# The multiclass evidence that decides about the constant; its error is the tolerance squared.
MAX_LABELS, ROUGH_TOLERANCE = 100, 0.03
CLOSE = 3.0  # difference of log evidence that a further search might reverse
CONSTANT_COST = 2.0  # prior log odds against the constant
LOG_STEP = 1e-5  # in central differences of the spectral deviations, whose formulas are smooth


@dataclasses.dataclass(frozen=True)
class EvidenceMaximum:
    """Maximum of the evidence over hyperparameters.

    Attributes
    ----------
    posterior : Posterior
        Posterior with the prior and the likelihood that were found.
    values : dict
        Name → value of each hyperparameter that was chosen.
    log_evidence : float
        ``log p(labels)`` there, by expectation propagation, without the hyperprior. For K > 2
        classes: one half of the sum of the K one-versus-rest log evidences.
    n_evaluations : int
        Number of evaluations of the evidence, most of them with its gradient.
    """

    posterior: Posterior
    values: dict[str, float | int]
    log_evidence: float
    n_evaluations: int


def maximize_evidence(
    posterior: Posterior, names: Sequence[str] | None = None, *, hyperprior: bool = True
) -> EvidenceMaximum:
    """Choose hyperparameters of prior and likelihood by the evidence of the labels.

    The evidence is that of expectation propagation. Its gradient with the sites held fixed is
    exact at the fixed point (Seeger 2005), and drives a quasi-Newton search over logarithms. The
    truncation, an integer, is then the best of ℓ, ℓ/√2, ℓ/2, …, after which the search continues;
    its hyperprior is log-normal around ℓ. Whether the constant takes part
    (`Prior.include_constant`) is decided by the same comparison, with prior odds of e² against it.
    This choice is decisive if class sizes are very unequal (docs/measurements/unequal_classes.md).

    For K > 2 classes, the search maximises one half of the sum of the K one-versus-rest log
    evidences. This is a composite likelihood, equal to the evidence for two classes. One class
    against the rest is rare, so the constant takes part in it. Whether it does in the model is
    decided by the multiclass evidence, of at most 100 labels.

    Parameters
    ----------
    posterior : Posterior
        Posterior whose hyperparameters are the start of the search.
    names : sequence of str, optional
        Of "tau", "alpha", "time", "n_steps", "noise_std", "prior_mean", "truncation" and
        "include_constant"; by default all that the parts have. "noise_std" is not offered by step
        likelihoods, whose γ has other units than the hyperprior, nor "truncation" with a tail.
        "prior_mean" is offered if the posterior was given a number, from which the search starts;
        its hyperprior is N(0, 1). "include_constant" is offered if the prior's value is None, and
        has no effect on a disconnected graph.
    hyperprior : bool, default True
        Add the narrow log-normal hyperpriors of `graphuq.evidence.hyperpriors`. With few labels,
        maximising the evidence alone overfits and classifies worse than the prior medians.

    Returns
    -------
    EvidenceMaximum

    Raises
    ------
    IncompatibleParts
        If the likelihood uses all nodes, or a hyperparameter is learnt by sampling.
    InvalidInput
        If the parts have no hyperparameter of a name, or expectation propagation does not
        converge at the start.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(30.0)[:, None], n_neighbors=4)
    >>> posterior = gq.Posterior(gq.laplacian_spectrum(graph), gq.priors.Matern(),
    ...     gq.likelihoods.Probit(), labelled=[0, 5, 12, 20, 29], labels=[-1, -1, -1, 1, 1])
    >>> best = gq.maximize_evidence(posterior)
    >>> sorted(best.values)
    ['alpha', 'include_constant', 'noise_std', 'tau', 'truncation']
    """
    require_no_fork()
    names = checked_names(posterior, names)
    search = _Search(posterior, [n for n in names if n not in DISCRETE], hyperprior)
    has_constant = posterior.spectrum.n_components == 1 and not posterior.spectrum.is_signed
    either = "include_constant" in names and has_constant
    several = posterior.likelihood.is_multiclass
    search.include_constant = either and several  # one class against the rest is rare
    at, best = (
        search.maximize_with_constant() if either and not several else search.maximize(search.start)
    )
    if best >= FAILED:
        raise InvalidInput(
            "posterior",
            f"expectation propagation does not converge at {search.values(search.start)}",
            "start from a larger noise_std",
        )
    if "truncation" in names:
        at, best = search.maximize_with_truncation(at, best, _truncations(posterior))
    values = search.values(at)
    if "truncation" in names:
        values["truncation"] = search.truncation
    if either:
        chosen = with_values(posterior, values)
        values["include_constant"] = (
            _prefer_constant(chosen, hyperprior) if several else search.include_constant
        )
    found = with_values(posterior, values)
    return EvidenceMaximum(
        posterior=dataclasses.replace(found, chosen_by_evidence=values),
        values=values,
        log_evidence=search.penalty(at) + search.cost_of(search.truncation) - best,
        n_evaluations=search.n_evaluations,
    )


def _prefer_constant(posterior: Posterior, hyperprior: bool) -> bool:
    """Return whether the multiclass evidence of some labels prefers a constant per class."""
    rng, labels = np.random.default_rng(0), posterior.labels
    order = rng.permutation(len(labels))
    one_each = order[np.unique(labels[order], return_index=True)[1]]
    some = np.concatenate([one_each, np.setdiff1d(order, one_each, assume_unique=True)])
    some = some[: max(MAX_LABELS, len(one_each))]
    evidence = []
    for constant in (False, True):
        choice: dict[str, Any] = {"include_constant": constant}
        try:
            changed = dataclasses.replace(
                with_certain_labels(posterior),
                prior=dataclasses.replace(posterior.prior, **choice),
                labelled=posterior.labelled[some],
                labels=labels[some],
                label_weights=None if (w := posterior.label_weights) is None else w[some],
            )
            method = ExpectationPropagation(tolerance=ROUGH_TOLERANCE)
            evidence.append(method.fit(changed.plain_target).log_evidence)
        except (InvalidInput, IncompatibleParts):  # no EP for this likelihood, or no convergence
            return False
    return bool(evidence[1] - evidence[0] > CONSTANT_COST * hyperprior)


def _truncations(posterior: Posterior) -> list[int]:
    """Return ℓ/√2, ℓ/2, …, while four modes or more beside the null vectors are left."""
    kept, smallest = [], posterior.spectrum.n_null + 4
    size = posterior.spectrum.n_eigenpairs / TRUNCATION_RATIO
    while size >= smallest:
        kept.append(round(size))
        size /= TRUNCATION_RATIO
    return kept


class _Search:
    """Quasi-Newton search for the largest evidence over logarithms of hyperparameters."""

    def __init__(self, posterior: Posterior, names: list[str], hyperprior: bool) -> None:
        self.posterior, self.names, self.hyperprior = posterior, names, hyperprior
        every: dict[str, Any] = {**hyperpriors_of(posterior.spectrum), MEAN: MEAN_HYPERPRIOR}
        self.hyperpriors = [every[name] for name in names]
        self.labellings = labellings_of(posterior)
        self.weight = 1.0 if len(self.labellings) == 1 else 0.5
        self.truncation, self.include_constant = posterior.spectrum.n_columns, False
        self.n_evaluations = 0
        self.moves_likelihood = any(owner_of(posterior, n) == "likelihood" for n in names)
        self.sites: dict[int, np.ndarray] = {}  # last fixed point of each labelling
        self.bounds = np.array([one.bounds for one in self.hyperpriors]).reshape(-1, 2)
        initial = [getattr(getattr(posterior, owner_of(posterior, n) or ""), n) for n in names]
        pairs = zip(self.hyperpriors, initial, strict=True)
        self.start = np.array([one.coordinate(float(value)) for one, value in pairs])

    def values(self, at: np.ndarray) -> dict[str, float | int]:
        """Return the hyperparameters at a point of the search."""
        named = zip(self.names, self.hyperpriors, at, strict=True)
        return {name: one.value(x) for name, one, x in named}

    def penalty(self, at: np.ndarray) -> float:
        """Return minus the log hyperprior."""
        if not self.hyperprior:
            return 0.0
        return float(sum(one.penalty(x) for one, x in zip(self.hyperpriors, at, strict=True)))

    def cost_of(self, truncation: int) -> float:
        """Return minus the log hyperprior of a truncation and of the constant."""
        if not self.hyperprior:
            return 0.0
        ratio = truncation / self.posterior.spectrum.n_columns
        cost = 0.5 * (np.log(ratio) / TRUNCATION_LOG_STD) ** 2
        return float(cost + CONSTANT_COST * self.include_constant)

    def loss(self, at: np.ndarray, truncation: int | None = None) -> tuple[float, np.ndarray]:
        """Return minus (log evidence + log hyperprior), and its gradient."""
        self.n_evaluations += 1
        kept = self.truncation if truncation is None else truncation
        std, derivatives = self._spectral_std(at, kept)
        total, gradient = 0.0, np.zeros_like(at)
        targets = self._targets(at, std)
        for one in parallel_map(self._fixed_point, range(len(targets)), targets):
            if one is None:
                return FAILED, np.zeros_like(at)
            value, ((by_modes, by_tail), by_likelihood) = one
            total += self.weight * value
            for k, name in enumerate(self.names):
                if owner_of(self.posterior, name) == "prior":
                    modes, tail = derivatives[name]
                    by_name = by_modes @ modes + by_tail * tail
                else:
                    by_name = by_likelihood[name] * self.hyperpriors[k].derivative(at[k])
                gradient[k] += self.weight * by_name
        slope = -gradient
        if self.hyperprior:
            slope += [one.slope(x) for one, x in zip(self.hyperpriors, at, strict=True)]
        return self.penalty(at) + self.cost_of(kept) - total, slope

    def _fixed_point(self, number: int, target: ObservedPrior) -> tuple[float, Any] | None:
        """Return the evidence of a labelling and its gradient, or None without convergence.

        The first attempt starts from the fixed point of the previous evaluation.
        """
        starts: list[Any] = [(damping, None) for damping in dampings_of(target.likelihood)]
        if number in self.sites:
            starts.insert(0, (starts[0][0], self.sites[number]))
        for damping, initial in starts:
            found = iterate_sites(target, damping, MAX_SWEEPS, TOLERANCE, initial)
            if found.change <= TOLERANCE and np.isfinite(value := log_evidence(target, found)):
                self.sites[number] = found.sites
                by_likelihood = likelihood_slopes(target, found) if self.moves_likelihood else {}
                return value, (field_slopes(target, found), by_likelihood)
        return None

    def maximize(self, at: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best point found from a start, and its loss."""
        if not self.names:
            return at, self.loss(at)[0]
        found = minimize_loss(
            self.loss,
            at,
            self.bounds,
            max_iterations=MAX_ITERATIONS,
            loss_tolerance=1e-8,
            gradient_tolerance=1e-3,
        )
        return found.at, found.loss

    def maximize_with_constant(self) -> tuple[np.ndarray, float]:
        """Maximise with or without the constant, and both ways if the difference is small.

        The choice that is better at the start comes first.
        """
        losses = []
        for self.include_constant in (False, True):
            losses.append(self.loss(self.start)[0])
        self.include_constant = losses[1] < losses[0]
        at, best = self.maximize(self.start)
        self.include_constant = not self.include_constant
        if self.loss(at)[0] < best + CLOSE:
            other, found = self.maximize(at)
            if found < best:
                return other, found
        self.include_constant = not self.include_constant
        return at, best

    def maximize_with_truncation(
        self, at: np.ndarray, best: float, truncations: Sequence[int]
    ) -> tuple[np.ndarray, float]:
        """Take the best of some truncations, and go on from there if it improves the evidence."""
        # log p(labels) < 0, so a hyperprior that costs more than the best loss cannot win.
        candidates = [k for k in truncations if self.cost_of(k) < best]
        losses = [self.loss(at, kept)[0] for kept in candidates]
        if losses and min(losses) < best - 1e-6:
            self.truncation = candidates[int(np.argmin(losses))]
            return self.maximize(at)
        return at, best

    def _spectral_std(
        self, at: np.ndarray, truncation: int
    ) -> tuple[SpectralStd, dict[str, tuple[np.ndarray, float]]]:
        """Return the deviations at a point, and their derivative in each log hyperparameter."""
        posterior, values = self.posterior, self.values(at)
        if not posterior.spectrum.has_eigenpairs:  # the rows are those of a root of G
            return SpectralStd(np.ones(posterior.spectrum.n_columns), 0.0), {}
        changes: dict[str, Any] = {
            n: v for n, v in values.items() if owner_of(posterior, n) == "prior"
        }
        if truncation < posterior.spectrum.n_eigenpairs:
            changes["truncation"] = truncation
        if self.include_constant:
            changes["include_constant"] = True

        def std(**further: Any) -> SpectralStd:
            prior = dataclasses.replace(posterior.prior, **(changes | further))
            return prior.spectral_std(posterior.spectrum)

        derivatives = {}
        for name, value in changes.items():
            if name not in DISCRETE:
                above = std(**{name: value * float(np.exp(LOG_STEP))})
                below = std(**{name: value * float(np.exp(-LOG_STEP))})
                derivatives[name] = (
                    (above.modes - below.modes) / (2 * LOG_STEP),
                    (above.tail - below.tail) / (2 * LOG_STEP),
                )
        return std(), derivatives

    def _targets(self, at: np.ndarray, std: SpectralStd) -> list[ObservedPrior]:
        """Return one target per labelling, all with the same field."""
        posterior, spectrum = self.posterior, self.posterior.spectrum
        likelihood = binary_likelihood(posterior.likelihood)
        for name, value in self.values(at).items():
            if owner_of(posterior, name) == "likelihood":
                likelihood = dataclasses.replace(likelihood, **{name: value})
        rows = spectrum.basis[posterior.labelled]
        field = SeriesField(rows, posterior.label_scale, std.modes, std.tail)
        return [ObservedPrior(field, likelihood, labels) for labels in self.labellings]
