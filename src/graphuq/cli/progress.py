"""A progress bar on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from graphuq.inference.chains import Progress as Report


@contextmanager
def progress_bar(shown: bool) -> Iterator[Report | None]:
    """Yield a callback for `graphuq.infer`, or None where nothing is to be shown."""
    if not shown:
        yield None
        return
    columns = (
        TextColumn("{task.description:9}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps, acceptance {task.fields[acceptance]:.2f}"),
        TimeElapsedColumn(),
        TextColumn("elapsed, at most"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("warm-up", total=None, acceptance=0.0)

        def report(phase: str, done: int, total: int, acceptance: float) -> None:
            bar.update(task, description=phase, completed=done, total=total, acceptance=acceptance)

        yield report
