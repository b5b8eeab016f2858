"""Parts with other numbers, which may be traced."""

import dataclasses
from typing import Any

import numpy as np


def with_values(part: Any, values: dict[str, Any]) -> Any:
    """Return a part with other numbers; traced ones and arrays are not checked."""
    if not values:
        return part
    plain = all(isinstance(v, int | float | np.floating) for v in values.values())
    if plain:
        return dataclasses.replace(part, **values)
    found = object.__new__(type(part))
    fields = {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}
    for name, value in (fields | values).items():
        object.__setattr__(found, name, value)
    return found
