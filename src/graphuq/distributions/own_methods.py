"""Methods of a user's own prior or likelihood, tried before compiled code calls them."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.distributions.hyperparameters import learnt_of
from graphuq.errors import InvalidInput, require, shortened
from graphuq.utils.arrays import double_precision
from graphuq.utils.checks import describe
from graphuq.utils.extras import has_extra

MAX_REASON = 80  # characters quoted of an error
UNTRACED = {  # errors of JAX
    "ConcretizationTypeError",
    "TracerArrayConversionError",
    "TracerIntegerConversionError",
}
LOG_PROB = (
    "define log_prob(u, y) -> one real number a label, with jax.numpy or array_namespace, "
    "without if on u"
)
LOG_VARIANCES = "define log_variances(eigenvalues) -> one real number each, with array_namespace"


def check_log_prob(part: Any, u: Float[np.ndarray, "J *K"], y: Float[np.ndarray, " J"]) -> None:
    """Refuse a likelihood whose own `log_prob` breaks its contract; the library's are not tried.

    Raises
    ------
    InvalidInput
        If it raises an error, returns not one real number a label, or NaN; if JAX is installed
        and cannot trace it.
    """
    if _is_ours(part, "log_prob"):
        return
    part = _with_medians(part)
    with double_precision():
        if has_extra("jax"):
            found = _traced(part, "log_prob", LOG_PROB, u, y)
            _require_numbers(part, "log_prob", found, len(y), LOG_PROB)
        found = _tried(part, "log_prob", LOG_PROB, lambda: part.log_prob(u, y))
        _require_numbers(part, "log_prob", found, len(y), LOG_PROB)
    numbers = np.asarray(found)
    wrong = np.flatnonzero(np.isnan(numbers))
    require(
        len(wrong) == 0,
        _named(part, "log_prob"),
        f"NaN at u = {u[wrong[:1]].round(2).tolist()}, y = {y[wrong[:1]].tolist()}",
        LOG_PROB,
    )


def check_log_variances(part: Any, eigenvalues: Float[np.ndarray, " n"]) -> None:
    """Refuse a prior whose own `log_variances` breaks its contract; the library's are not tried.

    Raises
    ------
    InvalidInput
        If it raises an error, returns not one real number an eigenvalue, or is NaN or infinite at a
        positive one; if hyperparameters are learnt and JAX cannot trace it.
    """
    name = "log_variances"
    if _is_ours(part, name):
        return
    is_learnt, part = bool(learnt_of(part)), _with_medians(part)
    with np.errstate(all="ignore"):
        found = _tried(part, name, LOG_VARIANCES, lambda: part.log_variances(eigenvalues))
    _require_numbers(part, name, found, len(eigenvalues), LOG_VARIANCES)
    wrong = np.flatnonzero(~(np.asarray(found) < np.inf) & (eigenvalues > 0))
    require(
        len(wrong) == 0,
        _named(part, name),
        f"{np.asarray(found)[wrong[:1]].tolist()} at eigenvalue {eigenvalues[wrong[:1]].tolist()}",
        LOG_VARIANCES,
    )
    if is_learnt and has_extra("jax"):  # without it, no sampler learns the hyperparameters
        _traced(part, name, LOG_VARIANCES, eigenvalues)


def _is_ours(part: Any, name: str) -> bool:
    return getattr(type(part), name).__module__.startswith("graphuq.")


def _named(part: Any, name: str) -> str:
    return f"{type(part).__name__}.{name}"


def _with_medians(part: Any) -> Any:
    """Return a part with a number for each hyperparameter that is learnt."""
    values = {name: found.median for name, found in learnt_of(part).items()}
    return dataclasses.replace(part, **values) if values else part


def _tried(part: Any, name: str, contract: str, call: Any) -> Any:
    """Return what a call returns; an error names the method and its contract."""
    try:
        return call()
    except Exception as error:  # of a user's own class, which may raise anything
        said = shortened(" ".join(str(error).split()), MAX_REASON)
        if {kind.__name__ for kind in type(error).__mro__} & UNTRACED:
            said = "NumPy, float() or if was applied to an array of JAX"
        reason = f"{type(error).__name__}: {said}"
        raise InvalidInput(_named(part, name), reason, contract) from error


def _traced(part: Any, name: str, contract: str, *arguments: np.ndarray) -> Any:
    """Return shape and type of what JAX finds that a method returns."""
    from graphuq.utils.with_jax import jax

    return _tried(part, name, contract, lambda: jax.eval_shape(getattr(part, name), *arguments))


def _require_numbers(part: Any, name: str, found: Any, length: int, contract: str) -> None:
    """Refuse anything but an array of real numbers of a length."""
    shape, dtype = getattr(found, "shape", None), getattr(found, "dtype", None)
    require(
        shape == (length,) and np.issubdtype(dtype, np.floating),
        _named(part, name),
        describe(found) if shape is None else f"shape {shape}, type {dtype} for {length} entries",
        contract,
    )
