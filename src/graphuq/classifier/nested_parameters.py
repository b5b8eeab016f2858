"""Nested names of parameters, such as ``inference__n_samples``, for searches and `set_params`."""

import dataclasses
from typing import Any

from graphuq.errors import InvalidInput


class NestedParameters:
    """Mixin of an estimator with parameters that are immutable values with fields of their own.

    ``inference__n_samples`` is the field ``n_samples`` of the value of ``inference``, which
    `set_params` replaces. Deeper names, such as ``model__likelihood__noise_std``, work alike, where
    the value in between is not a word.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, and with ``deep`` the fields of those that are values.

        Parameters
        ----------
        deep : bool, default True
        """
        parent: Any = super()
        params: dict[str, Any] = parent.get_params(deep=False)
        return params | _fields(params) if deep else params

    def set_params(self, **params: Any) -> Any:
        """Set parameters, also by nested names.

        Parameters
        ----------
        **params : dict
            Values by name. Where ``inference`` is a word, ``inference__n_samples`` makes it a
            value first.

        Returns
        -------
        estimator
            The estimator itself.

        Raises
        ------
        InvalidInput
            If a value has no such field.
        """
        parent: Any = super()
        parent.set_params(**{name: value for name, value in params.items() if "__" not in name})
        known = self.get_params(deep=False)
        for name in sorted(params, key=lambda name: name.count("__")):  # what holds others first
            value = params[name]
            part, _, path = name.partition("__")
            if not path:
                continue
            if part not in known:
                parent.set_params(**{part: value})  # raises for an unknown name
            own = self._value_of(part)
            setattr(self, part, _replaced(own, path, value, part))
        return self

    def _value_of(self, name: str) -> Any:
        """Return the value of a parameter; a class may turn words into values here."""
        return getattr(self, name)


def _fields(params: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of all values, and of the values in them, by nested names."""
    found: dict[str, Any] = {}
    for name, value in params.items():
        if _is_value(value):
            own = {f"{name}__{f.name}": getattr(value, f.name) for f in _own_fields(value)}
            found |= own | _fields(own)
    return found


def _replaced(value: Any, path: str, new: Any, name: str) -> Any:
    """Return a value with another field, which may be a field of a field."""
    field, _, rest = path.partition("__")
    names = [own.name for own in _own_fields(value)] if _is_value(value) else []
    if field not in names:
        remedy = f"use one of {', '.join(names)}" if names else "give a value that has fields"
        raise InvalidInput(f"{name}__{path}", f"{value!r} has no {field!r}", remedy)
    if rest:
        new = _replaced(getattr(value, field), rest, new, f"{name}__{field}")
    return dataclasses.replace(value, **{field: new})


def _is_value(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _own_fields(value: Any) -> list[Any]:
    return [field for field in dataclasses.fields(value) if field.init]
