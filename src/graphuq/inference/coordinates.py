"""The coordinates that chains run in, and the map of their draws to the posterior's."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Sampler
from graphuq.inference.draws import Draws
from graphuq.inference.reference import fit_reference, has_uncovered_mass
from graphuq.posterior.hierarchical import HierarchicalTarget
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import (
    ReferredTarget,
    Target,
    log_likelihoods,
    refer,
    with_noise_sampled,
)

DrawsMap: TypeAlias = Callable[[Draws], Draws]


def sampling_coordinates(
    posterior: Posterior, sampler: Sampler, reference: GaussianApproximation | None
) -> tuple[Target | ReferredTarget | HierarchicalTarget, DrawsMap]:
    """Return the target that the chains run on, and the map of their draws to the posterior's.

    Parameters
    ----------
    posterior : Posterior
    sampler : Sampler
    reference : GaussianApproximation, optional
        Gaussian of the sampler's reference, if it was computed before.

    Returns
    -------
    target : Target, ReferredTarget or HierarchicalTarget
        The hierarchical target if hyperparameters are learnt. The field together with the noise
        if the sampler needs a step likelihood. The target whitened by the reference if there is
        one. Else the posterior's own target.
    to_posterior : callable
    """
    if posterior.learnt:
        return posterior.target, coefficient_map(posterior)
    target = posterior.plain_target
    noisy = with_noise_sampled(target) if sampler.requires_step else None
    if noisy is not None:
        return noisy, _without_noise(target)
    gaussian = fit_reference(posterior, sampler, reference)
    if gaussian is None:
        return target, lambda draws: draws
    referred, rotation = refer(target, gaussian.white_mean, gaussian.white_covariance)

    def to_target(draws: Draws) -> Draws:
        z = draws.white.astype(np.float64)
        white = np.asarray(referred.to_target(z))
        if rotation is not None:
            white = white @ rotation.T
        correction = 0.5 * ((white**2).sum(axis=-1) - (z**2).sum(axis=-1))
        return dataclasses.replace(
            draws,
            white=white,
            log_likelihood=draws.log_likelihood + correction,
            reference=gaussian,
            log_ratio=draws.log_likelihood.astype(np.float64),
        )

    return referred, with_covered_reference(posterior, to_target)


def coefficient_map(posterior: Posterior) -> DrawsMap:
    """Return the map of white draws to the posterior's coordinates.

    These are the coefficients of the eigenvectors if hyperparameters are learnt. Otherwise
    nothing changes.
    """
    if not posterior.learnt:
        return lambda draws: draws
    target: Any = posterior.target

    def to_coefficients(draws: Draws) -> Draws:
        from graphuq.posterior import compiled

        white = draws.white.reshape(-1, draws.white.shape[-1]).astype(np.float64)
        coefficients, values, tail = compiled.coefficients(target, white)
        shape = draws.white.shape[:2]
        return dataclasses.replace(
            draws,
            white=np.asarray(coefficients).reshape(*shape, -1),
            hyperparameters={
                name: np.asarray(value).reshape(*shape, *value.shape[1:])
                for name, value in values.items()
            },
            tail_std=np.asarray(tail).reshape(*shape, *tail.shape[1:]) if target.has_tail else None,
        )

    return to_coefficients


def with_covered_reference(posterior: Posterior, to_posterior: DrawsMap) -> DrawsMap:
    """Return a map that removes a reference with mass where the chains have none.

    As a control variate such a reference would bias every average.
    """
    uncovered: list[bool] = []  # found once per run

    def checked(draws: Draws) -> Draws:
        draws = to_posterior(draws)
        if draws.reference is None or posterior.likelihood.is_multiclass:
            return draws
        if not uncovered:
            uncovered.append(has_uncovered_mass(posterior, draws.reference))
        return dataclasses.replace(draws, reference=None, log_ratio=None) if uncovered[0] else draws

    return checked


def _without_noise(target: Target) -> DrawsMap:
    """Return the map of draws of field and noise to the field, with its own log likelihood.

    The likelihood of each draw is computed once.
    """
    known: list[np.ndarray] = []

    def to_field(draws: Draws) -> Draws:
        white = draws.white[..., : target.dimension]
        n_known = sum(values.shape[1] for values in known)
        if n_known < draws.n_samples:
            known.append(log_likelihoods(target, white[:, n_known:]))
        values = np.concatenate(known, axis=1)[:, : draws.n_samples]
        return dataclasses.replace(draws, white=white, log_likelihood=values)

    return to_field
