"""Tables of pandas whose texts may be any."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd


def made_frame(columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Return columns as a table; texts that are no Unicode, as names of files may be, stay objects.

    Raises
    ------
    MissingPackage
        If pandas is not installed (extra ``graphuq[tables]``).
    """
    require_extra("tables")
    import pandas as pd

    try:
        return pd.DataFrame(dict(columns))
    except UnicodeEncodeError:  # of the texts of pandas 3
        kept = {name: _as_it_is(values) for name, values in columns.items()}
        return pd.DataFrame(kept)


def _as_it_is(values: Any) -> Any:
    """Return a column whose objects pandas does not look at."""
    import pandas as pd

    kind = values.dtype.kind if hasattr(values, "dtype") else "O"
    return pd.Series(values, dtype=object) if kind == "O" else values
