"""Nothing that a command reads may be what it writes."""

from collections.abc import Mapping
from pathlib import Path

from graphuq.errors import require

OF_FIT = (
    "predictions.*", "report.html", "posterior.nc", "search.csv", "annotators.csv", "tags.csv",
)  # fmt: skip
"""Names of the files that a fit writes, or removes since they are of an older fit."""


def require_unread(inputs: Mapping[str, Path | None], output: Path, *names: str) -> None:
    """Refuse a command whose output would replace a file that it reads.

    Parameters
    ----------
    inputs : dict
        The files, and folders of files, that are read, by the name of their argument.
    output : path
        The file that is written or, with names, the folder.
    *names : str
        Names of files that are written to the folder, or patterns of them.

    Raises
    ------
    InvalidInput
        If an input is one of these files, also by a link, or is the folder.
    """
    written = [output, *(path for name in names for path in output.glob(name))]
    for argument, file in inputs.items():
        for path in written:
            same = file is not None and path.exists() and file.exists() and path.samefile(file)
            require(
                not same,
                "--output",
                f"'{output}' would replace '{file}', which is {argument}",
                "choose another place, so that nothing is lost",
            )
