"""Memory and disk that a fit needs, estimated before the work."""

import dataclasses
import shutil
from pathlib import Path

from graphuq.errors import InvalidInput
from graphuq.graphs.principal import MAIN_COMPONENTS, MANY_FEATURES
from graphuq.utils.gate import memory_bytes

PART_ROWS = 200_000  # rows of a part, unless more memory or less is at hand
ENDS = 1.6  # ends of edges per row, relative to the number of neighbours
WHOLE = 1200 << 20  # bytes of the process itself: libraries, and the posterior of the sample
MIN_PART_ROWS = 2_000


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a fit needs.

    Attributes
    ----------
    memory, disk : int
        Largest number of bytes at a time, of memory in all processes of a machine without what the
        system keeps of files, and of the store.
    n_parts : int
    """

    memory: int
    disk: int
    n_parts: int

    def __str__(self) -> str:
        return (
            f"about {self.memory / 1e9:.1f} GB of memory and {self.disk / 1e9:.2g} GB of disk, in "
            f"{self.n_parts} parts"
        )


def estimate(
    n_rows: int,
    width: int,
    n_neighbors: int,
    n_columns: int,
    n_workers: int,
    n_parts: int | None = None,
    memory: int | None = None,
) -> Estimate:
    """Estimate what a fit needs, for the fewest parts that memory allows.

    Parameters
    ----------
    n_rows, width : int
        Shape of the features.
    n_neighbors, n_columns : int
        Neighbours of a row, and columns of the filter.
    n_workers : int
        Parts in memory at the same time.
    n_parts : int, optional
        Number of parts, if it is given.
    memory : int, optional
        Bytes that may be used; by default what the machine has free.
    """
    # Edges of a part while they are joined, or columns of a part and its halo in a product.
    ends = ENDS * n_neighbors
    a_row = max(ends * 70, 3 * 4 * 64 * 3 + 8 * ends, 40 * n_columns) + 4 * width
    lists = 4 * width * 32 * 4 * n_rows**0.5 + 200_000 * 4 * width
    if n_parts is None:
        free = (available_memory() if memory is None else memory) * 0.8 - WHOLE - lists
        most = max(MIN_PART_ROWS, min(PART_ROWS, int(free / (n_workers * a_row))))
        rounds = -(-n_rows // (most * n_workers))  # all workers have the same number of parts
        n_parts = max(1, min(rounds * n_workers, n_rows // 64))
    needed = WHOLE + lists + n_workers * a_row * -(-n_rows // n_parts)
    points = 4 * MAIN_COMPONENTS + 8 if width > MANY_FEATURES else 0
    kept = 4 * width + points + 16 + 12 * n_neighbors + 8 * ends + 32 + 8 * n_columns
    passing = max(8 * width, 20 * n_neighbors + 16 * ends, 12 * n_columns + 12 * 64)
    return Estimate(int(needed), int(n_rows * (kept + passing)), n_parts)


def check(needed: Estimate, store: Path, memory: int | None) -> None:
    """Refuse a fit that cannot end.

    Raises
    ------
    InvalidInput
        If memory or disk are too small.
    """
    limit = available_memory() if memory is None else memory
    if needed.memory > limit:
        raise InvalidInput(
            "memory",
            f"{needed.memory / 1e9:.1f} GB are needed, and {limit / 1e9:.1f} GB are free",
            "use more parts (n_parts), fewer workers or fewer eigenpairs",
        )
    free = shutil.disk_usage(store).free + used(store)
    if needed.disk > free:
        raise InvalidInput(
            "store",
            f"{needed.disk / 1e9:.2g} GB of disk are needed, and '{store}' has {free / 1e9:.2g} GB",
            "choose another folder, or fewer eigenpairs",
        )


def used(folder: Path) -> int:
    """Return the bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def available_memory() -> int:
    """Return the bytes of memory that can be used without swapping."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return memory_bytes()
