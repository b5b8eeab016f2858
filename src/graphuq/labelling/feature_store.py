"""Features that a model computes once, kept in parts beside the labels."""

import hashlib
from pathlib import Path

import numpy as np
from jaxtyping import Float

from graphuq.errors import StorageError, require
from graphuq.labelling.encoders.base import Encoder, contents_of
from graphuq.labelling.items import Items, PictureFiles
from graphuq.utils.files import atomic_write
from graphuq.utils.gate import read_npy
from graphuq.utils.progress import Progress

PART = 256  # items that are kept together; what is done is not lost if the run ends
BATCH = 32  # items that the model takes together
FOLDER = "features"


def stored_features(
    items: Items, encoder: Encoder, beside: Path, progress: Progress | None = None
) -> Float[np.ndarray, "N d"]:
    """Return features of unit length of all items; those of an earlier run are read.

    Parameters
    ----------
    items : Items
        N texts or pictures.
    encoder : Encoder
    beside : path
        File of labels, in whose folder the features are kept.
    progress : callable, optional
        See `graphuq.infer`.

    Raises
    ------
    InvalidInput
        If the package of the model is missing, or it does not take such items.
    StorageError
        If an item cannot be read, or features cannot be written.
    """
    folder, parts = beside.parent / FOLDER / _key(items, encoder), []
    begins = range(0, len(items), PART)
    if not all((folder / _name(begin)).exists() for begin in begins):
        encoder.check(items)
        folder.mkdir(parents=True, exist_ok=True)
    for begin in begins:
        rows = range(begin, min(begin + PART, len(items)))
        path = folder / _name(begin)
        if not path.exists():
            _write(path, items, encoder, rows)
        part = read_npy(path)
        if part.ndim != 2 or len(part) != len(rows):
            raise StorageError(f"'{path}' has shape {part.shape}; delete it, and run again")
        parts.append(part)
        if progress is not None:
            progress("features", rows[-1] + 1, len(items), 0.0)
    return np.concatenate(parts)


def _name(begin: int) -> str:
    return f"{begin:08d}.npy"


def _write(path: Path, items: Items, encoder: Encoder, rows: range) -> None:
    """Compute the features of some items, and keep them."""
    found = []
    for begin in range(0, len(rows), BATCH):
        batch = rows[begin : begin + BATCH]
        values = np.asarray(encoder.encode(contents_of(items, batch)), dtype=np.float64)
        fits = values.ndim == 2 and len(values) == len(batch) and bool(np.isfinite(values).all())
        what = f"{encoder.identity!r} returned shape {values.shape} for {len(batch)} items"
        require(fits, "embed", f"{what}, or infinite values", "use another model")
        found.append(values)
    features = np.concatenate(found)
    norms = np.sqrt((features**2).sum(axis=1, keepdims=True))
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.save(file, (features / np.where(norms > 0, norms, 1.0)).astype(np.float32))


def _key(items: Items, encoder: Encoder) -> str:
    """Return a name for the features of some items by some model."""
    parts = [encoder.identity, items.digest(len(items))]
    if isinstance(items, PictureFiles):
        parts.append(repr([path.stat().st_size for path in items.paths]))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
