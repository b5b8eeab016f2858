"""Helpers of multiclass likelihoods: labels are codes from 0, u has one column per class."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from graphuq.distributions import (
    HYPERPARAMETER,
    Hyperparameter,
    check_range,
    hyperparameter,
    is_learnt,
)
from graphuq.errors import require

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

    return eqx.field(converter=converted, default=default, metadata={HYPERPARAMETER: True})


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
    return y.astype(jnp.int32)


def possible_classes(u: Float[Array, "J K"], n_classes: int | float | Array) -> Bool[Array, " K"]:
    """Return which columns belong to classes: the first ``n_classes``, which may be traced."""
    return jnp.arange(u.shape[-1]) < jnp.asarray(n_classes)


def restricted(u: Float[Array, "J K"], n_classes: int | float | Array) -> Float[Array, "J K"]:
    """Return u with −∞ in the columns beyond ``n_classes``."""
    return jnp.where(possible_classes(u, n_classes)[None, :], u, -jnp.inf)


def label_column(values: Float[Array, "J K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
    """Return the value in the column of each label."""
    return jnp.take_along_axis(values, codes(y)[:, None], axis=1)[:, 0]


def is_label_column(shape: tuple[int, ...], y: Float[Array, " J"]) -> Bool[Array, "J K"]:
    """Return an array that is True in the column of each label."""
    return jax.nn.one_hot(codes(y), shape[-1], dtype=jnp.bool_)
