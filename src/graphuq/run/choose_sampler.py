"""Which sampler, and how many chains, where the user does not say."""

import numpy as np

from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference import (
    EllipticalSlice,
    ExactHamiltonian,
    ExpectationPropagation,
    GaussianApproximation,
    Hamiltonian,
    Independence,
    MetropolisWithinGibbs,
    ParallelTempering,
    ReflectiveHamiltonian,
    ReversibleJump,
    Sampler,
    SequentialIndependence,
    TemperedHamiltonian,
)
from graphuq.likelihoods import Probit
from graphuq.posterior.field import LowRankField
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import log_likelihoods
from graphuq.results.diagnostics import acceptance_rate_of_gaussian

WALLS = 2_000  # labels from which chains stick between walls, where no Gaussian is found
NOISY_WALLS = 1_000  # the same where each wall has noise of its own
WALLS_A_LABEL = 1.0  # met in a trajectory of the prior's, from which one in round coordinates pays
MAX_CHAINS, CHAINS_TIMES_LABELS = 32, 32_000
NEARLY_ALL = 0.9  # of independent proposals accepted: nothing else can do better
MIN_ACCEPTANCE = 0.55  # of proposals from the Gaussian, to do with nothing else
MIN_BY_LABEL, MIN_BOUNDED = 0.5, 0.7  # made label by label, looking ahead or not
TRIALS = 400  # of them, to tell
PROBES, FAR = 64, 15.0  # draws of the Gaussian; where the log ratio to it varies by more
DENSE_TOLERANCE = 1e-4  # of several classes, in deviations: a sweep is dear
MAX_DENSE = 4_000  # white coordinates of several classes up to which they are fitted


def first_answer(posterior: Posterior) -> GaussianApproximation | None:
    """Expectation propagation's Gaussian, where it settles; none of every node's wells."""
    if posterior.likelihood.uses_all_nodes or posterior.learnt:
        return None
    if posterior.likelihood.is_multiclass and (
        posterior.likelihood.is_step or posterior.dimension > MAX_DENSE
    ):
        return None
    try:
        rough = ExpectationPropagation(tolerance=DENSE_TOLERANCE)
        method = rough if posterior.likelihood.is_multiclass else ExpectationPropagation()
        found = method.fit(posterior.plain_target)
    except (InvalidInput, IncompatibleParts):
        return None
    return found if isinstance(found, GaussianApproximation) else None


def automatic_sampler(posterior: Posterior, gaussian: GaussianApproximation | None) -> Sampler:
    """The sampler that won on posteriors of this kind, given expectation propagation's Gaussian.

    `Independence`, where nine in ten of the Gaussian's draws would be accepted as draws of the
    posterior; `SequentialIndependence`, where half of its draws would, of a likelihood of two
    levels, or of a probit if 55 in a hundred of the Gaussian's would, too (without looking ahead
    where seven in ten of those would). Else a probit of up to 1,000 labels gets `ExactHamiltonian`;
    other likelihoods `Independence` from 55 in a hundred on. A likelihood of two levels gets
    `ExactHamiltonian`, or `ReflectiveHamiltonian` about the Gaussian where that would meet more
    walls a trajectory than there are labels; from 2,000 labels on `TemperedHamiltonian`, if
    expectation propagation found no fixed point, so much do they contradict each other, and all may
    be wrong. One with a gradient gets `Hamiltonian`, about expectation propagation where that
    settles and the field allows; other likelihoods than a probit get `EllipticalSlice` where that
    Gaussian is far off (its log ratio to the posterior varies by more than 15). Without gradient or
    levels, `EllipticalSlice`. A likelihood that speaks of every node may have many modes, and gets
    `ParallelTempering`. A random series with a probit gets `ReversibleJump`; other hyperparameters
    are learnt by `MetropolisWithinGibbs`: along the gradient together with the field where there is
    one, else in turn with exact Hamiltonian moves. Several classes are moved about expectation
    propagation up to 1,000 white coordinates, where its covariance costs more than it saves.
    `docs/measurements.md` has the figures.
    """
    likelihood, n_labels = posterior.likelihood, len(posterior.labels)
    about = ExpectationPropagation()
    if posterior.learnt:
        if posterior.has_series:
            return ReversibleJump()
        if likelihood.has_gradient:
            return MetropolisWithinGibbs(kernel=Hamiltonian(), joint=True)
        mover = ExactHamiltonian() if likelihood.is_step else EllipticalSlice()
        return MetropolisWithinGibbs(kernel=mover)
    if likelihood.uses_all_nodes:
        kernel = Hamiltonian() if likelihood.has_gradient else EllipticalSlice()
        return ParallelTempering(kernel=kernel)
    share = None if gaussian is None else acceptance_rate_of_gaussian(posterior, gaussian)
    between_walls = isinstance(likelihood, Probit) and not likelihood.is_multiclass
    between_walls = between_walls and n_labels <= NOISY_WALLS
    if share is not None and share >= NEARLY_ALL:
        return Independence(reference=about)
    close = share is not None and share >= MIN_ACCEPTANCE
    if gaussian is not None and (close or likelihood.is_step):
        by_label = _by_label(posterior, gaussian)
        if by_label is not None:
            return by_label
    if between_walls:
        return ExactHamiltonian()
    if close:
        return Independence(reference=about)
    if likelihood.is_step:
        rugged = n_labels >= WALLS and gaussian is None
        if rugged and TemperedHamiltonian.refusal(posterior.target) is None:
            return TemperedHamiltonian()
        crowded = (
            gaussian is not None and _walls_met(posterior, gaussian) > WALLS_A_LABEL * n_labels
        )
        return ReflectiveHamiltonian(reference=about) if crowded else ExactHamiltonian()
    if gaussian is None or share is None:
        return Hamiltonian() if likelihood.has_gradient else EllipticalSlice()
    if not likelihood.has_gradient:
        return EllipticalSlice(reference=about)
    light_tailed = likelihood.is_multiclass or isinstance(likelihood, Probit)
    if light_tailed or _spread(posterior, gaussian) <= FAR:
        return Hamiltonian(reference=about)
    return EllipticalSlice(reference=about)


def _by_label(posterior: Posterior, gaussian: GaussianApproximation) -> Sampler | None:
    """`SequentialIndependence` where enough of its proposals would be accepted, else None.

    Without looking ahead, where that is enough: then weights are bounded.
    """
    target, about = posterior.plain_target, ExpectationPropagation()
    n_labels = len(posterior.labels)
    if n_labels > NOISY_WALLS or SequentialIndependence.refusal(target) is not None:
        return None
    for lookahead, least in ((False, MIN_BOUNDED), (True, MIN_BY_LABEL)):
        sampler = SequentialIndependence(lookahead=lookahead, reference=about)
        try:
            if sampler.expected_acceptance(target, gaussian, TRIALS) >= least:
                return sampler
        except IncompatibleParts:
            return None
    return None


def default_chains(posterior: Posterior, method: Sampler) -> int:
    """How many chains are run where the user gives no number."""
    if method.default_chains is not None:
        return method.default_chains
    size = len(posterior.observed_labels) * posterior.n_fields
    return min(MAX_CHAINS, max(4, CHAINS_TIMES_LABELS // size))


def _walls_met(posterior: Posterior, gaussian: GaussianApproximation) -> float:
    """By a quarter turn on the prior's ellipses: speed times density at each wall (Rice 1944)."""
    field = posterior.field
    if not isinstance(field, LowRankField):
        return 0.0
    speed = np.linalg.norm(field.factor, axis=1)
    variance = gaussian.labelled_variance
    density = np.exp(-(gaussian.labelled_mean**2) / (2 * variance)) / np.sqrt(variance)
    return float(0.5 * (speed * density).sum())


def _spread(posterior: Posterior, gaussian: GaussianApproximation) -> float:
    """Standard deviation of the log density of the posterior over the Gaussian, at its draws."""
    variances, rotation = np.linalg.eigh(gaussian.white_covariance)
    z = np.random.default_rng(0).normal(size=(PROBES, len(variances)))
    white = gaussian.white_mean + (np.sqrt(variances) * z) @ rotation.T
    values = log_likelihoods(posterior.plain_target, white)
    return float(np.std(values - 0.5 * (white**2).sum(axis=1) + 0.5 * (z**2).sum(axis=1)))
