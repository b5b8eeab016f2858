"""Helpers of multiclass likelihoods: labels are codes from 0, u has one column per class."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.distributions import (
    HYPERPARAMETER,
    Hyperparameter,
    check_range,
    hyperparameter,
    is_learnt,
)
from graphuq.errors import require
from graphuq.utils.arrays import (
    Array,
    array_namespace,
    mapped,
    special_functions,
    without_gradient,
)
from graphuq.utils.part import part_field
from graphuq.utils.special_functions import log_normal_cdf, normal_quadrature

NOISE_NODES = 32  # nodes of the quadrature over the noise of the label's own field
MAX_CLASSES = 1_000.0  # fields per node; a larger number is taken for a mistake


def class_count(default: int) -> Any:
    """Declare the field ``n_classes`` of a likelihood: an integer, or a distribution of integers.

    Parameters
    ----------
    default : int
    """

    def converted(value: object) -> Any:
        if isinstance(value, float | np.integer) and float(value).is_integer():
            return int(value)
        return hyperparameter(value)

    return part_field(converter=converted, default=default, metadata={HYPERPARAMETER: True})


def check_n_classes(n_classes: Hyperparameter) -> None:
    """Raise `InvalidInput` unless K is from 2 to 1000, or a distribution of such integers."""
    remedy = "use an integer, 2 or more, or a distribution such as gq.DiscreteUniform(3, 5)"
    check_range("n_classes", n_classes, 2.0, MAX_CLASSES, open=False, remedy=remedy)
    whole = n_classes.discrete if is_learnt(n_classes) else isinstance(n_classes, int)
    require(bool(whole), "n_classes", f"{n_classes!r}", remedy)


def min_classes(n_classes: Hyperparameter) -> int:
    """Return the number of classes; its smallest possible value if it is learnt."""
    return int(n_classes.support[0] if is_learnt(n_classes) else n_classes)


def max_classes(n_classes: Hyperparameter) -> int:
    """Return the number of classes; its largest possible value if it is learnt."""
    return int(n_classes.support[1] if is_learnt(n_classes) else n_classes)


def codes(y: Float[Array, " J"]) -> Int[Array, " J"]:
    """Convert labels to column indices."""
    return y.astype("int32")


def possible_classes(u: Float[Array, "J K"], n_classes: int | float | Array) -> Bool[Array, " K"]:
    """Return which columns belong to classes: the first ``n_classes``, which may be traced."""
    xp = array_namespace(u)
    return xp.arange(u.shape[-1]) < xp.asarray(n_classes)


def restricted(u: Float[Array, "J K"], n_classes: int | float | Array) -> Float[Array, "J K"]:
    """Return u with −∞ in the columns beyond ``n_classes``."""
    return array_namespace(u).where(possible_classes(u, n_classes)[None, :], u, -np.inf)


def label_column(values: Float[Array, "J K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
    """Return the value in the column of each label."""
    return array_namespace(values).take_along_axis(values, codes(y)[:, None], axis=1)[:, 0]


def is_label_column(shape: tuple[int, ...], y: Float[Array, " J"]) -> Bool[Array, "J K"]:
    """Return an array that is True in the column of each label."""
    return codes(y)[:, None] == array_namespace(y).arange(shape[-1])[None, :]


def log_probit_probability(
    u: Float[Array, "J K"],
    y: Float[Array, " J"],
    noise_std: Any,
    n_classes: int | float | Array,
) -> Float[Array, " J"]:
    """Return ``log E ∏_{k ≠ y} Φ(z + (u_y − u_k) / γ)``, z ~ N(0, 1): y is argmax(u + γ ε).

    The expectation is computed by Gauss-Hermite quadrature. It is centred where the integrand is,
    at half the largest lead of another class. Its relative error is below 1e-6.
    """
    xp = array_namespace(u)
    lead = (label_column(u, y)[:, None] - u) / noise_std
    counted = possible_classes(u, n_classes)[None, :] & ~is_label_column(u.shape, y)
    behind = xp.where(counted, xp.maximum(-lead, 0.0), 0.0).max(axis=1)
    center = without_gradient(behind / 2)
    nodes, log_weights = normal_quadrature(NOISE_NODES)

    def integrand(node: Array, log_weight: Array) -> Array:
        z = center + node
        factors = log_normal_cdf(z[:, None] + xp.where(counted, lead, 0.0))
        # ratio of φ(z) to the density φ(node) of the quadrature rule
        shift = -center * (center / 2 + node)
        value: Array = log_weight + shift + xp.where(counted, factors, 0.0).sum(axis=1)
        return value

    values = mapped(integrand, xp.asarray(nodes, u.dtype), xp.asarray(log_weights, u.dtype))
    possible = codes(y) < xp.asarray(n_classes)
    return xp.where(possible, special_functions(values).logsumexp(values, axis=0), -np.inf)
