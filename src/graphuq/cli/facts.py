"""What a command says: facts, each with a name, from which lines and one JSON object are written.

A line is a template that can name facts only, so that text and JSON say the same.
"""

import dataclasses
import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

from graphuq.cli.remedies import at_command_line
from graphuq.utils.version import __version__

JSON = "--json"
PANEL = "Output and progress"  # heading in the help of commands that group their options
HELP = (
    "Print one JSON object in place of text; progress and warnings are text on the standard error."
)


class Facts:
    """The facts of one run of a command, which prints them as it goes on, or as JSON at the end.

    Attributes
    ----------
    found : dict
        Values by name, in the order in which they were said.
    warnings : list of dict
        Code and message of each warning.
    as_json : bool
    quiet : bool
        Whether lines are left out; JSON is not.
    command : str or None
        Name of the command, once it is known.
    options : dict
        Its options, as of `graphuq.cli.remedies.options_of`.
    """

    def __init__(self, as_json: bool = False) -> None:
        self.found: dict[str, Any] = {}
        self.warnings: list[dict[str, str]] = []
        self.as_json = as_json
        self.quiet = False
        self.command: str | None = None
        self.options: dict[str, tuple[str, bool]] = {}

    @property
    def is_silent(self) -> bool:
        """Whether no line is printed."""
        return self.as_json or self.quiet

    def in_options(self, text: str) -> str:
        """Return a text whose remedies are options of the command, not arguments in Python."""
        return at_command_line(text, self.options)

    def say(
        self, template: str = "", /, *, shown: Mapping[str, str] | None = None, **facts: Any
    ) -> None:
        """Keep facts, and print the line that a template makes of them; none without a template.

        Parameters
        ----------
        template : str
            As of `str.format`.
        shown : dict of str to str, optional
            Words for the template that were made of the facts, and are not kept.
        **facts : object
            Values by name; `plain` says what becomes of them in JSON.

        Examples
        --------
        >>> facts = Facts()
        >>> facts.say("{n_rows} rows, noise {noise_std:.2f}", n_rows=3, noise_std=0.123)
        3 rows, noise 0.12
        >>> facts.found
        {'n_rows': 3, 'noise_std': 0.123}
        """
        self.found.update(facts)
        if template and not self.is_silent:
            print(template.format_map({**facts, **(shown or {})}))

    def each(self, template: str, /, **facts: Iterable[Any]) -> None:
        """Keep one fact, a list, and print a line for each entry, whose keys a template may name.

        Examples
        --------
        >>> Facts().each("{name}: {share:.0%}", classes=[{"name": "a", "share": 0.25}])
        a: 25%
        """
        ((name, values),) = facts.items()
        entries = list(values)
        self.found[name] = entries
        if not self.is_silent:
            for entry in entries:
                named = entry if isinstance(entry, Mapping) else {}
                print(template.format(entry, **named))

    def read(self, line: str, settings: Mapping[str, Any]) -> None:
        """Say how a file was read, if there is a line on it."""
        self.say("{read}" if line else "", read=line, table=dict(settings))

    def wrote(self, *paths: Path) -> None:
        """Say which files were written."""
        self.each("  {}", files=paths)

    def show(self, *renderables: Any) -> None:
        """Print tables and coloured texts of `rich`, made of facts that were kept."""
        if self.is_silent:
            return
        from rich.console import Console

        console = Console(markup=False, emoji=False, highlight=False)
        for renderable in renderables:
            console.print(renderable, soft_wrap=not hasattr(renderable, "columns"))

    def progress(self, line: str, *, always: bool = False) -> None:
        """Print at once what is no fact of the end: on the standard error beside JSON.

        ``always`` prints it with ``--quiet``, too.
        """
        if always or not self.quiet:
            print(line, file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def content(self, exit_status: int) -> dict[str, Any]:
        """Return the object of ``--json``, as plain data."""
        about = {"graphuq": __version__, "command": self.command, "exit_status": exit_status}
        found: dict[str, Any] = plain({**about, **self.found, "warnings": self.warnings})
        return found


_current: ContextVar[Facts | None] = ContextVar("facts", default=None)


def the_facts(quiet: bool | None = None) -> Facts:
    """Return the facts of the command that runs, to which everything that it says is added."""
    facts = _current.get() or Facts()
    if quiet is not None:
        facts.quiet = quiet
    return facts


@contextmanager
def facts_of(as_json: bool) -> Iterator[Facts]:
    """Yield the facts of a command line, which `the_facts` returns meanwhile."""
    facts = Facts(as_json)
    token = _current.set(facts)
    try:
        yield facts
    finally:
        _current.reset(token)


def with_json(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the option ``--json``, which is read from the command line before."""
    own = inspect.signature(command, eval_str=True)
    panels = {
        getattr(entry, "rich_help_panel", None)
        for parameter in own.parameters.values()
        for entry in getattr(parameter.annotation, "__metadata__", ())
    }
    option = typer.Option(JSON, help=HELP, rich_help_panel=PANEL if PANEL in panels else None)
    added = inspect.Parameter(
        "json",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, option],
    )
    parameters = [*own.parameters.values(), added]

    @functools.wraps(command)
    def wrapper(json: bool = False, **values: Any) -> None:
        command(**values)

    wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers that are not finite are null, paths are text.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"x": np.array([1.0, np.nan]), "file": Path("a"), 3: (np.int64(2), True)})
    {'x': [1.0, None], 'file': 'a', '3': [2, True]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "_asdict"):  # a named tuple
        return plain(value._asdict())
    if hasattr(value, "tolist"):  # an array, or a number of NumPy
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
