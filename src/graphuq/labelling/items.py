"""Items to label: texts, pictures, or rows of a table."""

import hashlib
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from graphuq.errors import InvalidInput, StorageError, require
from graphuq.utils.checks import describe
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd

PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
"""Media type of each kind of picture. SVG is not among them, because it can hold scripts."""

MAX_TEXT = 20_000  # characters of an item that are shown
MAX_FIELDS = 400  # columns of a table that are shown
SEARCHED_FIELDS = 60  # columns in which `Items.containing` searches


class Items(ABC):
    """N items with names.

    Attributes
    ----------
    ids : sequence of str, length N
        Name of each item, by default its row number.
    beside : TableItems, optional
        Columns that are shown beside each item.
    map_places : numpy.ndarray, shape (N, 2), optional
        Place of each item on the map, which is then a picture; by default the graph tells.
    map_colors : list of str, optional
        Colour of each item in this picture.
    """

    ids: Sequence[str]
    beside: "TableItems | None" = None
    has_pictures = False
    map_places: Float[np.ndarray, "N 2"] | None = None
    map_colors: list[str] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def content(self, row: int) -> dict[str, Any]:
        """Return what the page shows of an item, as values that JSON can hold."""

    def picture(self, row: int) -> tuple[bytes, str]:
        """Return a picture and its media type.

        Raises
        ------
        StorageError
            If the item has no picture, or it cannot be read.
        """
        raise StorageError(f"item {row} has no picture")

    def words(self, row: int) -> str:
        """Return the text in which `find` searches, besides the name of the item."""
        return ""

    def summary(self, row: int) -> str:
        """Return the text of a small view."""
        return self.words(row)

    def shown(self, row: int) -> dict[str, Any]:
        """Return the content with the columns beside it."""
        if self.beside is None:
            return self.content(row)
        columns = self.beside.content(row)
        return {**columns, **self.content(row)}

    def label_table(self, labels: Mapping[int, str]) -> "pd.DataFrame":
        """Return a table with the columns ``id`` and ``label``, a row for each labelled item."""
        require_extra("label")
        import pandas as pd

        rows = sorted(labels)
        table = {"id": [self.ids[row] for row in rows], "label": [labels[row] for row in rows]}
        return pd.DataFrame(table, dtype=object)

    def containing(self, text: str, rows: Iterable[int]) -> np.ndarray:
        """Return those of some rows whose name or text contains a text, without regard to case."""
        wanted, found = text.casefold(), []
        for row in map(int, rows):
            beside = "" if self.beside is None else self.beside.words(row)
            if any(wanted in part.casefold() for part in (self.ids[row], self.words(row), beside)):
                found.append(row)
        return np.array(found, dtype=np.int64)

    def digest(self, n_items: int) -> str:
        """Return a checksum of the first items, which tells whether items are the same again."""
        found = hashlib.sha256()
        for row in range(n_items):
            parts = (self.ids[row], self.words(row))
            found.update(repr(parts).encode())
        return found.hexdigest()[:32]


class TextItems(Items):
    """Texts.

    Parameters
    ----------
    texts : sequence of str, length N
    ids : sequence of str, optional
    """

    def __init__(self, texts: Sequence[str], ids: Sequence[str] | None = None) -> None:
        self.texts = [str(text) for text in texts]
        self.ids = checked_ids(ids, len(self.texts))

    def content(self, row: int) -> dict[str, Any]:
        """Return the text."""
        text = self.texts[row]
        shown = text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + " …"
        return {"kind": "text", "text": shown}

    def words(self, row: int) -> str:
        """Return the text."""
        return self.texts[row]


class TableItems(Items):
    """Rows of a table, shown as names and values.

    Parameters
    ----------
    table : pandas.DataFrame, N rows
    ids : sequence of str, optional
    """

    def __init__(self, table: "pd.DataFrame", ids: Sequence[str] | None = None) -> None:
        self.names = [str(name) for name in table.columns]
        self._columns = [table[name].to_numpy() for name in table.columns]
        self.ids = checked_ids(ids, len(table))

    def content(self, row: int) -> dict[str, Any]:
        """Return the names and values of the first columns."""
        pairs = [
            [name, _printed(column[row])]
            for name, column in zip(self.names[:MAX_FIELDS], self._columns, strict=False)
        ]
        return {"kind": "fields", "fields": pairs, "more": len(self.names) - len(pairs)}

    def columns(self) -> "list[tuple[str, np.ndarray]]":
        """Return all names and values."""
        return list(zip(self.names, self._columns, strict=True))

    def words(self, row: int) -> str:
        """Return the values of the first columns."""
        return " ".join(_printed(column[row]) for column in self._columns[:SEARCHED_FIELDS])

    def summary(self, row: int) -> str:
        """Return the first names and values."""
        pairs = zip(self.names[:SEARCHED_FIELDS], self._columns, strict=False)
        return ", ".join(f"{name}: {_printed(column[row])}" for name, column in pairs)


class PictureFiles(Items):
    """Pictures in a folder and below it.

    Parameters
    ----------
    folder : path
        No file outside this folder is ever read, links included.
    paths : sequence of path
        One picture for each item, relative to the folder or absolute.
    ids : sequence of str, optional
        By default the paths relative to the folder.

    Raises
    ------
    InvalidInput, StorageError
        If a file is missing, outside the folder, or not of a known type of picture.
    """

    has_pictures = True

    def __init__(
        self,
        folder: str | Path,
        paths: Iterable[str | Path],
        ids: Sequence[str] | None = None,
    ) -> None:
        self.folder = Path(folder).resolve()
        require(self.folder.is_dir(), "images", f"there is no folder '{folder}'", "name a folder")
        self.paths = [self.folder / path for path in paths]
        for path in self.paths:
            self._confined(path)
        names = [path.relative_to(self.folder).as_posix() for path in self.paths]
        self.ids = checked_ids(names if ids is None else ids, len(self.paths))

    @classmethod
    def in_folder(cls, folder: str | Path) -> "PictureFiles":
        """Return all pictures in a folder and below it, in order of their names.

        Raises
        ------
        InvalidInput
            If there are none.
        """
        root = Path(folder)
        require(root.is_dir(), "images", f"there is no folder '{folder}'", "name a folder")
        found = sorted(p for p in root.resolve().rglob("*") if p.suffix.lower() in PICTURES)
        others = sorted({p.suffix.lower() for p in root.rglob("*") if p.is_file()} - {""})
        held = f", but {', '.join(others[:3])}" if others else ""
        remedy = f"use {', '.join(PICTURES)}; texts are rows of a table, with --text-column"
        require(found, "images", f"no pictures in '{folder}'{held}", remedy)
        return cls(root, found)

    def content(self, row: int) -> dict[str, Any]:
        """Return that there is a picture."""
        return {"kind": "picture"}

    def picture(self, row: int) -> tuple[bytes, str]:
        """Return the file as it is now."""
        path = self._confined(self.paths[row])
        try:
            return path.read_bytes(), PICTURES[path.suffix.lower()]
        except OSError as error:
            raise StorageError(f"cannot read '{path.name}' ({error.strerror})") from None

    def _confined(self, path: Path) -> Path:
        """Return the file behind a path, if it is a picture inside the folder."""
        real = path.resolve()
        inside = real.is_relative_to(self.folder) and path.absolute().is_relative_to(self.folder)
        require(
            inside and ".." not in path.parts,
            "images",
            f"'{path}' is outside the folder '{self.folder}'",
            "name the folder that holds all pictures",
        )
        require(
            real.suffix.lower() in PICTURES,
            "images",
            f"'{path.name}' is not of a known type",
            f"use {', '.join(PICTURES)}",
        )
        if not real.is_file():
            raise StorageError(f"there is no file '{path}'")
        return real


class PictureArrays(Items):
    """Pictures given as arrays.

    Parameters
    ----------
    pixels : numpy.ndarray, shape (N, H, W), (N, H, W, 3) or (N, H, W, 4)
        Bytes, or other numbers (zeros and ones too), which are scaled so that 0 is black and the
        largest value is white.
    ids : sequence of str, optional
    """

    has_pictures = True

    def __init__(self, pixels: np.ndarray, ids: Sequence[str] | None = None) -> None:
        fits = pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] in (3, 4))
        remedy = "give shape (N, H, W) or (N, H, W, 3)"
        require(fits and pixels.size > 0, "items", describe(pixels), remedy)
        self._pixels = pixels
        largest = float(np.nanmax(pixels))
        is_bytes = pixels.dtype == np.uint8 and largest > 1
        self._scale = 1.0 if is_bytes else 255 / max(largest, 1e-300)
        self.ids = checked_ids(ids, len(pixels))

    def content(self, row: int) -> dict[str, Any]:
        """Return that there is a picture, and whether its pixels are few."""
        return {"kind": "picture", "pixelated": max(self._pixels.shape[1:3]) < 100}

    def picture(self, row: int) -> tuple[bytes, str]:
        """Return the pixels as a PNG picture."""
        from PIL import Image

        values = np.nan_to_num(np.asarray(self._pixels[row], np.float64)) * self._scale
        buffer = io.BytesIO()
        Image.fromarray(np.clip(np.round(values), 0, 255).astype(np.uint8)).save(buffer, "PNG")
        return buffer.getvalue(), "image/png"

    def digest(self, n_items: int) -> str:
        """Return a checksum of names and pixels."""
        found = hashlib.sha256(repr(list(self.ids[:n_items])).encode())
        found.update(np.ascontiguousarray(self._pixels[:n_items]).tobytes())
        return found.hexdigest()[:32]


def items_of(items: Any, X: Any = None, ids: Sequence[str] | None = None) -> Items:
    """Return items for what a user gave.

    Parameters
    ----------
    items : Items, list of str, list of pathlib.Path, numpy.ndarray, pandas.DataFrame or None
        Texts, files of pictures, arrays of pixels, or a table. None shows the features.
    X : array_like, shape (N, d), optional
        Features.
    ids : sequence of str, optional
        Names of the items.

    Raises
    ------
    InvalidInput
        If the items are of another kind.
    """
    require_extra("label")
    import pandas as pd

    if isinstance(items, Items):
        return items
    if items is None and X is not None:
        return _features(X, ids)
    if isinstance(items, pd.DataFrame):
        return TableItems(items, ids)
    if isinstance(items, pd.Series):
        items = items.tolist()
    if isinstance(items, np.ndarray) and items.dtype.kind in "uifb" and items.ndim > 2:
        return PictureArrays(items, ids)
    if isinstance(items, np.ndarray) and items.ndim == 1:
        items = items.tolist()
    if isinstance(items, list | tuple) and items:
        if all(isinstance(item, Path) for item in items):
            absolute = [path.absolute() for path in items]
            shared = set(absolute[0].parents).intersection(*(path.parents for path in absolute))
            return PictureFiles(max(shared, key=lambda p: len(p.parts)), absolute, ids)
        if all(isinstance(item, str) for item in items):
            return TextItems(items, ids)
    raise InvalidInput(
        "items",
        describe(items),
        "give a list of texts, a list of pathlib.Path, pixels of shape (N, H, W), or a DataFrame",
    )


def _features(X: Any, ids: Sequence[str] | None) -> Items:
    """Return features as rows of a table."""
    require_extra("label")
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return TableItems(X, ids)
    remedy = "give items=, what a person can recognise"
    require(hasattr(X, "shape") or isinstance(X, list), "items", "not given", remedy)
    require(not hasattr(X, "tocsr"), "items", "not given beside a sparse matrix", remedy)
    values = np.asarray(X)
    require(values.ndim == 2, "items", f"not given beside {describe(X)}", remedy)
    return TableItems(pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])]), ids)


def checked_ids(ids: Sequence[str] | None, n_items: int) -> list[str]:
    """Return names of the items: different ones, by default row numbers."""
    require(n_items > 1, "items", f"{n_items} item(s)", "give at least 2")
    if ids is None:
        return [str(row) for row in range(n_items)]
    names = [str(name) for name in ids]
    require(len(names) == n_items, "ids", f"{len(names)} names", f"give {n_items}, one an item")
    require(len(set(names)) == n_items, "ids", "a name repeats", "give each item its own name")
    return names


def _printed(value: Any) -> str:
    """Return a value of a table as text."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    return str(value)
