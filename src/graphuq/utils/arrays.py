"""Functions that serve NumPy and JAX arrays alike, and parallel and compiled computation."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
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
_IMPORTED_BY = os.getpid()


def array_namespace(values: Array) -> Any:
    """Return NumPy for a NumPy array, else JAX's NumPy."""
    return np if isinstance(values, np.ndarray) else jnp


def solve_lower(lower: Array, right: Array) -> Any:
    """Solve a linear system with a lower triangular matrix."""
    if isinstance(lower, np.ndarray):
        return solve_triangular(lower, right, lower=True, check_finite=False)
    return solve_triangular_in_jax(lower, right, lower=True)


def single_threaded_blas() -> Any:
    """Return a context in which BLAS uses one thread only, which is faster for small matrices.

    NumPy and SciPy each include a BLAS. Idle threads of one occupy cores that the other needs.
    """
    return _libraries().limit(limits=1, user_api="blas")


def safe_openmp() -> Any:
    """Return a context in which OpenMP uses one thread, if this process was forked after import.

    Its threads do not live on in a fork: scikit-learn and faiss would wait for them for ever.
    """
    if os.getpid() == _IMPORTED_BY:
        return nullcontext()
    return ThreadpoolController().limit(limits=1, user_api="openmp")


def parallel_map(work: Callable[..., Out], *parts: Iterable[Any]) -> list[Out]:
    """Apply a function to parts, with one thread per core.

    The function should spend its time in code that releases Python's global lock.
    """
    with single_threaded_blas(), ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, *parts))


def njit_cached(function: Callable[..., Any]) -> Any:
    """Compile a function by Numba, and cache the result on disk if a folder is writable.

    Numba takes half a second to import, so modules that use this decorator are imported late.
    """
    from numba import njit

    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",  # x / 0 is infinite, so that loops with divisions vectorise
        "fastmath": {"contract", "reassoc", "nsz", "arcp", "nnan"},
    }
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no cache folder, beside the file or in the home folder, is writable
        return njit(**options)(function)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def has_accelerator() -> bool:
    """Whether JAX computes on a GPU, which has double precision, instead of the CPU."""
    return bool(jax.default_backend() in ("gpu", "cuda", "rocm"))


def with_dtype(tree: Any, dtype: str | type | np.dtype) -> Any:
    """Convert all floating leaves to JAX arrays of one type.

    As arrays they are arguments of a compiled program, not constants in it.
    """

    def cast(leaf: object) -> Any:
        if isinstance(leaf, bool | int) or not eqx.is_inexact_array_like(leaf):
            return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf
        # NumPy converts without compiling a program.
        return jnp.asarray(leaf if isinstance(leaf, jax.Array) else np.asarray(leaf, dtype), dtype)

    return jax.tree.map(cast, tree)
