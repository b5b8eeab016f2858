"""Imports at first use, without visits of the garbage collector."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
