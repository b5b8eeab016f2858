"""Dates as people write them: 2012/01/31, 31.1.2012, "Jan 31, 2012"."""

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import pandas as pd

ISO = "ISO8601"
DAY_FIRST = ["%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y"]
MONTH_FIRST = ["%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y"]
NAMED = ["%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y",
         "%d. %B %Y", "%a, %d %b %Y", "%a %b %d %Y"]  # fmt: skip
DAYS = ["%Y/%m/%d", "%Y.%m.%d", *MONTH_FIRST, *DAY_FIRST, *NAMED]
TIMES = ["", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p"]
FORMATS = [f"{day}{time}" for time, day in itertools.product(TIMES, DAYS)]
SECONDS = 86_400.0  # of a day, the unit of dates
SAMPLE = 20  # dates on which formats are tried before they are tried on all


@dataclass(frozen=True)
class DateFormat:
    """How a column writes its dates.

    Parameters
    ----------
    pattern : str, default "ISO8601"
        As `datetime.datetime.strptime` takes it, or "ISO8601".
    """

    pattern: str = ISO

    def __call__(self, texts: "pd.Series") -> Float[np.ndarray, " N"]:
        """Return days since 1970 (UTC), NaN where a text is no such date."""
        import pandas as pd

        texts = texts.astype(str).str.strip()
        found = pd.to_datetime(texts, errors="coerce", utc=True, format=self.pattern)
        return days_of(found)

    def __str__(self) -> str:
        """Return the pattern, or nothing for ISO dates."""
        return "" if self.pattern == ISO else self.pattern


def days_of(dates: Any) -> Float[np.ndarray, " N"]:
    """Return dates of pandas as days since 1970 (UTC), NaN where there is none."""
    import pandas as pd

    if getattr(dates.dtype, "tz", None) is None:
        dates = dates.dt.tz_localize("UTC")
    since = dates - pd.Timestamp(0, tz="UTC")
    days: np.ndarray = since.dt.total_seconds().to_numpy(dtype=np.float64, copy=True) / SECONDS
    return days


def formats_of_dates(texts: "pd.Series") -> list[DateFormat]:
    """Return the formats that all texts fit, the most usual one first; none if they are no dates.

    "1/2/2012" fits two: the month is first there, and the day in "1.2.2012".
    """
    if not texts.str.contains(r"\d").all():
        return []
    iso = DateFormat()
    if texts.str.match(r"\d{4}-\d\d?-\d\d?").all() and not np.isnan(iso(texts)).any():
        return [iso]
    sample = texts.iloc[:: max(1, len(texts) // SAMPLE)]
    tried = [DateFormat(pattern) for pattern in FORMATS]
    likely = [one for one in tried if not np.isnan(one(sample)).any()]
    return [one for one in likely if not np.isnan(one(texts)).any()]
