"""Arrays of NumPy and of JAX, where a part serves both: NumPy's until a sampler takes it."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular as solve_triangular_in_jax
from scipy.linalg import solve_triangular
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    Array = Any
else:
    Array = jax.Array | np.ndarray

Out = TypeVar("Out")


def array_namespace(values: Array) -> Any:
    """NumPy or JAX's NumPy, whichever an array is of."""
    return np if isinstance(values, np.ndarray) else jnp


def solve_lower(lower: Array, right: Array) -> Any:
    """Solve with a lower triangular matrix."""
    if isinstance(lower, np.ndarray):
        return solve_triangular(lower, right, lower=True, check_finite=False)
    return solve_triangular_in_jax(lower, right, lower=True)


def single_threaded_blas() -> Any:
    """Context in which BLAS keeps to the thread that calls it: sooner done for small matrices.

    NumPy and SciPy bring a BLAS each, whose threads wait for work where the other's want a core.
    """
    return _libraries().limit(limits=1, user_api="blas")


def parallel_map(work: Callable[..., Out], *parts: Iterable[Any]) -> list[Out]:
    """Work on parts, one thread a core; what it calls holds no lock for long."""
    with single_threaded_blas(), ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, *parts))


def njit_cached(function: Callable[..., Any]) -> Any:
    """By Numba, once a machine where there is a folder to keep it in.

    Numba takes half a second to import: modules that use this are imported where they are used.
    """
    from numba import njit

    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",  # x / 0 is infinite, so that loops with divisions become vectors
        "fastmath": {"contract", "reassoc", "nsz", "arcp", "nnan"},
    }
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither beside this file nor at home
        return njit(**options)(function)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def has_accelerator() -> bool:
    """Whether JAX computes on something else than the processor."""
    return bool(jax.default_backend() != "cpu")


def with_dtype(tree: Any, dtype: Any) -> Any:
    """All floating leaves as JAX arrays of one type, so that none of them is compiled in."""

    def cast(leaf: Any) -> Any:
        if isinstance(leaf, bool | int) or not eqx.is_inexact_array_like(leaf):
            return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf
        # NumPy converts what is its own without a program to compile.
        return jnp.asarray(leaf if isinstance(leaf, jax.Array) else np.asarray(leaf, dtype), dtype)

    return jax.tree.map(cast, tree)
