"""Commands and their errors: each error is one line on stderr, with exit code 2, or 70.

With ``--json`` it is also in the object on stdout, with its code.
"""

import contextlib
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from graphuq.cli.added_commands import SETTINGS, Commands
from graphuq.cli.classify import classify
from graphuq.cli.datasets import datasets
from graphuq.cli.demo import demo
from graphuq.cli.explain import explain
from graphuq.cli.facts import JSON, facts_of, the_facts, with_json
from graphuq.cli.label import label
from graphuq.cli.labelling_team import label_report, label_user
from graphuq.cli.map import map_command
from graphuq.cli.own_parts import import_parts
from graphuq.cli.predict import predict
from graphuq.cli.query import query
from graphuq.cli.regress import regress
from graphuq.cli.remedies import options_of
from graphuq.errors import GraphuqError, shortened
from graphuq.utils.compilation_cache import use_compilation_cache

INTERRUPTED = "interrupted; repeat the command with --resume (classify, track) to continue"

CODES = {
    "usage": "the arguments cannot be parsed: an unknown option, or one that is missing",
    "system": "the system refuses: a file, the disk or a port",
    "no-memory": "there is not enough memory",
    "interrupted": "a signal ended the command",
    "fault": "a fault of graphuq, to be reported",
}
"""Codes of errors that are no `GraphuqError`."""

UNEXPECTED = 70  # exit code of an error that is a fault of graphuq (EX_SOFTWARE of sysexits.h)
NO_MEMORY = "there is not enough memory"
SIGNS_OF_NO_MEMORY = (  # how the loader of libraries, the system and JAX say so
    "failed to map segment",
    "Cannot allocate memory",
    "RESOURCE_EXHAUSTED",
)
DEBUG = "GRAPHUQ_DEBUG"  # environment variable that shows the traceback of such an error
MAX_LINE = 300  # characters of an error

_received: list[int] = []  # signals, because the argument parser replaces the exception

app = typer.Typer(
    name="graphuq",
    cls=Commands,
    help="Classify all rows of a table from a few labelled rows, with the probability of each "
    "class.\n\nStart with graphuq demo. For a table of your own: graphuq classify --help",
    no_args_is_help=True,
    **SETTINGS,
)


def _print_version(asked: bool | None) -> None:
    if asked:
        from graphuq import __version__

        print(f"graphuq {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: bool | None = typer.Option(
        None, "--version", callback=_print_version, is_eager=True, help="Show the version."
    ),
    parts: list[Path] | None = typer.Option(
        None,
        "--parts",
        metavar="FILE",
        help="Python file with parts of your own, such as a prior, that options may then name. "
        "May be repeated.",
    ),
    debug: bool = typer.Option(
        False,
        "--debug",
        help="Show the traceback of an unexpected error. So does the environment variable "
        "GRAPHUQ_DEBUG=1.",
    ),
) -> None:
    """Take the options that stand before a command."""
    facts, name = the_facts(), context.invoked_subcommand
    facts.command = name
    if name is not None:
        command: Any = context.command
        facts.options = options_of(command.get_command(context, name))
    for file in parts or []:
        import_parts(file)


COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "classify": classify,
    "regress": regress,
    "predict": predict,
    "query": query,
    "explain": explain,
    "label": label,
    "label-user": label_user,
    "label-report": label_report,
    "map": map_command,
    "datasets": datasets,
}
for _name, _command in COMMANDS.items():
    app.command(_name)(with_json(_command))


@app.command()
def mcp(
    output: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder for the answers; no other is written to."),
    ],
    read: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Folder or file that may be read, besides FOLDER. May be repeated.",
        ),
    ] = None,
) -> None:
    """Serve classify, query and explain to a language model, by the Model Context Protocol.

    It is started by a client, and speaks with it on the standard input and output.

    Example: graphuq mcp answers --read tables
    """
    from graphuq.cli.tools import Places, Tool, serve

    of_table = ["labels", "id_column", "truth_column", "drop", "encode", "impute", "scaling"]
    tools = {
        "classify": Tool(classify, ["file", "label_column", *of_table], writes=True),
        "query": Tool(query, ["posterior", "n", "rule"]),
        "explain": Tool(explain, ["posterior", "row"]),
    }
    serve(answer_of, tools, Places(output, read or []))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    The exit code is 0 if all is done, 2 for bad input, 70 for a fault of graphuq, and 128 plus
    the number of a signal (130 for Ctrl-C).
    """
    use_compilation_cache()
    with _signals_interrupt():
        code = run(arguments)
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments[:3] or os.environ.get(DEBUG, "") not in ("", "0")
    with facts_of(JSON in arguments) as facts, warnings.catch_warnings():
        warnings.showwarning = _show_warning
        code = _call(arguments, debug)
        if facts.as_json and (code or facts.found):  # the help has no facts
            _print_whole(json.dumps(facts.content(code), indent=2, allow_nan=False))
    return code


def _print_whole(text: str) -> None:
    """Print a text; a reader that has closed the pipe, as ``head`` does, misses the rest."""
    try:
        print(text, flush=True)
    except BrokenPipeError:  # what is left in the buffer is not tried again at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def answer_of(arguments: list[str]) -> dict[str, Any]:
    """Run the command line and return the object of ``--json``, which is not printed."""
    with facts_of(as_json=True) as facts, warnings.catch_warnings():
        warnings.showwarning = _show_warning
        return facts.content(_call(arguments, debug=False))


def _call(arguments: list[str], debug: bool) -> int:
    try:
        code = app(args=arguments, prog_name="graphuq", standalone_mode=False)
    except KeyboardInterrupt:
        return _interrupted()
    except GraphuqError as error:
        about = {name: getattr(error, name) for name in ("argument", "problem", "remedy")}
        said = {name: value and the_facts().in_options(value) for name, value in about.items()}
        return _fail(the_facts().in_options(str(error)), 2, error.code, **said)
    except MemoryError as error:
        return _fail(str(error) or NO_MEMORY, 2, "no-memory")
    except OSError as error:
        return _fail(str(error), 2, "system", argument=error.filename)
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of the argument parser
            argument = getattr(error, "option_name", None) or _name_of(error)
            return _fail(error.format_message() or "see graphuq --help", 2, "usage",
                         argument=argument)  # fmt: skip
        if type(error).__name__ == "Abort":
            return _interrupted()
        if any(sign in str(error) for sign in SIGNS_OF_NO_MEMORY):
            return _fail(NO_MEMORY, 2, "no-memory")
        return _fail_unexpectedly(error, debug)
    if code == 130:  # some versions of the argument parser catch the interruption
        return _interrupted()
    return code if isinstance(code, int) else 0


def _name_of(error: Exception) -> str | None:
    """Return the parameter of a usage error as the user types it, or None."""
    parameter = getattr(error, "param", None)
    if parameter is None:
        return None
    is_option = parameter.param_type_name == "option"
    return str(parameter.opts[0] if is_option else parameter.metavar or parameter.name)


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt as Ctrl-C does; one that is ignored (nohup) stays so."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        _received.append(number)
        raise KeyboardInterrupt

    before = {}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupted() -> int:
    """Report an interruption, and return 128 plus the number of its signal."""
    number = int(_received.pop() if _received else signal.SIGINT)
    return _fail(INTERRUPTED, 128 + number, "interrupted")


def _fail_unexpectedly(error: Exception, debug: bool) -> int:
    """Print an error that no check foresaw, and how to report it."""
    if debug:
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "graphuq" in Path(f.filename).parts]
    where = f"{Path(own[-1].filename).name} line {own[-1].lineno}" if own else "unknown place"
    what = shortened(" ".join(str(error).split()), 100)
    return _fail(
        f"unexpected {type(error).__name__} in {where} ({what}); this is a fault of graphuq: "
        f"please report it with what graphuq --debug prints for the same command",
        UNEXPECTED,
        "fault",
    )


def _fail(message: str, exit_status: int, code: str, **about: str | None) -> int:
    """Print an error as one line, keep it as a fact, and return the exit code."""
    line = shortened(f"graphuq: error: {_printable(message)}", MAX_LINE)
    known = {"argument": None, "problem": message, "remedy": None, **about}
    the_facts().say(error={"code": code, "message": message, **known})
    with contextlib.suppress(OSError):  # the terminal may be gone, as after SIGHUP
        print(line, file=sys.stderr)
    return exit_status


def _printable(text: str) -> str:
    """Return a text as one line without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one line, whose remedy is an option of the command line; keep it.

    A command that makes a graph in steps has some warnings twice, of which one is enough.
    """
    text = the_facts().in_options(_printable(str(message)))
    code = getattr(message, "code", type(message).__name__)
    warning = {"code": code, "message": text}
    if warning in the_facts().warnings:
        return
    the_facts().warnings.append(warning)
    print(f"graphuq: warning: {text}", file=sys.stderr)
