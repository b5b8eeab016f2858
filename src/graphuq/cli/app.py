"""Commands and their errors: each error is one line on stderr, with exit code 2."""

import re
import sys
import warnings

import typer

from graphuq.cli import clock as clock  # imported first: the clock starts with it
from graphuq.cli.classify import OLD_OPTIONS, classify
from graphuq.cli.datasets import datasets
from graphuq.cli.demo import demo
from graphuq.cli.label import label
from graphuq.cli.predict import predict
from graphuq.cli.regress import regress
from graphuq.cli.reproduce import reproduce
from graphuq.cli.track import track
from graphuq.errors import GraphuqError
from graphuq.utils.compilation_cache import use_compilation_cache
from graphuq.utils.deprecation import warn_renamed

INTERRUPTED = "interrupted; repeat the command with --resume (classify, track) to continue"

PYTHON_REMEDIES = (
    (r"use make_pipeline\(.*$", "use --scaling standard"),
    (r"pass missing_label=('[^']*')", r"add --missing-label \1"),
)
"""Remedies for Python in warnings (regular expressions), and the options that replace them."""

app = typer.Typer(
    name="graphuq",
    help="Classify all rows of a table from a few labelled rows, with the probability of each "
    "class.\n\nStart with graphuq demo. For a table of your own: graphuq classify --help",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
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
) -> None:
    """Take the options that stand before a command."""


app.command()(demo)
app.command()(classify)
app.command()(regress)
app.command()(predict)
app.command()(label)
app.command()(datasets)
app.command()(track)
app.command()(reproduce)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 2 bad input, 130 interrupted."""
    use_compilation_cache()
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            arguments = with_new_names(arguments)
            code = app(args=arguments, prog_name="graphuq", standalone_mode=False)
        except KeyboardInterrupt:
            return _fail(INTERRUPTED, 130)
        except (GraphuqError, OSError, MemoryError) as error:
            return _fail(str(error) or type(error).__name__, 2)
        except Exception as error:
            if hasattr(error, "format_message"):  # a usage error of the argument parser
                return _fail(error.format_message() or "see graphuq --help", 2)
            if type(error).__name__ == "Abort":
                return _fail(INTERRUPTED, 130)
            raise
    if code == 130:  # some versions of the argument parser catch the interruption
        return _fail(INTERRUPTED, 130)
    return code if isinstance(code, int) else 0


def with_new_names(arguments: list[str]) -> list[str]:
    """Replace old spellings of options, with a `FutureWarning` for each.

    Parameters
    ----------
    arguments : list of str
        The command and its arguments, as they were typed.
    """
    if arguments[:1] != ["classify"]:
        return arguments
    renamed = []
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if option in OLD_OPTIONS:
            warn_renamed(option, OLD_OPTIONS[option])
        renamed.append(OLD_OPTIONS.get(option, option) + equals + value)
    return renamed


def _fail(message: str, code: int) -> int:
    """Print an error as one line and return the exit code."""
    print(f"graphuq: error: {' '.join(message.split())}", file=sys.stderr)
    return code


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one line, whose remedy is an option of the command line."""
    text = " ".join(str(message).split())
    for remedy, option in PYTHON_REMEDIES:
        text = re.sub(remedy, option, text)
    print(f"graphuq: warning: {text}", file=sys.stderr)
