"""Model-selection criteria of a prior covariance at the labelled nodes: evidence or alignment.

Each comes with its gradient in the covariance and in the hyperparameters of the likelihood, at the
fixed point that was found.
"""

import dataclasses
import math
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.inference.expectation_propagation import (
    field_slopes,
    iterate_sites,
    likelihood_slopes,
    log_evidence,
)
from graphuq.likelihoods import Likelihood, Probit
from graphuq.posterior.field import CovarianceField, SeriesField
from graphuq.utils.arrays import single_threaded_blas

CRITERIA = ("laplace", "expectation-propagation", "alignment")
MAX_SWEEPS, DAMPINGS = 300, (1.0, 0.2)
TOLERANCE = 1e-9  # for sites and Newton's method; gradients are accurate to about its root


Gradient: TypeAlias = tuple[np.ndarray, dict[str, float]]  # in G, and by name in the likelihood


class CriterionValue(NamedTuple):
    """Value of a criterion, and its gradient.

    Attributes
    ----------
    value : float
        ``log p(labels)``, or the alignment in [−1, 1]. For K > 2 classes: one half of the sum of
        the K one-versus-rest values.
    by_covariance : numpy.ndarray, shape (J, J)
        Derivative in the covariance at the labelled nodes.
    by_likelihood : dict
        Derivative in each hyperparameter of the likelihood, by name.
    """

    value: float
    by_covariance: Float[np.ndarray, "J J"]
    by_likelihood: dict[str, float]


def evaluate(
    covariance: Float[np.ndarray, "J J"],
    likelihood: Likelihood,
    labels: Float[np.ndarray, " J"],
    criterion: str,
) -> CriterionValue:
    """Evaluate a criterion of the prior covariance G of the field at the labelled nodes.

    Parameters
    ----------
    covariance : numpy.ndarray, shape (J, J)
        G.
    likelihood : Likelihood
        Likelihood of two or more classes.
    labels : numpy.ndarray, shape (J,)
    criterion : {"laplace", "expectation-propagation", "alignment"}
        The evidence by Laplace's method (Zhu, Lafferty & Ghahramani 2003, (45)) or by expectation
        propagation; or the centred alignment of G with the labels (Cristianini et al. 2001; Cortes,
        Mohri & Rostamizadeh 2012), which uses no likelihood.

    Raises
    ------
    InvalidInput
        If the criterion is unknown, or its fixed point is not reached.
    IncompatibleParts
        If Laplace's method is asked of a likelihood without gradient.
    """
    require(
        criterion in CRITERIA,
        "criterion",
        f"{criterion!r} is unknown",
        f"use one of {', '.join(CRITERIA)}",
    )
    if criterion == "laplace" and not likelihood.has_gradient:
        raise IncompatibleParts(
            f"Laplace's method needs a gradient and {likelihood} has none; use "
            "criterion='expectation-propagation'"
        )
    labellings = one_vs_rest(labels, likelihood.is_multiclass)
    two = binary_likelihood(likelihood)
    share = 1.0 if len(labellings) == 1 else 0.5
    fields = dataclasses.fields(two) if dataclasses.is_dataclass(two) else ()
    names = [field.name for field in fields if _is_number(getattr(two, field.name))]
    total, by_covariance = 0.0, np.zeros_like(covariance)
    by_likelihood = dict.fromkeys(names, 0.0)
    for binary_labels in labellings:
        value, (by_g, by_two) = _binary_value(criterion, covariance, two, binary_labels)
        total += share * value
        by_covariance += share * (by_g + by_g.T) / 2
        for name in names:
            by_likelihood[name] += share * by_two[name]
    return CriterionValue(total, by_covariance, by_likelihood)


def _binary_value(
    criterion: str,
    covariance: Float[np.ndarray, "J J"],
    likelihood: Likelihood,
    labels: Float[np.ndarray, " J"],
) -> tuple[float, Gradient]:
    """Return the value for two classes, and its gradients in covariance and likelihood."""
    if criterion == "expectation-propagation":
        value, gradient = _ep_evidence(covariance, likelihood, labels)
    elif criterion == "alignment":
        value, by_covariance = _alignment(covariance, labels)
        gradient = by_covariance, dict.fromkeys(vars(likelihood), 0.0)  # it uses none
    else:
        from graphuq.evidence.laplace_evidence import laplace_evidence

        value, gradient = laplace_evidence(covariance, likelihood, labels, TOLERANCE)
    if not np.isfinite(value):
        raise InvalidInput(
            "criterion",
            f"{criterion} does not converge for {likelihood}",
            "use a likelihood that is less steep, or another criterion",
        )
    return value, gradient


def _is_number(value: object) -> bool:
    return isinstance(value, float | np.floating)


def one_vs_rest(
    labels: Float[np.ndarray, " J"], is_multiclass: bool
) -> list[Float[np.ndarray, " J"]]:
    """Return ±1 labels of each class with labels against the rest; binary labels as they are."""
    if not is_multiclass:
        return [labels]
    return [np.where(labels == k, 1.0, -1.0) for k in np.unique(labels)]


def binary_likelihood(likelihood: Likelihood) -> Likelihood:
    """Return the likelihood of one class against the rest; itself for two classes."""
    if likelihood.is_multiclass and likelihood.probit_noise_std is not None:
        return Probit(likelihood.probit_noise_std)
    return likelihood.one_vs_rest_likelihood()


class ObservedPrior(NamedTuple):
    """Field, likelihood and labels: a target of expectation propagation that is not sampled."""

    field: CovarianceField | SeriesField
    likelihood: Likelihood
    labels: Float[np.ndarray, " J"]


def _ep_evidence(
    covariance: Float[np.ndarray, "J J"], likelihood: Likelihood, labels: Float[np.ndarray, " J"]
) -> tuple[float, Gradient]:
    """Return the evidence by expectation propagation and its gradients, NaN if not converged."""
    target = ObservedPrior(CovarianceField(covariance), likelihood, labels)
    for damping in DAMPINGS:
        with single_threaded_blas():
            found = iterate_sites(target, damping, MAX_SWEEPS, TOLERANCE)
        if found.change <= 1e3 * TOLERANCE:
            slopes = field_slopes(target, found), likelihood_slopes(target, found)
            return log_evidence(target, found), slopes
    return math.nan, (np.zeros_like(covariance), {})


def _alignment(
    covariance: Float[np.ndarray, "J J"], labels: Float[np.ndarray, " J"]
) -> tuple[float, Float[np.ndarray, "J J"]]:
    """Return ``⟨H G H, y yᵀ⟩ / (|H G H| |H y|²)``, H the projection off the constant, and slope."""
    y = labels - labels.mean()
    rows = covariance - covariance.mean(axis=0)
    centred = rows - rows.mean(axis=1)[:, None]
    size, square = np.linalg.norm(centred), y @ y
    value = float(y @ centred @ y / (size * square))
    return value, np.outer(y, y) / (size * square) - value * centred / size**2
