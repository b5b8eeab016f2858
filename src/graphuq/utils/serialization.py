"""Model parts as JSON: a class by its qualified name, and its fields as plain data.

Priors, likelihoods and weight functions are stored in this form, those of a user included. A class
of graphuq is named by the package that exports it, because the modules inside may move.
"""

import dataclasses
import importlib
import inspect
import json
import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from graphuq.errors import GraphuqError, StorageError, shortened

Plain: TypeAlias = Any  # bool, int, float, str, None, or lists and dictionaries of these

REMEDY = "define it at the top level of a module that can be imported (a .py file of its own)"


def to_json(part: object, role: str = "part") -> str:
    """Return a part as JSON from which `from_json` makes an equal part.

    Parameters
    ----------
    part : object
        A dataclass, such as a `Prior`, or an object with a method ``stored_fields``, which returns
        the arguments of its constructor as a dictionary.
    role : str
        What the part is, for the error message.

    Raises
    ------
    StorageError
        If the class cannot be found again by its name, or a field cannot be written.
    """
    plain = to_plain(part, role)
    text = json.dumps(plain)
    try:
        again = json.dumps(to_plain(from_plain(plain), role))
    except Exception as error:  # the constructor of a user's class may raise anything
        raise StorageError(
            f"{role}: {type(part).__name__} cannot be made again from its fields ({error}); "
            "let the constructor accept every field by its name"
        ) from None
    if again != text:
        raise StorageError(
            f"{role}: {type(part).__name__} made again from its fields differs from the original; "
            "keep all that defines it in fields of the constructor"
        )
    return text


def from_json(text: str, base: type) -> Any:
    """Return the part that `to_json` wrote; the module of its class must be imported.

    Parameters
    ----------
    text : str
    base : type
        Class that the part must be derived from, or protocol whose methods it must have.

    Raises
    ------
    StorageError
        If the class cannot be found, is not derived from ``base``, or does not take the fields.
    """
    try:
        fields = json.loads(text)
        name = str(fields.pop("class"))
        cls = class_named(name)
        if not _is_derived(cls, base):
            raise StorageError(
                f"{name}: not a {base.__name__}; derive the class from {base.__name__} again"
            )
        return _make(cls, fields)
    except GraphuqError:
        raise
    except Exception as error:  # text of a file may hold anything, and so may a constructor raise
        reason = shortened(f"{type(error).__name__}: {error}", 100)
        raise StorageError(
            f"a stored {base.__name__} is damaged ({reason}); save the result again"
        ) from None


def to_plain(value: Any, where: str = "value") -> Plain:
    """Return a value as plain data that JSON can hold and `from_plain` reads back.

    Parameters
    ----------
    value : object
        None, a number, text, an array, a list, tuple or dictionary of such, or a part.
    where : str
        What the value is, for the error message.

    Raises
    ------
    StorageError
        If it is anything else.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value)
    if _is_array(value):
        return _plain_array(np.asarray(value), where)
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [to_plain(entry, f"{where}[{i}]") for i, entry in enumerate(value)]}
    if isinstance(value, Mapping):
        keys = [k.item() if isinstance(k, np.generic) else k for k in value]
        entries = [to_plain(entry, f"{where}[{k!r}]") for k, entry in value.items()]
        if all(isinstance(k, str) for k in keys):
            return {"mapping": dict(zip(keys, entries, strict=True))}
        return {"items": [[to_plain(k, where), e] for k, e in zip(keys, entries, strict=True)]}
    fields = _fields(value, where)
    plain = {name: to_plain(entry, f"{where}.{name}") for name, entry in fields.items()}
    return {"class": stored_name(type(value), where), **plain}


def from_plain(plain: Plain) -> Any:
    """Return the value that `to_plain` took apart.

    Raises
    ------
    StorageError
        If the class of a part cannot be found, or does not take the fields.
    """
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return np.array(plain["array"], dtype=plain["dtype"]).reshape(plain["shape"])
    if "list" in plain:
        return [from_plain(entry) for entry in plain["list"]]
    if "tuple" in plain:
        return tuple(from_plain(entry) for entry in plain["tuple"])
    if "mapping" in plain:
        return {name: from_plain(entry) for name, entry in plain["mapping"].items()}
    if "items" in plain:
        return {from_plain(name): from_plain(entry) for name, entry in plain["items"]}
    fields = dict(plain)
    return _make(class_named(str(fields.pop("class"))), fields)


def _is_array(value: Any) -> bool:
    """Return whether a value is an array or a scalar of NumPy or JAX."""
    return isinstance(value, np.generic) or (
        hasattr(value, "__array__") and hasattr(value, "dtype")
    )


def _plain_array(array: np.ndarray, where: str) -> Plain:
    mixed = array.dtype == object and all(
        entry is None or isinstance(entry, bool | int | float | str) for entry in array.ravel()
    )
    if array.dtype.kind not in "bifuU" and not mixed:
        raise StorageError(
            f"{where}: an array of {array.dtype} cannot be written; use numbers or text"
        )
    if array.ndim == 0:
        return array.item()
    dtype = "object" if mixed else array.dtype.str
    return {"array": array.ravel().tolist(), "dtype": dtype, "shape": list(array.shape)}


def _fields(value: Any, where: str) -> dict[str, Any]:
    """Arguments of the constructor that make an equal object."""
    if hasattr(value, "stored_fields"):
        fields: dict[str, Any] = value.stored_fields()
        return fields
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise StorageError(
            f"{where}: a {type(value).__name__} cannot be written; use numbers, text, arrays, "
            "distributions or dataclasses as fields, and methods in place of functions"
        )
    names = [field.name for field in dataclasses.fields(value) if field.init]
    return {name: getattr(value, name) for name in names}


def stored_name(cls: type, where: str) -> str:
    """Return the name under which a later process finds a class: ``module:qualified.name``.

    Raises
    ------
    StorageError
        If the class cannot be found again by its name.
    """
    module, name = cls.__module__, cls.__qualname__
    if module == "__main__":
        raise StorageError(
            f"{where}: the class {name} of the running script cannot be found by another process; "
            f"{REMEDY}"
        )
    if "<locals>" in name:
        raise StorageError(f"{where}: the class {name} is local to a function; {REMEDY}")
    if module.startswith("graphuq."):
        for exported in (".".join(module.split(".")[:2]), "graphuq"):
            if getattr(sys.modules.get(exported), name, None) is cls:
                return f"{exported}:{name}"
    if class_named(f"{module}:{name}") is not cls:
        raise StorageError(
            f"{where}: {module}.{name} is now another class than the part was made of; make the "
            "part again"
        )
    return f"{module}:{name}"


def class_named(name: str, *, may_import: bool = False) -> Any:
    """Return the class of a name that `stored_name` gave.

    Parameters
    ----------
    name : str
        Such as ``"module:Class"``.
    may_import : bool, default False
        Whether the module is imported. A name in a file imports none but those of graphuq, since
        importing runs code: the others are those that the program has imported.

    Raises
    ------
    StorageError
        If there is no such class, or its module is not imported.
    """
    module_name, _, path = name.partition(":")
    own = module_name.split(".")[0]
    if own in sys.stdlib_module_names:
        raise StorageError(f"{shortened(name, 60)}: a class of Python itself is no part of a model")
    found: Any = sys.modules.get(module_name)
    if found is None and not (may_import or own == "graphuq"):
        raise StorageError(
            f"class {shortened(path, 60)!r} of module {shortened(module_name, 60)!r}: not imported;"
            " if you trust the file, import the module first, as by graphuq.load(path, "
            "parts=[module]) or graphuq --parts"
        )
    try:
        found = found or importlib.import_module(module_name)
        for step in path.split("."):
            found = getattr(found, step) if own == "graphuq" else vars(found)[step]
    except (ImportError, AttributeError, KeyError, TypeError, ValueError) as error:
        reason = shortened(f"{type(error).__name__}: {error}", 60)
        raise StorageError(
            f"class {path!r} of module {module_name!r}: not found ({reason}); put the folder of "
            "the module on PYTHONPATH, and give the class the name that it had when it was saved"
        ) from None
    if not isinstance(found, type):
        raise StorageError(f"{name}: not a class; restore the class that was saved")
    return found


def _is_derived(cls: type, base: type) -> bool:
    if not getattr(base, "_is_protocol", False):
        return issubclass(cls, base)
    methods = [name for name, value in vars(base).items() if inspect.isfunction(value)]
    return all(callable(getattr(cls, name, None)) for name in methods if name[0] != "_")


def _make(cls: Any, fields: dict[str, Plain]) -> Any:
    if not (dataclasses.is_dataclass(cls) or hasattr(cls, "stored_fields")):
        raise StorageError(f"{cls.__name__}: not a dataclass; restore the class that was saved")
    values = {name: from_plain(plain) for name, plain in fields.items()}
    try:
        return cls(**values)
    except TypeError as error:
        raise StorageError(
            f"{cls.__name__}: it does not take the fields that were saved ({error}); restore the "
            "version of the class that was saved"
        ) from None
