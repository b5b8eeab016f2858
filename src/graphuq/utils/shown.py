"""Text of a value as a call in Python, without arguments that have their default."""

import dataclasses
from typing import Any


def shown_call(value: Any, positional: int = 0) -> str:
    """Return the call that makes a dataclass, without arguments that have their default.

    Parameters
    ----------
    value : dataclass instance
    positional : int, default 0
        Number of first arguments that are shown without their names.

    Examples
    --------
    >>> from graphuq.inference import MCMC
    >>> shown_call(MCMC(n_chains=4))
    'MCMC(n_chains=4)'
    """
    given = []
    for place, field in enumerate(dataclasses.fields(value)):
        own = getattr(value, field.name)
        if not field.init or not field.repr or _is_default(own, field):
            continue
        given.append(repr(own) if place < positional else f"{field.name}={own!r}")
    return f"{type(value).__name__}({', '.join(given)})"


def _is_default(value: Any, field: Any) -> bool:
    """Return whether a field has its default."""
    if field.default_factory is not dataclasses.MISSING:
        return bool(value == field.default_factory())
    return value is field.default or (type(value) is type(field.default) and value == field.default)
