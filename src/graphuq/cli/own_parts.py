"""Option ``--parts``: Python files with priors, rules, graphs and formats of the user's own."""

import importlib
import importlib.util
import sys
from pathlib import Path

from graphuq.errors import InvalidInput, require
from graphuq.utils.gate import require_file


def import_parts(file: Path) -> None:
    """Import a Python file under its own name, so that text and saved files can name its parts.

    Raises
    ------
    InvalidInput
        If the file is no Python file, cannot be imported, or has the name of another module.
    """
    require_file(file)
    name, folder = file.stem, str(file.resolve().parent)
    require(
        file.suffix == ".py" and name.isidentifier(),
        "--parts",
        f"'{file.name}'",
        "give a Python file, with a name such as own_prior.py",
    )
    is_new = folder not in sys.path
    if is_new:
        sys.path.insert(0, folder)
    try:
        _import(name, file)
    except InvalidInput:
        if is_new:
            sys.path.remove(folder)  # or a file such as numpy.py would be found by other processes
        raise


def _import(name: str, file: Path) -> None:
    """Import the module of a name, which must be that of the file."""
    found = importlib.util.find_spec(name)
    origin = None if found is None else found.origin
    require(
        origin is not None and Path(origin).resolve() == file.resolve(),
        "--parts",
        f"'{file.name}' has the name of another module ({origin})",
        "rename the file",
    )
    try:
        importlib.import_module(name)
    except Exception as error:  # the file of a user may raise anything
        raise InvalidInput(
            "--parts", f"'{file.name}' raises {type(error).__name__}: {error}", "mend the file"
        ) from None
