r"""Leave-one-out probabilities of a probit, by weights in which field and noise are integrated out.

Behind label j of a probit is a noisy value ``v_j = u_j + γ ε`` of each class, and the values of a
class at all labels are ``N(μ, C)``, ``C = F Fᵀ + γ² I``. Given those at the other labels, v_j is
Gaussian with, for the inverse A of C,

    mean ``v_j − (A (v − μ))_j / A_jj``  and variance  ``1 / A_jj``,

so that the probability of label j is known without u_j. Its inverse is the weight of a draw
(integrated importance sampling; Vehtari, Mononen, Tolvanen, Sivula & Winther 2016, §3.3). It varies
far less than ``1 / p(y_j | u_j)``, which a label that decides its own u_j makes unreliable.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import log_ndtr, logsumexp

from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues
from graphuq.inference.draws import Draws
from graphuq.posterior.posterior import Posterior
from graphuq.results.diagnostics import node_rows
from graphuq.results.summaries import latent_draws
from graphuq.results.summaries.binary import expected_label
from graphuq.results.summaries.random_label import random_label_shares
from graphuq.utils.arrays import double_precision
from graphuq.utils.pareto import smooth_weights

MAX_LABELS = 4_000  # a matrix J × J is inverted
COMPONENT = "component"  # hyperparameter with the number of the component of a mixture
SMALLEST = 1e-300  # probability that replaces smaller ones, before a logarithm
LEAST_SHARE = 1e-6  # variance of u_j given the others, at least, as a share of γ²

# Fields of `LeaveOneOut`.
Parts = tuple[Float[np.ndarray, "J K"], Float[np.ndarray, "J K"], Float[np.ndarray, " J"]]


def by_integrated_weights(draws: Draws, posterior: Posterior) -> Parts | None:
    """Return the fields of `LeaveOneOut`, or None for a posterior that is no such probit.

    It may be a probit of fixed noise, with a fixed prior or a mixture of fixed ones. Weights for
    labels that were drawn class by class are taken as they are with all labels.
    """
    likelihood: Any = posterior.likelihood.unshifted
    noise_std = likelihood.latent_noise_std
    if (
        not isinstance(noise_std, float | int)
        or noise_std <= 0
        or likelihood.has_soft_labels
        or len(posterior.labels) > MAX_LABELS
        or not set(draws.hyperparameters) <= {COMPONENT}
        or bool(draws.hyperparameters) != posterior.prior.is_mixture
        or (posterior.learnt and not posterior.prior.is_mixture)
    ):
        return None
    u = latent_draws(draws, posterior.field, node_rows(posterior)[posterior.labelled])
    if posterior.label_weights is not None:
        u = u * np.sqrt(posterior.label_weights).reshape(-1, *[1] * (u.ndim - 1))
    several = likelihood.is_multiclass
    codes = (posterior.labels if several else posterior.labels > 0).astype(np.int64)
    n_classes = u.shape[2] if several else 2
    rng, every = np.random.default_rng(0), posterior.node_mean
    prior_mean = 0.0 if every is None else every[posterior.labelled]
    mean, std = np.empty(u.shape), np.empty(u.shape[:2])  # of v_j given the others, in each draw
    for those, factor in _factors(draws, posterior):
        values = NoisyValues(factor, float(noise_std), codes, n_classes, not several)
        rows = np.moveaxis(u[:, those], 0, -1).reshape(those.sum(), -1, len(u))  # (S, R, J)
        noisy = values.noisy_given(rng, rows)
        precision = values.values.precision
        own = np.diag(precision)
        given = np.moveaxis(noisy - ((noisy - prior_mean) @ precision) / own, -1, 0)  # (J, S, R)
        mean[:, those] = given if several else given[..., 0]
        std[:, those] = 1 / np.sqrt(own)[:, None]
    found = [_of_label(posterior, mean[j], std[j], code) for j, code in enumerate(codes.tolist())]
    of_label, of_class, shape = map(np.stack, zip(*found, strict=True))
    return of_label, of_class, shape


def _factors(
    draws: Draws, posterior: Posterior
) -> Iterator[tuple[Bool[np.ndarray, " S"], Float[np.ndarray, "J r"]]]:
    """Yield which draws have a prior, and its map from white coordinates to fields at labels."""
    if not posterior.prior.is_mixture:
        with double_precision():
            factor = np.asarray(posterior.plain_target.field.one_class.matrix(), dtype=np.float64)
        yield np.ones(draws.n_chains * draws.n_samples, dtype=bool), factor
        return
    spectrum = posterior.spectrum
    rows = np.asarray(spectrum.basis[posterior.labelled]) * posterior.label_scale[:, None]
    numbers = draws.hyperparameters[COMPONENT].ravel()
    for number in np.unique(numbers):
        std = np.asarray(posterior.modes.stds)[int(number)]
        yield numbers == number, rows * std


def _of_label(
    posterior: Posterior,
    mean: Float[np.ndarray, "S *K"],
    std: Float[np.ndarray, " S"],
    code: int,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the probabilities of one label, and the shape of its weights."""
    likelihood: Any = posterior.likelihood.unshifted
    noise, link = float(likelihood.latent_noise_std), likelihood.link
    latent = np.sqrt(np.maximum(std**2 - noise**2, LEAST_SHARE * noise**2))  # of u_j
    if likelihood.is_multiclass:
        log_labels = np.log(np.maximum(_shares(mean, std), SMALLEST))
        log_labels[:, code] = _log_probability(mean, std, code)
        spreads = [(1.0, latent)]
        if link is not None:
            spreads = [(w, np.hypot(latent, scale)) for w, scale in zip(*link, strict=True)]
        classes = sum(weight * _shares(mean, spread) for weight, spread in spreads)
    else:
        signs = np.array([-1.0, 1.0])
        log_labels = log_ndtr(signs * (mean / std)[:, None])
        label = expected_label(mean[:, None].copy(), latent, link)
        classes = (1 + signs * label) / 2
    weights, shape = smooth_weights(-log_labels[None, :, code])
    logs = logsumexp(log_labels + weights[0][:, None], axis=0)
    of_label = np.exp(logs - logsumexp(logs))
    return of_label, np.exp(weights[0]) @ classes, float(shape[0])


def _shares(
    mean: Float[np.ndarray, "S K"], std: Float[np.ndarray, " S"]
) -> Float[np.ndarray, "S K"]:
    """Return the probability that each of K Gaussians of one deviation is the largest."""
    return random_label_shares(mean[:, :, None], std[:, None], 1)[:, 0]


def _log_probability(
    mean: Float[np.ndarray, "S K"], std: Float[np.ndarray, " S"], code: int
) -> Float[np.ndarray, " S"]:
    from graphuq.inference.collapsed_gibbs.sweeps import log_probabilities  # imports Numba

    return log_probabilities((mean / std[:, None])[:, None, :], np.array([code]), 1.0)
