"""Parts of a model and of its inference: small immutable values, each a dataclass."""

import dataclasses
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

CONVERTER, STATIC = "converter", "static"  # keys in the metadata of a field
Kind = TypeVar("Kind", bound="Part")

_followers: list[Callable[[type["Part"]], None]] = []


def part_field(
    *,
    default: Any = dataclasses.MISSING,
    converter: Callable[[Any], Any] | None = None,
    static: bool = False,
    metadata: dict[str, Any] | None = None,
) -> Any:
    """Declare a field of a part.

    Parameters
    ----------
    default : object, optional
        Default of the field; without one it must be given.
    converter : callable, optional
        Called with the value when a part is made, also with the default; returns what is kept.
    static : bool, default False
        Whether the value decides what a compiled program does, and is no number that enters it.
    metadata : dict, optional
        Further entries of the field's metadata.
    """
    entries = {CONVERTER: converter, STATIC: static, **(metadata or {})}
    return dataclasses.field(default=default, metadata=entries)


@dataclass_transform(frozen_default=True, field_specifiers=(part_field, dataclasses.field))
class Part(metaclass=ABCMeta):  # subclasses may have abstract methods
    """Base class of parts: priors, likelihoods, fields, targets, samplers.

    A subclass declares its fields as a dataclass does, and is one without a decorator. Its values
    cannot be changed; `dataclasses.replace` makes others. Once the fields are set and converted,
    each ``__check_init__`` of the class and of its base classes is called, and may raise.

    Where JAX is installed, a part is a tree of arrays to it; see `graphuq.utils.with_jax`.

    Examples
    --------
    >>> class Noise(Part):
    ...     std: float = part_field(default=1, converter=float)
    ...     name: str = part_field(default="normal", static=True)
    >>> Noise(2), Noise(1), Noise(2) == Noise(2.0)
    (Noise(std=2.0), Noise(), True)
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Make the class a dataclass, and report it to those that follow the classes of parts."""
        super().__init_subclass__(**arguments)
        dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
        for follow in _followers:
            follow(cls)

    def __post_init__(self) -> None:
        """Convert the fields, and check the part."""
        for field in dataclasses.fields(self):
            converter = field.metadata.get(CONVERTER)
            if converter is not None:
                object.__setattr__(self, field.name, converter(getattr(self, field.name)))
        for kind in type(self).__mro__:
            check = vars(kind).get("__check_init__")
            if check is not None:
                check(self)

    def __eq__(self, other: object) -> bool:
        """Return whether the other is of the same class, with equal fields."""
        if type(self) is not type(other):
            return NotImplemented
        return all(_equal(value, getattr(other, name)) for name, value in values_of(self))

    def __hash__(self) -> int:
        """Return a hash of the fields, of which none may be an array."""
        return hash((type(self), *values_of(self)))

    def __repr__(self) -> str:
        """Return the class with the fields that differ from their defaults."""
        fields = {field.name: field for field in dataclasses.fields(self)}
        shown = [
            f"{name}={_shown(value)}"
            for name, value in values_of(self)
            if not _is_default(value, fields[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def values_of(part: Part) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each field."""
    for field in dataclasses.fields(part):
        yield field.name, getattr(part, field.name)


def unchecked(part: Kind, values: Mapping[str, Any]) -> Kind:
    """Return a part with other values of some fields, neither converted nor checked.

    They may be numbers of a program that JAX traces, which no check can read.
    """
    return made(type(part), {**dict(values_of(part)), **values}) if values else part


def made(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """Return a part of a class with a value for each field, neither converted nor checked."""
    part = object.__new__(kind)
    for field in dataclasses.fields(kind):
        object.__setattr__(part, field.name, values[field.name])
    return part


def follow_classes(follow: Callable[[type[Part]], None]) -> None:
    """Call a function with each class of parts: those that exist now, and all later ones."""
    waiting, known = [Part], set[type[Part]]()
    while waiting:
        new = set(waiting.pop().__subclasses__()) - known  # a class may have two bases
        known |= new
        waiting += new
    for kind in known:
        follow(kind)
    _followers.append(follow)


def _equal(value: Any, other: Any) -> bool:
    if hasattr(value, "dtype") or hasattr(other, "dtype"):
        return bool(np.array_equal(np.asarray(value), np.asarray(other)))
    if isinstance(value, tuple) and isinstance(other, tuple):
        return len(value) == len(other) and all(map(_equal, value, other))
    return bool(value == other)


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    plain = not (hasattr(value, "dtype") or hasattr(default, "dtype"))
    return plain and isinstance(value, bool) == isinstance(default, bool) and value == default


def _shown(value: Any) -> str:
    """Return a value as text, an array of more than one number by type and shape."""
    if getattr(value, "ndim", 0) > 0:
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    return repr(value.item()) if isinstance(value, np.generic) else repr(value)
