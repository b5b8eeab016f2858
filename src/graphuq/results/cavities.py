"""Gaussians of u at each labelled node, without the label of that node."""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_ndtr

from graphuq.inference import GaussianApproximation
from graphuq.inference.nested_answer import site_precisions, starting_sites
from graphuq.inference.nested_left_out import fields_without_each
from graphuq.posterior.field import covariances_at
from graphuq.posterior.posterior import Posterior

MAX_AGAIN = 4096  # labels, up to which they are left out by fits


def multiclass_cavities(
    answer: GaussianApproximation, posterior: Posterior, codes: Int[np.ndarray, " J"]
) -> tuple[Float[np.ndarray, "J K"], Float[np.ndarray, "J K K"]]:
    """Return mean of u at each labelled node without its label, and a root of the covariance.

    ``codes`` are the classes of the labels, from 0.
    """
    again = _fitted_again(answer, posterior, codes)
    if again is not None:
        mean, covariance = again
        values, vectors = np.linalg.eigh(covariance)
        return mean, vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    factor = np.asarray(posterior.field.one_class.factor)
    covariance = covariances_at(factor, np.asarray(answer.white_covariance))
    mean = answer.labelled_mean
    if answer.class_weights is None:
        first, second = slopes_at(posterior, mean)
    else:
        second = -site_precisions(answer.class_weights)
        first = answer.class_shift + np.einsum("jkl,jl->jk", second, mean)
    return _cavities(mean, covariance, first, second, prior_variance(posterior))


def _fitted_again(
    answer: GaussianApproximation, posterior: Posterior, codes: Int[np.ndarray, " J"]
) -> tuple[Float[np.ndarray, "J K"], Float[np.ndarray, "J K K"]] | None:
    """Return mean and covariance of u at each label by fits without it, or None.

    They are for expectation propagation of more than two classes. It is None where rounding errors
    end a fit.
    """
    likelihood, n_labels = posterior.likelihood, len(posterior.labels)
    noise_std = likelihood.probit_noise_std
    fits = answer.class_weights is not None and not likelihood.learnt and noise_std is not None
    if not fits or not 1 < n_labels <= MAX_AGAIN or posterior.label_weights is not None:
        return None
    codes, noise = codes.astype(np.int64), float(noise_std)
    start = starting_sites(answer.class_weights, answer.class_shift, codes)
    factor = np.asarray(posterior.field.one_class.factor, dtype=np.float64)
    try:
        found = fields_without_each(factor, codes, likelihood.min_classes, noise, start)
    except np.linalg.LinAlgError:
        return None
    return found if all(np.isfinite(part).all() for part in found) else None


def slopes_at(
    posterior: Posterior, u: Float[np.ndarray, "J *K"]
) -> tuple[Float[np.ndarray, "J *K"], Float[np.ndarray, "J *KK"]]:
    """Return gradient and Hessian of the log probability of each given label in its u."""
    likelihood, labels = posterior.likelihood, posterior.labels
    if u.ndim == 1 and likelihood.unshifted.probit_noise_std is not None:
        _, first, second = likelihood.tilt(u, np.zeros_like(u), labels)  # in closed form
        return first, second
    from graphuq.results import compiled

    return compiled.slopes(likelihood, u, labels)


def prior_variance(posterior: Posterior) -> Float[np.ndarray, " J"]:
    """Return the prior variance of u at each labelled node."""
    variance: np.ndarray = (np.asarray(posterior.field.one_class.factor) ** 2).sum(axis=1)
    return variance


def _cavities(
    mean: Float[np.ndarray, "J K"],
    covariance: Float[np.ndarray, "J K K"],
    first: Float[np.ndarray, "J K"],
    second: Float[np.ndarray, "J K K"],
    prior_variance: Float[np.ndarray, " J"],
) -> tuple[Float[np.ndarray, "J K"], Float[np.ndarray, "J K K"]]:
    """Return mean and a root of the covariance of each cavity.

    With the covariance Σ and the Hessian −T the cavity has precision ``Σ⁻¹ − T``. With a root R of
    Σ its covariance is ``R (I − Rᵀ T R)⁻¹ Rᵀ``, which needs no inverse of Σ. No variance may exceed
    that of the prior, which bounds the eigenvalues of the matrix in the middle.
    """
    values, vectors = np.linalg.eigh(covariance)
    smallest = values[:, -1:] / prior_variance[:, None]
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    inner = np.swapaxes(root, 1, 2) @ second @ root + np.eye(mean.shape[1])
    values, vectors = np.linalg.eigh(inner)
    root = root @ (vectors / np.sqrt(np.maximum(values, smallest))[:, None, :])
    step = root @ (np.swapaxes(root, 1, 2) @ first[:, :, None])
    return mean - step[:, :, 0], root


def log_shares_of_others(
    answer: GaussianApproximation, noise_std: float
) -> Float[np.ndarray, "J 2"]:
    """Return log probabilities of −1 and +1 at each label of a probit, given all other labels."""
    precision, shift = answer.sites
    variance = 1 / (1 / answer.labelled_variance - precision)
    mean = variance * (answer.labelled_mean / answer.labelled_variance - shift)
    z = mean / np.sqrt(noise_std**2 + variance)
    return np.asarray(np.stack([log_ndtr(-z), log_ndtr(z)], axis=1))
