"""Names of inference methods as users type them, and text written as in Python, to parts."""

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from graphuq import distributions, inference, likelihoods, priors
from graphuq.errors import InvalidInput, require
from graphuq.inference import MCMC, Approximation, ExpectationPropagation, Sampler
from graphuq.likelihoods import Likelihood
from graphuq.priors import Prior
from graphuq.run.stopping import Converged, CumulativeMean
from graphuq.utils.expressions import built, is_expression, refusing

DISTRIBUTIONS = (
    "Categorical",
    "DiscreteUniform",
    "Distribution",
    "Gamma",
    "LogNormal",
    "LogUniform",
    "NegativeBinomial",
    "Poisson",
    "Uniform",
)
NO_METHODS = {"Info", "Kernel", "State"}  # of the classes that need JAX
STOP_RULES = (Converged, CumulativeMean)
METHOD_KINDS = (Sampler, Approximation, MCMC)
ABOUT = ExpectationPropagation()
METHODS: dict[str, Callable[[], Sampler | Approximation | None]] = {
    "auto": lambda: None,
    "pcn": lambda: inference.PCN(),
    "collapsed-gibbs": lambda: inference.CollapsedGibbs(),
    "elliptical-slice": lambda: inference.EllipticalSlice(),
    "exact-hamiltonian": lambda: inference.ExactHamiltonian(),
    "reflective-hamiltonian": lambda: inference.ReflectiveHamiltonian(
        reference=ExpectationPropagation()
    ),
    "tempered-hamiltonian": lambda: inference.TemperedHamiltonian(),
    "independence": lambda: inference.Independence(reference=ABOUT),
    "sequential-independence": lambda: inference.SequentialIndependence(
        reference=ExpectationPropagation()
    ),
    "hamiltonian": lambda: inference.Hamiltonian(reference=ABOUT),
    "laplace": lambda: inference.Laplace(),
    "map": lambda: inference.MAP(),
    "expectation-propagation": ExpectationPropagation,
    "model-average": lambda: inference.ModelAverage(),
}


def method_from(method: Any, argument: str = "method") -> Sampler | Approximation | None:
    """Return the sampler or approximation of a name, or the object itself; None for "auto".

    Parameters
    ----------
    method : str, Sampler, Approximation or None
        A name in `METHODS`, text such as ``"PCN(step_size=0.2)"``, an object, or None. Text may
        also name a class of the user's own that the program has defined or imported.
    argument : str, default "method"
        Name of the argument in errors.

    Raises
    ------
    InvalidInput
        If it is none of these.
    """
    if method is None:
        return None
    found: Sampler | Approximation | None = part_from(method, METHODS, METHOD_KINDS[:2], argument)
    return found


def inference_from(
    value: Any, argument: str = "inference", settings: Mapping[str, Any] | None = None
) -> MCMC | Approximation:
    """Return the approximation that a value stands for, or the sampling, with its settings.

    The method of `MCMC` becomes a `Sampler`, or stays "auto".

    Parameters
    ----------
    value : str, Sampler, Approximation, MCMC or None
        As for `method_from`, or settings; also as text, ``"MCMC('pcn', n_samples=500)"``.
    argument : str, default "inference"
        Name of the argument in errors.
    settings : dict, optional
        Arguments of `MCMC` for a sampler or a name.

    Raises
    ------
    InvalidInput
        If it is none of these, or settings are given beside `MCMC`.
    """
    settings = {} if settings is None else settings
    words = METHODS | {"auto": lambda: None}
    found = None if value is None else part_from(value, words, METHOD_KINDS, argument)
    if isinstance(found, Approximation):
        return found
    if not isinstance(found, MCMC):
        return _with_rule(MCMC("auto" if found is None else found, **settings))
    require(
        not settings,
        ", ".join(settings),
        f"given beside {found!r}",
        "set it as an argument of MCMC",
    )
    if found.is_auto:
        return _with_rule(found)
    return _with_rule(dataclasses.replace(found, method=method_from(found.method, argument)))


def _with_rule(sampling: MCMC) -> MCMC:
    """Return the settings with the stop rule that is given as text."""
    if not is_expression(sampling.stop):
        return sampling
    rules = {rule.__name__: rule for rule in STOP_RULES}
    return dataclasses.replace(sampling, stop=built(sampling.stop, rules, "stop"))


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
        names, offered = _callables(kinds, argument, part)
        part = built(part, names, argument, offered)
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


def _callables(
    kinds: type | tuple[type, ...], argument: str, text: str
) -> tuple[dict[str, Callable[..., Any]], list[str]]:
    """Return all parts and distributions by name, and the names of parts of these kinds.

    A name of several classes stands for the one of these kinds. A class that needs JAX is imported
    if the text has its name.
    """
    found: dict[str, list[Any]] = {name: [getattr(distributions, name)] for name in DISTRIBUTIONS}
    found |= {rule.__name__: [rule] for rule in STOP_RULES}
    asked_for = kinds if isinstance(kinds, tuple) else (kinds,)
    own = (sys.modules[".".join(kind.__module__.split(".")[:2])] for kind in asked_for)
    exported = {
        getattr(module, name)
        for module in {priors, likelihoods, inference, *own}
        for name in module.__all__
        if (name not in inference.WITH_JAX or re.search(rf"\b{name}\b", text))
        and inspect.isclass(getattr(module, name))
    }
    for part in _imported_parts(asked_for):
        if part in exported or part.__module__.partition(".")[0] != "graphuq":
            found.setdefault(part.__name__, []).append(part)
    methods = any(issubclass(kind, METHOD_KINDS[:2]) for kind in asked_for)
    callables, offered = {}, [*(inference.WITH_JAX.keys() - NO_METHODS if methods else ())]
    for name, parts in found.items():
        asked = [part for part in parts if inspect.isclass(part) and issubclass(part, kinds)]
        offered += [name] if asked else []
        meant = asked or parts
        callables[name] = meant[0] if len(meant) == 1 else refusing(name, meant, argument)
    return callables, sorted({*offered})


def _imported_parts(more: tuple[type, ...]) -> list[type]:
    """Return the classes that can be made of all imported parts, and of further kinds.

    Of a class that was defined again, as in a notebook, the last one counts.
    """
    latest = {(part.__module__, part.__qualname__): part for part in more
              if not inspect.isabstract(part)}  # fmt: skip
    waiting: list[Any] = [Prior, Likelihood, Sampler, Approximation, *more]
    while waiting:
        for part in waiting.pop().__subclasses__():
            waiting.append(part)
            if not inspect.isabstract(part) and part.__name__[0] != "_":
                latest[part.__module__, part.__qualname__] = part
    return list(dict.fromkeys(latest.values()))
