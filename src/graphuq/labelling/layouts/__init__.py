"""Layouts of files of other tools: which one a file is of, and the writing of each."""

from pathlib import Path

from graphuq.errors import InvalidInput, require
from graphuq.labelling.items import Items
from graphuq.labelling.layouts.base import Imported, Labelled, Layout, ReadLayout, labelled_by
from graphuq.labelling.layouts.hugging_face import HuggingFace
from graphuq.labelling.layouts.label_studio import LabelStudio
from graphuq.labelling.layouts.plain import Plain, PlainJsonLines, PlainParquet
from graphuq.labelling.layouts.prodigy import Prodigy
from graphuq.utils.files import atomic_write

READ: tuple[ReadLayout, ...] = (LabelStudio(), Prodigy(), HuggingFace())
LAYOUTS: dict[str, Layout] = {
    layout.name: layout for layout in (Plain(), PlainParquet(), PlainJsonLines(), *READ)
}
"""Layouts by the names that users type."""


def layout_of(path: Path) -> ReadLayout | None:
    """Return the layout of a file or folder of another tool; None for a plain table."""
    return next((layout for layout in READ if layout.fits(path)), None)


def layout_named(name: str) -> Layout:
    """Return a layout by its name.

    Raises
    ------
    InvalidInput
        If there is none of this name.
    """
    if name not in LAYOUTS:
        raise InvalidInput("layout", repr(name), f"use one of {', '.join(LAYOUTS)}")
    return LAYOUTS[name]


def write_labelled(labelled: Labelled, name: str, path: str | Path) -> None:
    """Write items and labels in a layout: the whole file, or none.

    Parameters
    ----------
    labelled : Labelled
    name : str
        Layout.
    path : path

    Raises
    ------
    InvalidInput
        If there is no layout of this name, or it cannot hold the items.
    StorageError
        If the file cannot be written.
    """
    layout = layout_named(name)
    require_holds(layout, labelled.items, labelled.has_tags)
    with atomic_write(Path(path)) as temporary:
        layout.write(labelled, temporary)


def require_holds(layout: Layout, items: Items, has_tags: bool = False) -> None:
    """Require that items, and labels that may be tags, can be written in a layout.

    Raises
    ------
    InvalidInput
        If they are pictures without files, and it holds no pixels; or labels are tags, and it has
        one class an item.
    """
    one_class, remedy = f"{layout.name!r} for tags", "use csv, parquet or jsonl"
    require(layout.has_tags or not has_tags, "layout", one_class, remedy)
    remedy = "use huggingface, which holds pixels, or give files"
    require(layout.holds(items), "layout", f"{layout.name!r} for pictures without files", remedy)


def layouts_of(items: Items, has_tags: bool = False) -> list[Layout]:
    """Return the layouts in which some items, with labels that may be tags, can be written."""
    fitting = [layout for layout in LAYOUTS.values() if layout.has_tags or not has_tags]
    return [layout for layout in fitting if layout.holds(items)]


__all__ = [
    "LAYOUTS",
    "Imported",
    "Labelled",
    "Layout",
    "ReadLayout",
    "labelled_by",
    "layout_named",
    "layout_of",
    "layouts_of",
    "require_holds",
    "write_labelled",
]
