"""Plugin of Dask that prepares each worker before its first task, also one that is started anew.

Imports of extension modules in one thread, while another one looks for libraries, can wait for
each other for ever. So a worker does both before it takes tasks.
"""

from typing import Any

from distributed import WorkerPlugin

from graphuq.blocks.tasks import limit_libraries


class PrepareWorker(WorkerPlugin):
    """Import what tasks use, and limit libraries to one thread."""

    name = "graphuq-blocks"
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Prepare a worker."""
        limit_libraries()
