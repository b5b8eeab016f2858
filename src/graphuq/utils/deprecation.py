"""Old public names keep working for one release, with a `FutureWarning`."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from graphuq.errors import InvalidInput
from graphuq.utils.user_warnings import warn_user

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


def warn_renamed(old: str, new: str) -> None:
    """Emit the `FutureWarning` for one renamed name.

    Parameters
    ----------
    old, new : str
        Old and new name.
    """
    warn_user(f"{old} is deprecated and will be removed in graphuq 0.3; use {new}", FutureWarning)


def with_new_keys(values: Mapping[str, Any], new_names: Mapping[str, str]) -> dict[str, Any]:
    """Return named values with old names replaced, and warn of each.

    Parameters
    ----------
    values : mapping
        Value of each argument or parameter, by name.
    new_names : mapping of str to str
        New name of each renamed one.

    Raises
    ------
    InvalidInput
        If both the old and the new name are there.
    """
    renamed = dict(values)
    for old, new in new_names.items():
        if old not in renamed:
            continue
        if new in renamed:
            raise InvalidInput(old, f"given beside {new}", f"give {new} alone")
        warn_renamed(f"{old}=", f"{new}=")
        renamed[new] = renamed.pop(old)
    return renamed


def with_new_words(words: Iterable[str], new_words: Mapping[str, str]) -> list[str]:
    """Return words with old ones replaced, and warn of each.

    Parameters
    ----------
    words : iterable of str
    new_words : mapping of str to str
        New spelling of each renamed word.
    """
    words = list(words)
    for word in words:
        if word in new_words:
            warn_renamed(repr(word), repr(new_words[word]))
    return [new_words.get(word, word) for word in words]


def renamed_arguments(**new_names: str) -> Callable[[Function], Function]:
    """Decorate a function so that old keyword arguments are passed on under new names.

    Parameters
    ----------
    **new_names : str
        ``old="new"`` for each renamed argument.

    Raises
    ------
    InvalidInput
        By the decorated function, if a call gives both the old and the new name.

    Examples
    --------
    >>> @renamed_arguments(most="maximum")
    ... def count(maximum=1):
    ...     return maximum
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     count(most=3)
    3
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **with_new_keys(kwargs, new_names))

        return wrapper  # type: ignore[return-value]

    return decorate


def renamed_fields(**new_names: str) -> Callable[[Class], Class]:
    """Decorate a class so that its constructor takes old names; see `renamed_arguments`."""

    def decorate(cls: Class) -> Class:
        cls.__init__ = renamed_arguments(**new_names)(cls.__init__)  # type: ignore[misc]
        return cls

    return decorate


class RenamedAttribute:
    """Old name of an attribute, which a class offers beside the new one.

    Parameters
    ----------
    new : str
        New name of the attribute.
    of_class : bool, default False
        Whether the class itself has the attribute, and not only its instances.

    Examples
    --------
    >>> class Chain:
    ...     default_length = 10
    ...     usual_length = RenamedAttribute("default_length", of_class=True)
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     Chain.usual_length
    10
    """

    def __init__(self, new: str, *, of_class: bool = False) -> None:
        self.new, self.of_class, self.old = new, of_class, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None and not self.of_class:
            raise AttributeError(f"{owner.__name__}.{self.old}")
        warn_renamed(f"{owner.__name__}.{self.old}", f"{owner.__name__}.{self.new}")
        return getattr(owner if self.of_class else instance, self.new)


def renamed_attribute(module: str, name: str, new_names: Mapping[str, str]) -> str:
    """Return the new name of a module's attribute, warning if it was renamed.

    Parameters
    ----------
    module, name : str
        Module and the attribute asked for, as in a module's ``__getattr__``.
    new_names : mapping of str to str
        New name of each renamed attribute.

    Raises
    ------
    AttributeError
        If the attribute is not a renamed one.
    """
    if name not in new_names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn_renamed(f"{module}.{name}", f"{module}.{new_names[name]}")
    return new_names[name]
