"""Names of inference methods as users type them, and text written as in Python, to parts."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from graphuq import distributions, inference, likelihoods, priors
from graphuq.errors import InvalidInput
from graphuq.inference import (
    MAP,
    PCN,
    Approximation,
    CollapsedGibbs,
    EllipticalSlice,
    ExactHamiltonian,
    ExpectationPropagation,
    Hamiltonian,
    Independence,
    Laplace,
    ModelAverage,
    ReflectiveHamiltonian,
    Sampler,
    SequentialIndependence,
    TemperedHamiltonian,
)
from graphuq.likelihoods import Likelihood
from graphuq.priors import Prior
from graphuq.utils.expressions import built, is_expression

METHODS: dict[str, Callable[[], Sampler | Approximation | None]] = {
    "auto": lambda: None,
    "pcn": PCN,
    "collapsed-gibbs": CollapsedGibbs,
    "elliptical-slice": EllipticalSlice,
    "exact-hamiltonian": ExactHamiltonian,
    "reflective-hamiltonian": lambda: ReflectiveHamiltonian(reference=ExpectationPropagation()),
    "tempered-hamiltonian": TemperedHamiltonian,
    "independence": lambda: Independence(reference=ExpectationPropagation()),
    "sequential-independence": lambda: SequentialIndependence(reference=ExpectationPropagation()),
    "hamiltonian": lambda: Hamiltonian(reference=ExpectationPropagation()),
    "laplace": Laplace,
    "map": MAP,
    "expectation-propagation": ExpectationPropagation,
    "model-average": ModelAverage,
}


def method_from(method: Any, argument: str = "method") -> Sampler | Approximation | None:
    """Return the sampler or approximation of a name, or the object itself; None for "auto".

    Parameters
    ----------
    method : str, Sampler, Approximation or None
        A name in `METHODS`, text such as ``"PCN(step_size=0.2)"``, an object, or None.
    argument : str, default "method"
        Name of the argument in errors.

    Raises
    ------
    InvalidInput
        If it is none of these.
    """
    if method is None:
        return None
    found: Sampler | Approximation | None = part_from(
        method, METHODS, (Sampler, Approximation), argument
    )
    return found


def part_from(
    part: Any,
    words: Mapping[str, Callable[[], Any]],
    kinds: type | tuple[type, ...],
    argument: str,
) -> Any:
    """Return the part of a name or of text as in Python, or the part itself.

    Parameters
    ----------
    part : object
    words : mapping of str to callable
        What makes the part of each name.
    kinds : type or tuple of type
        Classes of which the part must be an instance.
    argument : str
        Name of the argument in errors.

    Raises
    ------
    InvalidInput
        If it is none of these; a class in place of an instance is named.
    """
    if isinstance(part, str) and part in words:
        return words[part]()
    if is_expression(part):
        part = built(part, _callables(), argument)
    if isinstance(part, kinds):
        return part
    if inspect.isclass(part) and issubclass(part, kinds):
        raise InvalidInput(
            argument, f"the class {part.__name__}", f"make an instance: {part.__name__}()"
        )
    raise InvalidInput(
        argument,
        f"{part!r} is unknown",
        f"use one of {', '.join(words)}, or an object of that kind",
    )


def _callables() -> dict[str, Any]:
    """Return all parts and distributions by name, as expressions call them."""
    names = [
        "Categorical",
        "DiscreteUniform",
        "Distribution",
        "Gamma",
        "LogNormal",
        "LogUniform",
        "NegativeBinomial",
        "Poisson",
        "Uniform",
    ]
    found = {name: getattr(distributions, name) for name in names}
    kinds = (Prior, Likelihood, Sampler, Approximation)
    for module in (priors, likelihoods, inference):
        for name in module.__all__:
            part = getattr(module, name)
            if issubclass(part, kinds) and not inspect.isabstract(part):
                found[name] = part
    return found
