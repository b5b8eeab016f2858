"""Pictures of the nodes: small ones of many, in one that the page can hold, or one of a node."""

import base64
import io
from typing import Any

import numpy as np
from jaxtyping import Int

MAX_SIDE = 28  # pixels of the longer side of a thumbnail
MAX_BYTES = 450_000  # of the picture that holds all thumbnails
MAX_COUNT = 20_000  # of thumbnails
PICTURE_SIDE = 112  # pixels of the longer side of the picture of one node
N_GREYS = 16


def thumbnails(images: np.ndarray, order: Int[np.ndarray, " n"]) -> dict[str, Any]:
    """Return one PNG picture with a thumbnail of each of the first nodes in an order.

    Parameters
    ----------
    images : numpy.ndarray, shape (N, h, w)
        Pictures; large numbers are dark, as in the figures.
    order : numpy.ndarray of int, shape (n,)
        Nodes, those first that need a thumbnail most. As many get one as fit in `MAX_BYTES`.

    Returns
    -------
    dict
        ``png`` in base 64, ``width`` and ``height`` of a thumbnail, ``columns`` of thumbnails in
        a row, and their number ``count``.
    """
    height, width = images.shape[1:]
    step = -(-max(height, width) // MAX_SIDE)
    sample = order[:: max(1, len(order) // 1000)][:1000]
    low, high = float(images[sample].min()), float(images[sample].max())
    count, png, columns = min(len(order), MAX_COUNT), b"", 1
    while True:
        columns = max(1, int(np.ceil(np.sqrt(count))))
        pixels = _shrunk(images[order[:count]], step)
        png = _png(_sheet(_greys(pixels, low, high), columns))
        if len(png) <= MAX_BYTES or count <= 1:
            break
        count = max(1, int(count * min(0.9, 0.95 * MAX_BYTES / len(png))))
    return {
        "png": base64.b64encode(png).decode(),
        "width": pixels.shape[2],
        "height": pixels.shape[1],
        "columns": columns,
        "count": count,
    }


def picture(image: np.ndarray) -> str:
    """Return a PNG picture in base 64 of one image, shape (h, w); large numbers are dark."""
    step = -(-max(image.shape) // PICTURE_SIDE)
    (pixels,) = _shrunk(image[None], step)
    png = _png(_greys(pixels, float(image.min()), float(image.max())))
    return base64.b64encode(png).decode()


def _shrunk(images: np.ndarray, step: int) -> np.ndarray:
    """Return means of blocks of ``step`` × ``step`` pixels."""
    height, width = (-(-side // step) * step for side in images.shape[1:])
    padding = [(0, 0), (0, height - images.shape[1]), (0, width - images.shape[2])]
    padded = np.pad(np.asarray(images, dtype=np.float32), padding, mode="edge")
    blocks = padded.reshape(len(images), height // step, step, width // step, step)
    return np.asarray(blocks.mean(axis=(2, 4)))


def _greys(pixels: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return levels of grey from 0 (black) to `N_GREYS` − 1."""
    share = np.nan_to_num(np.clip((pixels - low) / ((high - low) or 1.0), 0, 1))
    return np.rint((1 - share) * (N_GREYS - 1)).astype(np.uint8)


def _sheet(levels: np.ndarray, columns: int) -> np.ndarray:
    """Return thumbnails in rows of ``columns``."""
    n, height, width = levels.shape
    rows = -(-n // columns)
    padded = np.full((rows * columns, height, width), N_GREYS - 1, dtype=np.uint8)
    padded[:n] = levels
    grid = padded.reshape(rows, columns, height, width).transpose(0, 2, 1, 3)
    return grid.reshape(rows * height, columns * width)


def _png(levels: np.ndarray) -> bytes:
    """Return a PNG picture with 4 bits a pixel."""
    from PIL import Image

    picture = Image.fromarray(levels, mode="P")
    picture.putpalette([grey for k in range(N_GREYS) for grey in [255 * k // (N_GREYS - 1)] * 3])
    buffer = io.BytesIO()
    picture.save(buffer, format="png", optimize=True, bits=4)
    return buffer.getvalue()
