"""Progress of a long run, reported to a callback or drawn as a bar or a line."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

from graphuq.errors import require
from graphuq.utils.checks import describe
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
    """Yield the callback for an argument ``progress``: a bar for True, the callback, or None.

    Raises
    ------
    InvalidInput
        If it is neither truth value nor function.
    """
    require(
        progress is None or isinstance(progress, bool) or callable(progress),
        "progress",
        f"{describe(progress)} is not a function",
        "use True, give a callback, or leave it out",
    )
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
    show = _line_of_notebook()
    if show is not None:
        with _notebook_line(number, show) as report:
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


def _line_of_notebook() -> Callable[[str], None] | None:
    """Return what writes and rewrites a line of a notebook of marimo or Jupyter, or None."""
    marimo: Any = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return lambda text: marimo.output.replace(text)
    ipython: Any = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        return None
    display: Any = import_module("IPython.display").display
    lines: list[Any] = []

    def show(text: str) -> None:
        content = {"text/plain": text}
        if lines:
            lines[0].update(content, raw=True)
        else:
            lines.append(display(content, raw=True, display_id=True))

    return show


@contextmanager
def _notebook_line(number: str, show: Callable[[str], None]) -> Iterator[Progress]:
    """Yield a callback that shows a line of text in a notebook; the last one stays."""
    start = time.monotonic()
    shown: dict[str, Any] = {"phase": "", "at": -MIN_SECONDS}

    def report(phase: str, done: int, total: int, value: float) -> None:
        elapsed = time.monotonic() - start
        shown["phase"] = phase
        if elapsed - shown["at"] >= MIN_SECONDS:
            shown["at"] = elapsed
            show(f"{phase} {done}/{total} {_counted(phase, number, value)}, {elapsed:.0f} s")

    yield report
    if shown["phase"]:
        show(f"{shown['phase']}: done, {time.monotonic() - start:.1f} s")
