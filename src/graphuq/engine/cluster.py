"""Dask clients, the workers behind them, and what is done when these die.

A worker that cannot read a message, because it lacks graphuq or has another version of it, dies of
it, is started again, and dies again. So workers are asked in words of Python itself first.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from graphuq.errors import InvalidInput, require
from graphuq.utils.checks import require_integer
from graphuq.utils.extras import require_extra
from graphuq.utils.version import __version__

CONNECTING = 20  # seconds to wait for a scheduler
CLOSING = 10  # seconds to wait for the end of processes
NO_WORKERS = 60  # seconds to wait for a worker when there is none
POLL = 1  # seconds between looks at the workers while a task runs
MAX_DEATHS = 5  # of workers, relative to their number, without a task that ends
VERSIONS = """[
    ".".join(__import__("platform").python_version_tuple()[:2]),
    __import__("numpy").__version__.split(".")[0],
    __import__("graphuq").__version__,
    *(__import__(name) and "" for name in ("faiss", "pyarrow")),
]"""
"""Expression for the versions that must be the same everywhere, in any version of Python."""


@contextmanager
def dask_client(n_workers: int | None = None, scheduler: str | None = None) -> Iterator[Any]:
    """Yield a client of a cluster, or None if neither argument is given.

    Parameters
    ----------
    n_workers : int, optional
        Number of processes to start on this machine, with one thread each. They have no limit of
        memory: tasks are sized by the estimate, and Dask would count mapped files.
    scheduler : str, optional
        Address of a running scheduler, such as ``tcp://host:8786``.

    Raises
    ------
    InvalidInput
        If both are given, or there is no scheduler at the address.
    MissingPackage
        Without the extra ``graphuq[dask]``.
    """
    if n_workers is None and scheduler is None:
        yield None
        return
    require_extra("dask")
    require(
        n_workers is None or scheduler is None,
        "workers",
        f"{n_workers} beside scheduler {scheduler!r}",
        "give one of the two",
    )
    distributed: Any = import_module("distributed")
    if n_workers is None:
        assert scheduler is not None
        try:
            client = distributed.Client(scheduler, timeout=CONNECTING)
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidInput(
                "scheduler", f"{scheduler!r} does not answer ({reason})", "start dask scheduler"
            ) from None
        with client:
            yield client
        return
    require_integer("workers", n_workers, 1)
    cluster = distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        memory_limit=0,
        dashboard_address=":0",
    )
    try:
        with distributed.Client(cluster) as client:
            yield client
    finally:
        with suppress(distributed.TimeoutError):  # Dask may wait for ever for one that restarts
            cluster.close(timeout=CLOSING)


def check_workers(client: Any, folder: Path | None = None) -> None:
    """Refuse workers that could not read tasks, or that do not see a folder of this process.

    Parameters
    ----------
    client : dask.distributed.Client
    folder : Path, optional
        The store.

    Raises
    ------
    InvalidInput
        If there is no worker after a minute, or one lacks graphuq, has another version of it, of
        Python or of NumPy, or does not see the folder.
    """
    until = time.monotonic() + NO_WORKERS
    while not client.nthreads():
        if time.monotonic() > until:
            raise _no_workers()
        time.sleep(0.1)
    own = eval(VERSIONS)
    for address, found in client.run(eval, VERSIONS, on_error="return").items():
        if isinstance(found, Exception):
            raise InvalidInput(
                "client",
                f"worker {address} cannot import what tasks need ({found})",
                f"install graphuq[dask] {__version__} on all workers",
            )
        for name, here, there in zip(("Python", "NumPy", "graphuq"), own, found, strict=False):
            require(
                here == there,
                "client",
                f"worker {address} has {name} {there}, and this process {here}",
                "use the same versions everywhere",
            )
    if folder is not None:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".seen-by-workers-") as file:
            seen = client.run(os.path.isfile, file.name)
        blind = [address for address, sees in seen.items() if not sees]
        require(
            not blind,
            "store",
            f"worker {blind[:1]} does not see '{folder}'",
            "choose a folder that all workers share under the same path",
        )


def _no_workers() -> InvalidInput:
    return InvalidInput(
        "client", f"the cluster has had no worker for {NO_WORKERS} s", "start dask worker, and fit"
    )


def results_of(client: Any, futures: Sequence[Any], workers: Sequence[str]) -> Iterator[Any]:
    """Yield the results of tasks in order, as long as workers live that can do them.

    ``workers`` are the addresses of those that lived when the tasks were submitted.

    Raises
    ------
    InvalidInput
        If there is no worker for a minute, or workers die over and over.
    """
    distributed = import_module("distributed")
    alive = set(workers)
    most, deaths, last_seen = MAX_DEATHS * max(1, len(alive)), 0, time.monotonic()
    dying = InvalidInput(
        "client",
        "its workers die over and over; their logs say why",
        "give them more memory or use more parts (n_parts), and fit again: what is done is kept",
    )
    for future in futures:
        while not future.done():
            try:
                distributed.wait(future, timeout=POLL)
            except distributed.TimeoutError:
                now = set(client.nthreads())
                deaths, alive = deaths + len(alive - now), now
                if alive:
                    last_seen = time.monotonic()
                if deaths > most:
                    raise dying from None
                if time.monotonic() > last_seen + NO_WORKERS:
                    raise _no_workers() from None
        try:
            yield future.result()
        except distributed.scheduler.KilledWorker:
            raise dying from None
        deaths, last_seen = 0, time.monotonic()
