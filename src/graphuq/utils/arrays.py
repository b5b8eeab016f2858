"""Functions that serve NumPy and JAX arrays alike, and parallel and compiled computation."""

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.special
from scipy.linalg import solve_triangular
from threadpoolctl import ThreadpoolController

from graphuq.utils.extras import has_extra


def is_of_jax(value: object) -> bool:
    """Return whether a value is an array of JAX, or the shape and type alone of one."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax, "ShapeDtypeStruct"):  # JAX itself is being imported
        return False
    return isinstance(value, jax.Array | jax.ShapeDtypeStruct)


class _OfAnyLibrary(type):
    """Class of the class `Array`, whose instances have other classes of their own."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, np.ndarray) or is_of_jax(value)


if TYPE_CHECKING:
    Array = Any
else:

    class Array(metaclass=_OfAnyLibrary):
        """An array of NumPy or of JAX, in annotations."""


Out = TypeVar("Out")
_IMPORTED_BY = os.getpid()


def array_namespace(values: Array) -> Any:
    """Return JAX's NumPy for an array of JAX, else NumPy."""
    if is_of_jax(values):
        import jax.numpy

        return jax.numpy
    return np


def special_functions(values: Array) -> Any:
    """Return JAX's special functions for an array of JAX, else those of SciPy."""
    if is_of_jax(values):
        import jax.scipy.special

        return jax.scipy.special
    return scipy.special


def without_gradient(values: Array) -> Any:
    """Return the values as constants of derivatives."""
    if not is_of_jax(values):
        return values
    import jax.lax

    return jax.lax.stop_gradient(values)


def mapped(function: Callable[..., Any], *arrays: Array, together: bool = True) -> Any:
    """Return what a function gives for the entries of arrays along their first axes, stacked.

    Parameters
    ----------
    function : callable
        Function of one entry of each array.
    arrays : array, shape (n, …)
    together : bool, default True
        Whether JAX computes all entries at once, which is faster and needs n times the memory.
        NumPy computes one after the other.
    """
    if not any(map(is_of_jax, arrays)):
        return np.stack([np.asarray(function(*entries)) for entries in zip(*arrays, strict=True)])
    import jax

    if together:
        return jax.vmap(function)(*arrays)
    return jax.lax.map(lambda entries: function(*entries), arrays)


def double_precision() -> Any:
    """Return a context in which JAX computes in double, if the program has imported JAX.

    Functions in NumPy that call parts of a user's own need it: such parts may be written in JAX.
    """
    jax = sys.modules.get("jax")
    return nullcontext() if jax is None else jax.enable_x64(True)


def solve_lower(lower: Array, right: Array) -> Any:
    """Solve a linear system with a lower triangular matrix."""
    if not (is_of_jax(lower) or is_of_jax(right)):
        return solve_triangular(lower, right, lower=True, check_finite=False)
    import jax.scipy.linalg

    return jax.scipy.linalg.solve_triangular(lower, right, lower=True)


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
    """Whether JAX computes on a GPU, which has double precision, instead of the CPU.

    JAX is imported only where it has a plugin for such a device, as ``graphuq[gpu]`` installs it.
    """
    has_plugin = "jax" in sys.modules or find_spec("jax_plugins") is not None
    if not (has_plugin and has_extra("jax")):
        return False
    from graphuq.utils.with_jax import jax

    return bool(jax.default_backend() in ("gpu", "cuda", "rocm"))
