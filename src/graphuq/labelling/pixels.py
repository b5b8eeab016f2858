"""Pixels of a picture as items: the map of the page is the picture itself."""

import hashlib
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int, UInt8

from graphuq.errors import require
from graphuq.labelling.items import Items, TableItems, checked_ids
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd

AROUND = 20  # pixels of the picture on each side of an item
ENLARGED = 8  # times, so that the mark of one pixel is seen
MARK = (255, 0, 200)
BITS = 3  # of each colour channel that the map leaves out


class PixelItems(Items):
    """Some pixels of a picture, such as a scene of remote sensing in three bands.

    Parameters
    ----------
    picture : numpy.ndarray of uint8, shape (R, C, 3)
    places : numpy.ndarray of int, shape (N, 2)
        Row and column of each item.
    values : pandas.DataFrame, N rows, optional
        What is shown beside each pixel, such as its coordinates and bands.
    """

    def __init__(
        self,
        picture: UInt8[np.ndarray, "R C 3"],
        places: Int[np.ndarray, "N 2"],
        values: "pd.DataFrame | None" = None,
    ) -> None:
        inside = (places >= 0).all() and (places < picture.shape[:2]).all()
        require(inside, "places", "outside of the picture", "give rows and columns from 0")
        self._picture, self._places = picture, places
        self.ids = checked_ids([f"column {c}, row {r}" for r, c in places.tolist()], len(places))
        columns, rows = places[:, 1], places[:, 0]
        self.map_places = np.column_stack([columns, -rows]).astype(np.float64)
        shades = picture[rows, columns] >> BITS << BITS  # at most 32,768 colours
        self.map_colors = [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in shades]
        self.beside = None if values is None else TableItems(values, self.ids)

    def content(self, row: int) -> dict[str, Any]:
        """Return that there is a picture."""
        return {"kind": "picture", "pixelated": True}

    def picture(self, row: int) -> tuple[bytes, str]:
        """Return the surroundings of a pixel, which has a frame, as a PNG picture."""
        from PIL import Image

        (top, left), shape = self._places[row].tolist(), self._picture.shape
        rows = slice(max(0, top - AROUND), min(shape[0], top + AROUND + 1))
        columns = slice(max(0, left - AROUND), min(shape[1], left + AROUND + 1))
        part = self._picture[rows, columns].repeat(ENLARGED, 0).repeat(ENLARGED, 1)
        y, x = (top - rows.start) * ENLARGED, (left - columns.start) * ENLARGED
        own = part[y : y + ENLARGED, x : x + ENLARGED].copy()
        part[max(0, y - 2) : y + ENLARGED + 2, max(0, x - 2) : x + ENLARGED + 2] = MARK
        part[y : y + ENLARGED, x : x + ENLARGED] = own
        buffer = io.BytesIO()
        Image.fromarray(part).save(buffer, "PNG")
        return buffer.getvalue(), "image/png"

    def label_table(self, labels: Mapping[int, str]) -> "pd.DataFrame":
        """Return ``column``, ``row`` and ``class`` of labelled pixels, as ``graphuq map`` reads."""
        require_extra("label")
        import pandas as pd

        rows = sorted(labels)
        places = self._places[rows].reshape(-1, 2)
        names = [labels[row] for row in rows]
        return pd.DataFrame({"column": places[:, 1], "row": places[:, 0], "class": names})

    def digest(self, n_items: int) -> str:
        """Return a checksum of places and picture."""
        found = hashlib.sha256(repr(list(self.ids[:n_items])).encode())
        found.update(np.ascontiguousarray(self._picture).tobytes())
        return found.hexdigest()[:32]
