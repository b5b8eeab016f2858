"""Arrays of NumPy and of JAX, where a part serves both: NumPy's until a sampler takes it."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    Array = Any
else:
    Array = jax.Array | np.ndarray


def of_kind(values: Array) -> Any:
    """NumPy or JAX's NumPy, whichever an array is of."""
    return np if isinstance(values, np.ndarray) else jnp


def accelerated() -> bool:
    """Whether JAX computes on something else than the processor."""
    return bool(jax.default_backend() != "cpu")
