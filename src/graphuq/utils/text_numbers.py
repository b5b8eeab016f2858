"""Numbers in texts, which pandas reads; before version 3 it crashes at exponents of ten digits."""

import mmap
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

HUGE_EXPONENT = r"\d[eE]\+?\d{9}"
"""Numbers such as 1e2147483648 are outside of a table of powers (pandas, issue 63089)."""


def read_csv(path: Path, **options: Any) -> "pd.DataFrame":
    """Call `pandas.read_csv`, with a slower parser of numbers if the file may need it."""
    import pandas as pd

    two_bytes = str(options.get("encoding", "")).startswith(("utf-16", "utf-32"))
    if not _is_safe() and (two_bytes or _has_huge_exponent(path)):
        options["float_precision"] = "round_trip"
    frame: pd.DataFrame = pd.read_csv(path, **options)
    return frame


def to_numbers(column: "pd.Series") -> "pd.Series":
    """Return numbers, and NaN in place of texts that are none."""
    import pandas as pd

    if not _is_safe() and not pd.api.types.is_numeric_dtype(column):
        column = column.mask(column.astype(str).str.contains(HUGE_EXPONENT))
    return pd.to_numeric(column, errors="coerce")


def _is_safe() -> bool:
    import pandas as pd

    return int(pd.__version__.split(".")[0]) >= 3


def _has_huge_exponent(path: Path) -> bool:
    if path.stat().st_size == 0:
        return False
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return re.search(HUGE_EXPONENT.encode(), content) is not None
