"""The sampler that is used if the user names none: a table of rules, tried in order.

Each rule was earned by a measurement, which it names. `benchmarks/bench_automatic.py` runs every
suitable sampler on 90 posteriors; docs/archive/samplers.md has its table.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from graphuq import inference
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference import (
    CollapsedGibbs,
    EachComponent,
    ExpectationPropagation,
    GaussianApproximation,
    Independence,
    ModelAverage,
    Sampler,
    SequentialIndependence,
)
from graphuq.inference.model_average import are_many_of_two
from graphuq.inference.near_classes import are_many
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import can_be_referred, log_likelihoods
from graphuq.results.approximation_error import acceptance_of_gaussian
from graphuq.utils.concurrency import cached_property
from graphuq.utils.extras import has_extra

MAX_NOISY_LABELS = 1_000  # labels of a probit up to which exact Hamiltonian trajectories pay
MAX_GIBBS_LABELS = 1_000  # labels up to which sweeps over all of them pay
MAX_SEQUENTIAL_LABELS = 1_000  # labels up to which sequential proposals are accepted often
WALLS_PER_LABEL = 1.0  # boundaries met per label, above which round coordinates pay
HIGH_ACCEPTANCE = 0.9  # acceptance of independent proposals above which no sampler is better
MIN_ACCEPTANCE = 0.55  # acceptance of the Gaussian's draws from which independence pays
MIN_PROBIT_ACCEPTANCE = 0.67  # this for a probit, which exact trajectories sample well
MIN_SEQUENTIAL, MIN_BOUNDED = 0.5, 0.7  # this for proposals with and without lookahead
TRIALS = 400  # sequential proposals, by which their acceptance is estimated
PROBES = 64  # draws of the Gaussian, by which its distance is estimated
MAX_SPREAD = 15.0  # standard deviation of the log ratio to the Gaussian, in nats
MULTICLASS_TOLERANCE = 1e-4  # tolerance of expectation propagation, in standard deviations
MANY_TOLERANCE = 1e-3  # the same for many classes, where far ones share sites
AVERAGE_TOLERANCE = 1e-3  # of each component of an average: probabilities are then within .001
MAX_DENSE = 4_000  # white coordinates of a multiclass posterior that is approximated


class Case:
    """What the rules ask about a posterior; each answer is computed at most once.

    Parameters
    ----------
    posterior : Posterior
    gaussian : GaussianApproximation or None
        The fixed point of expectation propagation, if there is one.
    """

    def __init__(self, posterior: Posterior, gaussian: GaussianApproximation | None) -> None:
        self.posterior, self.gaussian = posterior, gaussian
        self.likelihood = posterior.likelihood
        self.learns, self.n_labels = bool(posterior.learnt), len(posterior.labels)

    @cached_property
    def acceptance(self) -> float | None:
        """Acceptance rate of the Gaussian's draws, or None if it cannot be estimated."""
        if self.gaussian is None:
            return None
        return acceptance_of_gaussian(self.posterior, self.gaussian)

    @property
    def is_binary_probit(self) -> bool:
        """Whether a step likelihood of two classes is left once its noise is sampled."""
        return self.likelihood.latent_noise_std is not None and not self.likelihood.is_multiclass

    @property
    def has_light_tails(self) -> bool:
        """Whether trajectories about the Gaussian rarely diverge."""
        return self.likelihood.is_multiclass or self.likelihood.has_gaussian_tails

    def accepts(self, minimum: float) -> bool:
        """Return whether the Gaussian's draws are accepted at this rate or above."""
        return self.acceptance is not None and self.acceptance >= minimum

    def accepts_sequential(self, lookahead: bool, minimum: float) -> bool:
        """Return whether sequential proposals are accepted at this rate or above."""
        if self.gaussian is None or self.n_labels > MAX_SEQUENTIAL_LABELS:
            return False
        target = self.posterior.plain_target
        if SequentialIndependence.target_refusal(target) is not None:
            return False
        sampler = SequentialIndependence(lookahead=lookahead, reference=ExpectationPropagation())
        try:
            return sampler.expected_acceptance(target, self.gaussian, TRIALS) >= minimum
        except IncompatibleParts:
            return False

    @property
    def meets_many_walls(self) -> bool:
        """Whether a trajectory on the prior's ellipses crosses more boundaries than labels."""
        if self.gaussian is None or not can_be_referred(self.posterior.plain_target):
            return False
        return expected_walls(self.posterior, self.gaussian) > WALLS_PER_LABEL * self.n_labels

    @property
    def spread(self) -> float:
        """Standard deviation of the log density of posterior over Gaussian, at its draws."""
        assert self.gaussian is not None
        variances, rotation = np.linalg.eigh(self.gaussian.white_covariance)
        z = np.random.default_rng(0).normal(size=(PROBES, len(variances)))
        white = self.gaussian.white_mean + (np.sqrt(variances) * z) @ rotation.T
        values = log_likelihoods(self.posterior.plain_target, white)
        return float(np.std(values - 0.5 * (white**2).sum(axis=1) + 0.5 * (z**2).sum(axis=1)))


class Rule(NamedTuple):
    """One row of the table: the sampler for posteriors that meet a condition."""

    condition: Callable[[Case], bool]
    sampler: Callable[[], Sampler]
    measurement: str


ABOUT = ExpectationPropagation()

RULES = (
    # Hyperparameters are learnt.
    Rule(
        lambda case: ModelAverage().refusal(case.posterior) is None,
        ModelAverage,
        "docs/archive/model_average.md: independent draws in place of chains",
    ),
    Rule(
        lambda case: case.learns and case.posterior.has_series,
        lambda: inference.ReversibleJump(),
        "Hartog & van Zanten's problems: bench_series.py",
    ),
    Rule(
        lambda case: case.learns and case.likelihood.has_gradient,
        lambda: inference.MetropolisWithinGibbs(kernel=inference.Hamiltonian(), joint=True),
        "Chen's models A to G: bench_hierarchy.py",
    ),
    Rule(
        lambda case: case.learns and case.likelihood.is_step,
        lambda: inference.MetropolisWithinGibbs(kernel=inference.ExactHamiltonian()),
        "Chen's models with level sets: bench_hierarchy.py",
    ),
    Rule(
        lambda case: case.learns,
        lambda: inference.MetropolisWithinGibbs(kernel=inference.EllipticalSlice()),
        "the only kernel left without gradient and levels",
    ),
    # The likelihood uses all nodes and may have many modes.
    Rule(
        lambda case: case.likelihood.uses_all_nodes and case.likelihood.has_gradient,
        lambda: inference.ParallelTempering(kernel=inference.Hamiltonian()),
        "Ginzburg-Landau: docs/bertozzi.md",
    ),
    Rule(
        lambda case: case.likelihood.uses_all_nodes,
        lambda: inference.ParallelTempering(kernel=inference.EllipticalSlice()),
        "the only kernel left without gradient",
    ),
    # Probit of several classes.
    Rule(
        lambda case: (
            case.likelihood.is_multiclass
            and case.n_labels <= MAX_GIBBS_LABELS
            and CollapsedGibbs().refusal(case.posterior) is None
        ),
        CollapsedGibbs,
        "docs/archive/multiclass.md: the quickest with 1, 5 and 20 labels a class",
    ),
    # Independent draws.
    Rule(
        lambda case: case.accepts(HIGH_ACCEPTANCE),
        lambda: Independence(reference=ABOUT),
        "286,720 nodes, 8,000 labels: 98 % accepted",
    ),
    Rule(
        lambda case: case.likelihood.is_step and case.accepts_sequential(False, MIN_BOUNDED),
        lambda: SequentialIndependence(lookahead=False, reference=ABOUT),
        "the demo's eight labels: 8,000 effective draws of 9,600, bounded weights",
    ),
    Rule(
        lambda case: case.likelihood.is_step and case.accepts_sequential(True, MIN_SEQUENTIAL),
        lambda: SequentialIndependence(reference=ABOUT),
        "bench_automatic.py, columns level set and atomic noise, 10 to 551 labels",
    ),
    # Probit of two classes, its noise sampled with the field.
    Rule(
        lambda case: (
            not has_extra("jax")
            and case.is_binary_probit
            and case.n_labels <= MAX_NOISY_LABELS
            and not case.accepts(MIN_PROBIT_ACCEPTANCE)
            and CollapsedGibbs().refusal(case.posterior) is None
        ),
        CollapsedGibbs,
        "the only sampler of such a posterior that needs no JAX",
    ),
    Rule(
        lambda case: (
            case.is_binary_probit
            and case.n_labels <= MAX_NOISY_LABELS
            and not case.accepts(MIN_PROBIT_ACCEPTANCE)
        ),
        lambda: inference.ExactHamiltonian(),
        "docs/archive/samplers.md: quicker in 5 of 6 probits with acceptance 0.5 to 0.67",
    ),
    Rule(
        lambda case: case.accepts(MIN_ACCEPTANCE),
        lambda: Independence(reference=ABOUT),
        "docs/archive/samplers.md: quicker in all 10 probits with acceptance above 0.67",
    ),
    # Other step likelihoods.
    Rule(
        lambda case: case.likelihood.is_step and case.meets_many_walls,
        lambda: inference.ReflectiveHamiltonian(reference=ABOUT),
        "bench_automatic.py: few modes, many labels",
    ),
    Rule(
        lambda case: case.likelihood.is_step,
        lambda: inference.ExactHamiltonian(),
        "bench_automatic.py: level sets and atomic noise",
    ),
    # Other likelihoods.
    Rule(
        lambda case: case.acceptance is None and case.likelihood.has_gradient,
        lambda: inference.Hamiltonian(),
        "bench_samplers.py",
    ),
    Rule(
        lambda case: case.acceptance is None,
        lambda: inference.EllipticalSlice(),
        "bench_samplers.py",
    ),
    Rule(
        lambda case: not case.likelihood.has_gradient,
        lambda: inference.EllipticalSlice(reference=ABOUT),
        "bench_samplers.py",
    ),
    Rule(
        lambda case: case.has_light_tails or case.spread <= MAX_SPREAD,
        lambda: inference.Hamiltonian(reference=ABOUT),
        "bench_automatic.py: softmax, logistic, probit of more than 1,000 labels",
    ),
    Rule(
        lambda case: True,
        lambda: inference.EllipticalSlice(reference=ABOUT),
        "bench_automatic.py: logistic labels whose Gaussian is far off",
    ),
)


def needs_no_draws(posterior: Posterior) -> bool:
    """Return whether expectation propagation is the default: of an average, or of one posterior.

    For an average over several classes its log score is that of draws to 0.002, and its calibration
    is the same: docs/archive/without_draws.md. For two classes with fewer than fifteen labels draws
    weigh class shares. Of another likelihood of one field, such as ordered classes, an average has
    no other evidence. For one probit of many classes, or of several and more labels than sweeps pay
    for, draws took eight times as long on Cora with 1,192 labels, and gained .003 in log score.
    """
    likelihood, n_labels = posterior.likelihood, len(posterior.labels)
    if ModelAverage().refusal(posterior) is None:
        return likelihood.is_multiclass or are_many_of_two(posterior)
    if posterior.is_weighted:  # no sampler has the evidence of other likelihoods
        return EachComponent(ABOUT).refusal(posterior) is None
    if not likelihood.is_multiclass:
        return False
    known = not (posterior.learnt or likelihood.has_soft_labels)
    many = n_labels > MAX_GIBBS_LABELS or are_many(n_labels, posterior.n_fields)
    return many and known and likelihood.probit_noise_std is not None


def choose_sampler(posterior: Posterior, gaussian: GaussianApproximation | None) -> Sampler:
    """Return the sampler of the first rule in `RULES` that the posterior meets.

    Parameters
    ----------
    posterior : Posterior
    gaussian : GaussianApproximation or None
        What `first_approximation` returned.
    """
    case = Case(posterior, gaussian)
    return next(rule.sampler() for rule in RULES if rule.condition(case))


def expected_walls(posterior: Posterior, gaussian: GaussianApproximation) -> float:
    """Return how many boundaries ``u_j = 0`` a quarter turn on the prior's ellipses crosses.

    The expectation is half the sum of speed times density at each boundary (Rice 1944).
    """
    speed = np.linalg.norm(posterior.field.matrix(), axis=1)
    variance = gaussian.labelled_variance
    density = np.exp(-(gaussian.labelled_mean**2) / (2 * variance)) / np.sqrt(variance)
    return float(0.5 * (speed * density).sum())


def first_approximation(posterior: Posterior) -> GaussianApproximation | None:
    """Return expectation propagation's Gaussian, or None if it has none or is too expensive."""
    likelihood = posterior.likelihood
    if likelihood.uses_all_nodes or posterior.learnt:
        return None
    if likelihood.is_multiclass and (likelihood.is_step or posterior.dimension > MAX_DENSE):
        return None
    method = ExpectationPropagation()
    if likelihood.is_multiclass:  # a sweep is expensive
        method = ExpectationPropagation(tolerance=MULTICLASS_TOLERANCE)
    try:
        found = method.fit(posterior.plain_target)
    except (InvalidInput, IncompatibleParts):
        return None
    return found if isinstance(found, GaussianApproximation) else None
