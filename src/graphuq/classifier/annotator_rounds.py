"""The rounds between the field and the readings of a crowd.

Expectation propagation of the field takes what the readings say of each item, and says what the
other items tell of its class. Chains of people and items take that. See docs/theory/labels.md,
"Crowds".
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import IncompatibleParts, InvalidInput, NotConvergedWarning, require
from graphuq.evidence.hyperpriors import HYPERPRIORS
from graphuq.inference import ExpectationPropagation, GaussianApproximation
from graphuq.inference.collapsed_gibbs.reading_prior import ReadingPrior
from graphuq.inference.collapsed_gibbs.reading_sampler import (
    ReadingDraws,
    ReadingSampler,
    informs,
    joined,
)
from graphuq.likelihoods import SoftProbit
from graphuq.models import Labels
from graphuq.models.likeliest import likeliest_of
from graphuq.posterior.posterior import Posterior
from graphuq.results.cavities import log_shares_of_others
from graphuq.results.convergence import convergence
from graphuq.utils.user_warnings import warn_user

SELECTIONS = 3  # first rounds, each with a prior chosen for the classes found so far
TOLERANCE = 1e-3  # of expectation propagation, in standard deviations
N_ALONE = (30, 20)  # rounds, and sweeps of each, before there is a field
MIN_SWEEPS, MAX_SWEEPS = 200, 4_000  # of people and items in a round
N_DRAWN = 400_000  # items that the sweeps of a round draw, between these limits
N_WARMUP, N_DRAWS, THIN, N_CHAINS = 300, 300, 4, 4  # of the last chains
CHANGE = 5e-3  # mean change of class probabilities, up to which rounds end
MAX_ROUNDS = 10
RHAT_BOUND = 1.1  # of some hundred people, the largest of whom exceeds 1.01 by chance
STEP = 1.5  # factor between values of the noise that are tried


class Rounds(NamedTuple):
    """The posterior of the field, draws of people and items, and how the rounds ended."""

    posterior: Posterior
    log_shares: Float[np.ndarray, "J K"]
    draws: ReadingDraws
    n_rounds: int
    change: float
    rhat: float


def first_classes(
    readings: Int[np.ndarray, "J A"], n_classes: int, seed: int, prior: ReadingPrior | None = None
) -> tuple[ReadingSampler, Float[np.ndarray, "J K"]]:
    """Return a chain of people and items, and what readings say of each item without a graph."""
    rng = np.random.default_rng([seed % 2**63, 0])
    sampler = ReadingSampler(readings, n_classes, rng, prior)
    return sampler, sampler.alone(*N_ALONE)


def run_rounds(
    posterior: Posterior,
    model: Any,
    basis: Any,
    readings: Int[np.ndarray, "J A"],
    seed: int,
    prior: ReadingPrior | None = None,
) -> Rounds:
    """Return the field and the people that agree with each other.

    Parameters
    ----------
    posterior : Posterior
        Of the most probable classes by the readings alone; its likelihood is a probit.
    model : Model
        The model that selected it, or an average, in whose place its likeliest component is used.
    basis : Basis, Spectrum or Laplacian
    readings : numpy.ndarray of int, shape (J, A)
    seed : int
    prior : ReadingPrior, optional
        By default ``ReadingPrior.of(n_classes)``.
    """
    method = ExpectationPropagation(tolerance=TOLERANCE)
    n_classes = int(posterior.n_classes)
    sampler, said = first_classes(readings, n_classes, seed, prior)
    members = said
    if posterior.learnt:  # an average over models
        model = likeliest_of(model)
        posterior = _selected(model, basis, posterior, members)
    if posterior.likelihood.latent_noise_std is None or posterior.learnt:
        raise IncompatibleParts(
            f"a crowd needs a Probit and a fixed prior, not {posterior.likelihood} with "
            f"{posterior.prior}; leave the model out"
        )
    n_sweeps = int(np.clip(N_DRAWN // len(readings), MIN_SWEEPS, MAX_SWEEPS))
    chooses_noise = "noise_std" in posterior.chosen_by_evidence
    start, change, number = None, np.inf, 0
    while change > CHANGE and number < MAX_ROUNDS:
        candidates = [posterior]
        if 0 < number < SELECTIONS:
            candidates.append(_selected(model, basis, posterior, members))
        searches = chooses_noise and number < SELECTIONS
        posterior, start = _of_largest_evidence(candidates, said, method, searches)
        log_shares = log_shares_of_others(start, float(posterior.likelihood.latent_noise_std))
        found = sampler.run(log_shares, n_sweeps)
        change = float(np.abs(found - members).mean())
        members, said, number = found, informs(found, log_shares), number + 1
    chains = []
    for c in range(N_CHAINS):
        rng = np.random.default_rng([seed % 2**63, 1 + c])
        chain = ReadingSampler(readings, n_classes, rng, prior)
        chains.append(chain.draws(log_shares, N_DRAWS, THIN, N_WARMUP))
    draws = joined(chains)
    said = informs(draws.members, log_shares)
    rhat = float(convergence(np.moveaxis(draws.accuracy, -1, 0))[:, 0].max())
    if change > CHANGE or rhat > RHAT_BOUND:
        warn_user(
            f"the crowd has not settled: classes changed by {change:.2g} in round {number} (bound "
            f"{CHANGE}), and R-hat of the annotators is {rhat:.3f} (bound {RHAT_BOUND})",
            NotConvergedWarning,
        )
    return Rounds(soft_posterior(posterior, said), log_shares, draws, number, change, rhat)


def _of_largest_evidence(
    candidates: list[Posterior],
    said: Float[np.ndarray, "J K"],
    method: ExpectationPropagation,
    searches: bool,
) -> tuple[Posterior, GaussianApproximation]:
    """Return the candidate of largest evidence for what the readings say.

    If ``searches`` is true, the evidence chooses the noise of the candidate, too. Where no
    readings contradict the field, the evidence rises to a limit as γ goes to 0. So the search has
    the range of γ that the evidence has elsewhere (`HYPERPRIORS`).

    Raises
    ------
    InvalidInput
        If expectation propagation converges for no candidate.
    """
    found, error = None, None
    for candidate in candidates:
        try:
            answer = method.fit(soft_posterior(candidate, said).plain_target)
        except InvalidInput as reason:
            error = reason
            continue
        if found is None or answer.log_evidence > found[1].log_evidence:
            found = candidate, answer
    if found is None:
        assert error is not None
        raise error
    _, _, lower, upper = HYPERPRIORS["noise_std"]
    for factor in (STEP, 1 / STEP) if searches else ():
        is_better, first = True, found
        while is_better:
            noise_std = factor * found[0].likelihood.latent_noise_std
            if not lower <= noise_std <= upper:
                break
            own: Any = found[0].likelihood
            likelihood = dataclasses.replace(own, noise_std=noise_std)
            candidate = dataclasses.replace(found[0], likelihood=likelihood)
            try:
                answer = method.fit(soft_posterior(candidate, said).plain_target, found[1])
            except InvalidInput:  # the noise is too small for it
                break
            is_better = answer.log_evidence > found[1].log_evidence
            found = (candidate, answer) if is_better else found
        if found is not first:
            break
    return found


def soft_posterior(posterior: Posterior, said: Float[np.ndarray, "J K"]) -> Posterior:
    """Return the posterior whose labels are what readings say of each item."""
    noise_std = posterior.likelihood.latent_noise_std
    likelihood = SoftProbit(noise_std, said, random_labels=True)
    return dataclasses.replace(
        posterior, likelihood=likelihood, labels=likelihood.most_probable, label_design="random"
    )


def _selected(
    model: Any, basis: Any, posterior: Posterior, members: Float[np.ndarray, "J K"]
) -> Posterior:
    """Return the posterior of a model for the most probable classes."""
    codes = members.argmax(axis=1)
    check_classes_found(codes, members.shape[1])
    found: Posterior = model.posterior(basis, Labels(posterior.labelled, codes, members.shape[1]))
    return found


def check_classes_found(codes: Int[np.ndarray, " J"], n_classes: int) -> None:
    """Raise `InvalidInput` if a class is the most probable one of no item."""
    absent = np.setdiff1d(np.arange(n_classes), codes)
    require(
        len(absent) == 0,
        "y",
        f"class {absent[:1].tolist()} is the most probable one of no row",
        "sample with inference=gq.inference.MCMC(n_samples=1000), or leave its labels out",
    )
