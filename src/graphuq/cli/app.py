"""Commands and their errors: each error is one line on stderr, with exit code 2, or 70."""

import contextlib
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import typer

from graphuq.cli.added_commands import SETTINGS, Commands
from graphuq.cli.classify import classify
from graphuq.cli.datasets import datasets
from graphuq.cli.demo import demo
from graphuq.cli.label import label
from graphuq.cli.labelling_team import label_report, label_user
from graphuq.cli.map import map_command
from graphuq.cli.own_parts import import_parts
from graphuq.cli.predict import predict
from graphuq.cli.regress import regress
from graphuq.errors import GraphuqError, shortened
from graphuq.utils.compilation_cache import use_compilation_cache

INTERRUPTED = "interrupted; repeat the command with --resume (classify, track) to continue"

UNEXPECTED = 70  # exit code of an error that is a fault of graphuq (EX_SOFTWARE of sysexits.h)
NO_MEMORY = (  # how the loader of libraries, the system and JAX say so
    "failed to map segment",
    "Cannot allocate memory",
    "RESOURCE_EXHAUSTED",
)
DEBUG = "GRAPHUQ_DEBUG"  # environment variable that shows the traceback of such an error
MAX_LINE = 300  # characters of an error

PYTHON_REMEDIES = (
    (r"use make_pipeline\(.*$", "use --scaling standard"),
    (r"pass missing_label=('[^']*')", r"add --missing-label \1"),
)
"""Remedies for Python in warnings (regular expressions), and the options that replace them."""

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
    for file in parts or []:
        import_parts(file)


app.command()(demo)
app.command()(classify)
app.command()(regress)
app.command()(predict)
app.command()(label)
app.command("label-user")(label_user)
app.command("label-report")(label_report)
app.command("map")(map_command)
app.command()(datasets)


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
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            code = app(args=arguments, prog_name="graphuq", standalone_mode=False)
        except KeyboardInterrupt:
            return _interrupted()
        except (GraphuqError, OSError, MemoryError) as error:
            return _fail(str(error) or "there is not enough memory", 2)
        except Exception as error:
            if hasattr(error, "format_message"):  # a usage error of the argument parser
                return _fail(error.format_message() or "see graphuq --help", 2)
            if type(error).__name__ == "Abort":
                return _interrupted()
            if any(sign in str(error) for sign in NO_MEMORY):
                return _fail("there is not enough memory", 2)
            return _fail_unexpectedly(error, debug)
    if code == 130:  # some versions of the argument parser catch the interruption
        return _interrupted()
    return code if isinstance(code, int) else 0


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
    return _fail(INTERRUPTED, 128 + int(_received.pop() if _received else signal.SIGINT))


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
    )


def _fail(message: str, code: int) -> int:
    """Print an error as one line and return the exit code."""
    line = shortened(f"graphuq: error: {_printable(message)}", MAX_LINE)
    with contextlib.suppress(OSError):  # the terminal may be gone, as after SIGHUP
        print(line, file=sys.stderr)
    return code


def _printable(text: str) -> str:
    """Return a text as one line without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one line, whose remedy is an option of the command line."""
    text = _printable(str(message))
    for remedy, option in PYTHON_REMEDIES:
        text = re.sub(remedy, option, text)
    print(f"graphuq: warning: {text}", file=sys.stderr)
