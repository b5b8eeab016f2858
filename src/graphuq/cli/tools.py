"""Tools of the Model Context Protocol: commands that a language model may call.

A tool is a command with some of its options, whose names and descriptions are those of the help,
and answers with the object of ``--json``.
"""

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, NamedTuple, get_args

from graphuq.errors import InvalidInput, require
from graphuq.utils.extras import require_extra

Answer = Callable[[list[str]], dict[str, Any]]
"""Function that runs a command line and returns the object of ``--json``."""

OWN_NAME = "Name of the folder for the answer, within the folder of the server."


class Tool(NamedTuple):
    """A command that may be called.

    Attributes
    ----------
    command : callable
        Function with typer's annotations.
    names : sequence of str
        Its parameters that may be given.
    writes : bool
        Whether it writes files to ``--output``.
    """

    command: Callable[..., None]
    names: Sequence[str]
    writes: bool = False


class Places:
    """Files that may be read, and the one folder to which answers are written.

    Parameters
    ----------
    output : path
        Folder that is written to, and may be read.
    read : sequence of path
        Folders and files that may be read.
    """

    def __init__(self, output: Path, read: Sequence[Path]) -> None:
        self.output = output.resolve()
        self.readable = [self.output, *(path.resolve() for path in read)]

    def file(self, argument: str, path: str) -> str:
        """Return a path that may be read, with links resolved.

        Raises
        ------
        InvalidInput
            If it is outside.
        """
        found = Path(path).resolve()
        require(
            any(found.is_relative_to(place) for place in self.readable),
            argument,
            f"'{path}' is outside of what this server may read",
            "give a file of a folder that graphuq mcp was started with",
        )
        return str(found)

    def folder(self, name: str) -> str:
        """Return the folder for an answer.

        Raises
        ------
        InvalidInput
            If the name is not that of a folder within the folder for output.
        """
        is_plain = name not in ("", ".", "..") and Path(name).name == name and "\\" not in name
        require(is_plain, "name", f"{name!r}", "give one word, such as 'answer'")
        found = self.output / name
        require(
            found.resolve().parent == self.output,
            "name",
            f"{name!r} is a link to another folder",
            "give another name",
        )
        return str(found)


def serve(answer: Answer, tools: Mapping[str, Tool], places: Places) -> None:
    """Serve tools on the standard input and output, until the input ends.

    Raises
    ------
    MissingPackage
        If the package mcp is not installed.
    """
    require_extra("mcp")
    from mcp.server import MCPServer

    server = MCPServer("graphuq", instructions="Classify rows of a table from a few labelled rows.")
    lock = threading.Lock()
    for name, tool in tools.items():
        function = function_of(name, tool, answer, places, lock)
        server.add_tool(function, name, description=function.__doc__)
    server.run("stdio")


def function_of(
    name: str, tool: Tool, answer: Answer, places: Places, lock: Any
) -> Callable[..., dict[str, Any]]:
    """Return the function of a tool, whose signature is made of that of its command."""
    own = inspect.signature(tool.command, eval_str=True).parameters
    parameters = [_parameter(own[key]) for key in tool.names]
    if tool.writes:
        parameters.append(_keyword("name", str, OWN_NAME, "answer"))

    def call(**values: Any) -> dict[str, Any]:
        try:
            arguments = arguments_of(name, tool, values, places)
        except InvalidInput as error:
            return {"command": name, "exit_status": 2, "error": parts_of(error)}
        with lock:  # warnings of a process are caught by one command at a time
            return answer(arguments)

    call.__doc__ = inspect.cleandoc(tool.command.__doc__ or "").split("\n\nExample")[0]
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        parameters, return_annotation=dict[str, Any]
    )
    call.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": dict[str, Any]}
    return call


def arguments_of(name: str, tool: Tool, values: Mapping[str, Any], places: Places) -> list[str]:
    """Return the command line of a call. No value of a call becomes an option.

    Raises
    ------
    InvalidInput
        If a file may not be read, or the name of the answer is not that of a folder.
    """
    own = inspect.signature(tool.command, eval_str=True).parameters
    options, arguments = [], []
    for key in tool.names:
        kind, about = _kind_and_option(own[key])
        value = values.get(key)
        if value is None or value is False or value == []:
            continue
        option = f"--{key.replace('_', '-')}"
        is_option = type(about).__name__ == "OptionInfo"
        for one in value if isinstance(value, list) else [value]:
            text = places.file(option if is_option else key, one) if kind is Path else str(one)
            if not is_option:
                arguments.append(text)
            else:
                options.append(option if one is True else f"{option}={text}")
    if tool.writes:
        options += [f"--output={places.folder(values.get('name', 'answer'))}", "--quiet"]
    return [name, *options, "--", *arguments]


def parts_of(error: InvalidInput) -> dict[str, Any]:
    """Return an error as the object of ``--json`` has it."""
    named = {key: getattr(error, key) for key in ("code", "argument", "problem", "remedy")}
    return {**named, "message": str(error)}


def _parameter(known: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter of a tool: paths are texts, and the help describes it."""
    kind, about = _kind_and_option(known)
    found, *_ = get_args(known.annotation)
    is_list, is_optional = list in _parts(found), type(None) in _parts(found)
    plain: Any = str if kind is Path else kind
    plain = GenericAlias(list, (plain,)) if is_list else plain
    kind = plain | None if is_optional else plain
    return _keyword(known.name, kind, about.help, known.default)


def _keyword(name: str, kind: Any, text: str, default: Any) -> inspect.Parameter:
    from pydantic import Field

    described: Any = Annotated[kind, Field(description=text)]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=described, default=default
    )


def _kind_and_option(known: inspect.Parameter) -> tuple[type, Any]:
    """Return the kind of one value of a parameter, and what typer is told of it."""
    found, about = get_args(known.annotation)
    kinds = [one for one in _parts(found) if one not in (type(None), list)]
    return kinds[0], about


def _parts(kind: Any) -> list[Any]:
    """Return the types of which a type such as ``list[str] | None`` is made."""
    inner = get_args(kind)
    if not inner:
        return [kind]
    outer = [list] if getattr(kind, "__origin__", None) is list else []
    return [*outer, *(part for one in inner for part in _parts(one))]
