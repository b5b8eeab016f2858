"""How far the probabilities of a Gaussian approximation may be from those of the posterior.

Draws of the Gaussian q have weights ``w ∝ π/q``, with π the posterior. Weighted means are those of
the posterior, so that a label mean of q is wrong by ``E_q[w f] / E_q[w] − E_q[f]``. Both means are
taken over the same draws: if q is the posterior, nothing is left of them, not even noise. The
standard error is that of the ratio's influence function ``w (f − E_w f)/E[w] − (f − E f)``.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from graphuq.inference import GaussianApproximation, Independence
from graphuq.inference.reference import n_proposals
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import MAX_IN_NUMPY, can_be_referred
from graphuq.results.summaries import Rows, conditional_moments
from graphuq.results.summaries.binary import expected_label
from graphuq.results.summaries.random_label import class_shares

MIN_EFFECTIVE = 50.0  # draws that weigh enough; with fewer, weighted means tell nothing
N_ERRORS = 2.0  # standard errors that are added to a difference


class ApproximationError(NamedTuple):
    """Distance of a Gaussian approximation from the posterior.

    Attributes
    ----------
    acceptance : float or None
        Share of its draws that would be accepted as draws of the posterior. None if the posterior
        has coordinates that the Gaussian does not describe.
    probability_error : float or None
        Largest error of a class probability at the nodes looked at, with two standard errors of
        its estimate added. None if too few draws have weight.
    """

    acceptance: float | None
    probability_error: float | None


def approximation_error(
    posterior: Posterior, gaussian: GaussianApproximation, rows: Rows
) -> ApproximationError:
    """Estimate both from 1,600 draws, fewer from 1,000 labels on; the second at some rows."""
    acceptance = acceptance_of_gaussian(posterior, gaussian)
    if acceptance is None:
        return ApproximationError(None, None)
    n = n_proposals(posterior)
    propose = Independence().proposals(posterior.plain_target, gaussian, "float64", MAX_IN_NUMPY)
    made = propose(np.random.default_rng(0), n)
    weights = np.exp(made.log_weight - made.log_weight.max())
    weights /= weights.mean()
    if not n / (weights**2).mean() >= MIN_EFFECTIVE:
        return ApproximationError(acceptance, None)
    labels = _label_means(posterior, np.asarray(made.white, dtype=np.float64), rows)
    plain, weighted = labels.mean(axis=0), np.einsum("s,s...->...", weights, labels) / n
    by_draw = weights.reshape(-1, *[1] * (labels.ndim - 1))
    influence = by_draw * (labels - weighted) - (labels - plain)
    errors = np.abs(weighted - plain) + N_ERRORS * influence.std(axis=0) / np.sqrt(n)
    unit = 1 if posterior.likelihood.is_multiclass else 2  # the label mean of two classes is 2p − 1
    return ApproximationError(acceptance, float(errors.max()) / unit)


def acceptance_of_gaussian(posterior: Posterior, gaussian: GaussianApproximation) -> float | None:
    """Return the share of a Gaussian's draws that would be accepted as draws of the posterior.

    Estimated from 1,600 draws, fewer from 1,000 labels on. The result is None if the target has
    coordinates that the Gaussian does not describe.
    """
    target = posterior.plain_target
    if posterior.likelihood.uses_all_nodes or not can_be_referred(target):
        return None
    return Independence().expected_acceptance(target, gaussian, n_proposals(posterior))


def _label_means(
    posterior: Posterior, white: Float[np.ndarray, "S n"], rows: Rows
) -> Float[np.ndarray, "S B *K"]:
    """Return the label mean, or the probability of each class, at nodes given each draw."""
    mean, std = conditional_moments(posterior.field, white, rows)
    link = posterior.likelihood.link
    if not posterior.likelihood.is_multiclass:
        return np.asarray(expected_label(mean, std, link)).T
    noise = np.random.default_rng(1).normal(size=mean.shape)
    u = mean + std[:, None, None] * noise
    return np.swapaxes(class_shares(u, link), 0, 1)
