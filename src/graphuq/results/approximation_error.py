"""How far the probabilities of a Gaussian approximation may be from those of the posterior.

Draws of the Gaussian q have weights ``w ∝ π/q``, with π the posterior. Weighted means are those of
the posterior, so that a label mean of q is wrong by ``E_q[w f] / E_q[w] − E_q[f]``. Both means are
taken over the same draws: if q is the posterior, nothing is left of them, not even noise. The
standard error is that of the ratio's influence function ``w (f − E_w f)/E[w] − (f − E f)``.

An average of several classes has too many dimensions for weights. Its error is the root mean square
difference from few draws of some of its components, less their Monte-Carlo error, and with two
standard errors of that estimate added. More draws are made where few do not tell whether it is
close.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from graphuq.inference import (
    CollapsedGibbs,
    GaussianApproximation,
    GaussianMixture,
    Independence,
)
from graphuq.inference.class_covariance import ClassCovariance
from graphuq.inference.draws import Draws
from graphuq.inference.model_average import ClassShares, coefficients_given
from graphuq.inference.reference import n_proposals
from graphuq.inference.settings import RunSettings
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import MAX_IN_NUMPY, can_be_referred
from graphuq.results.summaries import Rows, conditional_moments, summarize
from graphuq.results.summaries.ordered import label_means_of_one_field
from graphuq.results.summaries.random_label import class_shares

MIN_EFFECTIVE = 50.0  # draws that weigh enough; with fewer, weighted means tell nothing
MAX_UNKNOWN = 0.05  # share of components of unknown error, above which the sum is unknown
N_ERRORS = 2.0  # standard errors that are added to a difference
N_COMPONENTS = 4  # of an average of several classes, which stand for all
N_DRAWS, N_CHAINS = 25, 4  # of each of them, by which the error is estimated
CLOSE = 0.05  # error of a probability up to which an approximation is close
MORE = 4  # times as many draws, where the estimate is below `CLOSE` and its upper end is not
FEW_LABELS = 1_000  # up to which they take a second or two
MAX_SWEPT = 4_000  # labels of one posterior of several classes, up to which it is drawn from
N_SPLIT = 100  # parts of the weights of an average, which are divided into halves


class ApproximationError(NamedTuple):
    """Distance of a Gaussian approximation from the posterior.

    Attributes
    ----------
    acceptance : float or None
        Share of its draws that would be accepted as draws of the posterior. None if the posterior
        has coordinates that the Gaussian does not describe.
    probability_error : float or None
        Largest error of a class probability at the nodes looked at, with two standard errors of
        its estimate added. None if too few draws have weight. For several classes, of an average
        or where too few draws have weight, the root mean square error, from above in the same way.
    """

    acceptance: float | None
    probability_error: float | None


def mixture_error(posterior: Posterior, mixture: GaussianMixture, rows: Rows) -> ApproximationError:
    """Return the errors of the components, weighed; those of their weights are not in it.

    Components with a small weight may have an unknown error, which then counts as 1.
    """
    # The probabilities that are reported are those to a power, which enlarges errors by it at most.
    if posterior.likelihood.is_multiclass:
        error = error_by_draws(posterior, mixture, rows)
        return ApproximationError(None, posterior.sharpness * error)
    shares = ClassShares.of(posterior)
    found = [
        approximation_error(posterior.component(int(number)), one, rows, shares)
        for one, number in zip(mixture.components, mixture.numbers, strict=True)
    ]
    weights = np.asarray(mixture.weights)
    if any(one.acceptance is None for one in found):
        return ApproximationError(None, None)
    acceptance = float(weights @ [one.acceptance or 0.0 for one in found])
    unknown = np.array([one.probability_error is None for one in found])
    if weights[unknown].sum() > MAX_UNKNOWN:
        return ApproximationError(acceptance, None)
    errors = [1.0 if one.probability_error is None else one.probability_error for one in found]
    return ApproximationError(acceptance, posterior.sharpness * float(weights @ errors))


def error_by_draws(posterior: Posterior, mixture: GaussianMixture, rows: Rows) -> float:
    """Return the root mean square error of class probabilities, beside 400 draws, from above.

    They are those of four components, evenly spaced in the order of the average by their weights,
    each of which stands for a quarter. The squared error of a node is ``½ Σ_k (p_k − p̂_k)²``, which
    is ``(p − p̂)²`` for two classes. Products of differences from two chains have its mean, without
    what Monte-Carlo errors add. Two standard errors are added, which leaving out one chain at a
    time gives (jackknife). Draws of the components are weighed by their evidence as importance
    sampling corrects it, so that errors of the weights are in the difference, too. The error of
    components that stand for others is that of `error_of_strata`.
    """
    points = (np.arange(N_COMPONENTS) + 0.5) / N_COMPONENTS
    places = np.searchsorted(np.cumsum(mixture.weights), points).clip(max=len(mixture.weights) - 1)
    chosen, counts = np.unique(places, return_counts=True)
    own = [posterior.component(int(number)) for number in np.asarray(mixture.numbers)[chosen]]
    gaussians, shares = [mixture.components[k] for k in chosen], counts / N_COMPONENTS
    corrected = shares * evidence_ratios(own, gaussians)
    corrected /= corrected.sum()
    of_strata = error_of_strata(mixture, rows, posterior.likelihood.link)
    close = (CLOSE / posterior.sharpness) ** 2 - of_strata**2
    square = square_error(own, gaussians, shares, corrected, rows, close)
    return float(np.sqrt(square + of_strata**2))


def square_error(
    posteriors: list[Posterior],
    gaussians: list[GaussianApproximation],
    shares: Float[np.ndarray, " m"],
    corrected: Float[np.ndarray, " m"],
    rows: Rows,
    close: float = CLOSE**2,
) -> float:
    """Return the mean square error of `error_by_draws`, of some components, from above.

    ``shares`` are the weights of the Gaussians, and ``corrected`` those of the draws. There are
    more draws where few leave open whether the square is at most ``close``.
    """
    parts = (posteriors, gaussians, shares, corrected, rows)
    square, error = _estimated(*parts, N_DRAWS)
    is_open = square <= close < square + N_ERRORS * error
    if is_open and len(posteriors[0].labels) <= FEW_LABELS:
        square, error = _estimated(*parts, MORE * N_DRAWS)
    return square + N_ERRORS * error


def _estimated(
    posteriors: list[Posterior],
    gaussians: list[GaussianApproximation],
    shares: Float[np.ndarray, " m"],
    corrected: Float[np.ndarray, " m"],
    rows: Rows,
    n_draws: int,
) -> tuple[float, float]:
    """Return the mean square error by so many draws a chain, and its standard error."""
    link = posteriors[0].likelihood.link
    settings = RunSettings(n_samples=n_draws, n_chains=N_CHAINS)
    differences: Any = 0.0
    for one, gaussian, share, right in zip(posteriors, gaussians, shares, corrected, strict=True):
        draws = CollapsedGibbs().run(one, settings, gaussian)
        found = summarize(gaussian, one.field, rows, link).label_mean
        chains = [
            summarize(_one_chain(draws, c), one.field, rows, link).label_mean
            for c in range(N_CHAINS)
        ]
        differences = differences + right * np.array(chains) - share * found
    products = np.einsum("cik,dik->cd", differences, differences) / (2 * differences.shape[1])
    pairs = 1 - np.eye(N_CHAINS)
    left_out = [
        (products * pairs)[np.ix_(kept, kept)].sum() / ((N_CHAINS - 1) * (N_CHAINS - 2))
        for kept in (np.flatnonzero(np.arange(N_CHAINS) != c) for c in range(N_CHAINS))
    ]
    error = np.sqrt(N_CHAINS - 1) * np.std(left_out)
    square = (products * pairs).sum() / pairs.sum()
    return float(max(0.0, square)), float(error)


def error_of_strata(mixture: GaussianMixture, rows: Rows, link: Any) -> float:
    """Return half the root mean square difference between every second component and the others.

    Each stands for components of its stratum, in an order in which neighbours are alike.
    """
    points = (np.arange(N_SPLIT) + 0.5) / N_SPLIT
    places = np.searchsorted(np.cumsum(mixture.weights), points).clip(max=len(mixture.weights) - 1)
    signs = np.bincount(places, 1.0 - 2 * (np.arange(N_SPLIT) % 2), minlength=len(mixture.weights))
    difference: Any = 0.0
    for k in np.flatnonzero(signs).tolist():
        one = summarize(mixture.components[k], mixture.fields[k], rows, link).label_mean
        difference = difference + signs[k] / (N_SPLIT / 2) * one
    return float(np.sqrt((np.asarray(difference) ** 2).sum(axis=-1).mean() / 2) / 2)


def evidence_ratios(
    posteriors: list[Posterior], gaussians: list[GaussianApproximation]
) -> Float[np.ndarray, " m"]:
    """Return the evidence of each posterior over that of its Gaussian, by importance sampling.

    They are all 1 if too few draws of one of them have weight.
    """
    ratios = np.ones(len(posteriors))
    for m, (one, gaussian) in enumerate(zip(posteriors, gaussians, strict=True)):
        target = one.plain_target
        if isinstance(gaussian.white_covariance, ClassCovariance) or not can_be_referred(target):
            return np.ones(len(posteriors))
        n = n_proposals(one)
        propose = Independence().proposals(target, gaussian, "float64", MAX_IN_NUMPY)
        logs = np.asarray(propose(np.random.default_rng(3), n).log_weight, dtype=np.float64)
        weights = np.exp(logs - gaussian.log_evidence)
        if not weights.sum() ** 2 / (weights**2).sum() >= MIN_EFFECTIVE:
            return np.ones(len(posteriors))
        ratios[m] = weights.mean()
    return ratios


def _one_chain(draws: Draws, chain: int) -> Draws:
    """Return the draws of one chain alone."""
    own: dict[str, Any] = {
        name: getattr(draws, name)[[chain]] for name in ("white", "log_likelihood", "acceptance")
    }
    return dataclasses.replace(draws, reference=None, log_ratio=None, **own)


def approximation_error(
    posterior: Posterior,
    gaussian: GaussianApproximation,
    rows: Rows,
    shares: ClassShares | None = None,
) -> ApproximationError:
    """Estimate both from 1,600 draws, fewer from 1,000 labels on; the second at some rows.

    With ``shares`` the posterior has their weight beside prior and likelihood.
    """
    acceptance = acceptance_of_gaussian(posterior, gaussian)
    if acceptance is None:
        return ApproximationError(None, None)
    n = n_proposals(posterior)
    propose = Independence().proposals(posterior.plain_target, gaussian, "float64", MAX_IN_NUMPY)
    made = propose(np.random.default_rng(0), n)
    logs = np.asarray(made.log_weight, dtype=np.float64)
    if shares is not None:
        white = np.asarray(made.white, dtype=np.float64)
        coefficients = coefficients_given(posterior, white, np.random.default_rng(2))
        logs = logs + shares.log_weights(coefficients)
        acceptance = acceptance_of_weights(logs)
    weights = np.exp(logs - logs.max())
    weights /= weights.mean()
    if not n / (weights**2).mean() >= MIN_EFFECTIVE:
        if not _can_be_swept(posterior):
            return ApproximationError(acceptance, None)
        one = np.ones(1)
        return ApproximationError(
            None, float(np.sqrt(square_error([posterior], [gaussian], one, one, rows)))
        )
    labels = _label_means(posterior, np.asarray(made.white, dtype=np.float64), rows)
    plain, weighted = labels.mean(axis=0), np.einsum("s,s...->...", weights, labels) / n
    by_draw = weights.reshape(-1, *[1] * (labels.ndim - 1))
    influence = by_draw * (labels - weighted)
    is_plain = _are_means_of_draws(posterior, gaussian, rows)
    influence[:, is_plain] -= labels[:, is_plain] - plain[is_plain]
    told = plain.copy()
    if not is_plain.all():
        told[~is_plain] = np.asarray(gaussian.labelled_label_mean)[rows.at_labelled[~is_plain]]
    errors = np.abs(weighted - told) + N_ERRORS * influence.std(axis=0) / np.sqrt(n)
    unit = 1 if posterior.likelihood.has_codes else 2  # the label mean of two classes is 2p − 1
    return ApproximationError(acceptance, float(errors.max()) / unit)


def _are_means_of_draws(
    posterior: Posterior, gaussian: GaussianApproximation, rows: Rows
) -> Bool[np.ndarray, " B"]:
    """Return at which rows the label mean is that of the Gaussian; see `summaries.binary`."""
    own = np.asarray(gaussian.labelled_label_mean)
    found = np.ones(len(rows.scale), dtype=bool)
    likelihood = posterior.likelihood
    if not likelihood.has_codes and likelihood.link is None:  # of two classes
        known = np.flatnonzero(rows.at_labelled >= 0)
        found[known] = ~np.isfinite(own[rows.at_labelled[known]])
    return found


def _can_be_swept(posterior: Posterior) -> bool:
    """Return whether draws of several classes by Gibbs sweeps take seconds."""
    few = len(posterior.labels) <= MAX_SWEPT
    is_known = posterior.likelihood.is_multiclass and not posterior.learnt
    return few and is_known and CollapsedGibbs().refusal(posterior) is None


def acceptance_of_gaussian(posterior: Posterior, gaussian: GaussianApproximation) -> float | None:
    """Return the share of a Gaussian's draws that would be accepted as draws of the posterior.

    Estimated from 1,600 draws, fewer from 1,000 labels on. The result is None if the target has
    coordinates that the Gaussian does not describe, or very many.
    """
    target = posterior.plain_target
    if posterior.likelihood.uses_all_nodes or not can_be_referred(target):
        return None
    if isinstance(gaussian.white_covariance, ClassCovariance):  # many classes, many coordinates
        return None
    return Independence().expected_acceptance(target, gaussian, n_proposals(posterior))


def acceptance_of_weights(logs: Float[np.ndarray, " n"]) -> float:
    """Return the mean of ``min(w, w') / w`` over pairs: w' proposed, w as chains visit them."""
    weights, n = np.sort(np.exp(logs - logs.max())), len(logs)
    return float(weights @ np.arange(2 * n - 1, 0, -2) / (n * weights.sum()))


def _label_means(
    posterior: Posterior, white: Float[np.ndarray, "S n"], rows: Rows
) -> Float[np.ndarray, "S B *K"]:
    """Return the label mean, or the probability of each class, at nodes given each draw."""
    mean, std = conditional_moments(posterior.field, white, rows)
    link = posterior.likelihood.link
    if posterior.n_fields == 1:
        return np.swapaxes(label_means_of_one_field(mean, std, link), 0, 1)
    noise = np.random.default_rng(1).normal(size=mean.shape)
    u = mean + std[:, None, None] * noise
    return np.swapaxes(class_shares(u, link), 0, 1)
