"""What likelihoods of several classes share: labels are codes from 0, u has a column a class."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from graphuq.distributions import HYPERPARAMETER, check_range, hyperparameter, is_learnt
from graphuq.errors import require

MAX_CLASSES = 1_000.0


def class_count(default: int) -> Any:
    """The field ``n_classes`` of a likelihood: a whole number, or a distribution of such."""

    def converted(value: Any) -> Any:
        whole = isinstance(value, float | np.integer) and float(value).is_integer()
        return int(value) if whole else hyperparameter(value)

    return eqx.field(converter=converted, default=default, metadata={HYPERPARAMETER: True})


def check_n_classes(n_classes: Any) -> None:
    """Refuse fewer than two classes, no end of them, and a distribution that is not of integers."""
    remedy = "use an integer, 2 or more, or a distribution such as gq.DiscreteUniform(3, 5)"
    check_range("n_classes", n_classes, 2.0, MAX_CLASSES, open=False, remedy=remedy)
    whole = n_classes.discrete if is_learnt(n_classes) else isinstance(n_classes, int)
    require(bool(whole), "n_classes", f"{n_classes!r}", remedy)


def min_classes(n_classes: Any) -> int:
    """Return the number of classes; its smallest possible value if it is learnt."""
    return int(n_classes.support[0] if is_learnt(n_classes) else n_classes)


def max_classes(n_classes: Any) -> int:
    """Return the number of classes; its largest possible value if it is learnt."""
    return int(n_classes.support[1] if is_learnt(n_classes) else n_classes)


def codes(y: Float[Array, " J"]) -> Int[Array, " J"]:
    """Labels as indices of columns."""
    return y.astype(jnp.int32)


def taking_part(u: Float[Array, "J K"], n_classes: Any) -> Bool[Array, " K"]:
    """Which classes there are: the first ``n_classes``, which may be traced."""
    return jnp.arange(u.shape[-1]) < jnp.asarray(n_classes)


def restricted(u: Float[Array, "J K"], n_classes: Any) -> Float[Array, "J K"]:
    """U, and −∞ of classes that there are not."""
    return jnp.where(taking_part(u, n_classes)[None, :], u, -jnp.inf)


def own(values: Float[Array, "J K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
    """The value of each label's own class."""
    return jnp.take_along_axis(values, codes(y)[:, None], axis=1)[:, 0]


def is_own(shape: tuple[int, ...], y: Float[Array, " J"]) -> Bool[Array, "J K"]:
    """True in the column of each label."""
    return jax.nn.one_hot(codes(y), shape[-1], dtype=jnp.bool_)
