"""Progress of a long run, reported to a callback or drawn as a bar on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from graphuq.utils.extras import require_extra

Progress: TypeAlias = Callable[[str, int, int, float], None]
"""Callback that gets the phase, steps done, all steps, and mean acceptance or another number."""


COUNTED = {
    "neighbours": "rows",
    "eigenpairs": "converged",
    "features": "items",
}  # what a phase counts, if not steps


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
    """Yield a callback that draws a bar with acceptance, or another number, and time left."""
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
            counted = COUNTED.get(phase, f"steps, {number} {acceptance:.2f}")
            bar.update(task, description=phase, completed=done, total=total, counted=counted)

        yield report
