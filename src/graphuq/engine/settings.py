"""Where and how a fit works part by part: the value that `GraphClassifier` takes as ``store``."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from graphuq.errors import require
from graphuq.utils.checks import check_number, require_integer

DEFAULT_TOLERANCE = 1e-2  # moves label means by less than 1e-4 (docs/scale.md)
SEARCHES = ("approximate", "exact")


@dataclasses.dataclass(frozen=True)
class Store:
    """Folder in which a fit works part by part, and how it does so.

    Parameters
    ----------
    path : path
        Folder of the stages. It takes one fit at a time.
    n_parts : int, optional
        Number of parts; by default parts of at most 200,000 rows that fit the memory.
    memory : int, optional
        Bytes of memory that may be used; by default what is free.
    tolerance : float, default 1e-2
        Largest residual ``|L q − λ q|`` of an eigenvector, relative to the largest eigenvalue.
    search : {"approximate", "exact"}, default "approximate"
        "approximate" searches the lists near a row's own, as many as hold 99 % of the true
        neighbours of a sample. "exact" compares all pairs.
    no_features : sequence of str, default ()
        Columns of the table that are no features, besides that of the labels.

    Raises
    ------
    InvalidInput
        If a value is of the wrong kind or out of range.

    Examples
    --------
    >>> import graphuq as gq
    >>> gq.Store("store", n_parts=4, search="exact").n_parts
    4
    """

    path: str | Path
    n_parts: int | None = None
    memory: int | None = None
    tolerance: float = DEFAULT_TOLERANCE
    search: str = "approximate"
    no_features: Sequence[str] = ()

    def __post_init__(self) -> None:
        is_path = isinstance(self.path, str | Path) and "\0" not in str(self.path)
        require(is_path, "store", f"{self.path!r}", "give the path of a folder")
        require(
            isinstance(self.search, str) and self.search in SEARCHES,
            "search",
            f"{self.search!r} is unknown",
            f"use one of {', '.join(SEARCHES)}",
        )
        check_number("tolerance", self.tolerance, "use a number such as 1e-2")
        require(
            1e-5 <= self.tolerance < 1, "tolerance", f"{self.tolerance!r}",
            "use 1e-5 or more, below 1",
        )  # fmt: skip
        for name in ("n_parts", "memory"):
            value = getattr(self, name)
            if value is not None:
                require_integer(name, value, 1)
        require(
            not isinstance(self.no_features, str),
            "no_features",
            f"{self.no_features!r}",
            "give a list of names",
        )

    @staticmethod
    def of(value: "str | Path | Store") -> "Store":
        """Return the store of a path, or the given one."""
        return value if isinstance(value, Store) else Store(value)

    @property
    def folder(self) -> Path:
        """The folder as workers find it, too."""
        return Path(self.path).resolve()
