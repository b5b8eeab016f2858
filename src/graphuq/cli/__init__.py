"""The command ``graphuq``: classify, predict, track, reproduce, and data sets."""

import sys

from graphuq.cli import clock as clock  # imported first: the clock starts with it
from graphuq.errors import MissingPackage
from graphuq.utils.extras import require_extra


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit; see `graphuq.cli.app.main`."""
    try:
        require_extra("cli")
    except MissingPackage as error:
        print(f"graphuq: error: {error}", file=sys.stderr)
        sys.exit(2)
    from graphuq.cli.app import main as run

    run(arguments)
