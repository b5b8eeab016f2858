"""Guidelines that the page shows beside the item."""

from pathlib import Path

from graphuq.errors import InvalidInput, require

MAX_BYTES = 200_000


def guidelines_of(path: str | Path) -> str:
    """Return the text of a file of guidelines.

    Raises
    ------
    InvalidInput
        If there is no such file, or it is no text in UTF-8, or too long.
    """
    name = Path(path).name
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        reason = f"cannot read '{name}' ({error.strerror})"
        raise InvalidInput("guidelines", reason, "name a text or Markdown file") from None
    too_long = len(content) > MAX_BYTES
    require(not too_long, "guidelines", f"{len(content)} bytes", f"use at most {MAX_BYTES}")
    try:
        return content.decode("utf-8-sig")
    except ValueError:
        raise InvalidInput("guidelines", f"'{name}' is no text", "save it as UTF-8") from None
