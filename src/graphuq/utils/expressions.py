"""Evaluation of a model part that is written as text: ``Matern(tau=LogUniform(0.02, 3))``."""

import ast
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphuq.errors import GraphuqError, InvalidInput, require

MAX_LENGTH = 10_000  # characters of an expression; the parser of Python recurses in C


def is_expression(text: object) -> bool:
    """Whether a value is text with a call in it."""
    return isinstance(text, str) and "(" in text


def built(text: str, names: Mapping[str, Any], argument: str, offered: Sequence[str] = ()) -> Any:
    """Evaluate an expression that consists of calls of the given names only.

    Parameters
    ----------
    text : str
        Call whose arguments are numbers, strings, True, False, None or calls.
    names : mapping of str to callable
        Functions that may be called.
    argument : str
        Name of the argument in errors.
    offered : sequence of str, optional
        Names that an error lists if the outer function is unknown; by default all.

    Raises
    ------
    InvalidInput
        If the text is no such expression, or a function does not take its arguments.

    Examples
    --------
    >>> built("dict(tau=-0.5, noise=None)", {"dict": dict}, "--prior")
    {'tau': -0.5, 'noise': None}
    """
    remedy = "write it as in Python, such as 'Matern(tau=LogUniform(0.02, 3), alpha=4)'"
    require(len(text) <= MAX_LENGTH, argument, f"an expression of {len(text)} characters", remedy)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of text such as "1is 2"
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidInput(argument, f"{text!r} cannot be read", remedy) from None

    def value_of(node: ast.expr) -> Any:
        if isinstance(node, ast.Call):
            return call(ast.unparse(node.func).split(".")[-1], node)  # also gq.priors.Matern(…)
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError):
            shown = ast.unparse(node)
            raise InvalidInput(argument, f"{shown!r} in {text!r} is not a value", remedy) from None

    def call(name: str, node: ast.Call) -> Any:
        if name not in names:
            known = ", ".join(offered if offered and node is tree else sorted(names))
            raise InvalidInput(argument, f"{name!r} in {text!r} is unknown", f"use {known}")
        made, keywords = names[name], {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise InvalidInput(argument, f"'**' in {text!r}", remedy)
            keywords[keyword.arg] = value_of(keyword.value)
        positional = [value_of(one) for one in node.args]
        try:
            return made(*positional, **keywords)
        except GraphuqError:
            raise
        except Exception:  # a constructor may raise anything at an argument of the wrong type
            takes = ", ".join(inspect.signature(made).parameters)
            raise InvalidInput(
                argument, f"{ast.unparse(node)!r} does not fit {name}", f"use its arguments {takes}"
            ) from None

    try:
        return value_of(tree)
    except RecursionError:  # nested too deeply
        raise InvalidInput(argument, f"{text!r} cannot be read", remedy) from None


def classes_by_name(kinds: Iterable[type], argument: str) -> dict[str, Callable[..., Any]]:
    """Return classes, and all that are derived from them, by the names that text can call.

    Of a class that was defined again, as in a notebook, the last one counts. A name of several
    classes stands for none of them, so that no class takes the place of another one in silence.

    Parameters
    ----------
    kinds : iterable of type
    argument : str
        Name of the argument in errors.
    """
    latest: dict[tuple[str, str], type] = {}
    waiting = list(kinds)[::-1]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()[::-1]
        if not inspect.isabstract(kind):
            latest[kind.__module__, kind.__qualname__] = kind
    found: dict[str, list[type]] = {}
    for kind in dict.fromkeys(latest.values()):
        found.setdefault(kind.__name__, []).append(kind)
    return {
        name: several[0] if len(several) == 1 else refusing(name, several, argument)
        for name, several in found.items()
    }


def refusing(name: str, parts: list[Any], argument: str) -> Callable[..., Any]:
    """Return a function that refuses a name of several classes."""

    def refuse(*_: Any, **__: Any) -> Any:
        modules = " and ".join(part.__module__ for part in parts)
        raise InvalidInput(
            argument,
            f"{name!r} is the name of {len(parts)} classes, of {modules}",
            "pass an instance of the one that you mean, or rename one",
        )

    return refuse
