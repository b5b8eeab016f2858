"""Class probabilities of each labelled node given all other labels, without refitting.

From draws, by importance sampling with weights ``1/p(y_j | u_j)`` (Gelfand, Dey & Chang 1992),
and for a probit with better ones (`integrated_weights`):

    p(y_j = c | y_−j) = E[p(c | u_j) / p(y_j | u_j)] / E[1 / p(y_j | u_j)],

with expectations under the posterior, and with Pareto-smoothed weights (`graphuq.utils.pareto`).
From a Gaussian approximation, by its cavity: the distribution of u_j without the Gaussian site of
label j (Vehtari, Mononen, Tolvanen, Sivula & Winther 2016). Expectation propagation stores sites.
Those of more than two classes and few labels are fitted again without label j.
For other Gaussians the site is the second-order expansion of ``log p(y_j | u)`` at the mean.
For two classes, cavities also replace weights that are unreliable.
"""

import dataclasses
import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference import ExpectationPropagation, GaussianApproximation, GaussianMixture, Point
from graphuq.inference.draws import Draws
from graphuq.likelihoods import Likelihood
from graphuq.posterior.posterior import Posterior
from graphuq.results.cavities import multiclass_cavities, prior_variance, slopes_at
from graphuq.results.diagnostics import node_rows
from graphuq.results.integrated_weights import by_integrated_weights
from graphuq.results.summaries import latent_draws
from graphuq.results.summaries.base import slices
from graphuq.results.summaries.ordered import shares_of_one_field
from graphuq.results.summaries.random_label import class_shares
from graphuq.utils.arrays import double_precision
from graphuq.utils.pareto import smooth_weights

MAX_SHAPE = 0.7  # k̂ above which importance weights are unreliable (Vehtari et al. 2024)
MIN_DRAWS, MAX_DRAWS = 1_000, 4_000  # evenly spaced draws that are used
MAX_NUMBERS = 10_000_000  # draws × labels × classes, above which fewer draws are used
CAVITY_DRAWS = 4_000  # draws of a multiclass cavity
BLOCK_ELEMENTS = 2_000_000  # draws × labels × classes of one block
MAX_LOG_RATIO = math.log(100.0)  # largest log ratio of a step likelihood's two values


class LeaveOneOut(NamedTuple):
    """Probabilities of each labelled node given all other labels.

    Attributes
    ----------
    of_label : numpy.ndarray, shape (J, K)
        Probability that a label of each class would be given, the noise of a label included.
    of_class : numpy.ndarray, shape (J, K)
        Probability of each class as `Result.probabilities` defines it.
    pareto_shape : numpy.ndarray, shape (J,)
        k̂ of the importance weights; NaN for a cavity, and 0 for the bounded weights of a
        likelihood with levels. Above 0.7 the row is unreliable.
    """

    of_label: Float[np.ndarray, "J K"]
    of_class: Float[np.ndarray, "J K"]
    pareto_shape: Float[np.ndarray, " J"]


@singledispatch
def leave_each_out(
    answer: Draws | GaussianApproximation | GaussianMixture | Point, posterior: Posterior
) -> LeaveOneOut:
    """Return the class probabilities of each labelled node given all other labels.

    Raises
    ------
    IncompatibleParts
        If the answer is a point, or the labels of a step likelihood are so certain given u that
        its draws say nothing about other labels.
    """
    raise IncompatibleParts(
        "leave-one-out probabilities need the uncertainty of u, and a point has none; use "
        "ExpectationPropagation() or a sampler"
    )


@leave_each_out.register
def _(answer: Draws, posterior: Posterior) -> LeaveOneOut:
    _demand_overlap(posterior)
    n_numbers = len(posterior.labels) * posterior.n_classes
    draws = thinned(answer, int(np.clip(MAX_NUMBERS // n_numbers, MIN_DRAWS, MAX_DRAWS)))
    integrated = by_integrated_weights(draws, posterior)
    if integrated is not None:
        return LeaveOneOut(*integrated)
    rows = node_rows(posterior)[posterior.labelled]
    n_draws = draws.n_chains * draws.n_samples
    values = own_values(posterior.likelihood.unshifted, draws)
    parts = []
    for part in slices(len(posterior.labels), BLOCK_ELEMENTS // (n_draws * posterior.n_classes)):
        u = _draws_at_labels(draws, posterior, rows, part)
        parts.append(_by_weights(posterior, u, posterior.labels[part], values))
    found = LeaveOneOut(*map(np.concatenate, zip(*parts, strict=True)))
    poor = found.pareto_shape > MAX_SHAPE
    gaussian = _expectation_propagation(draws, posterior) if poor.any() else None
    if gaussian is not None:
        for numbers, better in zip(found, leave_each_out(gaussian, posterior), strict=True):
            numbers[poor] = better[poor]
    return found


def _draws_at_labels(
    draws: Draws, posterior: Posterior, rows: Any, part: slice
) -> Float[np.ndarray, "B S *K"]:
    """Return u at some labels, each scaled as if it had the noise of the likelihood."""
    u = latent_draws(draws, posterior.field, rows[part])
    if posterior.label_weights is None:
        return u
    return u * np.sqrt(posterior.label_weights[part]).reshape(-1, *[1] * (u.ndim - 1))


def label_log_probs(draws: Draws, posterior: Posterior) -> Float[np.ndarray, "C S J"]:
    """Return the log probability of each given label in every draw.

    Of a likelihood on all nodes it is the factor of the label, as in `class_log_probs`.
    """
    likelihood, n_labels = posterior.likelihood.unshifted, len(posterior.labels)
    rows, values = node_rows(posterior)[posterior.labelled], own_values(likelihood, draws)
    shape = draws.n_chains, draws.n_samples
    size = BLOCK_ELEMENTS // (shape[0] * shape[1] * posterior.n_classes)
    parts = []
    for part in slices(n_labels, n_labels if likelihood.has_soft_labels else size):
        u = _draws_at_labels(draws, posterior, rows, part)
        parts.append(_log_probs_of_labels(likelihood, u, posterior.labels[None, part], values)[0])
    return np.moveaxis(np.concatenate(parts).reshape(n_labels, *shape), 0, 2)


@leave_each_out.register
def _(answer: GaussianApproximation, posterior: Posterior) -> LeaveOneOut:
    _demand_certain_labels(posterior)
    if posterior.likelihood.uses_all_nodes:
        raise IncompatibleParts(
            f"leave-one-out probabilities with {posterior.likelihood}, which uses all nodes, need "
            "draws; use a sampler"
        )
    if posterior.likelihood.is_multiclass:
        return _of_class_cavities(answer, posterior)
    mean, variance = answer.labelled_mean, answer.labelled_variance
    if answer.sites is None:
        first, second = slopes_at(posterior, mean)
        variance = 1 / np.maximum(1 / variance + second, 1 / prior_variance(posterior))
        mean = mean - variance * first
    else:
        precision, shift = answer.sites
        before = mean / variance - shift
        variance = 1 / (1 / variance - precision)
        mean = variance * before
    logs = _log_partitions(posterior, mean, variance)
    u = mean + posterior.likelihood.prior_mean
    shares = shares_of_one_field(u[:, None], np.sqrt(variance), posterior.likelihood.link)
    return LeaveOneOut(
        of_label=np.exp(logs - logsumexp(logs, axis=1, keepdims=True)),
        of_class=shares[:, 0],
        pareto_shape=np.full(len(mean), np.nan),
    )


@leave_each_out.register
def _(answer: GaussianMixture, posterior: Posterior) -> LeaveOneOut:
    """Without label j the weight of component m is ``w_m / p_m(y_j | all others)``, up to a sum."""
    numbers = zip(answer.components, answer.numbers, strict=True)
    parts = [leave_each_out(one, posterior.component(int(number))) for one, number in numbers]
    given = np.arange(len(posterior.labels)), given_classes(posterior)
    own = np.stack([np.maximum(part.of_label[given], np.finfo(float).tiny) for part in parts])
    weights = np.asarray(answer.weights)[:, None] / own
    weights /= weights.sum(axis=0)
    return LeaveOneOut(
        of_label=np.einsum("mj,mjk->jk", weights, np.stack([part.of_label for part in parts])),
        of_class=np.einsum("mj,mjk->jk", weights, np.stack([part.of_class for part in parts])),
        pareto_shape=np.full(len(posterior.labels), np.nan),
    )


def _expectation_propagation(draws: Draws, posterior: Posterior) -> GaussianApproximation | None:
    """Return the Gaussian whose cavities are more reliable than poor weights, or None.

    Cavities of two classes are almost exact. Those of more classes are less accurate than weights.
    """
    likelihood = posterior.likelihood
    if likelihood.is_multiclass or likelihood.uses_all_nodes or draws.hyperparameters:
        return None
    if draws.reference is not None and draws.reference.sites is not None:
        return draws.reference
    try:
        return ExpectationPropagation().fit(posterior.plain_target)
    except (InvalidInput, IncompatibleParts):
        return None


def thinned(draws: Draws, max_draws: int) -> Draws:
    """Return evenly spaced draws of each chain, at most ``max_draws`` in all."""
    stride = -(-draws.n_chains * draws.n_samples // max_draws)
    if stride <= 1:
        return draws
    return dataclasses.replace(
        draws,
        white=draws.white[:, ::stride],
        log_likelihood=draws.log_likelihood[:, ::stride],
        acceptance=draws.acceptance[:, ::stride],
        log_ratio=None,
        block_acceptance=None,
        hyperparameters={k: v[:, ::stride] for k, v in draws.hyperparameters.items()},
        tail_std=None if draws.tail_std is None else draws.tail_std[:, ::stride],
    )


def _demand_certain_labels(posterior: Posterior) -> None:
    if posterior.likelihood.has_soft_labels:
        raise IncompatibleParts(
            "leave-one-out probabilities are those of labels that are certain, and these are soft; "
            "compare with them by predict_proba at rows that were left out of the fit"
        )


def _demand_overlap(posterior: Posterior) -> None:
    """Refuse a step likelihood whose draws are all, or almost all, on the label's side."""
    _demand_certain_labels(posterior)
    likelihood = posterior.likelihood.unshifted
    if not likelihood.has_levels:
        return
    ratio = np.inf
    if not likelihood.learnt:
        with double_precision():
            right, wrong = map(np.asarray, likelihood.log_levels(posterior.labels))
        ratio = float((right - wrong).max())
    if ratio > MAX_LOG_RATIO:
        other = "Softmax() or Probit()" if likelihood.is_multiclass else "Probit()"
        remedy = "" if likelihood.is_multiclass else ", or infer with ExpectationPropagation()"
        raise IncompatibleParts(
            f"leave-one-out probabilities cannot be computed from draws with {likelihood}: u is "
            "almost never on the other side of a given label, so draws do not show what the other "
            f"labels say; use {other} as likelihood{remedy}"
        )


def own_values(likelihood: Likelihood, draws: Draws) -> dict[str, np.ndarray]:
    """Return the likelihood's hyperparameters in each draw, shape (S,) each."""
    n_draws = draws.n_chains * draws.n_samples
    names = {field.name for field in dataclasses.fields(likelihood)}
    found = {name: v for name, v in draws.hyperparameters.items() if name in names}
    return {name: v.reshape(n_draws, *v.shape[2:]) for name, v in found.items()}


def codes_of_classes(posterior: Posterior) -> Float[np.ndarray, " K"]:
    """Return the label of each class: −1 and +1, or 0 to K − 1."""
    if posterior.likelihood.has_codes:
        return np.arange(posterior.n_classes, dtype=np.float64)
    return np.array([-1.0, 1.0])


def given_classes(posterior: Posterior) -> np.ndarray:
    """Return the class of each given label, as an index from 0, shape (J,)."""
    return np.searchsorted(codes_of_classes(posterior), posterior.labels)


def _by_weights(
    posterior: Posterior,
    u: Float[np.ndarray, "B S *K"],
    labels: Float[np.ndarray, " B"],
    values: dict[str, np.ndarray],
) -> LeaveOneOut:
    """Return the probabilities of some labels, from draws of u at their nodes."""
    codes = codes_of_classes(posterior)
    likelihood = posterior.likelihood.unshifted
    log_probs = class_log_probs(likelihood, u, codes, values)  # (K, B, S)
    given = log_probs[np.searchsorted(codes, labels), np.arange(len(labels))]
    if likelihood.has_levels:  # few weights, whose ratio is bounded
        weights, shape = -given - logsumexp(-given, axis=1, keepdims=True), np.zeros(len(given))
    else:
        weights, shape = smooth_weights(-given)
    logs = logsumexp(log_probs + weights, axis=2).T
    return LeaveOneOut(
        of_label=np.exp(logs - logsumexp(logs, axis=1, keepdims=True)),
        of_class=np.einsum("bs,bsk->bk", np.exp(weights), _classes_of(posterior, u, values)),
        pareto_shape=shape,
    )


def _classes_of(
    posterior: Posterior, u: Float[np.ndarray, "B S *K"], values: dict[str, np.ndarray]
) -> Float[np.ndarray, "B S K"]:
    """Return the probability of each class given u, as `Result.probabilities` defines it."""
    if u.ndim == 2:
        link = posterior.likelihood.link
        return shares_of_one_field(u.copy(), np.zeros(len(u)), link)
    if "n_classes" in values:
        absent = np.arange(u.shape[2]) >= values["n_classes"][:, None]
        u = np.where(absent, -np.inf, u)
    return class_shares(u, posterior.likelihood.link)


def class_log_probs(
    likelihood: Likelihood,
    u: Float[np.ndarray, "B S *K"],
    codes: Float[np.ndarray, " K"],
    values: dict[str, np.ndarray],
) -> Float[np.ndarray, "K B S"]:
    """Return the log probability of each class as a label, given u and a draw's hyperparameters.

    A likelihood on all nodes has a term of its own at each node. It is divided by that term
    without a label, so that only the factor of the label is left.
    """
    labels = np.repeat(codes, len(u)).reshape(len(codes), len(u))
    return _log_probs_of_labels(likelihood, u, labels, values)


def _log_probs_of_labels(
    likelihood: Likelihood,
    u: Float[np.ndarray, "B S *K"],
    labels: Float[np.ndarray, "M B"],
    values: dict[str, np.ndarray],
) -> Float[np.ndarray, "M B S"]:
    """Return the log probabilities of M sets of labels."""
    found = _log_probs(likelihood, np.swapaxes(u, 0, 1), labels, values)
    if likelihood.uses_all_nodes:
        none = np.full((1, len(u)), -1.0 if likelihood.has_codes else 0.0)
        found = found - _log_probs(likelihood, np.swapaxes(u, 0, 1), none, values)
    return np.moveaxis(found, 0, 2)


def _log_probs(
    likelihood: Likelihood,
    u: Float[np.ndarray, "S B *K"],
    labels: Float[np.ndarray, "M B"],
    values: dict[str, np.ndarray],
) -> Float[np.ndarray, "S M B"]:
    """Return log probabilities of sets of labels, for each draw of u and of hyperparameters."""
    if values:  # JAX has drawn them
        from graphuq.results import compiled

        return compiled.log_probs(likelihood, u, labels, values)
    n_draws = len(u)
    flat = u.reshape(-1, *u.shape[2:])
    with double_precision():
        found = [np.asarray(likelihood.log_prob(flat, np.tile(y, n_draws))) for y in labels]
    return np.stack([logs.reshape(n_draws, -1) for logs in found], axis=1)


def _log_partitions(
    posterior: Posterior, mean: Float[np.ndarray, " J"], variance: Float[np.ndarray, " J"]
) -> Float[np.ndarray, "J K"]:
    """Return the log probability of each class as a label, given a Gaussian u at each label."""
    likelihood, ones = posterior.likelihood, np.ones_like(mean)
    codes = codes_of_classes(posterior)
    logs = [likelihood.tilt(mean, variance, y * ones).log_partition for y in codes]
    return np.stack(logs, axis=1)


def _of_class_cavities(answer: GaussianApproximation, posterior: Posterior) -> LeaveOneOut:
    """Return probabilities from draws of each K-dimensional cavity."""
    mean, root = multiclass_cavities(answer, posterior, given_classes(posterior))
    n_classes = mean.shape[1]
    z = np.random.default_rng(0).normal(size=(CAVITY_DRAWS // 2, n_classes))
    z = np.concatenate([z, -z])
    codes, parts = codes_of_classes(posterior), []
    for part in slices(len(mean), BLOCK_ELEMENTS // (CAVITY_DRAWS * n_classes)):
        u = mean[part, None] + np.einsum("bij,sj->bsi", root[part], z)
        labels = label_shares(posterior.likelihood, u, codes).mean(axis=1)
        classes = _classes_of(posterior, u, {}).mean(axis=1)
        parts.append((labels / labels.sum(axis=1, keepdims=True), classes))
    of_label, of_class = map(np.concatenate, zip(*parts, strict=True))
    return LeaveOneOut(of_label, of_class, np.full(len(mean), np.nan))


def label_shares(
    likelihood: Likelihood, u: Float[np.ndarray, "B S *K"], codes: Float[np.ndarray, " K"]
) -> Float[np.ndarray, "B S K"]:
    """Return the probability of each class as a label, given u; of a probit all at once.

    One class after the other, K of them take time K² at each node.
    """
    noise = likelihood.latent_noise_std
    if u.ndim == 3 and isinstance(noise, float | int) and noise > 0:
        return class_shares(u, (np.ones(1), np.array([float(noise)])))
    return np.exp(class_log_probs(likelihood, u, codes, {})).transpose(1, 2, 0)
