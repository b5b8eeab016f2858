"""Numbers and tables in texts, which pandas reads, without what makes its parser crash or loop."""

import io
import mmap
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

HUGE_EXPONENT = r"\d[eE]\+?\d{9}"
"""Numbers such as 1e2147483648 are outside of a table of powers (pandas, issue 63089)."""

BLANK_AFTER_RETURN = r"\r(?=\0*[ \t])"
"""After a line that ends so, pandas reads older rows again, up to all memory (issue 51141)."""


def read_csv(path: Path, **options: Any) -> "pd.DataFrame":
    """Call `pandas.read_csv`, with a slower parser of numbers if the file may need it.

    A line that ends with a carriage return alone, before a line that begins with a blank, ends with
    a line feed then; so does one in quotes.
    """
    import pandas as pd

    encoding = str(options.get("encoding", "utf-8"))
    two_bytes = encoding.startswith(("utf-16", "utf-32"))
    if not _is_safe() and (two_bytes or _has(path, HUGE_EXPONENT)):
        options["float_precision"] = "round_trip"
    source: Any = path
    if _has(path, BLANK_AFTER_RETURN):
        text = path.read_bytes().decode(encoding)
        source = io.StringIO(re.sub(BLANK_AFTER_RETURN, "\n", text), newline="")
    frame: pd.DataFrame = pd.read_csv(source, **options)
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


def _has(path: Path, pattern: str) -> bool:
    if path.stat().st_size == 0:
        return False
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return re.search(pattern.encode(), content) is not None
