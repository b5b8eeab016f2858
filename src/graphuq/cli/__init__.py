"""The command ``graphuq``, and what commands of other distributions need.

Such names are imported when first used, so that the command line starts quickly.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphuq.cli import clock as clock  # imported first: the clock starts with it
from graphuq.errors import MissingPackage
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    from graphuq.cli.facts import Facts, the_facts
    from graphuq.utils.files import atomic_write
    from graphuq.utils.html import embedded, write_page
    from graphuq.utils.output_folder import atomic_folder, output_folder
    from graphuq.utils.spreadsheets import without_formulas

_MODULE_OF = {
    "Facts": "cli.facts",
    "atomic_folder": "utils.output_folder",
    "atomic_write": "utils.files",
    "embedded": "utils.html",
    "output_folder": "utils.output_folder",
    "the_facts": "cli.facts",
    "without_formulas": "utils.spreadsheets",
    "write_page": "utils.html",
}

__all__ = [
    "Facts",
    "atomic_folder",
    "atomic_write",
    "embedded",
    "main",
    "output_folder",
    "the_facts",
    "without_formulas",
    "write_page",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'graphuq.cli' has no attribute {name!r}")
    return getattr(import_module(f"graphuq.{_MODULE_OF[name]}"), name)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit; see `graphuq.cli.app.main`."""
    try:
        require_extra("cli")
    except MissingPackage as error:
        print(f"graphuq: error: {error}", file=sys.stderr)
        sys.exit(2)
    from graphuq.cli.app import main as run

    run(arguments)
