"""Layouts of files in which other tools hold items and labels."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphuq.labelling.items import Items, PictureFiles, TableItems, TextItems
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd

    from graphuq.labelling.session import Session
    from graphuq.labelling.tag_model import TagResult
    from graphuq.results.result import Result

TEXT, FILE, ID, LABEL = "text", "file", "id", "label"  # columns of `table_of`


@dataclasses.dataclass(frozen=True, eq=False)
class Imported:
    """Items and labels that were read.

    Attributes
    ----------
    frame : pandas.DataFrame, N rows
        Columns of the items.
    text : str or None
        Column with the text of an item.
    labels : numpy.ndarray of str, shape (N,)
        Class of each item, empty where there is none.
    ids : sequence of str or None
        Names of the items.
    pictures : Items or None
        Pictures, if the items are pictures.
    """

    frame: "pd.DataFrame"
    text: str | None
    labels: np.ndarray
    ids: Sequence[str] | None = None
    pictures: Items | None = None

    def items(self) -> Items:
        """Return the items with the other columns beside them; without a text, the rows."""
        if self.pictures is not None:
            found, beside = self.pictures, self.frame
        elif self.text is not None:
            found = TextItems([cell_text(value) for value in self.frame[self.text]], self.ids)
            beside = self.frame.drop(columns=self.text)
        else:
            return TableItems(self.frame, self.ids)
        if len(beside.columns):
            found.beside = TableItems(beside, found.ids)
        return found


@dataclasses.dataclass(frozen=True, eq=False)
class Labelled:
    """Items with what people and the model said of them, to be written.

    Attributes
    ----------
    items : Items
    labels : mapping of int to str
        Class that counts, by row; or tags, as in ``comedy;drama``.
    readings : mapping of int to mapping of str to str
        Class that each person gave, by row; the latest one is last.
    result : Result or None
        Posterior, for predictions.
    has_tags : bool, default False
        Whether labels are tags.
    """

    items: Items
    labels: Mapping[int, str]
    readings: Mapping[int, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    result: "Result | TagResult | None" = None
    has_tags: bool = False

    @property
    def classes(self) -> list[str]:
        """All classes, in order of their names."""
        known = [] if self.result is None else [str(name) for name in self.result.classes]
        return sorted({*known, *self.labels.values()})

    def said(self) -> Iterator[tuple[int, str | None, str]]:
        """Yield row, person and class of each label; a label that was known has no person."""
        for row in sorted({*self.labels, *self.readings}):
            by = self.readings.get(row, {})
            yield from ((row, user, label) for user, label in by.items())
            if row in self.labels and self.labels[row] not in by.values():
                yield row, None, self.labels[row]  # known before, or a decision


def labelled_by(session: "Session") -> Labelled:
    """Return the items of a session with what was said of them by now."""
    _, labels = session.latest
    readings, has_tags = session.store.readings(), session.store.tags is not None
    return Labelled(session.items, labels, readings, session.result, has_tags)


class Layout(ABC):
    """A layout of files that are written.

    Attributes
    ----------
    name : str
        As users type it.
    title : str
        As the page names it.
    file : str
        Name of the file that is written.
    has_pixels : bool, default True
        Whether it can be written for pictures that are no files: it holds pixels, or names alone.
    has_tags : bool, default False
        Whether it can be written for labels that are tags, several an item.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    file: ClassVar[str]
    has_pixels: ClassVar[bool] = True
    has_tags: ClassVar[bool] = False

    def holds(self, items: Items) -> bool:
        """Return whether it can be written for some items."""
        return self.has_pixels or not items.has_pictures or isinstance(items, PictureFiles)

    @abstractmethod
    def write(self, labelled: Labelled, path: Path) -> None:
        """Write a new file."""


class ReadLayout(Layout):
    """A layout of files that are read, too."""

    @abstractmethod
    def fits(self, path: Path) -> bool:
        """Return whether a file or folder is of this layout."""

    @abstractmethod
    def read(self, path: Path, text: str | None = None) -> Imported:
        """Return the items and labels of a file or folder that fits.

        Parameters
        ----------
        path : path
        text : str, optional
            Column with the text, if there are several.
        """


def table_of(items: Items) -> "pd.DataFrame":
    """Return what items show as columns: ``text`` or ``file``, and those of a table.

    A column whose name is ``id``, ``label``, ``text`` or ``file`` itself gets a number.
    """
    require_extra("label")
    import pandas as pd

    columns: dict[str, Any] = {}
    if isinstance(items, TextItems):
        columns[TEXT] = list(items.texts)
    elif isinstance(items, PictureFiles):
        columns[FILE] = [path.relative_to(items.folder).as_posix() for path in items.paths]
    table = items if isinstance(items, TableItems) else items.beside
    if table is not None:
        for name, values in table.columns():
            free, number = name, 2
            while free in {ID, LABEL, *columns}:
                free, number = f"{name} {number}", number + 1
            columns[free] = values
    return pd.DataFrame(columns, index=range(len(items)))


def cell_text(value: Any) -> str:
    """Return a cell of a table as text, empty where it is missing."""
    if isinstance(value, str | list | dict | np.ndarray):
        return str(value)
    return "" if value is None or value != value else f"{value}"
