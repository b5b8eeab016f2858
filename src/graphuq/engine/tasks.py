"""Tasks run on the threads of this process, or on the workers of a Dask cluster.

A task is a function with small arguments. It reads its large inputs from the store and writes its
large outputs there, whole. So it can be repeated anywhere, and a lost worker costs its tasks only.
"""

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from graphuq.engine.cluster import check_workers, results_of
from graphuq.errors import require
from graphuq.utils.progress import Progress

LIBRARIES = (
    "faiss",
    "pyarrow.compute",
    "pyarrow.parquet",
    "graphuq.engine.laplacian_step",
    "graphuq.engine.list_search",
    "graphuq.engine.pairs",
    "graphuq.engine.partition",
)
"""Modules of the engine that are imported late because they are slow or optional."""


class Tasks:
    """Runs a function on many arguments.

    Parameters
    ----------
    client : dask.distributed.Client, optional
        By default the tasks run on one thread for each core of this machine.
    folder : Path, optional
        Folder that all workers must see.
    progress : callable, optional
        See `graphuq.utils.progress`.
    libraries : tuple of str, default ()
        Modules that tasks import, besides those of the engine.
    """

    def __init__(
        self,
        client: Any = None,
        progress: Progress | None = None,
        folder: Path | None = None,
        libraries: tuple[str, ...] = (),
    ) -> None:
        require(
            client is None or (hasattr(client, "submit") and hasattr(client, "nthreads")),
            "client",
            f"a {type(client).__name__}",
            "give a dask.distributed.Client, or None for threads",
        )
        self.client, self.progress, self.folder = client, progress, folder
        self.libraries = libraries
        self._is_prepared = False

    @property
    def n_workers(self) -> int:
        """Number of tasks that run at the same time."""
        if self.client is None:
            return os.cpu_count() or 1
        return max(1, sum(self.client.nthreads().values()))

    def map(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], phase: str = ""
    ) -> list[Any]:
        """Return what a function returns for each tuple of arguments.

        Task number p goes to the same worker in every call, as long as that lives, so that the
        files of a part stay in its memory. Results are gathered before the call returns, and no
        task refers to another one: a lost worker never makes tasks of earlier calls run again.
        """
        run = self._on_threads if self.client is None else self._on_cluster
        results = []
        with closing(run(function, arguments)) as found:
            for result in found:
                results.append(result)
                if self.progress is not None and phase:
                    self.progress(phase, len(results), len(arguments), np.nan)
        return results

    def _on_threads(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> Generator[Any, None, None]:
        with ThreadPoolExecutor(self.n_workers) as pool:
            futures = [pool.submit(function, *some) for some in arguments]
            try:
                for future in futures:
                    yield future.result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _on_cluster(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> Generator[Any, None, None]:
        if not self._is_prepared:
            check_workers(self.client, self.folder)
            self.client.register_worker_callbacks(partial(limit_libraries, self.libraries))
            self._is_prepared = True
        workers = sorted(self.client.nthreads())
        futures = []
        for p, some in enumerate(arguments):
            home = {"workers": [workers[p % len(workers)]]} if workers else {}
            futures.append(
                self.client.submit(
                    run_alone,
                    self.libraries,
                    function,
                    *some,
                    pure=False,
                    allow_other_workers=bool(home),
                    **home,
                )
            )
        try:
            yield from results_of(self.client, futures, workers)
        finally:
            if unfinished := [future for future in futures if not future.done()]:
                self.client.cancel(unfinished)


def run_alone(libraries: tuple[str, ...], function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task in a worker process, in which libraries use one thread."""
    limit_libraries(libraries)
    return function(*arguments)


def single_threaded(libraries: tuple[str, ...] = ()) -> AbstractContextManager:
    """Return a context in which libraries use one thread, so that results are reproducible."""
    _import_libraries(libraries)
    return threadpool_limits(1)


@cache
def limit_libraries(libraries: tuple[str, ...] = ()) -> Any:
    """Import what tasks use, and limit libraries to one thread, in this process for good.

    Workers do so before they take tasks: imports of extension modules in one thread, while another
    one looks for libraries, can wait for each other for ever.
    """
    _import_libraries(libraries)
    return threadpool_limits(1)


def _import_libraries(libraries: tuple[str, ...]) -> None:
    """Import what tasks use: several threads that import at once may see half of a module."""
    for name in (*LIBRARIES, *libraries):
        import_module(name)
