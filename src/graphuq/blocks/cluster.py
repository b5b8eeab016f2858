"""Dask clients: of a cluster that runs elsewhere, or of some processes on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from graphuq.errors import InvalidInput, require
from graphuq.utils.checks import require_integer
from graphuq.utils.extras import require_extra

CONNECTING = 20  # seconds to wait for a scheduler


@contextmanager
def dask_client(n_workers: int | None = None, scheduler: str | None = None) -> Iterator[Any]:
    """Yield a client of a cluster, or None if neither argument is given.

    Parameters
    ----------
    n_workers : int, optional
        Number of processes to start on this machine, with one thread each. They have no limit of
        memory: tasks are sized by `BlockClassifier`, and Dask would count mapped files.
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
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
