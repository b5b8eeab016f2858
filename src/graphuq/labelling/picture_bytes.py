"""Items that are pictures as contents of files, such as those of a table."""

import hashlib
import io
from collections.abc import Sequence
from typing import Any

from graphuq.errors import StorageError
from graphuq.labelling.items import PICTURES, Items, checked_ids
from graphuq.utils.gate import reading


class PictureBytes(Items):
    """Pictures as contents of files.

    Parameters
    ----------
    contents : sequence of bytes
    ids : sequence of str, optional

    Raises
    ------
    StorageError
        If a content is no picture of a known type.
    """

    has_pictures = True

    def __init__(self, contents: Sequence[bytes], ids: Sequence[str] | None = None) -> None:
        self._contents = list(contents)
        self.ids = checked_ids(ids, len(self._contents))
        self._types = [_media_type(c, name) for c, name in zip(contents, self.ids, strict=True)]

    def content(self, row: int) -> dict[str, Any]:
        """Return that there is a picture."""
        return {"kind": "picture"}

    def picture(self, row: int) -> tuple[bytes, str]:
        """Return the content."""
        return self._contents[row], self._types[row]

    def digest(self, n_items: int) -> str:
        """Return a checksum of names and contents."""
        found = hashlib.sha256(repr(list(self.ids[:n_items])).encode())
        for content in self._contents[:n_items]:
            found.update(hashlib.sha256(content).digest())
        return found.hexdigest()[:32]


def _media_type(content: bytes, name: str) -> str:
    from PIL import Image

    with reading(name, "picture"), Image.open(io.BytesIO(content)) as opened:
        kind = f".{opened.format or ''}".lower()
    if kind not in PICTURES:
        raise StorageError(f"{name!r} is no picture of a known type; use {', '.join(PICTURES)}")
    return PICTURES[kind]
