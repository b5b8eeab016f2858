"""Options from the parameters of a class: name, default and help are those of its docstring.

The source is read and not imported, so that the help of a command appears at once.
"""

import ast
import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Any

import typer

WORDS = {"int": "a whole number", "float": "a number", "bool": "true, false"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a class: its kind and its description as the docstring has them."""

    name: str
    kind: str
    description: str
    default: Any

    @property
    def help(self) -> str:
        """The first sentence of the description, the words that may be given, and an example."""
        first = re.split(r"(?<=[.])\s", self.description, maxsplit=1)[0]
        words = _words(self.kind, self.description)
        text = re.findall(r'``"([^"`]+\))"``', self.description)
        values = [*words, *(f"an expression such as '{example}'" for example in text[:1])]
        return f"{first} Values: {', '.join(values)}." if values else first


def _words(kind: str, description: str) -> list[str]:
    """Return what the kind of a parameter allows, in words of the command line."""
    found = []
    for token in re.findall(r'"[^"]+"|\w+', kind.split(", default")[0]):
        word = token.strip('"') if token.startswith('"') else WORDS.get(token)
        found += [] if word is None else [word]
    if re.search(r"\bstr\b", kind):  # the names are in the description
        found += re.findall(r'(?<!`)"([a-z][\w-]*)"', description)
    found = list(dict.fromkeys(found))
    return found if len(found) > 1 else []


@dataclass(frozen=True)
class Options:
    """Options for some parameters of a class, under one heading of the help.

    Parameters
    ----------
    place : str
        File in the package, and the class in it, as in ``inference/mcmc.py:MCMC``.
    names : list of str
        Names of the parameters.
    heading : str
    defaults : dict, optional
        What the help shows in place of the default of the class.
    """

    place: str
    names: Sequence[str]
    heading: str
    defaults: dict[str, str] | None = None

    def parameters(self) -> list[inspect.Parameter]:
        """Return parameters of a command: text, or None where the option is not given."""
        known, changed = parameters_of(self.place), self.defaults or {}
        return [_parameter(known[name], self.heading, changed.get(name)) for name in self.names]


def _parameter(known: Parameter, heading: str, shown: str | None) -> inspect.Parameter:
    """Return a parameter of a command, as typer reads it."""
    is_number = known.kind.startswith(("int", "float")) and '"' not in known.kind
    default = "" if known.default is None else str(known.default).lower()
    option = typer.Option(
        f"--{known.name.replace('_', '-')}",
        metavar="NUMBER" if is_number else "VALUE",
        help=known.help,
        rich_help_panel=heading,
        show_default=shown or default or False,
    )
    return inspect.Parameter(
        known.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, option],
    )


def with_options(*groups: Options) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the options of groups in the place of the parameter ``given`` of a command.

    The command receives there a dictionary with the values of those that were given, by name, as
    `value_of_text` finds them.
    """
    added = [parameter for group in groups for parameter in group.parameters()]
    kinds = {name: parameters_of(group.place)[name].kind for group in groups
             for name in group.names}  # fmt: skip

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command)
        kept = [*own.parameters.values()]
        place = [*own.parameters].index("given")
        all_parameters = [*kept[:place], *added, *kept[place + 1 :]]

        @functools.wraps(command)
        def wrapper(**values: Any) -> None:
            texts = {name: values.pop(name) for name in kinds if name in values}
            given = {name: value_of_text(text, kinds[name])
                     for name, text in texts.items() if text is not None}  # fmt: skip
            command(**values, given=given)

        wrapper.__signature__ = own.replace(parameters=all_parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in all_parameters}
        return wrapper

    return decorate


def value_of_text(text: str, kind: str) -> Any:
    """Return the number, true, false or none in a text, where the kind allows it, or the text."""
    words = set(re.findall(r"\w+", re.sub(r'"[^"]*"', "", kind.split(", default")[0])))
    if text.lower() == "none" and "None" in words:
        return None
    if text.lower() in ("true", "false") and "bool" in words:
        return text.lower() == "true"
    for word, number in (("int", int), ("float", float)):
        if word in words and text.isascii():
            with contextlib.suppress(ValueError):
                return number(text)
    return text


@functools.cache
def parameters_of(place: str) -> dict[str, Parameter]:
    """Return the parameters of a class from its source."""
    file, _, name = place.partition(":")
    module = ast.parse((resources.files("graphuq") / file).read_text(encoding="utf-8"))
    found = next(n for n in module.body if isinstance(n, ast.ClassDef) and n.name == name)
    constants = {
        target.id: node.value.value
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    values: dict[str, Any] = {}
    for key, value in _defaults(found):
        is_name = isinstance(value, ast.Name)
        values[key] = constants[value.id] if is_name else ast.literal_eval(value)  # type: ignore[attr-defined]
    described = _described(ast.get_docstring(found) or "")
    return {
        key: Parameter(key, *described[key], value)
        for key, value in values.items()
        if key in described
    }


def _defaults(found: ast.ClassDef) -> list[tuple[str, ast.expr]]:
    """Return names and defaults of ``__init__``, or of the fields of a dataclass."""
    for node in found.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            given = node.args
            values = [*given.defaults, *given.kw_defaults]
            names = [argument.arg for argument in (*given.args, *given.kwonlyargs)]
            pairs = zip(names[len(names) - len(values) :], values, strict=True)
            return [(name, value) for name, value in pairs if value is not None]
    return [
        (node.target.id, node.value)
        for node in found.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.value is not None
    ]


def _described(docstring: str) -> dict[str, tuple[str, str]]:
    """Return kind and description of each parameter of a NumPy docstring."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", docstring, re.M | re.S)
    found: dict[str, tuple[str, str]] = {}
    for entry in re.split(r"^(?=\S)", section.group(1) if section else "", flags=re.M):
        heading, _, text = entry.partition("\n")
        names, colon, kind = heading.partition(" : ")
        if colon:
            for name in names.split(", "):
                found[name] = (kind.strip(), " ".join(text.split()))
    return found
