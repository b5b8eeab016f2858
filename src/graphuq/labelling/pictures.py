"""Pictures of items, decoded."""

import io
import warnings
from typing import Any

from graphuq.labelling.items import Items
from graphuq.utils.gate import reading


def picture_of(items: Items, row: int, side: int | None = None) -> Any:
    """Return a picture of PIL in colour, on white ground.

    Parameters
    ----------
    items : Items
    row : int
    side : int, optional
        Pixels that are enough of each side, so that large files are read faster.

    Raises
    ------
    StorageError
        If the file is not a picture, or too large a one.
    """
    from PIL import Image

    content, _ = items.picture(row)
    with reading(items.ids[row], "picture"), warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(io.BytesIO(content)) as opened:
            if side is not None:
                opened.draft("RGB", (side, side))
            picture = opened.convert("RGBA")
    ground = Image.new("RGBA", picture.size, "white")
    ground.alpha_composite(picture)
    return ground.convert("RGB")
