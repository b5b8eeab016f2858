"""Progress of a long run, reported to a callback or drawn as a bar or a line."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

from graphuq.utils.extras import require_extra

Progress: TypeAlias = Callable[[str, int, int, float], None]
"""Callback that gets the phase, steps done, all steps, and mean acceptance or another number."""


COUNTED = {
    "neighbours": "rows",
    "eigenpairs": "converged",
    "features": "items",
}  # what a phase counts, if not steps
MIN_SECONDS = 0.2  # between two changes of the line in a notebook


@contextmanager
def reporting(progress: bool | Progress) -> Iterator[Progress | None]:
    """Yield the callback for an argument ``progress``: a bar for True, the callback, or None."""
    if progress is True:
        with progress_bar() as report:
            yield report
    else:
        yield progress or None


@contextmanager
def progress_bar(number: str = "acceptance") -> Iterator[Progress]:
    """Yield a callback that shows acceptance, or another number, and the time.

    It draws a bar on standard error, or in a notebook a line that is replaced in its place, which
    needs no package.
    """
    if _in_notebook():
        with _notebook_line(number) as report:
            yield report
        return
    require_extra("progress")
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description:9}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} {task.fields[counted]}"),
        TimeElapsedColumn(),
        TextColumn("elapsed, at most"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("graph", total=None, counted="")

        def report(phase: str, done: int, total: int, acceptance: float) -> None:
            counted = _counted(phase, number, acceptance)
            bar.update(task, description=phase, completed=done, total=total, counted=counted)

        yield report


def _counted(phase: str, number: str, value: float) -> str:
    """Return what a phase counts; steps have a number beside them."""
    return COUNTED.get(phase, f"steps, {number} {value:.2f}")


def _in_notebook() -> bool:
    """Return whether a kernel of Jupyter runs this process."""
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


@contextmanager
def _notebook_line(number: str) -> Iterator[Progress]:
    """Yield a callback that shows a line of text below the cell; the last one stays."""
    display: Any = import_module("IPython.display").display
    start = time.monotonic()
    shown: dict[str, Any] = {"line": None, "phase": "", "at": -MIN_SECONDS}

    def show(text: str) -> None:
        content = {"text/plain": text}
        if shown["line"] is None:
            shown["line"] = display(content, raw=True, display_id=True)
        else:
            shown["line"].update(content, raw=True)

    def report(phase: str, done: int, total: int, value: float) -> None:
        elapsed = time.monotonic() - start
        shown["phase"] = phase
        if elapsed - shown["at"] >= MIN_SECONDS:
            shown["at"] = elapsed
            show(f"{phase} {done}/{total} {_counted(phase, number, value)}, {elapsed:.0f} s")

    yield report
    if shown["phase"]:
        show(f"{shown['phase']}: done, {time.monotonic() - start:.1f} s")
