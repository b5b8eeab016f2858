"""Public names of a package that are imported when they are first used."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that offers names of its modules.

    Importing the package then stays quick, and import cycles are impossible.

    Parameters
    ----------
    package : str
        Full name of the package.
    modules : mapping of str to str
        Module of each name, inside the package.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return find


@contextmanager
def paused_collection() -> Iterator[None]:
    """Pause Python's garbage collector while many modules are imported.

    New modules are no garbage, but the collector would visit all their objects again and again,
    which takes 30 % of the first fit's imports. Afterwards these objects count as old, as if the
    collector had visited them once. A collector that is off stays off.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        if not gc.get_freeze_count():  # else `unfreeze` would undo what the program froze
            gc.freeze()
            gc.unfreeze()
